"""Reset plans as CSV."""

import pytest

from barnabas_broker.cli.groups import reset_plan

ONE = {"g": {("orders", 0): 5, ("orders", 1): 0}}
TWO = {**ONE, "h, and i": {("orders", 0): 7}}


def test_one_group_is_not_named() -> None:
    """As Kafka exports it, and reads it back."""
    text = reset_plan.written(ONE, alone=True)
    assert text == "orders,0,5\norders,1,0\n"
    assert reset_plan.read(text, ("g",)) == ONE


def test_several_groups_are_named_in_each_line() -> None:
    """A name with a comma stands in quotes; the format goes by what was asked, not by what came."""
    text = reset_plan.written(TWO, alone=False)
    assert text == 'g,orders,0,5\ng,orders,1,0\n"h, and i",orders,0,7\n'
    assert reset_plan.read(text, tuple(TWO)) == TWO
    assert reset_plan.written(ONE, alone=False).startswith("g,orders")


def test_what_apache_exports_is_read() -> None:
    """It quotes longer names, and ends with empty lines."""
    text = '"a-topic-with-quite-a-long-name",0,3\nalpha,2,0\n\n\n'
    expected = {"g": {("a-topic-with-quite-a-long-name", 0): 3, ("alpha", 2): 0}}
    assert reset_plan.read(text, ("g",)) == expected


@pytest.mark.parametrize(
    "text", ["orders", "orders,x,5", "orders,0,5\ng,orders,0,5", "a,b,c,1,2", "orders,0,"]
)
def test_a_line_that_is_no_plan_is_named(text: str) -> None:
    """Nothing is read of such a file."""
    with pytest.raises(ValueError, match="line"):
        reset_plan.read(text, ("g",))


def test_a_plan_without_groups_is_for_one_group() -> None:
    """For which of two it would be, nobody knows."""
    with pytest.raises(ValueError, match="one group only"):
        reset_plan.read("orders,0,5", ("g", "h"))
