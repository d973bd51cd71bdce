"""What commands print."""

import json

import pytest

from barnabas_broker.cli.output import cell_text, print_json, print_table


def test_tables_are_not_folded_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    """A pipe has no width: a line of the table is a line of the output, however long."""
    print_table(["name", "number"], [["x" * 300, 1], ["[bold]", 22]])
    heading, long, short = capsys.readouterr().out.splitlines()
    assert heading.split() == ["name", "number"]
    assert long.split() == ["x" * 300, "1"]
    # Numbers end in the same column, and what looks like markup is printed as it is.
    assert short.split() == ["[bold]", "22"]
    assert len(short) == len(long) == len(heading)


def test_cells() -> None:
    """Nothing, truth and lists as people write them."""
    assert [cell_text(value) for value in (None, True, [1, 2], [], "a")] == [
        "-",
        "true",
        "1,2",
        "",
        "a",
    ]


def test_json_keeps_letters(capsys: pytest.CaptureFixture[str]) -> None:
    """Text in any script is printed as text."""
    print_json({"name": "Käfer"})
    out = capsys.readouterr().out
    assert "Käfer" in out
    assert json.loads(out) == {"name": "Käfer"}
