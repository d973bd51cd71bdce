"""Versions of Kafka's inter-broker protocol, by age."""

import pytest

from barnabas_kafka.settings.metadata_version import MetadataVersion

parse = MetadataVersion.parse


def test_a_release_is_its_last_internal_version() -> None:
    """Whatever its patch number."""
    assert parse("2.7") == parse("2.7.1") == parse("2.7-IV2")
    assert parse("0.10.0") == parse("0.10.0.1") == parse("0.10.0-IV1")
    assert parse("3.9") == parse("3.9-IV0")


def test_versions_are_ordered_by_age() -> None:
    """Not as text."""
    names = ["0.8.0", "0.9.0", "0.10.2", "0.11.0", "1.1", "2.0", "2.7-IV0", "2.7-IV1", "2.8", "3.0"]
    assert sorted(map(parse, reversed(names))) == [parse(name) for name in names]


@pytest.mark.parametrize("text", ["", "4.0", "2.7-IV3", "2.9", "0.8.0-IV0", "2.7-IVx", "x"])
def test_others_are_refused(text: str) -> None:
    """As Kafka refuses to start with them."""
    with pytest.raises(ValueError, match="no"):
        parse(text)
