"""Followers copy their leaders: records, high watermarks, log starts, and what they lack."""

import asyncio
import errno
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any
from uuid import UUID

import pytest

from barnabas_broker.cluster.image import PartitionState, TopicImage
from barnabas_broker.log.directories import LogDirectories
from barnabas_broker.replica import follower
from barnabas_broker.replica.partition import Partition
from barnabas_broker.server.peers.peers import PeerError
from barnabas_broker.server.peers.replication.leader_end_point import LeaderEndPoint
from barnabas_broker.server.process.supervised_tasks import background
from barnabas_kafka.ids import TopicPartition
from barnabas_kafka.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from barnabas_kafka.records.builder import build_batch
from tests.broker.log.samples import housekeep
from tests.broker.server.peers.replication.hand_made import (
    T0,
    T_ID,
    HandMade,
    Member,
    hand_made,
)
from tests.broker.server.running import Wire
from tests.waiting import ANSWER, seconds, wait_for

NOW_MS = 1_700_000_000_000


def batch(*values: bytes) -> bytes:
    """A batch of records without keys."""
    return bytes(build_batch([(NOW_MS, None, value, ()) for value in values]))


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[HandMade]:
    """Two brokers."""
    with hand_made(tmp_path) as cluster:
        yield cluster


def content(member: Member) -> bytes:
    """All bytes of t-0 on a broker."""
    directory = member.partition().log.directory
    return b"".join(path.read_bytes() for path in sorted(directory.glob("*.log")))


def until_same(cluster: HandMade) -> None:
    """Wait until all replicas have the same marks, and followers know what is committed."""
    wait_for(
        "the same log end and high watermark everywhere",
        cluster.ends,
        until=lambda ends: len({mark for marks in ends for mark in marks}) == 1,
    )


def until_known(leader: Member, follower: int, *, end: int) -> None:
    """Wait until a leader knows where a follower's log ends."""
    wait_for(
        "the end of the follower's log",
        lambda: leader.do(lambda: leader.partition().in_sync.followers[follower].log_end_offset),
        until=lambda known: known == end,
    )


def test_a_follower_copies_its_leader(pair: HandMade) -> None:
    """Byte by byte, and the high watermark follows."""
    pair.appoint(0)
    with Wire(pair.members[0].port) as wire:
        for number in range(5):
            assert wire.produce("t", batch(b"%d" % number, b"x")).error_code == 0
    until_same(pair)
    assert pair.members[1].ends() == (10, 10)
    assert content(pair.members[0]) == content(pair.members[1])


def test_another_partition_does_not_wait_for_a_fetch_that_waits(tmp_path: Path) -> None:
    """A leader that leads one more: the follower's fetch without it is answered at once."""
    hour_ms = 3_600_000
    waits = {
        "replica_fetch_wait_max_ms": hour_ms,
        "replica_lag_time_max_ms": 2 * hour_ms,
        "replica_socket_timeout_ms": 2 * hour_ms,
    }
    with hand_made(tmp_path, **waits) as pair:
        pair.appoint(0)
        leader = pair.members[0].partition()
        wait_for("a fetch that waits", lambda: leader.appends.watches)
        for number in range(3):
            topic = TopicImage(f"u{number}", UUID(int=50 + number), (pair.state(),))
            pair.tell(topic)
            with Wire(pair.members[0].port) as wire:
                assert wire.produce(topic.name, batch(b"a")).error_code == 0
            tp = TopicPartition(topic.name, 0)
            assert pair.members[1].ends(tp)[1] == 1


def test_a_fetch_does_not_wait_that_begins_when_another_partition_has_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Too late for the fetch of that round, and too early to hurry it."""
    hour_ms = 3_600_000
    waits = {
        "replica_fetch_wait_max_ms": hour_ms,
        "replica_lag_time_max_ms": 2 * hour_ms,
        "replica_socket_timeout_ms": 2 * hour_ms,
    }
    begun, reported = Event(), Event()
    version = LeaderEndPoint.names_divergence

    async def slow(self: LeaderEndPoint, timeout_s: float) -> bool:
        begun.set()
        await asyncio.to_thread(reported.wait)
        return await version(self, timeout_s)

    monkeypatch.setattr(LeaderEndPoint, "names_divergence", slow)
    with hand_made(tmp_path, **waits) as pair:
        pair.appoint(0)
        wait_for("a round", begun.is_set)
        pair.tell(TopicImage("u", UUID(int=50), (pair.state(),)))
        reported.set()
        with Wire(pair.members[0].port) as wire:
            assert wire.produce("u", batch(b"a")).error_code == 0
        assert pair.members[1].ends(TopicPartition("u", 0))[1] == 1


def test_a_leader_that_was_away_is_asked_when_it_is_named_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At once, and not when a pause after the failure is over."""
    tried, version = [], LeaderEndPoint.names_divergence

    async def away_first(self: LeaderEndPoint, timeout_s: float) -> bool:
        tried.append(timeout_s)
        if len(tried) == 1:
            raise PeerError("it is away")
        return await version(self, timeout_s)

    monkeypatch.setattr(LeaderEndPoint, "names_divergence", away_first)
    with hand_made(tmp_path, replica_fetch_backoff_ms=1 << 30) as pair:
        pair.appoint(0)
        wait_for("the failure", lambda: len(tried))
        pair.appoint(0)
        with Wire(pair.members[0].port) as wire:
            assert wire.produce("t", batch(b"a")).error_code == 0
        until_same(pair)


def test_a_leader_or_caught_up_replica_is_no_longer_possibly_truncated(pair: HandMade) -> None:
    """A replica without a leader stays one."""
    truncated = [
        member.node.broker.logs.truncated_logs.partitions for member in pair.members.values()
    ]
    for each in truncated:
        each.add(T0)
    pair.appoint(-1)
    assert truncated == [{T0}, {T0}]
    pair.appoint(0)
    wait_for("no log possibly truncated", lambda: truncated, until=lambda it: it == [set(), set()])


def test_catching_up_with_one_response_clears_a_possibly_truncated_log(pair: HandMade) -> None:
    """Of a partition in which nothing happens any more a session's answers say nothing."""
    pair.appoint(0, isr=(0,), only=(0,))
    with Wire(pair.members[0].port) as wire:
        assert wire.produce("t", batch(b"missed")).error_code == 0
    truncated = pair.members[1].node.broker.logs.truncated_logs.partitions
    truncated.add(T0)
    pair.show(pair.members[1])
    wait_for("no log possibly truncated", lambda: truncated, until=lambda it: not it)
    assert pair.members[1].ends() == (1, 1)


def test_a_former_leader_truncates_to_the_divergence(pair: HandMade) -> None:
    """A leader that lost its leadership with records nobody else has cuts them off (KIP-101)."""
    pair.appoint(0)
    with Wire(pair.members[0].port) as wire:
        assert wire.produce("t", batch(b"both")).error_code == 0
        until_same(pair)
        pair.appoint(1, isr=(1,), only=(1,))  # 0 has not heard of it.
        assert wire.produce("t", batch(b"lost-1", b"lost-2"), acks=1).error_code == 0
    with Wire(pair.members[1].port) as wire:
        assert wire.produce("t", batch(b"kept")).error_code == 0
    pair.show(pair.members[0])
    until_same(pair)
    assert pair.members[0].ends() == (2, 2)
    assert b"lost" not in content(pair.members[0])
    assert content(pair.members[0]) == content(pair.members[1])


def test_a_former_leader_without_records_follows_again(pair: HandMade) -> None:
    """Its epoch has no records: it is forgotten, and not named in one fetch after the other."""
    pair.appoint(0)
    with Wire(pair.members[0].port) as wire:
        assert wire.produce("t", batch(b"before")).error_code == 0
        until_same(pair)
        pair.appoint(1)
        pair.appoint(0)
        assert wire.produce("t", batch(b"after")).error_code == 0
    until_same(pair)
    assert content(pair.members[0]) == content(pair.members[1])


def test_a_follower_that_is_far_behind_starts_where_the_leader_does(pair: HandMade) -> None:
    """What retention has taken on the leader meanwhile is not missed; the rest is copied."""
    pair.appoint(0)
    with Wire(pair.members[0].port) as wire:
        assert wire.produce("t", batch(b"early")).error_code == 0
        until_same(pair)
        pair.appoint(0, isr=(0,), only=(0,))
        for number in range(4):
            assert wire.produce("t", batch(b"%d" % number, b"-")).error_code == 0
        leader = pair.members[0]
        leader.do(lambda: leader.partition().log.roll(NOW_MS))
        assert wire.produce("t", batch(b"late")).error_code == 0
    leader.do(lambda: leader.partition().delete_records_before(9))
    leader.do(lambda: housekeep(leader.node.broker.logs, NOW_MS))
    pair.show(pair.members[1])
    until_same(pair)
    log = pair.members[1].partition().log
    assert (log.log_start_offset, log.log_end_offset) == (9, 10)


def test_a_log_that_starts_inside_a_batch_is_copied_from_its_batch(pair: HandMade) -> None:
    """Records deleted up to the middle of a batch: the copy has the batch and the same start."""
    pair.appoint(0, isr=(0,), only=(0,))
    leader = pair.members[0]
    with Wire(leader.port) as wire:
        assert wire.produce("t", batch(b"a", b"b", b"c", b"d")).error_code == 0
    leader.do(lambda: leader.partition().delete_records_before(2))
    pair.show(pair.members[1])
    until_same(pair)
    log = pair.members[1].partition().log
    assert (log.log_start_offset, log.log_end_offset) == (2, 4)


def test_a_follower_elected_while_its_empty_log_is_started_again_takes_nothing_more(
    pair: HandMade, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Batches of the leader before must not come behind the start of its own leader epoch."""
    pair.appoint(0, isr=(0,), only=(0,))
    leader, elected = pair.members.values()
    with Wire(leader.port) as wire:
        assert wire.produce("t", batch(b"a", b"b", b"c", b"d")).error_code == 0
    leader.do(lambda: leader.partition().delete_records_before(2))
    starting, free = Event(), Event()
    start_at = LogDirectories.truncate_fully_at

    def slow(self: LogDirectories, tp: TopicPartition, offset: int, *, now_ms: int) -> None:
        if offset == 0:  # The base offset of the batch in which the leader's log starts.
            starting.set()
            free.wait(seconds(ANSWER))
        start_at(self, tp, offset, now_ms=now_ms)

    monkeypatch.setattr(LogDirectories, "truncate_fully_at", slow)
    # Another partition, so that the fetcher goes on without this one.
    pair.tell(TopicImage("u", UUID(int=50), (replace(pair.state(), isr=(0, 1)),)))
    assert starting.wait(seconds(ANSWER))
    pair.appoint(1, isr=(1,), only=(1,))
    free.set()
    wait_for("the new leader", lambda: elected.do(lambda: elected.partition().is_leader))
    with Wire(elected.port) as wire:
        assert wire.produce("t", batch(b"own")).base_offset == 0
    pair.show(leader)
    until_same(pair)
    assert b"own" in content(leader)


def test_a_follower_whose_append_failed_behind_its_log_goes_on_from_there(
    pair: HandMade, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever fails once records are in the log, these are not fetched again for ever."""
    pair.appoint(0)
    leader, other = pair.members.values()
    failures = iter([OSError(errno.EIO, "cannot read")])
    take_marks = Partition.take_marks

    def fail(self: Partition, **marks: int) -> None:
        if self is other.partition() and self.log.log_end_offset:
            for error in failures:
                raise error
        take_marks(self, **marks)

    monkeypatch.setattr(Partition, "take_marks", fail)
    with Wire(leader.port) as wire:
        for value in (b"one", b"two"):
            assert wire.produce("t", batch(value)).error_code == 0
    until_same(pair)
    assert content(other) == content(leader)


def test_deleted_records_are_deleted_on_followers(pair: HandMade) -> None:
    """The log start travels with every answer, and back; the client hears of it after that."""
    pair.appoint(0)
    leader, follower = pair.members.values()
    with Wire(leader.port) as wire:
        assert wire.produce("t", batch(b"a", b"b")).error_code == 0
        until_same(pair)
        entry = DeleteRecordsPartition(partition_index=0, offset=1)
        topics = [DeleteRecordsTopic(name="t", partitions=[entry])]
        answer = wire.ask(DeleteRecordsRequest(timeout_ms=60_000, topics=topics), 2)
    (deleted,) = answer.topics[0].partitions
    assert (deleted.error_code, deleted.low_watermark) == (0, 1)
    assert follower.partition().log.log_start_offset == 1


def test_a_large_backlog_is_copied_in_pieces(tmp_path: Path) -> None:
    """However small the pieces are that a fetch may bring."""
    with hand_made(tmp_path, replica_fetch_max_bytes=100) as cluster:
        cluster.appoint(0, isr=(0,), only=(0,))
        with Wire(cluster.members[0].port) as wire:
            for number in range(20):
                assert wire.produce("t", batch(b"%d" % number * 50)).error_code == 0
        cluster.show(cluster.members[1])
        until_same(cluster)
        assert content(cluster.members[0]) == content(cluster.members[1])


def test_with_fsync_a_follower_fetches_on_after_its_sync(tmp_path: Path) -> None:
    """With barnabas.durability=fsync a follower fetches on when it has synced."""
    with hand_made(tmp_path, barnabas_durability="fsync") as cluster:
        cluster.appoint(0)
        with Wire(cluster.members[0].port) as wire:
            assert wire.produce("t", batch(b"a")).error_code == 0
            follower = cluster.members[1].partition().log
            assert follower.durable_offset == 1
        until_same(cluster)


def test_a_deleted_topic_is_left(pair: HandMade) -> None:
    """Its fetcher ends with it, and another topic of the name is copied anew."""
    pair.appoint(0)
    follower = pair.members[1]
    assert follower.do(lambda: len(follower.node.replication.fetchers.running)) == 1
    pair.image = pair.image.with_changes(remove=frozenset({"t"}))
    for member in pair.members.values():
        pair.show(member)
    assert follower.do(lambda: len(follower.node.replication.fetchers.running)) == 0
    assert follower.node.broker.replicas.get(T0) is None


def test_more_fetchers_share_the_partitions(tmp_path: Path) -> None:
    """Each has a connection of its own, and every partition one of them."""
    with hand_made(tmp_path, num_replica_fetchers=3) as cluster:
        state = PartitionState(
            replicas=(0, 1), isr=(0, 1), leader=0, leader_epoch=0, controller_epoch=1
        )
        cluster.tell(TopicImage("t", T_ID, (state,) * 6))
        leader, follower = cluster.members.values()
        assert follower.do(lambda: len(follower.node.replication.fetchers.running)) == 3
        with Wire(leader.port) as wire:
            for index in range(6):
                assert wire.produce("t", batch(b"x"), partition=index).error_code == 0


def two_partitions(pair: HandMade) -> tuple[Member, Member]:
    """Have broker 0 lead t-0 and t-1, and return both brokers."""
    state = PartitionState(
        replicas=(0, 1), isr=(0, 1), leader=0, leader_epoch=0, controller_epoch=1
    )
    pair.tell(TopicImage("t", T_ID, (state, state)))
    return pair.members[0], pair.members[1]


def until_copied(member: Member, tp: TopicPartition, end: int) -> None:
    """Wait until a broker has so many records."""
    wait_for(f"{end} records of {tp}", lambda: member.ends(tp)[1], until=lambda it: it == end)


def test_a_new_partition_is_in_the_first_fetch_after_it_is_known(tmp_path: Path) -> None:
    """It does not wait until a fetch of other partitions ends that have no records.

    A new log has no epochs and is cut, to nothing, before it is fetched: both in one round.
    """
    hour_ms = 3_600_000
    with hand_made(
        tmp_path,
        replica_fetch_wait_max_ms=hour_ms,
        replica_lag_time_max_ms=hour_ms,
        replica_socket_timeout_ms=hour_ms,
    ) as pair:
        pair.appoint(0)
        leader, other = pair.members[0], pair.members[1]
        with Wire(leader.port) as wire:
            assert wire.produce("t", batch(b"before"), acks=1).error_code == 0
            until_copied(other, T0, 1)
            topic = pair.image.topics["t"]
            pair.tell(replace(topic, partitions=topic.partitions * 2))
            assert wire.produce("t", batch(b"new"), acks=1, partition=1).error_code == 0
            assert wire.produce("t", batch(b"ends the fetch"), acks=1).error_code == 0
        until_copied(other, TopicPartition("t", 1), 1)


def test_one_large_record_is_copied_whatever_an_answer_is_to_bring(tmp_path: Path) -> None:
    """It is in the leader's log: no other limit counts (KIP-74)."""
    size = 65 << 20
    with hand_made(
        tmp_path, message_max_bytes=size + 1000, replica_fetch_response_max_bytes=1
    ) as pair:
        leader, other = two_partitions(pair)
        with Wire(leader.port) as wire:
            assert wire.produce("t", batch(bytes(size)), acks=1).error_code == 0
            assert wire.produce("t", batch(b"x"), partition=1).error_code == 0
        until_copied(other, T0, 1)


def test_a_partition_that_has_requests_fail_does_not_hold_up_others(
    pair: HandMade, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is set apart, and copied when it can be."""
    leader, other = two_partitions(pair)
    broken = [True]
    send = LeaderEndPoint.fetch

    async def fetch(self: LeaderEndPoint, wanted: Any, *given: Any, **more: Any) -> Any:
        if broken and T0 in wanted.partitions:
            raise PeerError("what the leader sends is no answer")
        return await send(self, wanted, *given, **more)

    monkeypatch.setattr(LeaderEndPoint, "fetch", fetch)
    with Wire(leader.port) as wire:
        assert wire.produce("t", batch(b"held up"), acks=1).error_code == 0
        for _ in range(5):
            assert wire.produce("t", batch(b"x"), partition=1).error_code == 0
    assert other.ends() == (0, 0)
    broken.clear()
    until_copied(other, T0, 1)


def test_a_failing_partition_does_not_end_the_fetch_round(
    pair: HandMade, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However unforeseen it is; the partition is tried again."""
    leader, other = two_partitions(pair)
    broken = [True]
    append = Partition.append_as_follower

    def fail(self: Partition, *given: Any, **more: Any) -> Any:
        if broken and self.tp == T0:
            raise ZeroDivisionError
        return append(self, *given, **more)

    monkeypatch.setattr(Partition, "append_as_follower", fail)
    with Wire(leader.port) as wire:
        assert wire.produce("t", batch(b"held up"), acks=1).error_code == 0
        for _ in range(5):
            assert wire.produce("t", batch(b"x"), partition=1).error_code == 0
    assert other.ends() == (0, 0)
    broken.clear()
    until_copied(other, T0, 1)


@pytest.mark.parametrize("decision", ["follow", "question"])
def test_a_decision_that_fails_for_one_partition_does_not_end_the_round(
    pair: HandMade, monkeypatch: pytest.MonkeyPatch, decision: str
) -> None:
    """The other partitions of the leader are copied; the one that failed is tried again."""
    broken = [True]
    real = getattr(follower, decision)

    def fail(*given: Any, **more: Any) -> Any:
        if broken and any(getattr(it, "tp", None) == T0 for it in given):
            raise ZeroDivisionError
        return real(*given, **more)

    monkeypatch.setattr(follower, decision, fail)
    leader, other = two_partitions(pair)
    with Wire(leader.port) as wire:
        assert wire.produce("t", batch(b"held up"), acks=1).error_code == 0
        assert wire.produce("t", batch(b"x"), partition=1).error_code == 0
    assert other.ends() == (0, 0)
    broken.clear()
    until_copied(other, T0, 1)


def test_a_cancelled_answer_does_not_end_a_fetcher(
    pair: HandMade, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A future that is cancelled by another task is an error of one round, and no stop."""
    cancelled: list[LeaderEndPoint] = []
    send = LeaderEndPoint.fetch

    async def fetch(self: LeaderEndPoint, *given: Any, **more: Any) -> Any:
        if not cancelled:
            cancelled.append(self)
            raise asyncio.CancelledError
        return await send(self, *given, **more)

    monkeypatch.setattr(LeaderEndPoint, "fetch", fetch)
    leader, _other = two_partitions(pair)
    with Wire(leader.port) as wire:
        assert wire.produce("t", batch(b"x"), partition=1).error_code == 0
    assert cancelled


def test_the_background_tasks_of_a_cluster_survive_an_error(pair: HandMade) -> None:
    """Each fails once, whatever it waits for; it is heard of, and records are copied after it."""
    two_partitions(pair)

    async def fail(names: set[str]) -> int:
        """Fail each that waits for something now, once; how many are left."""
        tasks = background().tasks
        for task in tasks:
            waits_for = task._fut_waiter  # type: ignore[attr-defined]
            if task.get_name() not in names and waits_for is not None and not waits_for.done():
                waits_for.set_exception(ValueError("a defect"))
                names.add(task.get_name())
        return len({task.get_name() for task in tasks} - names)

    async def failed() -> set[str]:
        return set(background().failures)

    for member in pair.members.values():
        names: set[str] = set()

        def ask(question: Any, loop: Any = member.loop) -> Any:
            return asyncio.run_coroutine_threadsafe(question, loop).result(seconds(ANSWER))

        wait_for("an error of each", lambda: ask(fail(names)), until=lambda left: left == 0)  # noqa: B023
        own = {it for it in names if not it.startswith("fetcher ")}
        assert "ISR expiration" in own
        assert (own != names) == (member is not pair.members[0])
        wait_for("the errors", lambda: ask(failed()), until=lambda it: it >= own)  # noqa: B023
    with Wire(pair.members[0].port) as wire:
        for index in (0, 1):
            assert wire.produce("t", batch(b"x"), partition=index).error_code == 0


def test_a_leader_that_missed_an_epoch_knows_nothing_of_its_followers(tmp_path: Path) -> None:
    """They may have truncated in that epoch what they had before.

    What a member of the ISR lacks would pass for committed, and be lost once that one is elected.
    """
    with hand_made(tmp_path, 3) as cluster:
        cluster.appoint(0)
        leader, _, behind = cluster.members.values()
        with Wire(leader.port) as wire:
            assert wire.produce("t", batch(b"everywhere")).error_code == 0
            until_same(cluster)
            cluster.appoint(1, only=(1,))
            assert wire.produce("t", batch(b"once on 2"), acks=1).error_code == 0
            wait_for("its copy", lambda: behind.do(behind.ends)[1] == 2)
            until_known(leader, 2, end=2)
        cluster.show(behind)
        wait_for("the truncation", lambda: behind.do(behind.ends)[1] == 1)
        cluster.appoint(0, only=(0, 1))
        until_known(leader, 1, end=2)
        assert leader.do(leader.ends) == (1, 2)
        cluster.show(behind)
        until_same(cluster)
