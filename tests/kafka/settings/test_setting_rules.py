"""Rules of settings: metadata versions, old names, dependencies."""

from __future__ import annotations

import pytest

from barnabas_kafka.settings import broker
from barnabas_kafka.settings.metadata_version import MetadataVersion
from barnabas_kafka.settings.old_names import OLD_NAMES, Side, explain, nearest_name
from barnabas_kafka.settings.rules import GZIP_LEVEL, KNOWN_VERSION, POOL_SIZE, THROTTLED_REPLICAS

# --- Versions of Kafka's inter-broker protocol, by age


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


# --- Old and misspelt names lead to the real ones


def test_the_table_leads_to_real_names() -> None:
    """A broker's name is never called old by mistake, and what is meant exists."""
    for old in OLD_NAMES:
        if old.side is Side.BROKER:
            assert old.said not in broker.KEYS
            assert old.meant is None or old.meant in broker.KEYS


def test_each_name_is_listed_once() -> None:
    """The table is a table."""
    said = [old.said for old in OLD_NAMES]
    assert len(said) == len(set(said))


def test_the_table_goes_before_likeness() -> None:
    """An old name is led to what replaced it, however it is spelt."""
    assert nearest_name("replica.lag.max.messages", broker.KEYS) == "replica.lag.time.max.ms"
    assert nearest_name("port", broker.KEYS) == "listeners"


def test_a_clients_name_leads_nowhere_on_a_broker() -> None:
    """The explanation says whose setting it is."""
    assert nearest_name("producer.type", broker.KEYS) is None
    assert explain("producer.type", broker.KEYS).startswith("unknown setting of the producer (")


def test_an_unheard_of_name() -> None:
    """Nothing is guessed where nothing is close."""
    assert explain("zzz", broker.KEYS) == "unknown setting"


# --- The rules that are more than a range


@pytest.mark.parametrize("version", ["0.8.0", "0.10.2", "0.11.0-IV2", "1.0", "2.4.1", "3.9-IV0"])
def test_versions_of_kafka(version: str) -> None:
    """Releases, patch releases and internal versions are known."""
    assert KNOWN_VERSION.allows(version)


@pytest.mark.parametrize("version", ["", "0.7", "0.8", "3.10", "3.9-IV1", "3.9-IVx", "latest"])
def test_unknown_versions_are_refused(version: str) -> None:
    """A version that Kafka never had is refused."""
    assert not KNOWN_VERSION.allows(version)


@pytest.mark.parametrize(
    ("items", "allowed"),
    [((), True), (("*",), True), (("0:1", "12:3"), True), (("*", "0:1"), False), (("0",), False)],
)
def test_throttled_replicas(items: tuple[str, ...], allowed: bool) -> None:
    """All replicas, or pairs of partition and broker."""
    assert THROTTLED_REPLICAS.allows(items) is allowed


@pytest.mark.parametrize(("level", "allowed"), [(-1, True), (0, False), (1, True), (10, False)])
def test_gzip_levels(level: int, allowed: bool) -> None:
    """The level of gzip has a default of its own beside its range."""
    assert GZIP_LEVEL.allows(level) is allowed


def test_pool_sizes() -> None:
    """A pool has a thread, or takes its size from another."""
    assert [size for size in (-2, -1, 0, 1) if POOL_SIZE.allows(size)] == [-1, 1]
