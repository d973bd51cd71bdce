"""Fetch as a follower sends it, frame by frame: what it is told, and what it tells."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from barnabas_broker.cluster.image import BrokerRegistration
from barnabas_broker.replica.partition import Partition
from barnabas_broker.server.node import broker_server as node_module
from barnabas_broker.server.process import cooperative_scheduler
from barnabas_broker.server.requests import follower_fetches
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.messages.api_versions import ApiVersionsRequest
from barnabas_kafka.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
    ReplicaState,
)
from barnabas_kafka.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from barnabas_kafka.protocol.messages.produce import ProduceResponse
from tests.broker.server.moved_clock import loops_monotonic_ms
from tests.broker.server.peers.replication.hand_made import T_ID, HandMade, hand_made
from tests.broker.server.peers.replication.test_replica_fetcher import batch
from tests.broker.server.running import Wire, port_of, produce_request, running_node
from tests.waiting import wait_for

LAG_S = 30


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HandMade]:
    """Broker 0 leads t-0; broker 1, its follower, is the test."""
    monkeypatch.setattr(node_module, "monotonic_ms", loops_monotonic_ms)
    with hand_made(tmp_path, 1) as alone:
        alone.appoint(0, replicas=(0, 1), isr=(0, 1))
        yield alone


@pytest.fixture
def wire(cluster: HandMade) -> Iterator[Wire]:
    """A connection of the follower."""
    with Wire(cluster.members[0].port) as connection:
        yield connection


def fetch(offset: int, *, follower: int = 1, wait_ms: int = 0, **more: Any) -> FetchRequest:
    """A request of version 12 for t-0."""
    asked = {"current_leader_epoch": 0, "log_start_offset": 0, "partition_max_bytes": 1 << 20}
    session = {name: more.pop(name) for name in ("session_id", "session_epoch") if name in more}
    partition = FetchPartition(partition=0, fetch_offset=offset, **{**asked, **more})
    return FetchRequest(
        replica_id=follower,
        max_wait_ms=wait_ms,
        min_bytes=1,
        topics=[FetchTopic(topic="t", partitions=[partition])],
        **session,
    )


def reported(wire: Wire, request: FetchRequest, version: int = 12) -> PartitionData:
    """What the leader answers about t-0."""
    response: FetchResponse = wire.ask(request, version)
    assert response.error_code == 0
    return response.responses[0].partitions[0]


def test_records_are_committed_in_two_rounds(cluster: HandMade, wire: Wire) -> None:
    """The fetch that proves a record is held is answered with the mark as it was before."""
    assert wire.produce("t", batch(b"a", b"b"), acks=1).error_code == 0
    leader = cluster.members[0]
    first = reported(wire, fetch(0))
    assert first.records == batch_at(leader)
    assert (first.high_watermark, leader.ends()) == (0, (0, 2))
    second = reported(wire, fetch(2))
    assert (second.high_watermark, leader.ends()) == (0, (2, 2))
    assert reported(wire, fetch(2)).high_watermark == 2


def batch_at(leader: Any) -> bytes:
    """All bytes of the leader's only segment."""
    (segment,) = leader.partition().log.directory.glob("*.log")
    return bytes(segment.read_bytes())


def test_a_parked_fetch_is_answered_by_an_append(cluster: HandMade, wire: Wire) -> None:
    """And a producer with acks=all by the fetch after it."""
    wire.send(fetch(0, wait_ms=20_000), 12)
    with Wire(cluster.members[0].port) as producer:
        producer.send(produce_request("t", batch(b"a")), 9)
        _, answer = wire.receive(FetchResponse, 12)
        assert answer.responses[0].partitions[0].records
        wire.send(fetch(1, wait_ms=20_000), 12)
        answered = producer.receive_frame()
        assert answered


def test_records_appended_between_turns_are_not_waited_for(
    wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A record that is appended after its partition was looked at, without a fetch session."""
    read = follower_fetches._FollowerFetch._read_partition

    def then_append(self: Any, partition: Partition, *args: Any, **more: Any) -> PartitionData:
        data = read(self, partition, *args, **more)
        if not partition.log.log_end_offset:
            partition.append_own(bytearray(batch(b"late")), now_ms=0)
        return data

    monkeypatch.setattr(follower_fetches._FollowerFetch, "_read_partition", then_append)
    assert reported(wire, fetch(0, wait_ms=10_000_000)).records


@pytest.mark.parametrize("session", [{}, {"session_id": 0, "session_epoch": 0}])
def test_a_partition_that_is_given_up_while_others_have_their_turns_is_not_waited_for(
    wire: Wire, monkeypatch: pytest.MonkeyPatch, session: dict[str, int]
) -> None:
    """Another broker leads it after it was looked at."""
    read = follower_fetches._FollowerFetch._read_partition

    def then_resign(self: Any, partition: Partition, *args: Any, **more: Any) -> PartitionData:
        data = read(self, partition, *args, **more)
        partition.become(replace(partition.state, leader=1, leader_epoch=1))
        return data

    monkeypatch.setattr(follower_fetches._FollowerFetch, "_read_partition", then_resign)
    answered = reported(wire, fetch(0, wait_ms=10_000_000, **session))
    assert answered.error_code == ErrorCode.FENCED_LEADER_EPOCH


def test_a_producer_does_not_wait_for_good_for_a_replica_outside_the_isr(
    cluster: HandMade, wire: Wire
) -> None:
    """One that had all, that the controller refuses, and that then falls silent, as if frozen."""
    cluster.refusal = ErrorCode.INELIGIBLE_REPLICA
    for broker in (1, 2):
        cluster.image = cluster.image.with_changes(
            brokers={**cluster.image.brokers, broker: BrokerRegistration(broker, ())}
        )
    cluster.appoint(0, replicas=(0, 1, 2), isr=(0, 1))
    leader = cluster.members[0]
    for follower in (1, 2):
        assert reported(wire, fetch(0, follower=follower, current_leader_epoch=1)).error_code == 0
    wait_for("the refusal", lambda: leader.partition().in_sync.pending, until=lambda it: it is None)
    request = produce_request("t", batch(b"a"))
    request.timeout_ms = 10 * LAG_S * 1000
    with Wire(leader.port) as producer:
        producer.send(request, 9)
        wait_for("the append", leader.ends, until=lambda ends: ends == (0, 1))
        assert reported(wire, fetch(1, current_leader_epoch=1)).error_code == 0
        assert leader.ends() == (0, 1)
        leader.loop.pass_time(LAG_S + 1)
        answer = producer.receive(ProduceResponse, 9)[1].responses[0].partition_responses[0]
    assert answer.error_code == ErrorCode.NONE
    assert leader.ends() == (1, 1)


def test_a_parked_fetch_is_read_again_when_its_time_is_up(cluster: HandMade, wire: Wire) -> None:
    """By then it has itself moved the mark, and brings it."""
    assert wire.produce("t", batch(b"a"), acks=1).error_code == 0
    assert reported(wire, fetch(1, wait_ms=100)).high_watermark == 1
    assert cluster.members[0].ends() == (1, 1)


def test_a_stranger_is_refused(wire: Wire) -> None:
    """With an epoch it is asked to come back: the leader may be the one that is behind."""
    assert reported(wire, fetch(0, follower=9)).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
    stranger = fetch(0, follower=9, current_leader_epoch=-1)
    assert reported(wire, stranger).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_client_posing_as_a_follower_gets_no_session(tmp_path: Path) -> None:
    """Else it could use up those of the followers, with partitions that it may not read."""
    settings = {
        "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
        "super.users": "User:nobody",
    }
    with running_node(tmp_path, settings) as node, Wire(port_of(node)) as wire:
        for version, request in (
            (12, fetch(0, session_epoch=0)),
            (15, fetch(0, follower=-1, session_epoch=0)),
        ):
            if version == 15:
                request.replica_state = ReplicaState(replica_id=1, replica_epoch=0)
                request.topics[0].topic_id = T_ID
            response = wire.ask(request, version)
            assert (response.error_code, response.session_id) == (0, 0)
            codes = {each.error_code for it in response.responses for each in it.partitions}
            assert codes == {ErrorCode.TOPIC_AUTHORIZATION_FAILED}
            assert not node.broker.follower_sessions.sessions


def test_epochs_are_fenced(wire: Wire) -> None:
    """Either side may be behind (KIP-320)."""
    newer = fetch(0, current_leader_epoch=1)
    assert reported(wire, newer).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH


def test_a_follower_beyond_the_end_is_out_of_range(cluster: HandMade, wire: Wire) -> None:
    """It is not taken for one that holds what nobody has."""
    assert reported(wire, fetch(5)).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert cluster.members[0].partition().in_sync.followers[1].log_end_offset == -1


def test_divergence_is_named(cluster: HandMade, wire: Wire) -> None:
    """Where the last epoch of a follower is not the leader's, its fetch tells nothing."""
    assert wire.produce("t", batch(b"a"), acks=1).error_code == 0
    cluster.appoint(0)
    cluster.appoint(0)
    assert wire.produce("t", batch(b"b"), acks=1).error_code == 0
    answer = reported(wire, fetch(2, current_leader_epoch=2, last_fetched_epoch=1))
    assert (answer.diverging_epoch.epoch, answer.diverging_epoch.end_offset) == (0, 1)
    assert not answer.records
    assert cluster.members[0].partition().in_sync.followers[1].log_end_offset == -1


def test_a_session_names_only_what_changed(cluster: HandMade, wire: Wire) -> None:
    """By topic id from version 13 on, where the replica is in a field of its own."""
    assert wire.produce("t", batch(b"a"), acks=1).error_code == 0
    request = fetch(0, session_epoch=0)
    request.topics[0].topic_id = T_ID
    request.replica_id = -1
    request.replica_state = ReplicaState(replica_id=1, replica_epoch=3)
    opened: FetchResponse = wire.ask(request, 15)
    assert opened.session_id > 0
    assert opened.responses[0].topic_id == T_ID
    request.topics[0].partitions[0].fetch_offset = 1
    request.session_id, request.session_epoch = opened.session_id, 1
    wire.ask(request, 15)
    request.topics = []
    request.session_epoch = 2
    moved: FetchResponse = wire.ask(request, 15)
    assert [each.high_watermark for each in moved.responses[0].partitions] == [1]
    request.session_epoch = 3
    assert wire.ask(request, 15).responses == []
    request.session_epoch = 4
    request.forgotten_topics_data = [ForgottenTopic(topic_id=T_ID, partitions=[0])]
    assert wire.ask(request, 15).responses == []
    request.session_epoch = 9
    assert wire.ask(request, 15).error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH


def test_a_follower_may_look_up_to_the_end(wire: Wire) -> None:
    """ListOffsets: for a follower the end of the log, for a consumer what is committed."""
    assert wire.produce("t", batch(b"a"), acks=1).error_code == 0
    ends = []
    for replica in (1, -1):
        partition = ListOffsetsPartition(partition_index=0, timestamp=-1)
        topics = [ListOffsetsTopic(name="t", partitions=[partition])]
        response = wire.ask(ListOffsetsRequest(replica_id=replica, topics=topics), 7)
        ends.append(response.topics[0].partitions[0].offset)
    assert ends == [1, 0]


@pytest.fixture
def parked(cluster: HandMade, wire: Wire) -> Callable[[], FetchResponse]:
    """What waits until a fetch is parked, says something behind it, and has its answer."""
    waiting = cluster.members[0].partition().appends

    def hurried() -> FetchResponse:
        wait_for("a fetch that waits", lambda: waiting.fetch_waiters)
        wire.send(ApiVersionsRequest(), 0)
        return wire.receive(FetchResponse, 12)[1]

    return hurried


def test_a_fetch_that_was_read_in_turns_is_hurried(
    wire: Wire, parked: Callable[[], FetchResponse], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As every follower's fetch of many partitions is."""
    monkeypatch.setattr(cooperative_scheduler, "TIME_SLICE_S", -1)
    wire.send(fetch(0, wait_ms=10_000_000), 12)
    assert parked().responses[0].partitions[0].error_code == ErrorCode.NONE


def test_a_fetch_that_came_in_pieces_is_hurried(
    cluster: HandMade, wire: Wire, parked: Callable[[], FetchResponse]
) -> None:
    """As every large one does."""
    frame = wire.frame(fetch(0, wait_ms=10_000_000), 12)
    wire.socket.sendall(frame[:20])
    with Wire(cluster.members[0].port) as another:
        another.ask(ApiVersionsRequest(), 0)  # Once it is answered the first piece was read.
    wire.socket.sendall(frame[20:])
    assert parked().responses[0].partitions[0].error_code == ErrorCode.NONE


def test_a_fetch_behind_another_is_hurried(
    cluster: HandMade, wire: Wire, parked: Callable[[], FetchResponse]
) -> None:
    """It came while the one before it was waiting, and is served from what was kept."""
    waiting = cluster.members[0].partition().appends
    wire.send(fetch(0, wait_ms=10_000_000), 12)
    wait_for("a fetch that waits", lambda: waiting.fetch_waiters)
    behind = wire.frame(ApiVersionsRequest(), 0), wire.frame(fetch(0, wait_ms=10_000_000), 12)
    wire.socket.sendall(b"".join(behind))
    assert wire.receive_frame()  # The first is answered, and what hurried it,
    assert wire.receive_frame()
    assert parked().responses[0].partitions[0].error_code == ErrorCode.NONE  # and then the other.


def test_a_fetch_that_was_kept_with_what_follows_it_is_hurried(
    cluster: HandMade, wire: Wire
) -> None:
    """Nothing more need come: what follows it is there when it is served."""
    waiting = cluster.members[0].partition().appends
    wire.send(fetch(0, wait_ms=10_000_000), 12)
    wait_for("a fetch that waits", lambda: waiting.fetch_waiters)
    word = wire.frame(ApiVersionsRequest(), 0)
    wire.socket.sendall(word + wire.frame(fetch(0, wait_ms=10_000_000), 12) + word)
    assert [bool(wire.receive_frame()) for _ in range(4)] == [True] * 4
