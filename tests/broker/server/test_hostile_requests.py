"""What clients may send to do harm, and what becomes of it; others are served throughout.

Each row is bytes and a verdict: `CLOSED`, an error code, or `SERVED`. After each a canary on a
connection of its own produces and fetches.
"""

import gzip
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from barnabas_broker.coordinator.group import limits
from barnabas_broker.server.background import background_tasks
from barnabas_broker.server.node.broker_server import BrokerServer
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from barnabas_kafka.protocol.messages.describe_groups import DescribeGroupsRequest
from barnabas_kafka.protocol.messages.fetch import FetchResponse
from barnabas_kafka.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from barnabas_kafka.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
)
from barnabas_kafka.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from barnabas_kafka.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from barnabas_kafka.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas_kafka.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from barnabas_kafka.records.batch import HEADER_SIZE
from barnabas_kafka.records.builder import build_batch
from barnabas_kafka.records.compression import Codec
from barnabas_kafka.records.crc import crc32c
from tests.broker.server.members import Member, commit, committed, find, join_request
from tests.broker.server.running import Wire, fetch_request, port_of, produce_request, running_node
from tests.broker.server.transactional import Transactional

SOUND = build_batch([(1000, b"key", b"value", ())])


@pytest.fixture(autouse=True)
def canary(node: BrokerServer, topic: str) -> Callable[[], None]:
    """Produces and fetches on a connection of its own."""

    def sing() -> None:
        with Wire(port_of(node)) as wire:
            answer = wire.produce(topic, SOUND)
            assert answer.error_code == 0
            assert wire.fetch(topic, answer.base_offset).records

    return sing


# Frames.

TLS_HELLO = bytes.fromhex("16030100c8010000c40303") + bytes(200)
HEADER = struct.Struct(">ihhih")


def request(api_key: int, version: int, body: bytes) -> bytes:
    """A frame with a header of version 1 and a null client id."""
    return HEADER.pack(10 + len(body), api_key, version, 1, -1) + body


BAD_FRAMES = {
    "text of another protocol": b"GET / HTTP/1.1\r\nHost: broker\r\n\r\n",
    "tls on a plain port": TLS_HELLO,
    "negative size": b"\xff\xff\xff\xff",
    "empty": bytes(4),
    "too large": (104_857_601).to_bytes(4, "big"),
    "no room for a header": (3).to_bytes(4, "big") + b"abc",
    "header cut short": (9).to_bytes(4, "big") + struct.pack(">hhi", 3, 1, 1) + b"\x00",
    "unknown api": request(999, 0, b""),
    "negative api": request(-1, 0, b""),
    "unknown version": request(3, 99, b""),
    "negative version": request(3, -1, b""),
    "client id longer than the frame": struct.pack(">ihhih", 12, 3, 1, 1, 32767) + b"ab",
    "client id not utf-8": struct.pack(">ihhih", 12, 3, 1, 1, 2) + b"\xff\xfe",
    "array of 2^31-1 elements": request(3, 1, b"\x7f\xff\xff\xff"),
    "array of -2 elements": request(2, 1, struct.pack(">ii", -1, -2)),
    "string longer than the frame": request(3, 1, struct.pack(">ih", 1, 30000) + b"t"),
    "negative string length": request(3, 1, struct.pack(">ih", 1, -2)),
    "null where there must be a name": request(3, 1, struct.pack(">ih", 1, -1)),
    "bytes longer than the frame": request(0, 3, struct.pack(">hhiihi", -1, -1, 1, 1, 1, 0)),
    "varint of six bytes": request(3, 9, b"\x00" + b"\xff" * 6),
    "a million tags": request(3, 9, b"\x00\x01\x00\x00\x00" + b"\xc0\x84\x3d" + bytes(2000)),
    "tag longer than the frame": request(3, 9, b"\x00\x01\x00\x00\x00\x01\x05\xff\x7f"),
}


@pytest.mark.parametrize("frame", BAD_FRAMES.values(), ids=BAD_FRAMES)
def test_malformed_requests_close_the_connection(
    wire: Wire, frame: bytes, canary: Callable[[], None]
) -> None:
    """Nothing after it could be trusted."""
    wire.socket.sendall(frame)
    assert wire.closed_by_broker()
    canary()


def test_a_request_of_a_million_names_is_not_read(wire: Wire, canary: Callable[[], None]) -> None:
    """Each would become an object: the number of elements in a request is bounded."""
    wire.socket.sendall(request(3, 1, struct.pack(">i", 1_000_000) + b"\x00\x01t" * 1_000_000))
    assert wire.closed_by_broker()
    canary()


def test_nested_arrays_count_together(wire: Wire, canary: Callable[[], None]) -> None:
    """A thousand topics of a thousand partitions are a million elements as well."""
    topic = b"\x00\x01t" + struct.pack(">i", 1000) + bytes(12) * 1000
    wire.socket.sendall(request(2, 1, struct.pack(">ii", -1, 1000) + topic * 1000))
    assert wire.closed_by_broker()
    canary()


# Records.


def with_crc(batch: bytes) -> bytes:
    """The batch with the checksum it should have."""
    return batch[:17] + struct.pack(">I", crc32c(batch[21:])) + batch[21:]


def changed(position: int, value: bytes, batch: bytes = SOUND) -> bytes:
    """A batch with other bytes at a position, and a right checksum."""
    return with_crc(batch[:position] + value + batch[position + len(value) :])


def compressed(codec: Codec, section: bytes) -> bytes:
    """A batch whose records section is these bytes, said to be of the codec."""
    head = bytearray(SOUND[:HEADER_SIZE])
    head[8:12] = (HEADER_SIZE - 12 + len(section)).to_bytes(4, "big")
    head[22] = codec
    return with_crc(bytes(head) + section)


def record(body: bytes) -> bytes:
    """A batch of one plain record with this body behind its length."""
    section = bytes([len(body) * 2]) + body
    return compressed(Codec.NONE, section)


TOO_LARGE = build_batch([(1000, None, bytes(65 << 20), ())], codec=Codec.ZSTD)

BAD_RECORDS: dict[str, tuple[bytes, ErrorCode]] = {
    "empty": (b"", ErrorCode.INVALID_RECORD),
    "bad checksum": (SOUND[:17] + b"\0\0\0\0" + SOUND[21:], ErrorCode.CORRUPT_MESSAGE),
    "cut short": (SOUND[:-1], ErrorCode.INVALID_RECORD),
    "negative length": (SOUND[:8] + b"\xff\xff\xff\xff" + SOUND[12:], ErrorCode.CORRUPT_MESSAGE),
    "format 1 in a new request": (changed(16, b"\x01"), ErrorCode.INVALID_RECORD),
    "format 9": (changed(16, b"\x09"), ErrorCode.CORRUPT_MESSAGE),
    "base offset 5": (changed(0, struct.pack(">q", 5)), ErrorCode.INVALID_RECORD),
    "last offset delta 7": (changed(23, struct.pack(">i", 7)), ErrorCode.INVALID_RECORD),
    "minus one records": (changed(57, struct.pack(">i", -1)), ErrorCode.INVALID_RECORD),
    "two billion records": (changed(57, b"\x7f\xff\xff\xff"), ErrorCode.INVALID_RECORD),
    "control batch": (changed(21, b"\x00\x20"), ErrorCode.INVALID_RECORD),
    "transaction of nobody": (
        changed(21, b"\x00\x10"),
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ),
    "producer without sequence": (changed(43, struct.pack(">q", 9)), ErrorCode.INVALID_RECORD),
    "codec 7": (changed(21, b"\x00\x07"), ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
    "append time claimed": (changed(21, b"\x00\x08"), ErrorCode.INVALID_TIMESTAMP),
    "record beyond the batch": (record(b"\0\0\0\x7fkey"), ErrorCode.INVALID_RECORD),
    "negative value length": (record(b"\0\0\0\x01\x05\x00"), ErrorCode.INVALID_RECORD),
    "offset delta 1": (record(b"\0\0\x02\x01\x01\0"), ErrorCode.INVALID_RECORD),
    "null header key": (record(b"\0\0\0\x01\x01\x02\x01\x01"), ErrorCode.INVALID_RECORD),
    "a billion headers": (record(b"\0\0\0\x01\x01\xfe\xff\xff\xff\x07"), ErrorCode.INVALID_RECORD),
    "compressed nothing": (compressed(Codec.GZIP, gzip.compress(b"")), ErrorCode.INVALID_RECORD),
    "gzip of noise": (
        compressed(Codec.GZIP, b"\x1f\x8b\x08" + b"\xff" * 50),
        ErrorCode.INVALID_RECORD,
    ),
    "snappy of 4 GiB": (
        compressed(Codec.SNAPPY, b"\xff\xff\xff\xff\x0f\0"),
        ErrorCode.MESSAGE_TOO_LARGE,
    ),
    "zstd of 8 GiB": (
        compressed(
            Codec.ZSTD, bytes.fromhex("28b52ffde0") + struct.pack("<Q", 8 << 30) + b"\x01\0\0"
        ),
        ErrorCode.INVALID_RECORD,
    ),
    "lz4 of noise": (
        compressed(Codec.LZ4, b"\x04\x22\x4d\x18" + bytes(9)),
        ErrorCode.INVALID_RECORD,
    ),
    "bomb": (TOO_LARGE, ErrorCode.MESSAGE_TOO_LARGE),
    "larger than a message may be": (
        build_batch([(1000, None, bytes(range(256)) * 4200, ())]),
        ErrorCode.MESSAGE_TOO_LARGE,
    ),
}


@pytest.mark.parametrize(("batch", "code"), BAD_RECORDS.values(), ids=BAD_RECORDS)
def test_bad_records_are_refused_and_not_stored(
    wire: Wire, topic: str, canary: Callable[[], None], batch: bytes, code: ErrorCode
) -> None:
    """With the code that says why; the connection stays."""
    answer = wire.produce(topic, batch)
    assert ErrorCode(answer.error_code) is code, answer.error_message
    assert wire.fetch(topic).high_watermark == 0
    canary()


@pytest.mark.parametrize("acks", [2, -2, 32767])
def test_acks_that_do_not_exist_are_refused(
    wire: Wire, topic: str, canary: Callable[[], None], acks: int
) -> None:
    """And nothing is stored."""
    answer = wire.produce(topic, SOUND, acks=acks)
    assert answer.error_code == ErrorCode.INVALID_REQUIRED_ACKS
    assert wire.fetch(topic).high_watermark == 0
    canary()


# Names.

BAD_NAMES = ["", ".", "..", "../../etc/passwd", "a/b", "a\0b", "a\nb", "x" * 250, "é", "a b"]


@pytest.mark.parametrize("name", BAD_NAMES, ids=[str(n) for n in range(len(BAD_NAMES))])
def test_names_never_become_paths(
    wire: Wire, node: BrokerServer, name: str, canary: Callable[[], None]
) -> None:
    """A topic of such a name is neither created nor found."""
    wanted = CreatableTopic(name=name, num_partitions=1, replication_factor=1)
    answer = wire.ask(CreateTopicsRequest(timeout_ms=1000, topics=[wanted]), 5)
    assert answer.topics[0].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    asked = MetadataRequest(
        topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=True
    )
    assert wire.ask(asked, 5).topics[0].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert node.broker.image.topic(name) is None
    canary()


def test_a_name_that_collides_is_refused(wire: Wire, canary: Callable[[], None]) -> None:
    """Points and underscores are the same in the names of metrics."""
    wire.create_topic("one.name")
    wanted = CreatableTopic(name="one_name", num_partitions=1, replication_factor=1)
    answer = wire.ask(CreateTopicsRequest(timeout_ms=1000, topics=[wanted]), 5)
    assert answer.topics[0].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    canary()


# Groups.


def join(**more: object) -> JoinGroupRequest:
    """A request to join a group as its first member."""
    fields: dict[str, object] = {
        "group_id": "hostile", "session_timeout_ms": 10_000, "rebalance_timeout_ms": 1000,
        "member_id": "", "protocol_type": "consumer",
        "protocols": [JoinGroupRequestProtocol(name="range", metadata=b"")], **more,
    }  # fmt: skip
    return JoinGroupRequest(**fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"session_timeout_ms": 1}, ErrorCode.INVALID_SESSION_TIMEOUT),
        ({"session_timeout_ms": 2**31 - 1}, ErrorCode.INVALID_SESSION_TIMEOUT),
        ({"member_id": "forged"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"group_id": ""}, ErrorCode.INVALID_GROUP_ID),
        ({"protocols": []}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
    ],
)
def test_a_join_outside_the_bounds_is_refused(
    wire: Wire, canary: Callable[[], None], fields: dict[str, object], code: ErrorCode
) -> None:
    """Timeouts, ids and protocols are checked before a member is remembered."""
    find(wire, "hostile")
    assert wire.ask(join(**fields), 4).error_code == code
    canary()


def test_a_commit_with_much_metadata_is_refused(
    wire: Wire, topic: str, canary: Callable[[], None]
) -> None:
    """`offset.metadata.max.bytes` bounds what each partition costs in memory."""
    find(wire, "hostile-commit")
    partition = OffsetCommitRequestPartition(
        partition_index=0, committed_offset=1, committed_metadata="x" * 4097
    )
    commit = OffsetCommitRequest(
        group_id="hostile-commit",
        topics=[OffsetCommitRequestTopic(name=topic, partitions=[partition])],
    )
    answer = wire.ask(commit, 7)
    assert answer.topics[0].partitions[0].error_code == ErrorCode.OFFSET_METADATA_TOO_LARGE
    canary()


# Fetches.


def test_fetch_sizes_are_bounded_by_the_broker(
    wire: Wire, topic: str, canary: Callable[[], None]
) -> None:
    """The client's own bounds may be as large as a number can be."""
    assert wire.produce(topic, SOUND).error_code == 0
    request = fetch_request(
        [(topic, 0, 0)] * 1000, max_bytes=2**31 - 1, partition_max_bytes=2**31 - 1
    )
    answer: FetchResponse = wire.ask(request, 12)
    assert answer.error_code == 0
    canary()


@pytest.mark.parametrize("offset", [-1, 1, 2**63 - 1, -(2**63)])
def test_offsets_out_of_range_are_refused(
    wire: Wire, topic: str, canary: Callable[[], None], offset: int
) -> None:
    """Whatever number stands for them."""
    assert wire.fetch(topic, offset).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    canary()


def test_clients_do_not_fetch_as_a_broker(
    wire: Wire, topic: str, canary: Callable[[], None]
) -> None:
    """A follower's fetch would move the high watermark."""
    assert wire.produce(topic, SOUND).error_code == 0
    answer = wire.fetch(topic, 0, replica_id=0)
    assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    canary()


def test_a_fetch_that_waits_for_ever_leaves_with_its_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its place is free again although nothing ever wakes it, and nothing of it stays behind."""
    monkeypatch.setattr(background_tasks, "TICK_MS", 20)
    with running_node(tmp_path, {"max.connections": "11"}) as node, Wire(port_of(node)) as wire:
        wire.create_topic("t")
        waiting = [Wire(port_of(node)) for _ in range(10)]
        for one in waiting:
            one.send(fetch_request([("t", 0, 0)], max_wait_ms=2**31 - 1), 12)
        for one in waiting:
            one.socket.close()
        with Wire(port_of(node)) as newcomer:
            assert newcomer.fetch("t").high_watermark == 0
        for _ in range(10):
            with Wire(port_of(node)) as newcomer:
                assert newcomer.fetch("t").high_watermark == 0


def test_fetch_sessions_beyond_the_slots_are_not_opened(
    node: BrokerServer, topic: str, canary: Callable[[], None]
) -> None:
    """Those who come later fetch without one; those who have one keep it."""
    slots = node.broker.fetch_sessions.slots
    with Wire(port_of(node)) as wire:
        opened = [
            wire.ask(fetch_request([(topic, 0, 0)], session_epoch=0), 12).session_id
            for _ in range(slots + 20)
        ]
        assert len(node.broker.fetch_sessions.sessions) == slots
        assert opened[-20:] == [0] * 20
        for session in opened[:-20]:
            wire.ask(fetch_request([], session_id=session, session_epoch=-1), 12)
    canary()


# Requests of many parts.


def test_offsets_of_very_many_partitions_are_answered(
    wire: Wire, topic: str, canary: Callable[[], None]
) -> None:
    """A hundred thousand, none of which exists."""
    partitions = [ListOffsetsPartition(partition_index=n, timestamp=-1) for n in range(100_000)]
    request = ListOffsetsRequest(
        replica_id=-1, topics=[ListOffsetsTopic(name="nowhere", partitions=partitions)]
    )
    answer = wire.ask(request, 5)
    assert len(answer.topics[0].partitions) == 100_000
    canary()


def test_a_produce_of_many_partitions_is_answered_in_order(
    wire: Wire, topic: str, canary: Callable[[], None]
) -> None:
    """The same partition ten thousand times over: one answer each."""
    request = produce_request(topic, SOUND)
    request.topic_data[0].partition_data *= 10_000
    answers = wire.ask(request, 9).responses[0].partition_responses
    assert [answer.base_offset for answer in answers] == list(range(10_000))
    canary()


# Names of groups and transactions, which have no rules.

ODD_NAMES = {
    "as long as a string may be": "n" * 32_767,
    "control characters": "a\nb\r\x1b[2J\0c",
    "a path": "../../../etc/passwd",
    "of other planes": "\U0001f600" * 8000,
    "backwards": "\u202egroup",
}


@pytest.mark.parametrize("name", ODD_NAMES.values(), ids=ODD_NAMES)
def test_a_group_may_have_any_name(
    wire: Wire, topic: str, name: str, canary: Callable[[], None]
) -> None:
    """As in Apache: it is a key of records, never of files."""
    find(wire, "group")
    member = Member(wire, name)
    member.enter()
    assert member.sync({member.id: b"all"}) == b"all"
    code = commit(wire, name, topic, 3, generation=member.generation, member=member.id)
    assert code == ErrorCode.NONE
    (reported,) = wire.ask(DescribeGroupsRequest(groups=[name]), 5).groups
    assert (reported.group_id, reported.group_state) == (name, "Stable")
    canary()


@pytest.mark.parametrize("name", ODD_NAMES.values(), ids=ODD_NAMES)
def test_a_transaction_may_have_any_name(
    wire: Wire, topic: str, name: str, canary: Callable[[], None]
) -> None:
    """As in Apache, down to the end of it."""
    producer = Transactional(wire, name)
    assert producer.init().error_code == ErrorCode.NONE
    assert producer.add(topic) == [ErrorCode.NONE]
    assert producer.produce(topic, b"v") == ErrorCode.NONE
    assert producer.end(commit=True) == ErrorCode.NONE
    canary()


def test_odd_names_are_there_after_a_restart(tmp_path: Path) -> None:
    """The logs of groups and of transactions are read back."""
    for start in range(2):
        with running_node(tmp_path) as node, Wire(port_of(node)) as wire:
            if not start:
                wire.create_topic("odd")
            find(wire, "group")
            for name in ODD_NAMES.values():
                answer = Transactional(wire, name).init()
                assert (answer.error_code, answer.producer_epoch) == (ErrorCode.NONE, start)
                if not start:
                    assert commit(wire, name, "odd", 7) == ErrorCode.NONE
                assert committed(wire, name, "odd") == 7


def test_a_member_that_makes_its_group_too_large_to_write_harms_it_no_longer_than_it_stays(
    tmp_path: Path,
) -> None:
    """Who syncs hears UNKNOWN_SERVER_ERROR, as from Apache; without that member all is well."""
    at_once = {"group.initial.rebalance.delay.ms": "0"}
    with running_node(tmp_path, at_once) as node, Wire(port_of(node)) as wire:
        find(wire, "team")
        large = Member(wire, "team")
        metadata = [JoinGroupRequestProtocol(name="range", metadata=bytes(2 << 20))]
        large.enter(protocols=metadata)
        assert large.sync_error() == ErrorCode.UNKNOWN_SERVER_ERROR
        wire.ask(
            LeaveGroupRequest(group_id="team", members=[MemberIdentity(member_id=large.id)]), 4
        )
        small = Member(wire, "team")
        small.enter()
        assert small.sync({small.id: b"all"}) == b"all"


def test_metadata_that_no_record_could_hold_is_refused_at_once(wire: Wire) -> None:
    """It is not kept until somebody would write it."""
    find(wire, "vast")
    metadata = [JoinGroupRequestProtocol(name="range", metadata=bytes(17 << 20))]
    request = join_request("vast", protocols=metadata)
    assert wire.ask(request, 9).error_code == ErrorCode.GROUP_MAX_SIZE_REACHED


def test_a_topic_for_larger_records_has_room_for_larger_members(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a member may tell depends on what the topic of groups takes, as its record has to."""
    monkeypatch.setattr(limits, "JOIN_BYTES_MAX", 1 << 20)
    settings = {"message.max.bytes": "1000", "group.initial.rebalance.delay.ms": "0"}
    metadata = [JoinGroupRequestProtocol(name="range", metadata=bytes(1_100_000))]
    with running_node(tmp_path, settings) as node, Wire(port_of(node)) as wire:
        find(wire, "large")
        request = join_request("large", protocols=metadata)
        assert wire.ask(request, 9).error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
        change = AlterableConfig(name="max.message.bytes", config_operation=0, value="1000000")
        topic = AlterConfigsResource(
            resource_type=2, resource_name="__consumer_offsets", configs=[change]
        )
        wire.ask(IncrementalAlterConfigsRequest(resources=[topic]), 1)
        assert wire.ask(request, 9).error_code == ErrorCode.MEMBER_ID_REQUIRED
