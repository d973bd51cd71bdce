"""How a consumed record is printed."""

import json

import pytest
from confluent_kafka import Message

from barnabas_broker.cli.errors import InputError
from barnabas_broker.cli.records import PARTS, as_json, as_text, parse_parts

RECORD = Message(
    topic="t",
    partition=2,
    offset=7,
    key=b"k",
    value=b"v\xff",
    headers=[("a", b"1"), ("b", None)],
    timestamp=(1, 1700000000000),
    leader_epoch=4,
)
EMPTY = Message(topic="t", partition=0, offset=0, timestamp=(0, -1))


def test_text_is_kafkas_console_format_with_the_bytes_as_they_are() -> None:
    """Scripts that parse Kafka's console consumer parse this too; nothing is decoded."""
    assert as_text(RECORD, list(PARTS), b"\t", b"null") == (
        b"CreateTime:1700000000000\tPartition:2\tOffset:7\ta:1,b:null\tk\tv\xff\n"
    )


def test_text_of_an_empty_record_shows_nulls() -> None:
    """A null key is not an empty key."""
    assert as_text(EMPTY, ["timestamp", "headers", "key", "value"], b"|", b"<null>") == (
        b"NO_TIMESTAMP|NO_HEADERS|<null>|<null>\n"
    )


def test_json_keeps_every_byte() -> None:
    """What is no text is base64 and says so, so that a program can get the bytes back."""
    assert json.loads(as_json(RECORD)) == {
        "topic": "t",
        "partition": 2,
        "offset": 7,
        "leader_epoch": 4,
        "timestamp": 1700000000000,
        "timestamp_type": "CreateTime",
        "headers": [["a", "1"], ["b", None]],
        "key": "k",
        "value": {"base64": "dv8="},
    }
    empty = json.loads(as_json(EMPTY))
    assert (empty["timestamp"], empty["key"], empty["value"]) == (None, None, None)


def test_parts_are_printed_in_one_order_whatever_was_asked() -> None:
    """The order is the console consumer's."""
    assert parse_parts("value, key,offset") == ["offset", "key", "value"]
    with pytest.raises(InputError, match="colour"):
        parse_parts("key,colour")
