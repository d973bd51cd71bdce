"""Consumers that read from followers (KIP-392), frame by frame."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.messages.fetch import FetchRequest, FetchResponse, PartitionData
from barnabas_kafka.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from barnabas_kafka.settings.broker import READ_FROM_SAME_RACK
from tests.broker.server.peers.replication.hand_made import HandMade, hand_made
from tests.broker.server.peers.replication.test_replica_fetcher import batch
from tests.broker.server.requests.test_follower_fetches import fetch as follower_fetch
from tests.broker.server.running import Wire, fetch_request
from tests.waiting import wait_for

LONG_MS = 60_000
"""Longer than a Wire waits: an answer that had to wait for it fails the test."""


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HandMade]:
    """Brokers 0 and 1 in racks of their own, which send consumers to their racks."""
    directory: Path = tmp_path_factory.mktemp("pair")
    given: dict[str, Any] = {
        "replica_selector_class": READ_FROM_SAME_RACK,
        "replica_fetch_wait_max_ms": 20,
    }
    with hand_made(directory, **given) as cluster:
        yield cluster


@pytest.fixture
def cluster(pair: HandMade) -> HandMade:
    """Broker 0 leads t-0, broker 1 is in sync; it has one record more with each test."""
    pair.appoint(0, replicas=(0, 1), isr=(0, 1))
    with Wire(pair.members[0].port) as producer:
        assert producer.produce("t", batch(b"a")).error_code == 0
    end = pair.members[0].ends()[0]
    wait_for("the record on the follower", pair.members[1].ends, until=lambda it: it == (end, end))
    return pair


@pytest.fixture
def wires(cluster: HandMade) -> Iterator[list[Wire]]:
    """Connections to the leader and to the follower."""
    with ExitStack() as stack:
        yield [stack.enter_context(Wire(cluster.members[each].port)) for each in (0, 1)]


def end_of(cluster: HandMade) -> int:
    """Where the leader's log ends, all of it committed."""
    return cluster.members[0].ends()[1]


def asking(offset: int, **more: Any) -> FetchRequest:
    """A consumer's request for t-0."""
    return fetch_request([("t", 0, offset)], **more)


def answered(wire: Wire, request: FetchRequest, version: int = 12) -> PartitionData:
    """What is told about t-0."""
    response: FetchResponse = wire.ask(request, version)
    assert response.error_code == 0
    return response.responses[0].partitions[0]


@pytest.mark.parametrize("session_epoch", [-1, 0])
@pytest.mark.parametrize("behind", [0, 1])
def test_a_consumer_is_sent_to_its_rack(
    cluster: HandMade, wires: list[Wire], behind: int, session_epoch: int
) -> None:
    """At once and without records, also where there are none; with a session and without."""
    leader, follower = wires
    offset = end_of(cluster) - behind
    asked = asking(offset, rack_id="rack-1", max_wait_ms=LONG_MS, session_epoch=session_epoch)
    reported = answered(leader, asked)
    assert (reported.error_code, reported.preferred_read_replica, reported.records) == (0, 1, b"")
    assert reported.high_watermark == end_of(cluster)
    there = answered(follower, asking(end_of(cluster) - 1, rack_id="rack-1"))
    assert (there.error_code, there.preferred_read_replica) == (0, -1)
    assert there.records


@pytest.mark.parametrize(
    ("version", "rack"), [(12, ""), (12, "rack-0"), (12, "rack-2"), (11, ""), (10, "")]
)
def test_others_are_served_by_the_leader(
    cluster: HandMade, wires: list[Wire], version: int, rack: str
) -> None:
    """Who stands beside it, elsewhere, or does not say where."""
    reported = answered(wires[0], asking(end_of(cluster) - 1, rack_id=rack), version)
    assert (reported.error_code, reported.preferred_read_replica) == (0, -1)
    assert reported.records


def test_an_incremental_session_returns_the_preferred_replica_again(
    cluster: HandMade, wires: list[Wire]
) -> None:
    """Nothing has changed since, and yet there is something to say."""
    leader = wires[0]
    first: FetchResponse = leader.ask(
        asking(end_of(cluster), rack_id="rack-1", session_epoch=0), 12
    )
    for epoch in (1, 2):
        later = FetchRequest(
            max_wait_ms=LONG_MS,
            min_bytes=1,
            session_id=first.session_id,
            session_epoch=epoch,
            rack_id="rack-1",
        )
        assert answered(leader, later).preferred_read_replica == 1


def test_a_follower_that_is_not_in_sync_is_passed_over(
    cluster: HandMade, wires: list[Wire]
) -> None:
    """The leader serves, whatever rack it is."""
    cluster.refusal = ErrorCode.INVALID_UPDATE_VERSION  # It stays out.
    try:
        cluster.appoint(0, isr=(0,))
        reported = answered(wires[0], asking(end_of(cluster) - 1, rack_id="rack-1"))
    finally:
        cluster.refusal = None
    assert reported.preferred_read_replica == -1
    assert reported.records


def test_old_consumers_are_not_served_by_followers(cluster: HandMade, wires: list[Wire]) -> None:
    """Before version 11 nobody sent them there, so their metadata is out of date."""
    reported = answered(wires[1], asking(0), 10)
    assert reported.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert answered(wires[1], asking(0), 11).records


@pytest.mark.parametrize(
    ("ahead", "code"),
    [(-1, ErrorCode.FENCED_LEADER_EPOCH), (0, 0), (1, ErrorCode.UNKNOWN_LEADER_EPOCH)],
)
def test_followers_fence_by_epoch(
    cluster: HandMade, wires: list[Wire], ahead: int, code: int
) -> None:
    """As leaders do (KIP-320)."""
    cluster.appoint(0)
    request = asking(end_of(cluster))
    request.topics[0].partitions[0].current_leader_epoch = cluster.state().leader_epoch + ahead
    assert answered(wires[1], request).error_code == code


def test_a_fetch_waits_at_a_follower(cluster: HandMade, wires: list[Wire]) -> None:
    """Until the follower hears that more is committed."""
    leader, follower = wires
    end = end_of(cluster)
    follower.send(asking(end, max_wait_ms=LONG_MS), 12)
    assert leader.produce("t", batch(b"b", b"c")).error_code == 0
    reported = follower.receive(FetchResponse, 12)[1].responses[0].partitions[0]
    assert (reported.high_watermark, bool(reported.records)) == (end + 2, True)


def test_a_waiting_fetch_completes_on_a_leader_change(cluster: HandMade, wires: list[Wire]) -> None:
    """Its epoch is fenced from now on."""
    request = asking(end_of(cluster), max_wait_ms=LONG_MS)
    request.topics[0].partitions[0].current_leader_epoch = cluster.state().leader_epoch
    wires[1].send(request, 12)
    member = cluster.members[1]
    wait_for("a fetch that waits", lambda: member.do(lambda: len(member.partition().fetch_waiters)))
    cluster.appoint(1)
    reported = wires[1].receive(FetchResponse, 12)[1].responses[0].partitions[0]
    assert reported.error_code == ErrorCode.FENCED_LEADER_EPOCH


def test_offsets_are_listed_by_the_leader_only(wires: list[Wire]) -> None:
    """What a follower knows may be old."""
    partition = ListOffsetsPartition(partition_index=0, timestamp=-1)
    topic = ListOffsetsTopic(name="t", partitions=[partition])
    answer = wires[1].ask(ListOffsetsRequest(topics=[topic]), 5).topics[0].partitions[0]
    assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_follower_shows_what_is_committed(tmp_path: Path) -> None:
    """It has a record that another in-sync replica lacks: to consumers it is not there yet."""
    with hand_made(tmp_path) as cluster, Wire(cluster.members[0].port) as leader:
        cluster.appoint(0, replicas=(0, 1, 2), isr=(0, 1, 2))
        assert leader.produce("t", batch(b"a"), acks=1).error_code == 0
        wait_for(
            "the record on the follower", cluster.members[1].ends, until=lambda it: it == (0, 1)
        )
        with Wire(cluster.members[1].port) as follower:
            for offset, code in ((0, 0), (1, 0), (2, ErrorCode.OFFSET_OUT_OF_RANGE)):
                reported = answered(follower, asking(offset))
                assert (reported.error_code, reported.records) == (code, b"")


def test_a_consumer_reads_records_as_the_high_watermark_advances(tmp_path: Path) -> None:
    """A consumer that has read the first record hears of the second as soon as it may."""
    with hand_made(tmp_path, 1) as cluster, ExitStack() as stack:
        cluster.appoint(0, replicas=(0, 1), isr=(0, 1))
        port = cluster.members[0].port
        leader, consumer = stack.enter_context(Wire(port)), stack.enter_context(Wire(port))
        for value in (b"a", b"b"):
            assert leader.produce("t", batch(value), acks=1).error_code == 0
        partition = cluster.members[0].partition()
        for end in (1, 2):
            consumer.send(asking(end - 1, max_wait_ms=LONG_MS), 12)
            wait_for(
                "a fetch that waits",
                lambda: cluster.members[0].do(lambda: len(partition.fetch_waiters)),
            )
            assert answered(leader, follower_fetch(end)).error_code == 0
            reported = consumer.receive(FetchResponse, 12)[1].responses[0].partitions[0]
            assert (reported.high_watermark, bool(reported.records)) == (end, True)
