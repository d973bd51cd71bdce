"""Two brokers that are told the same, one of which has no fast routes, and what they are asked.

Both answer alike, to the byte, and keep the same logs. `ROWS` is the table: for each API that has a
fast route the requests it is asked, most of them ordinary, some of them wrong in one way or two. A
topic and a group are denied to whoever asks, and one topic is internal.
"""

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import assume
from hypothesis import strategies as st

from barnabas_broker.server.node.broker_server import BrokerServer
from barnabas_broker.server.requests.dispatch import Dispatcher
from barnabas_kafka.ids import ZERO_UUID
from barnabas_kafka.protocol import codec
from barnabas_kafka.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from barnabas_kafka.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from barnabas_kafka.protocol.messages.heartbeat import HeartbeatRequest
from barnabas_kafka.protocol.messages.join_group import JoinGroupRequestProtocol
from barnabas_kafka.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from barnabas_kafka.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from barnabas_kafka.protocol.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)
from barnabas_kafka.protocol.registry import ApiKey
from barnabas_kafka.records.batch import ATTRIBUTES_POSITION, CRC_POSITION
from barnabas_kafka.records.builder import build_batch
from barnabas_kafka.records.compression import Codec
from barnabas_kafka.records.crc import crc32c
from tests.broker.server.differential_cluster import differential_cluster
from tests.broker.server.members import Member, find, join_request
from tests.broker.server.running import Wire, produce_request
from tests.broker.server.transactional import Transactional
from tests.kafka.records.stored import stored_batch

NOW: Final = 1_700_000_000_000
SETTINGS: Final = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "2",
    "offset.metadata.max.bytes": "10",
    "transaction.state.log.num.partitions": "1",
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}
# No test takes so long.
SESSION: Final = {"session_timeout_ms": 1_800_000, "rebalance_timeout_ms": 1_800_000}
DENIED: Final = "denied"
INTERNAL: Final = "__consumer_offsets"
_TOPIC, _GROUP, _ALL, _DENY = 2, 3, 2, 2


class Pair:
    """The brokers, a connection to each, and what is in both.

    In the group `alone` a member is by itself, so that whatever it asks is answered at once.
    """

    def __init__(
        self, directory: Path, nodes: tuple[BrokerServer, BrokerServer], wires: tuple[Wire, Wire]
    ) -> None:
        self.directory = directory
        self.nodes = nodes
        self.wires = wires
        self.generation = 1
        self.ids: list[dict[str, Any]] = []
        for node, wire in zip(nodes, wires, strict=True):
            _fill(wire)
            topics = node.broker.image.topics
            self.ids.append({name: topic.id for name, topic in topics.items()})

    def ask(self, *asked: tuple[Any, int], together: bool = True) -> list[bytes]:
        """Send both the same requests, each with its version; their answers, which are the same."""
        answers = []
        for wire, ids in zip(self.wires, self.ids, strict=True):
            frames = [wire.frame(_with_ids(request, ids), version) for request, version in asked]
            for piece in [b"".join(frames)] if together else frames:
                wire.socket.sendall(piece)
            answers.append([_without_ids(wire.receive_frame(), ids) for _ in frames])
        assert answers[0] == answers[1]
        assert all(answers[0])
        return answers[0]

    def ask_fast(self, request: Any, version: int) -> bytes:
        """The answer of a fast route, without the handler; that of the other broker is the same."""
        answers = []
        for wire, ids, served in zip(
            self.wires, self.ids, (None, Dispatcher._handled), strict=True
        ):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(Dispatcher, "_handled", served)
                wire.send(_with_ids(request, ids), version)
                answers.append(_without_ids(wire.receive_frame(), ids))
        assert answers[0] == answers[1]
        self.compare_logs()
        return answers[0]

    def settle(self) -> None:
        """Have the member that is alone read in a generation of its group."""
        self.ask((join_request("alone", ALONE, **SESSION), 9))
        self.learn()
        mine = SyncGroupRequestAssignment(member_id=ALONE, assignment=b"all")
        request = SyncGroupRequest(
            group_id="alone",
            generation_id=self.generation,
            member_id=ALONE,
            protocol_type="consumer",
            protocol_name="range",
            assignments=[mine],
        )
        self.ask((request, 5))

    def learn(self) -> None:
        """Take note of the generation that the group has now."""
        group = self.nodes[0].broker.groups.group("alone")
        assert group is not None
        self.generation = group.generation

    def compare_logs(self) -> None:
        """What both keep is the same, but where a topic has the broker's time."""
        trees = [
            {
                path.relative_to(root): path.read_bytes()
                for path in sorted(root.glob("*/*.log"))
                if not path.parent.name.startswith("stamped")
            }
            for root in (self.directory / "short", self.directory / "general")
        ]
        assert trees[0] == trees[1]
        ours, theirs = (
            {
                partition.tp: list(partition.log.producers.producers.items())
                for partition in node.broker.replicas
            }
            for node in self.nodes
        )
        assert ours == theirs


def _fill(wire: Wire) -> None:
    wire.create_topic("plain", partitions=3)
    wire.create_topic("compact", cleanup_policy="compact")
    wire.create_topic("stamped", message_timestamp_type="LogAppendTime")
    wire.create_topic("unpacked", compression_type="uncompressed")
    wire.create_topic("small", max_message_bytes="150", segment_bytes="1000")
    wire.create_topic("aborted")
    wire.create_topic(DENIED)
    find(wire, "alone")
    for group in ("alone", "joining"):
        member = Member(wire, group)
        member.enter(**SESSION)
        if group == "alone":
            member.sync({member.id: b"all"})
    Member(wire, "static").enter(group_instance_id="i", **SESSION)
    producer = Transactional(wire, "transactional")
    producer.init()
    producer.add("aborted", 0)
    producer.produce("aborted", b"value")
    producer.end(commit=False)
    # Answered when the marker is there.
    assert wire.fetch("aborted", isolation_level=1, max_wait_ms=20_000).aborted_transactions
    creations = [
        AclCreation(
            resource_type=kind,
            resource_name=DENIED,
            resource_pattern_type=3,
            principal="User:*",
            host="*",
            operation=_ALL,
            permission_type=_DENY,
        )
        for kind in (_TOPIC, _GROUP)
    ]
    results = wire.ask(CreateAclsRequest(creations=creations), 3).results
    assert [each.error_code for each in results] == [0, 0]


@contextmanager
def running_pair(directory: Path) -> Iterator[Pair]:
    """A pair for which it is always the same time, and that names members alike."""
    with differential_cluster(directory, SETTINGS, now_ms=NOW, names=_names) as running:
        yield Pair(directory, *running)


def _names() -> Callable[[], str]:
    numbers = itertools.count(1)
    return lambda: str(next(numbers))


ALONE, JOINING, STATIC = "wire-1", "wire-2", "i-3"


def _with_ids(request: Any, ids: dict[str, Any]) -> Any:
    if isinstance(request, FetchRequest):
        for topic in request.topics:
            topic.topic_id = ids.get(topic.topic, ZERO_UUID)
    return request


def _without_ids(answer: bytes, ids: dict[str, Any]) -> bytes:
    """An answer with names in the place of ids, which are others in each cluster."""
    for name, topic_id in ids.items():
        answer = answer.replace(topic_id.bytes, name.encode().ljust(16)[:16])
    return answer


# --- the table


@dataclass(frozen=True, slots=True)
class Row:
    """One API: the versions and requests it is asked."""

    api_key: ApiKey
    versions: tuple[int, int]
    requests: st.SearchStrategy[Any]
    ordinary: Any
    """A request that needs no handler, in the versions that are `fast`."""
    fast: tuple[int, int]
    fit: Callable[[Any, int, Pair], None] = lambda *_: None
    """Takes out of a request what a version has no room for."""

    def asked(self, draw: Callable[[Any], Any], pair: Pair) -> tuple[Any, int]:
        """A request and its version."""
        version = draw(st.integers(*self.versions))
        request = draw(self.requests)
        self.fit(request, version, pair)
        try:
            codec.encode(request, version)
        except codec.EncodeError:
            assume(False)
        return request, version


def _often(value: Any, *others: Any) -> st.SearchStrategy[Any]:
    """The ordinary value, more often than not."""
    return st.sampled_from((value,) * (3 * len(others)) + others)


@st.composite
def sampled_batches(draw: st.DrawFn) -> bytes:
    """Batches of all kinds: most are sound and plain, some are one or neither."""
    content = [
        (NOW + draw(st.integers(0, 50)), draw(st.none() | st.just(b"key")), b"v" * length, ())
        for length in draw(st.lists(st.integers(0, 60), min_size=1, max_size=3))
    ]
    kind = draw(
        st.sampled_from(
            ("plain",) * 6 + ("sequenced",) * 3 + ("packed", "packed and sequenced")
            + ("transactional", "damaged", "old")
        )
    )  # fmt: skip
    codec = draw(st.sampled_from(tuple(Codec))) if kind.startswith("packed") else Codec.NONE
    if kind.endswith("sequenced") or kind == "transactional":
        return build_batch(
            content,
            codec=codec,
            producer_id=draw(st.integers(1, 2)),
            producer_epoch=draw(st.integers(0, 1)),
            base_sequence=draw(st.integers(0, 3)),
            transactional=kind == "transactional",
        )
    # A latest timestamp that is not true is mended where a batch is looked at closely.
    latest = NOW + 60 if codec and draw(st.booleans()) else None
    batch = bytearray(stored_batch(content, codec=codec, max_timestamp=latest))
    if kind == "damaged" or (kind == "packed" and draw(st.booleans())):
        batch[draw(st.integers(0, len(batch) - 1))] ^= 0x55
        if draw(st.booleans()):  # What a client made is wrong, not what the network brought.
            batch[CRC_POSITION : CRC_POSITION + 4] = crc32c(batch[ATTRIBUTES_POSITION:]).to_bytes(
                4, "big"
            )
    if kind == "old":
        batch[16] = 1
    return bytes(batch)


GROUPS = _often("alone", "joining", "static", "nobody", "", DENIED)
MEMBERS = _often(ALONE, JOINING, STATIC, "stranger", "")
INSTANCES = _often(None, "i")
PRODUCES = st.builds(
    ProduceRequest,
    acks=st.sampled_from((-1, -1, 1, 1, 2)),
    timeout_ms=st.just(1000),
    topic_data=st.lists(
        st.builds(
            TopicProduceData,
            name=_often(
                "plain", "compact", "stamped", "small", "unpacked", "nowhere", DENIED, INTERNAL
            ),
            partition_data=st.lists(
                st.builds(
                    PartitionProduceData,
                    index=st.sampled_from((0, 0, 0, 1, 2)),
                    records=st.none() | sampled_batches() | sampled_batches(),
                ),
                min_size=1,
                max_size=4,
            ),
        ),
        min_size=1,
        max_size=3,
    ),
)
# Most of them alike, so that they make runs.
SMALL_PRODUCES = st.builds(
    produce_request,
    _often("plain", "small", DENIED, INTERNAL),
    sampled_batches(),
    acks=_often(1, -1),
)
FETCHES = st.builds(
    FetchRequest,
    session_epoch=st.just(-1),
    min_bytes=st.sampled_from((0, 1, 1, 1, 2000, 1 << 20)),
    max_bytes=st.sampled_from((-1, 0, 100, 2000, 1 << 20)),
    max_wait_ms=st.integers(0, 1),
    isolation_level=st.integers(0, 1),
    rack_id=_often("", "rack"),
    topics=st.lists(
        st.builds(
            FetchTopic,
            topic=_often("plain", "aborted", "nowhere", DENIED, INTERNAL),
            partitions=st.lists(
                st.builds(
                    FetchPartition,
                    partition=st.sampled_from((0, 0, 1, 1, 2, 3)),
                    current_leader_epoch=_often(-1, 0, 1),
                    fetch_offset=st.integers(-1, 20),
                    last_fetched_epoch=_often(-1, 0),
                    partition_max_bytes=st.sampled_from((0, 100, 1500, 10_000, 1 << 20)),
                ),
                min_size=1,
                max_size=3,
            ),
        ),
        min_size=1,
        max_size=2,
    ),
)
COMMITS = st.builds(
    OffsetCommitRequest,
    group_id=GROUPS,
    generation_id_or_member_epoch=st.just(0) | st.just(0) | st.just(1),  # Behind the group's.
    member_id=MEMBERS,
    group_instance_id=INSTANCES,
    topics=st.lists(
        st.builds(
            OffsetCommitRequestTopic,
            name=_often("plain", "nowhere", DENIED),
            partitions=st.lists(
                st.builds(
                    OffsetCommitRequestPartition,
                    partition_index=_often(0, 1, 2, 3, -1),
                    committed_offset=st.integers(-1, 2**63 - 1),
                    committed_leader_epoch=st.integers(-1, 3),
                    committed_metadata=st.none() | st.text(max_size=6),
                ),
                max_size=3,
            ),
        ),
        max_size=3,
    ),
)
HEARTBEATS = st.builds(
    HeartbeatRequest,
    group_id=GROUPS,
    generation_id=_often(0, 1, -1),
    member_id=MEMBERS,
    group_instance_id=INSTANCES,
)


def protocols(*names: str) -> list[JoinGroupRequestProtocol]:
    """Some protocols with metadata of their own."""
    return [JoinGroupRequestProtocol(name=name, metadata=name.encode()) for name in names]


JOINS = st.builds(
    join_request,
    _often("alone", "nobody", "", DENIED),
    _often(ALONE, "stranger"),
    group_instance_id=INSTANCES,
    protocol_type=_often("consumer", "connect", ""),
    protocols=st.sampled_from(
        (protocols("range"), protocols("range", "sticky"), protocols("é"), protocols())
    ),
    session_timeout_ms=_often(1_800_000, 1),
    rebalance_timeout_ms=st.just(1_800_000),
)
SYNCS = st.builds(
    SyncGroupRequest,
    group_id=_often("alone", "nobody", "", DENIED),
    generation_id=_often(0, 1),
    member_id=_often(ALONE, "stranger"),
    group_instance_id=INSTANCES,
    protocol_type=_often("consumer", "connect", None),
    protocol_name=_often("range", "sticky", None),
    assignments=st.lists(
        st.builds(
            SyncGroupRequestAssignment,
            member_id=st.sampled_from((ALONE, "stranger")),
            assignment=st.binary(max_size=5),
        ),
        max_size=2,
        unique_by=lambda each: each.member_id,
    ),
)


def _fit_fetch(request: FetchRequest, version: int, _: Pair) -> None:
    for topic in request.topics:
        for wanted in topic.partitions:
            if version < 12:
                wanted.last_fetched_epoch = -1
            if version < 9:
                wanted.current_leader_epoch = -1


def _fit_member(first_with_instance: int, generation: str) -> Callable[[Any, int, Pair], None]:
    """What is drawn as a generation says how far behind the group's it is."""

    def fit(request: Any, version: int, pair: Pair) -> None:
        if version < first_with_instance:
            request.group_instance_id = None
        if generation:
            setattr(request, generation, pair.generation - getattr(request, generation))

    return fit


def _plain_fetch() -> FetchRequest:
    wanted = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    topic = FetchTopic(topic="plain", partitions=[wanted])
    return FetchRequest(session_epoch=-1, max_wait_ms=0, max_bytes=1 << 20, topics=[topic])


_BATCH = build_batch([(NOW, b"key", b"value", ())])
_BEAT = HeartbeatRequest(group_id="alone", member_id=ALONE, generation_id=0)
_JOIN = join_request("alone", ALONE, **SESSION)
_SYNC = SyncGroupRequest(
    group_id="alone",
    member_id=ALONE,
    generation_id=0,
    protocol_type="consumer",
    protocol_name="range",
)
_COMMITTED = [
    OffsetCommitRequestPartition(partition_index=index, committed_offset=5, committed_metadata="m")
    for index in (0, 1)
]
_COMMIT = OffsetCommitRequest(
    group_id="alone",
    member_id=ALONE,
    generation_id_or_member_epoch=0,
    topics=[OffsetCommitRequestTopic(name="plain", partitions=_COMMITTED)],
)
_FIT_COMMIT = _fit_member(7, "generation_id_or_member_epoch")
_FIT_SYNC = _fit_member(3, "generation_id")
_PRODUCE = produce_request("plain", _BATCH)

ROWS: Final = {
    "Produce": Row(ApiKey.PRODUCE, (3, 12), PRODUCES, _PRODUCE, (3, 12)),
    "Produce, small": Row(ApiKey.PRODUCE, (3, 12), SMALL_PRODUCES, _PRODUCE, (3, 12)),
    "Fetch": Row(ApiKey.FETCH, (4, 17), FETCHES, _plain_fetch(), (10, 17), _fit_fetch),
    "OffsetCommit": Row(ApiKey.OFFSET_COMMIT, (2, 9), COMMITS, _COMMIT, (2, 9), _FIT_COMMIT),
    "Heartbeat": Row(ApiKey.HEARTBEAT, (0, 4), HEARTBEATS, _BEAT, (0, 4), _FIT_SYNC),
    "JoinGroup": Row(ApiKey.JOIN_GROUP, (0, 9), JOINS, _JOIN, (0, 9), _fit_member(5, "")),
    "SyncGroup": Row(ApiKey.SYNC_GROUP, (0, 5), SYNCS, _SYNC, (0, 5), _FIT_SYNC),
}
