"""`consume --format`: kcat's tokens and escapes, and what is none of them."""

from __future__ import annotations

import pytest
from confluent_kafka import Message

from barnabas_broker.cli.errors import InputError
from barnabas_broker.cli.record_format import parse_format
from tests.broker.cli.conftest import Run


@pytest.mark.kafka_topic(partitions=1)
@pytest.mark.parametrize(
    ("pattern", "printed"),
    [
        ("%k %v\\n", "k v:w\nz \n v\n"),
        ("%K,%S,%V;", "1,3,3;1,-1,-1;-1,1,1;"),
        ("%t-%p@%o|", "TOPIC-0@0|TOPIC-0@1|TOPIC-0@2|"),
        ("%h\\t", "who=me,no=NULL\twho=me,no=NULL\twho=me,no=NULL\t"),
        ("100%% \\x41\\\\ ", "100% A\\ 100% A\\ 100% A\\ "),
    ],
)
def test_tokens_and_escapes(run: Run, kafka_topic: str, pattern: str, printed: str) -> None:
    """As kcat prints them; nothing is added behind a record."""
    options = ("--key-separator", ":", "--null-marker", "NULL", "--header", "who=me")
    run("produce", kafka_topic, *options, "--header", "no=NULL", stdin=b"k:v:w\nz:NULL\nNULL:v\n")
    read = run("consume", kafka_topic, "--from-beginning", "--until-end", "--format", pattern)
    assert read.stdout == printed.replace("TOPIC", kafka_topic)


@pytest.mark.kafka_topic(partitions=1)
def test_lengths_as_bytes_timestamps_and_nulls(run: Run, kafka_topic: str) -> None:
    """A length in front of each value is what programs split values with line ends by."""
    run("produce", kafka_topic, "--null-marker", "NULL", stdin=b"abc\nNULL\n")
    (first, _) = run(
        "consume", kafka_topic, "--from-beginning", "--until-end", "--output", "json"
    ).json_lines()
    args = ("consume", kafka_topic, "--from-beginning", "--until-end", "--null-marker", "none")
    assert run(*args, "--format", "%R%s").stdout.startswith("\0\0\0\x03abc")
    assert run(*args, "--format", "%T %s\\n").stdout.splitlines()[0] == f"{first['timestamp']} abc"
    assert run(*args, "--format", "%s;").stdout == "abc;none;"


def test_a_record_without_a_timestamp() -> None:
    """-1, as kcat prints it."""

    class Old(Message):
        def timestamp(self) -> tuple[int, int]:
            return 0, 0

    assert parse_format("%T")(Old()) == b"-1"


@pytest.mark.parametrize(
    ("pattern", "wrong"),
    [
        ("%z", "%z"),
        ("%s\\q", "\\q"),
        ("%", "%"),
        ("\\x4", "\\x"),
        ("%z%s%y", "%z, %y"),
        ("a\\", "\\"),
    ],
)
def test_unknown_format_tokens_are_refused(pattern: str, wrong: str) -> None:
    """All of it at once, with what there is."""
    with pytest.raises(InputError) as refused:
        parse_format(pattern)
    assert refused.value.message.startswith(f"--format: there is no {wrong}; there are %s ")


def test_conflicting_output_options_are_refused(run: Run) -> None:
    """One of the two would have no effect."""
    reported = run("consume", "t", "--format", "%s", "--print", "key", "--output", "json", fails=2)
    assert "leave out --print, --output" in reported.stderr
