"""Addresses to listen on are read and checked as Kafka does."""

import pytest

from barnabas_kafka.settings.definitions import SettingError
from barnabas_kafka.settings.listeners import (
    Listener,
    SecurityProtocol,
    check_distinct,
    parse_listeners,
    parse_protocol_map,
)

PLAINTEXT = SecurityProtocol.PLAINTEXT
PROTOCOLS = {"PLAINTEXT": PLAINTEXT, "INSIDE": PLAINTEXT, "SSL": SecurityProtocol.SSL}


def parse(text: str) -> tuple[Listener, ...]:
    """The listeners of a text."""
    return parse_listeners("listeners", text, protocols=PROTOCOLS)


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("PLAINTEXT://:9092", "", 9092),
        ("plaintext://localhost:0", "localhost", 0),
        ("PLAINTEXT://0.0.0.0:9092", "0.0.0.0", 9092),
        ("PLAINTEXT://[::1]:9092", "::1", 9092),
        ("PLAINTEXT://host_1.example-2.org:65535", "host_1.example-2.org", 65535),
    ],
)
def test_one_address(text: str, host: str, port: int) -> None:
    """Names are upper-cased; hosts may be empty, names, IPv4 or bracketed IPv6."""
    assert parse(text) == (Listener("PLAINTEXT", host, port, PLAINTEXT),)


def test_several_addresses() -> None:
    """Blanks round commas do not matter, and each name has its protocol."""
    found = parse("INSIDE://a:1 , SSL://b:2")
    assert [(listener.name, listener.protocol.name) for listener in found] == [
        ("INSIDE", "PLAINTEXT"),
        ("SSL", "SSL"),
    ]


def test_an_address_can_be_shown() -> None:
    """What is shown can be read again, IPv6 included."""
    for text in ("PLAINTEXT://[::1]:9092", "PLAINTEXT://:9092", "SSL://host:1"):
        assert str(parse(text)[0]) == text


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("localhost:9092", "not of the form"),
        ("PLAINTEXT://localhost", "not of the form"),
        ("PLAINTEXT://::1:9092", "not of the form"),
        ("PLAINTEXT://localhost:65536", "not between 0 and 65535"),
        ("PLAINTEXT://localhost:-1", "not between 0 and 65535"),
        ("OUTSIDE://localhost:9092", "not in listener.security.protocol.map"),
    ],
)
def test_a_wrong_address_is_refused(text: str, reason: str) -> None:
    """The refusal says which address is wrong, and why."""
    with pytest.raises(SettingError, match=reason):
        parse(text)


def test_the_protocol_map() -> None:
    """Names and protocols are read in any case."""
    expected = {"INSIDE": SecurityProtocol.SSL, "B": PLAINTEXT}
    assert parse_protocol_map("map", "inside:ssl, B:PLAINTEXT") == expected


@pytest.mark.parametrize("text", ["INSIDE", ":SSL", "INSIDE:TLS", "A:SSL,a:PLAINTEXT"])
def test_a_wrong_protocol_map_is_refused(text: str) -> None:
    """Pairs only, known protocols only, each name once."""
    with pytest.raises(SettingError):
        parse_protocol_map("map", text)


@pytest.mark.parametrize(
    "text",
    [
        "PLAINTEXT://a:1,INSIDE://b:2",
        "PLAINTEXT://a:0,INSIDE://b:0",
        "PLAINTEXT://127.0.0.1:1,INSIDE://[::1]:1",
    ],
)
def test_compatible_listener_addresses(text: str) -> None:
    """Free ports may repeat, and IPv4 and IPv6 may share a port (KIP-797)."""
    check_distinct("listeners", text, parse(text))


@pytest.mark.parametrize(
    "text",
    [
        "PLAINTEXT://a:1,PLAINTEXT://b:2",
        "PLAINTEXT://a:1,INSIDE://b:1",
        "PLAINTEXT://127.0.0.1:1,INSIDE://127.0.0.2:1",
        "PLAINTEXT://127.0.0.1:1,INSIDE://[::1]:1,SSL://[::2]:1",
    ],
)
def test_addresses_that_collide(text: str) -> None:
    """A name or a port may be given once."""
    with pytest.raises(SettingError):
        check_distinct("listeners", text, parse(text))
