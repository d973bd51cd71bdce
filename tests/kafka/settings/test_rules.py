"""The rules that are more than a range."""

import pytest

from barnabas_kafka.settings.rules import GZIP_LEVEL, KNOWN_VERSION, POOL_SIZE, THROTTLED_REPLICAS


@pytest.mark.parametrize("version", ["0.8.0", "0.10.2", "0.11.0-IV2", "1.0", "2.4.1", "3.9-IV0"])
def test_versions_of_kafka(version: str) -> None:
    """Releases, patch releases and internal versions are known."""
    assert KNOWN_VERSION.allows(version)


@pytest.mark.parametrize("version", ["", "0.7", "0.8", "3.10", "3.9-IV1", "3.9-IVx", "latest"])
def test_what_is_no_version(version: str) -> None:
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
