"""Texts become values as Java reads them, and are shown again as Kafka shows them."""

import pytest

from barnabas_kafka.settings import declare
from barnabas_kafka.settings.definitions import Key, Kind, SettingError

RATIO = declare.double("ratio", 0.5, "A share.", rule=declare.between(0, 1))
NAMES = declare.words("names", (), "Names.", rule=declare.all_of("a", "b"))
MODE = declare.string("mode", "fast", "A mode.", rule=declare.one_of("fast", "slow"))
LOOSE = declare.string("loose", None, "A word.", rule=declare.one_of("A", ignore_case=True))


@pytest.mark.parametrize(
    ("text", "value"), [("7", 7), (" +7 ", 7), ("-7", -7), ("007", 7), ("32767", 32767)]
)
def test_whole_numbers(text: str, value: int) -> None:
    """Signs, leading zeros and blanks are Java's."""
    assert declare.short("n", 0, "A number.").parse(text) == value


@pytest.mark.parametrize("text", ["", "1_000", "0x10", "1.0", "32768", "-32769", "\u0661"])
def test_invalid_integers_are_refused(text: str) -> None:
    """Python's looser forms and numbers too wide for the type are refused."""
    with pytest.raises(SettingError):
        declare.short("n", 0, "A number.").parse(text)


@pytest.mark.parametrize("text", ["nan", "inf", "1_0", "half", "1.1", "-0.1"])
def test_invalid_fractions_are_refused(text: str) -> None:
    """Only finite numbers in the range pass."""
    with pytest.raises(SettingError):
        RATIO.parse(text)


@pytest.mark.parametrize(
    ("value", "text"), [(0.5, "0.5"), (1.0, "1.0"), (declare.DOUBLE_MAX, "1.7976931348623157E308")]
)
def test_fractions_are_shown_as_java_does(value: float, text: str) -> None:
    """DescribeConfigs shows the same text as Apache Kafka."""
    assert RATIO.format(value) == text


@pytest.mark.parametrize(
    ("text", "value"), [("", ()), ("a", ("a",)), ("a , b", ("a", "b")), (" a,b ", ("a", "b"))]
)
def test_lists(text: str, value: tuple[str, ...]) -> None:
    """Blanks round commas are dropped, and no text is no item."""
    assert NAMES.parse(text) == value


@pytest.mark.parametrize(("key", "text"), [(NAMES, "a,"), (NAMES, "c"), (MODE, "FAST")])
def test_words_out_of_range(key: Key[object], text: str) -> None:
    """Choices are exact unless the key says otherwise."""
    with pytest.raises(SettingError, match="must be"):
        key.parse(text)


def test_words_in_any_case() -> None:
    """A key may ignore case and still keeps what was written."""
    assert LOOSE.parse("a") == "a"


def test_a_default_may_be_absent_or_elsewhere() -> None:
    """Both have no text of their own; only the types differ."""
    assert declare.long("n", None, "A number.").default_text is None
    assert declare.long("n", declare.ELSEWHERE, "A number.").default_text is None


def test_one_text_that_is_a_list() -> None:
    """Directories are a list for us and a string for clients."""
    key = declare.texts("dirs", declare.ELSEWHERE, "Directories.")
    assert key.kind is Kind.STRING
    assert key.parse("/a, /b") == ("/a", "/b")
    assert key.format(("/a", "/b")) == "/a,/b"
