"""The short way of OffsetCommit and the general one: the same answers, and the same records."""

import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas_broker.coordinator.group.shard import Shard
from barnabas_broker.log.partition_log import PartitionLog
from barnabas_broker.security.acls import AclOperation, ResourceType
from barnabas_broker.security.principals import ANONYMOUS
from barnabas_broker.server.network.response_coalescing import ANSWERS_MAX
from barnabas_broker.server.node.broker_server import BrokerServer
from barnabas_broker.server.requests.dispatch import Caller
from barnabas_broker.server.requests.fast import offset_commit
from barnabas_broker.server.requests.fast.offset_commit import PlainCommits
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from barnabas_kafka.protocol.registry import ApiKey
from barnabas_kafka.records.batch import headers
from tests.broker.controller.embedded import Denying
from tests.broker.server.members import Member, commit, committed, find
from tests.broker.server.running import Wire, port_of, running_node
from tests.broker.server.two_ways import two_ways

NOW = 1_700_000_000_000
SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "2",
    "offset.metadata.max.bytes": "10",
}
# No story takes so long.
SESSION = {"session_timeout_ms": 1_800_000, "rebalance_timeout_ms": 1_800_000}


class Pair:
    """Two brokers that are told the same, one of which knows the general way only."""

    def __init__(
        self, directory: Path, nodes: tuple[BrokerServer, BrokerServer], wires: tuple[Wire, Wire]
    ) -> None:
        self.directory = directory
        self.nodes = nodes
        self.wires = wires
        for wire in wires:
            wire.create_topic("orders", partitions=3)
            find(wire, "stable")
            for group in ("stable", "joining"):
                member = Member(wire, group)
                member.enter(**SESSION)
                assert member.id == f"wire-{group}"
                if group == "stable":
                    member.sync({member.id: b"all"})
            static = Member(wire, "static")
            static.enter(group_instance_id="i", **SESSION)
            assert static.id == "i-static"

    def ask(self, request: OffsetCommitRequest, version: int) -> bytes:
        """Send both the same bytes; their answer, which is the same."""
        answers = []
        for wire in self.wires:
            wire.send(request, version)
            answers.append(wire.receive_frame())
        assert answers[0] == answers[1]
        return answers[0]

    def ask_behind_each_other(
        self, requests: Sequence[tuple[OffsetCommitRequest, int]], *, together: bool
    ) -> None:
        """Send both the same requests before any answer, in one piece or not; same answers."""
        answers = []
        for wire in self.wires:
            wire.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            frames = [wire.frame(*request) for request in requests]
            for piece in [b"".join(frames)] if together else frames:
                wire.socket.sendall(piece)
            answers.append([wire.receive_frame() for _ in requests])
        assert answers[0] == answers[1]

    def compare_logs(self) -> None:
        """Segments of both brokers' offsets are the same, file by file."""
        trees = [
            {
                path.relative_to(root): path.read_bytes()
                for path in sorted(root.glob("__consumer_offsets-*/*.log"))
            }
            for root in (self.directory / "short", self.directory / "general")
        ]
        assert trees[0] == trees[1]
        assert any(trees[0].values())


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """One pair for the module, for which it is always the same time; ids of members are told."""
    directory = tmp_path_factory.mktemp("pair")
    with two_ways(directory, SETTINGS, ApiKey.OFFSET_COMMIT, now_ms=NOW, names=_names) as told:
        yield Pair(directory, *told)


def _names() -> Callable[[], str]:
    names = iter(("stable", "joining", "static"))
    return lambda: next(names)


def commit_of_member(wire: Wire, offset: int) -> int:
    """Commit an offset as the member of the stable group; returns the error code."""
    return commit(wire, "stable", "orders", offset, member="wire-stable", generation=1)


GROUPS = ("stable", "stable", "stable", "joining", "static", "alone", "other")
REQUESTS = st.builds(
    OffsetCommitRequest,
    group_id=st.sampled_from(GROUPS),
    generation_id_or_member_epoch=st.sampled_from((1, 1, 1, -1, 2)),
    member_id=st.sampled_from(("wire-stable", "wire-stable", "wire-joining", "i-static", "")),
    group_instance_id=st.sampled_from((None, None, None, "i")),
    topics=st.lists(
        st.builds(
            OffsetCommitRequestTopic,
            name=st.sampled_from(("orders", "orders", "orders", "nowhere")),
            partitions=st.lists(
                st.builds(
                    OffsetCommitRequestPartition,
                    partition_index=st.sampled_from((0, 0, 1, 2, 3, -1)),
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
ORDINARY = st.builds(
    OffsetCommitRequest,
    group_id=st.just("stable"),
    generation_id_or_member_epoch=st.just(1),
    member_id=st.just("wire-stable"),
    topics=st.lists(
        st.builds(
            OffsetCommitRequestTopic,
            name=st.just("orders"),
            partitions=st.lists(
                st.builds(
                    OffsetCommitRequestPartition,
                    partition_index=st.integers(0, 2),
                    committed_offset=st.integers(-1, 2**63 - 1),
                    committed_leader_epoch=st.integers(-1, 3),
                    committed_metadata=st.none() | st.text("ab", max_size=10),
                ),
                min_size=1,
                max_size=3,
            ),
        ),
        min_size=1,
        max_size=3,
    ),
)


@given(request=REQUESTS | ORDINARY, version=st.integers(2, 9))
def test_random_requests_get_the_same_answer(
    pair: Pair, request: OffsetCommitRequest, version: int
) -> None:
    """Whatever is wrong with the request, its group or a partition, and wherever it comes."""
    if version < 7:
        request.group_instance_id = None
    pair.ask(request, version)
    pair.compare_logs()


@given(
    requests=st.lists(st.tuples(ORDINARY | ORDINARY | REQUESTS, st.integers(7, 9)), max_size=12),
    together=st.booleans(),
)
def test_random_pipelines_get_the_same_answers(
    pair: Pair, requests: list[tuple[OffsetCommitRequest, int]], together: bool
) -> None:
    """In their order, also where an answer that may leave with others is followed by another."""
    pair.ask_behind_each_other(requests, together=together)
    pair.compare_logs()


@given(request=ORDINARY, version=st.integers(2, 9))
def test_ordinary_requests_do_not_reach_the_general_way(
    pair: Pair, request: OffsetCommitRequest, version: int
) -> None:
    """Of several partitions, with metadata, the same one twice."""
    short, general = pair.wires
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Shard, "commit", None)
        short.send(request, version)
        answer = short.receive_frame()
    general.send(request, version)
    assert general.receive_frame() == answer
    pair.compare_logs()


def test_what_was_committed_is_there(pair: Pair) -> None:
    """For those who ask, by members and by consumers that assign partitions themselves."""
    for wire in pair.wires:
        assert commit_of_member(wire, 17) == 0
        assert commit(wire, "by-itself", "orders", 4) == 0
        assert commit(wire, "by-itself", "orders", 5) == 0
        assert committed(wire, "stable", "orders") == 17
        assert committed(wire, "by-itself", "orders") == 5
    pair.compare_logs()


def test_a_commit_that_cannot_be_appended_goes_the_general_way(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which finds out why, or gets it appended: nothing is done twice."""

    def refuse(*_: object, **__: object) -> int:
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)

    with Wire(port_of(pair.nodes[0])) as wire:
        monkeypatch.setattr(PartitionLog, "append_plain", refuse)
        assert commit_of_member(wire, 18) == 0
        assert committed(wire, "stable", "orders") == 18
    with Wire(port_of(pair.nodes[1])) as wire:
        monkeypatch.undo()
        assert commit_of_member(wire, 18) == 0
    pair.compare_logs()


def test_who_may_not_read_group_or_topic_goes_the_general_way(pair: Pair) -> None:
    """It is asked for the group first, then for each topic."""
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=20)
    request = OffsetCommitRequest(
        group_id="stable",
        member_id="wire-stable",
        generation_id_or_member_epoch=1,
        topics=[OffsetCommitRequestTopic(name="orders", partitions=[partition])],
    )
    frame = memoryview(pair.wires[0].frame(request, 9)[4:])
    caller = Caller("PLAINTEXT", "127.0.0.1", ANONYMOUS)
    group = AclOperation.READ, ResourceType.GROUP, "stable"
    topic = AclOperation.READ, ResourceType.TOPIC, "orders"
    for denied, asked in ((group, [group]), (topic, [group, topic])):
        authorizer = Denying(denied)
        short = PlainCommits(pair.nodes[0].broker, authorizer)
        assert short.serve(frame, 9, 1, caller, NOW) is None
        assert authorizer.asked == asked


def test_a_bug_on_the_short_way_ends_the_connection_and_is_logged(
    pair: Pair, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """What was appended is not known then: no answer would be true, nor may it be tried again."""

    def broken(*_: object) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(offset_commit, "read", broken)
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=20)
    topic = OffsetCommitRequestTopic(name="orders", partitions=[partition])
    with Wire(port_of(pair.nodes[0])) as wire:
        wire.send(OffsetCommitRequest(group_id="stable", topics=[topic]), 9)
        assert wire.closed_by_broker()
    assert "a bug" in caplog.text


def test_each_of_many_connections_gets_its_own_answers(tmp_path: Path) -> None:
    """In whichever bursts they leave, and of a commit that is answered the offset is there."""
    groups = [f"g{number}" for number in range(2 * ANSWERS_MAX)]
    partition = OffsetCommitRequestPartition(partition_index=0)
    topic = OffsetCommitRequestTopic(name="orders", partitions=[partition])
    with running_node(tmp_path, SETTINGS) as node, ExitStack() as stack:
        wires = [stack.enter_context(Wire(port_of(node))) for _ in groups]
        wires[0].create_topic("orders")
        find(wires[0], "g")
        for offset in range(5):
            partition.committed_offset = offset
            asked = [
                wire.frame(OffsetCommitRequest(group_id=group, topics=[topic]), 9)
                for wire, group in zip(wires, groups, strict=True)
            ]
            for wire, frame in zip(wires, asked, strict=True):
                wire.socket.sendall(frame)
            for wire, frame in zip(wires, asked, strict=True):
                correlation_id, response = wire.receive(OffsetCommitResponse, 9)
                assert correlation_id == int.from_bytes(frame[8:12], "big")
                assert response.topics[0].partitions[0].error_code == 0
            assert {committed(wires[0], group, "orders") for group in groups} == {offset}


def test_offsets_that_are_to_be_compressed_are(tmp_path: Path) -> None:
    """`offsets.topic.compression.codec` holds for every commit."""
    settings = {**SETTINGS, "offsets.topic.num.partitions": "1"}
    compressed = {**settings, "offsets.topic.compression.codec": "1"}
    with running_node(tmp_path, compressed) as node, Wire(port_of(node)) as wire:
        wire.create_topic("orders")
        find(wire, "g")
        for offset in (1, 2, 3):
            assert commit(wire, "g", "orders", offset) == 0
    (log,) = tmp_path.glob("__consumer_offsets-0/*.log")
    assert [header.attributes & 7 for _, header in headers(log.read_bytes())] == [1, 1, 1]
