"""What ZooKeeper holds for Kafka: each reader gets the same bytes, and the journal its lines."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from typing import Any, Final
from uuid import UUID

from barnabas_broker.cluster.image import BrokerRegistration, Endpoint
from barnabas_broker.zk import znodes
from barnabas_zookeeper import journal
from barnabas_zookeeper.tree import Tree
from fuzz.oracle import promise

_BROKER: Final = znodes.BrokerZnode(1)
_TOPIC: Final = znodes.TopicZnode("t")
_STATE: Final = znodes.PartitionStateZnode("t", 0)
_CONFIG: Final = znodes.ConfigZnode.for_topic("t")

_CODECS: Final[tuple[tuple[Callable[[bytes], Any], Callable[[Any], bytes]], ...]] = (
    (_BROKER.decode, lambda value: _BROKER.encode(value, now_ms=5)),
    (_TOPIC.decode, _TOPIC.encode),
    (_STATE.decode, _STATE.encode),
    (_CONFIG.decode, _CONFIG.encode),
    (znodes.ClusterIdZnode.decode, znodes.ClusterIdZnode.encode),
    (znodes.ControllerZnode.decode, lambda value: znodes.ControllerZnode.encode(value, now_ms=5)),
    (znodes.ControllerEpochZnode.decode, znodes.ControllerEpochZnode.encode),
    (znodes.ProducerIdBlockZnode.decode, znodes.ProducerIdBlockZnode.encode),
)


def check(data: bytes) -> None:
    """A reader gives a value or MalformedZnodeError; what it gives can be written, and settles."""
    for decode, encode in _CODECS:
        try:
            value = decode(data)
        except znodes.MalformedZnodeError:
            continue
        # Brackets around a host are not part of it: one round may take them off.
        settled = decode(encode(value))
        promise(decode(encode(settled)) == settled, "a znode changes", value)
    try:
        znodes.ConfigChangeZnode.decode(znodes.ConfigChangeZnode.ROOT, data)
    except znodes.MalformedZnodeError:
        pass
    for lines in (data.splitlines(keepends=True), list(map(_sealed, data.splitlines()))):
        try:
            journal.decode(lines)
        except journal.DamagedJournalError:
            pass


def _sealed(line: bytes) -> bytes:
    """A line of the journal under a right checksum."""
    text = line.partition(b" ")[2]
    return b"%08x %s\n" % (zlib.crc32(text), text)


def seeds() -> Iterator[bytes]:
    """One of each."""
    endpoint = Endpoint("PLAINTEXT", "host", 9092, "PLAINTEXT")
    yield _BROKER.encode(BrokerRegistration(1, (endpoint,), "rack", -1), now_ms=5)
    yield b'{"version":1,"host":"h","port":9092,"jmx_port":-1,"timestamp":"5"}'
    replicas = znodes.ReplicaAssignment((1, 2), (2,), (1,))
    yield _TOPIC.encode(znodes.TopicAssignment(UUID(int=7), {0: replicas}))
    yield _STATE.encode(znodes.LeaderAndIsr(1, 2, (1, 2), 3, recovering=True))
    yield _CONFIG.encode({"retention.ms": "5"})
    yield znodes.ClusterIdZnode.encode("id")
    yield znodes.ControllerZnode.encode(1, now_ms=5)
    yield b"12"
    yield znodes.ProducerIdBlockZnode.encode(znodes.ProducerIdBlock(1, 0, 999))
    yield znodes.ConfigChangeZnode.encode(_CONFIG)
    yield b"".join(journal.encode_snapshot(Tree()))
