"""meta.properties: whose data a log directory holds.

Version 0 is ZooKeeper mode's form, with ``broker.id`` and ``cluster.id``; other keys (``node.id``,
``directory.id``) are kept as they are. Version 1 belongs to KRaft and is refused: that directory
is not ours to write to.
"""

from __future__ import annotations

from collections.abc import Mapping

from barnabas_broker.log.checkpoints import format_meta_properties
from barnabas_kafka.settings.definitions import SettingError
from barnabas_kafka.settings.properties import parse_properties

_VERSION = "0"


class WrongOwnerError(Exception):
    """A directory of another broker, another cluster, or another kind of Kafka."""


def check(data: bytes | None, *, broker_id: int, cluster_id: str) -> bytes | None:
    """Check a file's content (None: no file) and return what to write, None if nothing.

    Raises WrongOwnerError naming the value found and the value expected.
    """
    if data is None:
        return format_meta_properties(_fields({}, broker_id, cluster_id))
    try:
        found = parse_properties(data, origin="meta.properties")
    except SettingError as error:
        raise WrongOwnerError(f"meta.properties is malformed: {error}") from error
    version = found.get("version")
    if version is None:
        raise WrongOwnerError("meta.properties is malformed: it has no version")
    if version != _VERSION:
        raise WrongOwnerError(
            f"meta.properties has version {version}, a broker in ZooKeeper mode writes {_VERSION}"
        )
    _expect(found, "cluster.id", cluster_id, "cluster")
    _expect(found, "broker.id", str(broker_id), "broker")
    _expect(found, "node.id", str(broker_id), "broker")
    complete = _fields(found, broker_id, cluster_id)
    return None if complete == found else format_meta_properties(complete)


def _fields(found: Mapping[str, str], broker_id: int, cluster_id: str) -> dict[str, str]:
    return {
        "version": _VERSION,
        **found,
        "broker.id": str(broker_id),
        "cluster.id": cluster_id,
    }


def _expect(found: Mapping[str, str], key: str, expected: str, whose: str) -> None:
    value = found.get(key, expected)
    if value != expected:
        raise WrongOwnerError(
            f"it belongs to {whose} {value} ({key} in meta.properties), this is {whose} {expected}"
        )


def stored_cluster_id(data: bytes) -> str | None:
    """The cluster id in a file's content, for a broker that has none yet."""
    return _stored(data, "cluster.id")


def stored_broker_id(data: bytes) -> int | None:
    """The broker id in a file's content, for a broker that has none yet."""
    value = _stored(data, "broker.id")
    return int(value) if value is not None and value.isdigit() else None


def _stored(data: bytes, key: str) -> str | None:
    try:
        return parse_properties(data, origin="meta.properties").get(key)
    except SettingError:
        return None
