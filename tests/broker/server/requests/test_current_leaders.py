"""A client that asks the wrong broker learns which one to ask, and where that is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.messages.fetch import FetchResponse, PartitionData, ReplicaState
from barnabas_kafka.protocol.messages.produce import PartitionProduceResponse, ProduceResponse
from barnabas_kafka.records.builder import build_batch
from tests.broker.server.peers.replication.hand_made import T_ID, HandMade, hand_made
from tests.broker.server.running import Wire, fetch_request, produce_request
from tests.waiting import wait_for

MOVED = ErrorCode.NOT_LEADER_OR_FOLLOWER
FENCED = ErrorCode.FENCED_LEADER_EPOCH
NONE_NAMED = (-1, -1)


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[HandMade]:
    """Two brokers, the second of which leads t-0 in epoch 1."""
    with hand_made(tmp_path) as brokers:
        brokers.appoint(0)
        brokers.appoint(1)
        yield brokers


def named(response: ProduceResponse | FetchResponse) -> tuple[int, tuple[int, int]]:
    """The error of the only partition, and the leader and epoch in its answer."""
    answer: PartitionProduceResponse | PartitionData
    if isinstance(response, ProduceResponse):
        (answer,) = response.responses[0].partition_responses
    else:
        (answer,) = response.responses[0].partitions
    leader = answer.current_leader
    return answer.error_code, (leader.leader_id, leader.leader_epoch)


def endpoints(response: ProduceResponse | FetchResponse) -> list[tuple[int, str, int, str | None]]:
    """Where brokers are reached."""
    return [(each.node_id, each.host, each.port, each.rack) for each in response.node_endpoints]


def of_second(pair: HandMade) -> list[tuple[int, str, int, str | None]]:
    """Where the second broker is reached."""
    return [(1, "127.0.0.1", pair.members[1].port, "rack-1")]


@pytest.mark.parametrize(("version", "names"), [(9, False), (10, True), (12, True)])
def test_a_producer_learns_the_leader(pair: HandMade, version: int, names: bool) -> None:
    """From version 10 on."""
    with Wire(pair.members[0].port) as wire:
        response = wire.ask(produce_request("t", build_batch([(1, None, b"v", ())])), version)
    assert named(response) == (MOVED, (1, 1) if names else NONE_NAMED)
    assert endpoints(response) == (of_second(pair) if names else [])


def test_a_producer_that_waited_learns_the_leader(tmp_path: Path) -> None:
    """Its records were not replicated when another was elected."""
    with hand_made(tmp_path) as pair:
        pair.appoint(0, only=(0,))
        leader = pair.members[0]
        with Wire(leader.port) as wire:
            wire.send(produce_request("t", build_batch([(1, None, b"v", ())])), 10)
            wait_for(
                "a write that waits", lambda: leader.do(lambda: leader.partition().produce_waiters)
            )
            pair.appoint(1, only=(0,))
            _, response = wire.receive(ProduceResponse, 10)
        assert named(response) == (MOVED, (1, 1))
        assert endpoints(response) == of_second(pair)


@pytest.mark.parametrize(
    ("version", "epoch", "expected", "names"),
    [
        (15, 0, FENCED, False),
        (16, 0, FENCED, True),
        (17, 0, FENCED, True),
        (16, 9, ErrorCode.UNKNOWN_LEADER_EPOCH, False),
    ],
)
def test_a_consumer_learns_the_leader(
    pair: HandMade, version: int, epoch: int, expected: ErrorCode, names: bool
) -> None:
    """From version 16 on, where it has an earlier epoch; a later one this broker does not know."""
    request = fetch_request([("t", 0, 0)])
    request.topics[0].topic_id = T_ID
    request.topics[0].partitions[0].current_leader_epoch = epoch
    with Wire(pair.members[0].port) as wire:
        response = wire.ask(request, version)
    assert named(response) == (expected, (1, 1) if names else NONE_NAMED)
    assert endpoints(response) == (of_second(pair) if names else [])


@pytest.mark.parametrize(("version", "names"), [(15, False), (16, True), (17, True)])
def test_a_follower_learns_the_leader(pair: HandMade, version: int, names: bool) -> None:
    """As a consumer does; where that is reached it learns from the controller."""
    request = fetch_request([("t", 0, 0)])
    request.topics[0].topic_id = T_ID
    request.replica_state = ReplicaState(replica_id=1)
    with Wire(pair.members[0].port) as wire:
        response = wire.ask(request, version)
    assert named(response) == (MOVED, (1, 1) if names else NONE_NAMED)
    assert endpoints(response) == []


def test_a_leader_that_is_away_is_named_without_an_endpoint(pair: HandMade) -> None:
    """Clients know then which broker to wait for."""
    brokers = {0: pair.image.brokers[0]}
    pair.image = pair.image.with_changes(brokers=brokers)
    pair.show(pair.members[0])
    with Wire(pair.members[0].port) as wire:
        response = wire.ask(produce_request("t", build_batch([(1, None, b"v", ())])), 10)
    assert named(response) == (MOVED, (1, 1))
    assert endpoints(response) == []


def test_a_partition_without_a_leader(pair: HandMade) -> None:
    """The epoch is in the response all the same."""
    pair.appoint(-1)
    with Wire(pair.members[0].port) as wire:
        response = wire.ask(produce_request("t", build_batch([(1, None, b"v", ())])), 10)
    assert named(response) == (MOVED, (-1, 2))
    assert endpoints(response) == []
