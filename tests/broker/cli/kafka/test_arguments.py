"""Kafka's option syntax, as click gets to see it."""

import pytest

from barnabas_broker.cli.kafka.arguments import Takes, normalise

OPTIONS = {
    "--list": Takes.NOTHING,
    "--topic": Takes.ONE,
    "--throughput": Takes.ONE,
    "--compression-codec": Takes.MAYBE_ONE,
    "--producer-props": Takes.SEVERAL,
}


@pytest.mark.parametrize(
    ("typed", "read"),
    [
        ("--topic t --list", "--topic t --list"),
        ("--topic=t", "--topic=t"),
        ("-list -topic t", "--list --topic t"),
        ("-topic=t", "--topic=t"),
        ("-unknown", "-unknown"),
        ("--throughput -1 -list", "--throughput -1 --list"),
        ("--topic –list", "--topic –list"),
        ("--producer-props a=1 b=2 --list", "--producer-props a=1 --producer-props b=2 --list"),
        ("--producer-props a=1 –topic t", "--producer-props a=1 --topic t"),
        ("--producer-props=a=1 --list", "--producer-props=a=1 --list"),
        ("--compression-codec --list", "--compression-codec --list"),
        ("-- -list", "-- -list"),
        ("word - -1", "word - -1"),
    ],
)
def test_options_are_recognised(typed: str, read: str) -> None:
    """With one dash or two, with values that begin with a dash, with several values."""
    assert normalise(typed.split(), OPTIONS).arguments == read.split()


def test_typographic_dashes_are_replaced_and_reported() -> None:
    """What was pasted from a document works, and the user hears of it; unknown names are mended too
    so that the error shows the option that was meant."""
    found = normalise(["–topic", "t", "—list", "–bogus", "−list"], OPTIONS)
    assert found.arguments == ["--topic", "t", "--list", "--bogus", "--list"]
    assert found.mended == ["–topic", "—list", "−list"]
