"""Properties files are read as Java reads them."""

import pytest

from barnabas_kafka.settings.definitions import SettingError
from barnabas_kafka.settings.properties import parse_properties


def parse(text: str) -> dict[str, str]:
    """The settings in a text."""
    return parse_properties(text.encode("utf-8"), origin="server.properties")


def test_forms_of_a_line() -> None:
    """Any of the three separators, comments, continuations and escapes."""
    text = "# c\n! c\na=1\nb: 2\nc 3\nd=x\\\n   y\ne=\\u0041\n\nf\n g = h \n"
    assert parse(text) == {
        "a": "1", "b": "2", "c": "3", "d": "xy", "e": "A", "f": "", "g": "h ",
    }  # fmt: skip


def test_the_last_of_equal_keys_wins() -> None:
    """As in Java, without complaint."""
    assert parse("a=1\na=2\n") == {"a": "2"}


def test_windows_line_ends() -> None:
    """A carriage return belongs to the line end, not to the value."""
    assert parse("a=1\r\nb=2\r\n") == {"a": "1", "b": "2"}


def test_other_characters_are_latin() -> None:
    """Java reads bytes as ISO 8859-1, so that a comment in any encoding is harmless."""
    assert parse("# 配置\na=é\n") == {"a": "Ã©"}


def test_a_malformed_escape_names_file_and_line() -> None:
    """The user is told where to look."""
    with pytest.raises(SettingError) as refused:
        parse("# one\na=1\n\nb=\\u12\n")
    assert str(refused.value).startswith("server.properties: line 4 ")
