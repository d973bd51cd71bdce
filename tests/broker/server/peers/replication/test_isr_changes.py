"""Followers join and leave the in-sync replicas, and producers are told what that means."""

import asyncio
import errno
import os
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from barnabas_broker.cluster.image import PartitionState
from barnabas_broker.log.flushing import FlushPlan
from barnabas_broker.log.partition_log import PartitionLog
from barnabas_broker.server.node import broker_server as node_module
from barnabas_broker.server.peers.peers import PeerError
from barnabas_broker.server.peers.replication import isr_changes
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.ids import TopicPartition
from barnabas_kafka.protocol.messages.produce import ProduceResponse
from tests.broker.server.moved_clock import loops_monotonic_ms
from tests.broker.server.peers.replication.hand_made import T0, HandMade, Member, hand_made
from tests.broker.server.peers.replication.test_replica_fetcher import batch
from tests.broker.server.running import Wire, produce_request
from tests.waiting import ANSWER, seconds, wait_for

#: As long as no machine is busy.
LAG_S = 600
SHORT_FETCHES: dict[str, Any] = {"replica_fetch_wait_max_ms": 200}


@pytest.fixture
def pair(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HandMade]:
    """Two brokers whose clocks are moved, of which a follower may lag for LAG_S."""
    monkeypatch.setattr(node_module, "monotonic_ms", loops_monotonic_ms)
    with hand_made(tmp_path, replica_lag_time_max_ms=LAG_S * 1000, **SHORT_FETCHES) as both:
        yield both


@pytest.fixture
def patient(tmp_path: Path) -> Iterator[HandMade]:
    """Two brokers, of which a follower may lag for longer than any machine is busy."""
    with hand_made(tmp_path, **SHORT_FETCHES) as both:
        yield both


def test_a_follower_that_has_caught_up_joins(patient: HandMade) -> None:
    """When it has all that is committed and all of former leaders."""
    patient.appoint(0, isr=(0,), only=(0,))
    with Wire(patient.members[0].port) as wire:
        assert wire.produce("t", batch(b"a")).error_code == 0
    patient.show(patient.members[1])
    wait_for("the ISR of (0, 1)", lambda: patient.state().isr, until=lambda isr: isr == (0, 1))
    leader = patient.members[0].partition()
    wait_for("the ISR of (0, 1)", lambda: leader.state.isr, until=lambda isr: isr == (0, 1))
    assert patient.asked == [(0, 1)]


@pytest.mark.parametrize("error", [asyncio.CancelledError("by another"), ValueError("a bug")])
def test_a_change_that_is_ended_by_what_it_waits_for_is_asked_for_again(
    patient: HandMade, error: BaseException
) -> None:
    """Nobody else would: it would stay under way, and the ISR as it is, until the next leader."""
    leader = patient.members[0]
    change, errors = leader.node.replication.alter_partition, [error]

    async def alter(*arguments: Any) -> PartitionState:
        if errors:
            raise errors.pop()
        return await change(*arguments)

    leader.node.replication.alter_partition = alter
    patient.appoint(0, isr=(0,))
    wait_for("the ISR of (0, 1)", lambda: patient.state().isr, until=lambda isr: isr == (0, 1))
    assert not errors


def test_a_follower_that_stops_leaves(pair: HandMade) -> None:
    """Records wait for it until then, and count without it afterwards."""
    pair.appoint(0)
    leader, follower = pair.members.values()
    wait_for(
        "a fetch of the follower",
        lambda: leader.partition().in_sync.followers[1].log_end_offset,
        until=lambda end: end == 0,
    )
    follower.do(lambda: follower.node.replication.fetchers.leave(leader.partition().tp))
    request = produce_request("t", batch(b"a"))
    request.timeout_ms = 10_000 * LAG_S
    with Wire(leader.port) as wire:
        wire.send(request, 9)
        lag(leader)
        answer = wire.receive(ProduceResponse, 9)[1].responses[0].partition_responses[0]
    assert answer.error_code == 0
    assert pair.asked == [(0,)]
    assert pair.state().isr == (0,)
    assert follower.ends() == (0, 0)


def lag(leader: Member) -> None:
    """Let the time pass in which a follower has to fetch the leader's only record."""
    wait_for("the record", leader.ends, until=lambda ends: ends[1] == 1)
    leader.loop.pass_time(LAG_S + 1)


def followed_no_more(pair: HandMade) -> PartitionLog:
    """Broker 0 leads and has a record that broker 1 will not fetch; returns its log."""
    pair.appoint(0)
    leader, follower = pair.members.values()
    wait_for(
        "a fetch of the follower",
        lambda: leader.partition().in_sync.followers[1].log_end_offset,
        until=lambda end: end == 0,
    )
    follower.do(lambda: follower.node.replication.fetchers.leave(leader.partition().tp))
    with Wire(leader.port) as wire:
        assert wire.produce("t", batch(b"a"), acks=1).error_code == 0
    lag(leader)
    return leader.partition().log


@pytest.mark.parametrize(("flush", "on_disk"), [("false", 0), ("true", 1)])
def test_the_log_is_on_disk_before_others_leave(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flush: str, on_disk: int
) -> None:
    """Where barnabas.isr.shrink.flush asks for it; Apache leaves it to the system."""
    monkeypatch.setattr(node_module, "monotonic_ms", loops_monotonic_ms)
    given: dict[str, Any] = {
        "replica_lag_time_max_ms": LAG_S * 1000,
        "barnabas_isr_shrink_flush": flush,
    }
    with hand_made(tmp_path, **given) as pair:
        flushed: list[int] = []
        change = pair.members[0].node.replication.alter_partition

        async def alter(
            tp: TopicPartition, topic_id: UUID, wanted: PartitionState, epochs: Mapping[int, int]
        ) -> Any:
            flushed.append(pair.members[0].partition().log.recovery_point)
            return await change(tp, topic_id, wanted, epochs)

        pair.members[0].node.replication.alter_partition = alter
        followed_no_more(pair)
        wait_for("the ISR of (0,)", lambda: pair.state().isr, until=lambda isr: isr == (0,))
        assert flushed == [on_disk]


def test_a_disk_that_hangs_holds_up_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The threads of the event loop are for what waits for no disk, such as a controller's orders.

    And the change is made when the log is on disk.
    """
    hanging, free, run = threading.Event(), threading.Event(), FlushPlan.run

    def hang(plan: FlushPlan) -> None:
        hanging.set()
        free.wait(seconds(ANSWER))
        run(plan)

    monkeypatch.setattr(node_module, "monotonic_ms", loops_monotonic_ms)
    given: dict[str, Any] = {
        "replica_lag_time_max_ms": LAG_S * 1000,
        "barnabas_isr_shrink_flush": "true",
    }
    with hand_made(tmp_path, **given) as pair:
        leader = pair.members[0]
        leader.do(lambda: leader.loop.set_default_executor(ThreadPoolExecutor(1)))
        monkeypatch.setattr(FlushPlan, "run", hang)
        followed_no_more(pair)
        wait_for("a sync that hangs", hanging.is_set)
        other = asyncio.run_coroutine_threadsafe(asyncio.to_thread(int, "1"), leader.loop)
        assert other.result(seconds(ANSWER)) == 1
        assert pair.asked == []
        free.set()
        wait_for("the ISR of (0,)", lambda: pair.state().isr, until=lambda isr: isr == (0,))


def test_a_change_that_is_asked_for_in_vain_is_asked_of_the_next_controller(
    pair: HandMade, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At once, and not when the pause is over."""
    monkeypatch.setattr(isr_changes, "RETRY_S", 3600.0)
    monkeypatch.setattr(isr_changes, "RETRY_MAX_S", 3600.0)
    leader = pair.members[0]
    change, asked = leader.node.replication.alter_partition, []

    async def alter(*arguments: Any) -> PartitionState:
        asked.append(pair.image.controller_id)
        if len(asked) == 1:
            raise PeerError("it is away")
        return await change(*arguments)

    leader.node.replication.alter_partition = alter
    pair.appoint(0, isr=(0,))
    wait_for("the first attempt", lambda: len(asked))
    pair.image = replace(pair.image, controller_id=1)
    pair.show(leader)
    wait_for("the ISR of (0, 1)", lambda: pair.state().isr, until=lambda isr: isr == (0, 1))
    assert asked == [0, 1]


def test_a_failed_sync_prevents_an_isr_shrink(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sync fails once, is not tried again, and the controller is not asked."""
    tried: list[int] = []

    def fail(plan: FlushPlan) -> None:
        tried.append(plan.up_to)
        plan.error = OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(node_module, "monotonic_ms", loops_monotonic_ms)
    given: dict[str, Any] = {
        "replica_lag_time_max_ms": LAG_S * 1000,
        "barnabas_isr_shrink_flush": "true",
    }
    with hand_made(tmp_path, **given) as pair:
        monkeypatch.setattr(FlushPlan, "run", fail)
        log = followed_no_more(pair)
        wait_for("a failure of the log", lambda: log.failure)
        leader = pair.members[0]
        with pytest.raises(KafkaError, match="Input/output error"):
            leader.do(leader.partition().check_leader)
        assert (tried, pair.asked, pair.state().isr) == ([1], [], (0, 1))


def test_below_the_minimum_nothing_is_taken(patient: HandMade) -> None:
    """acks=all is refused before the append; others are not."""
    patient.appoint(0, isr=(0,), only=(0,), min_insync_replicas="2")
    with Wire(patient.members[0].port) as wire:
        refused = wire.produce("t", batch(b"a"))
        assert refused.error_code == ErrorCode.NOT_ENOUGH_REPLICAS
        assert wire.produce("t", batch(b"b"), acks=1).error_code == 0
        assert patient.members[0].ends() == (0, 1)


def test_a_shrink_below_min_insync_replicas_times_out_waiting_producers(pair: HandMade) -> None:
    """The mark is held while too few are in sync, so the producer hears of its timeout."""
    pair.appoint(0, min_insync_replicas="2")
    leader, follower = pair.members.values()
    wait_for(
        "a fetch of the follower",
        lambda: leader.partition().in_sync.followers[1].log_end_offset,
        until=lambda end: end == 0,
    )
    follower.do(lambda: follower.node.replication.fetchers.leave(leader.partition().tp))
    request = produce_request("t", batch(b"a"))
    request.timeout_ms = 2000 * LAG_S
    with Wire(leader.port) as wire:
        wire.send(request, 9)
        lag(leader)
        wait_for(
            "the ISR of (0,)", lambda: leader.partition().state.isr, until=lambda isr: isr == (0,)
        )
        leader.loop.pass_time(LAG_S)
        answer = wire.receive(ProduceResponse, 9)[1].responses[0].partition_responses[0]
    assert answer.error_code == ErrorCode.REQUEST_TIMED_OUT
    assert leader.ends() == (0, 1)


def test_a_refused_change_leaves_things_as_they_were(patient: HandMade) -> None:
    """INELIGIBLE_REPLICA: the broker is on its way out. It is asked for again later."""
    patient.refusal = ErrorCode.INELIGIBLE_REPLICA
    patient.appoint(0, isr=(0,))
    wait_for("a second AlterPartition", lambda: patient.asked, until=lambda it: len(it) >= 2)
    assert patient.members[0].partition().state.isr == (0,)
    patient.refusal = None
    wait_for("the ISR of (0, 1)", lambda: patient.state().isr, until=lambda isr: isr == (0, 1))


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.INVALID_UPDATE_VERSION,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_SERVER_ERROR,
    ],
)
def test_a_change_that_may_have_happened_is_asked_for_again(
    patient: HandMade, code: ErrorCode
) -> None:
    """The mark waits for the follower meanwhile, and nobody has to name a newer state."""
    patient.refusal = code
    patient.appoint(0, isr=(0,))
    wait_for("a third AlterPartition", lambda: patient.asked, until=lambda it: len(it) >= 3)
    leader = patient.members[0].partition()
    assert leader.in_sync.maximal_isr == {0, 1}
    assert leader.state.isr == (0,)
    patient.refusal = None
    wait_for("the ISR of (0, 1)", lambda: leader.state.isr, until=lambda isr: isr == (0, 1))
    assert (patient.state().isr, patient.state().partition_epoch) == ((0, 1), 1)
    assert leader.in_sync.pending is None


def test_a_change_that_was_made_is_settled_by_a_newer_state_in_the_same_epoch(
    patient: HandMade,
) -> None:
    """The answer was lost, and the controller names the state; the same one again says nothing."""
    patient.refusal = ErrorCode.INVALID_UPDATE_VERSION
    patient.appoint(0, isr=(0,))
    wait_for("an AlterPartition", lambda: patient.asked)
    leader = patient.members[0].partition()
    known, topic = patient.state(), patient.image.topics["t"]
    again = replace(known, controller_epoch=2)
    patient.tell(replace(topic, partitions=(again,)))
    assert leader.in_sync.maximal_isr == {0, 1}
    assert leader.in_sync.pending is not None
    made = replace(again, isr=(0, 1), partition_epoch=known.partition_epoch + 1)
    patient.tell(replace(topic, partitions=(made,)))
    assert leader.in_sync.pending is None
    assert (leader.state.isr, leader.state.leader_epoch) == ((0, 1), known.leader_epoch)


def test_nothing_is_asked_for_a_replica_that_is_given_up(patient: HandMade) -> None:
    """Its topic is deleted, and the controller does not know it any more."""
    patient.refusal = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    patient.appoint(0, isr=(0,))
    wait_for("an AlterPartition", lambda: patient.asked)
    leader = patient.members[0]
    leader.do(lambda: leader.node.broker.replicas.stop(T0, delete=False))
    wait_for(
        "the end of the change",
        lambda: leader.do(lambda: list(leader.node.replication._isr_changes._tasks)),
        until=lambda tasks: not tasks,
    )
