"""What commands print, and the files of Kafka's tools that they read and write."""

import io
import json
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
import yaml

from barnabas_broker.cli.errors import InputError
from barnabas_broker.cli.json_files import read_json, write_json
from barnabas_broker.cli.main import main
from barnabas_broker.cli.output import cell_text, print_json, print_table
from barnabas_kafka.reassignment.files import read_topics
from tests.broker.cli.conftest import Run


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


def test_names_do_not_reach_the_terminal_as_codes(capsys: pytest.CaptureFixture[str]) -> None:
    """Groups, members and client ids are named by clients, with line breaks and escapes if any."""
    print_table(["group", "members"], [["\x1b]0;owned\x07\nother  7", ["\x9b2J", "a"]]])
    heading, row = capsys.readouterr().out.splitlines()
    assert heading.split() == ["group", "members"]
    assert row.split("  ")[0] == "\\x1b]0;owned\\x07\\nother"
    assert row.endswith("\\x9b2J,a")


def test_json_keeps_letters(capsys: pytest.CaptureFixture[str]) -> None:
    """Text in any script is printed as text."""
    print_json({"name": "Käfer"})
    out = capsys.readouterr().out
    assert "Käfer" in out
    assert json.loads(out) == {"name": "Käfer"}


def test_a_written_document_is_read_back(tmp_path: Path) -> None:
    """One document, one line; a byte order mark, as some editors leave it, does no harm."""
    path = tmp_path / "topics.json"
    write_json(path, '{"topics":[{"topic":"größe"}]}')
    assert path.read_text(encoding="utf-8").endswith("}]}\n")
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert read_json(path, read_topics) == ("größe",)


@pytest.mark.parametrize(
    ("data", "reported"),
    [
        (b'{"topics": [', "line 1, column 13: it is no JSON"),
        (b"\xff\xfe{", "it is not text in UTF-8"),
        (b'{"topics": [{}]}', "topics[0].topic: a name is missing"),
    ],
)
def test_a_file_that_is_wrong(tmp_path: Path, data: bytes, reported: str) -> None:
    """File first, then place, then why."""
    path = tmp_path / "topics.json"
    path.write_bytes(data)
    with pytest.raises(InputError) as refused:
        read_json(path, read_topics)
    assert refused.value.message.startswith(f"{path}: {reported}")


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    """Neither to read nor to write."""
    path = tmp_path / "no" / "file.json"
    with pytest.raises(InputError, match="No such file or directory"):
        read_json(path, read_topics)
    with pytest.raises(InputError, match="No such file or directory"):
        write_json(path, "{}")


class Terminal(io.StringIO):
    """Standard output that is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("width", [30, 45, 60])
def test_a_table_fits_the_terminal(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    """Nothing of it is lost; where there is room for text beside them, numbers are in one piece."""
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("TERM", "xterm")
    out = Terminal()
    monkeypatch.setattr("sys.stdout", out)
    columns = ["broker", "address", "replicas"]
    print_table(columns, [[1001, "broker-1001.example.com:9092", 123456]])
    shown = re.sub(r"\x1b\[[0-9;]*m", "", out.getvalue())
    assert all(len(line) <= width for line in shown.splitlines())
    given = "".join([*columns, "1001", "broker-1001.example.com:9092", "123456"])
    assert sorted("".join(shown.split())) == sorted(given)
    if width > 30:
        assert {"1001", "123456"} <= set(shown.split())


def commands(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Command]]:
    """Every command that does something, with its words; groups are gone into."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))
        else:
            yield " ".join((*path, name)), command


# What has no document to print.
RUNS_UNTIL_STOPPED = {
    "broker start", "zookeeper start", "zookeeper member", "pipeline run",
}  # fmt: skip
PROBES_AND_SCRIPTS = {
    "broker ready", "broker wait-for-rack", "completion", "pipeline jars", "pipeline selftest",
}  # fmt: skip


def test_every_command_has_documents() -> None:
    """In JSON and in YAML, whether it shows something or changes it."""
    without = {
        words
        for words, command in commands(main)
        if not any(
            parameter.name == "output"
            and isinstance(parameter.type, click.Choice)
            and {"json", "yaml"} <= set(parameter.type.choices)
            for parameter in command.params
        )
    }
    assert without == RUNS_UNTIL_STOPPED | PROBES_AND_SCRIPTS


def test_documents_of_what_was_done(run: Run, kafka_topic: str) -> None:
    """All that succeeded, also where the rest failed; the reasons are on standard error."""
    new = f"{kafka_topic}-new"
    half = run("topics", "create", new, kafka_topic, "--output", "json", fails=1)
    assert half.json() == [{"topic": new, "created": True}]
    assert "TOPIC_ALREADY_EXISTS" in half.stderr
    sent = run("produce", new, "--output", "json", stdin=b"a\nb\n")
    assert (sent.json(), sent.stderr) == ([{"topic": new, "sent": 2}], "")
    deleted = run("topics", "delete", new, "--output", "yaml").stdout
    assert yaml.safe_load(deleted) == [{"topic": new, "deleted": True}]
    # Nothing was tried, so there is no document.
    assert run("topics", "alter", new, "--output", "json", fails=2).stdout == ""


def test_records_in_yaml(run: Run, kafka_topic: str) -> None:
    """A stream with a document for each record, as JSON has a line."""
    run("produce", kafka_topic, stdin=b"a\nb\n")
    read = ("consume", kafka_topic, "--from-beginning", "--until-end", "--output")
    documents = list(yaml.safe_load_all(run(*read, "yaml").stdout))
    assert documents == run(*read, "json").json_lines()
    assert [each["value"] for each in documents] == ["a", "b"]
    cluster = run("cluster-id", "--output", "json").json()
    assert cluster == {"cluster_id": run("cluster-id").stdout.strip()}
