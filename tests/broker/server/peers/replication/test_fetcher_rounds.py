"""A fetcher asks each round what a look at every partition would, and looks at few of them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random
from struct import pack_into
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from barnabas_broker.cluster.image import PartitionState
from barnabas_broker.log.truncated_logs import TruncatedLogs
from barnabas_broker.replica import follower
from barnabas_broker.replica.follower import AskRecords, EpochEnd, Fetched, LogEnds, Phase
from barnabas_broker.replica.leader_session import LeaderSession, Wanted, WantedPartitions
from barnabas_broker.replica.partition import Partition
from barnabas_broker.replica.replication_quota import ReplicationQuota
from barnabas_broker.server.peers.peers import UnreachableError
from barnabas_broker.server.peers.replication.leader_end_point import Records
from barnabas_broker.server.peers.replication.replica_fetcher import FetcherContext, ReplicaFetcher
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.ids import TopicPartition
from barnabas_kafka.records.builder import build_batch
from barnabas_kafka.settings.broker import BrokerSettings
from tests.broker.replica.test_manager import Bench, image
from tests.waiting import ANSWER, seconds

T_ID = UUID(int=1)
NOW_MS = 1_700_000_000_000
approx = partial(pytest.approx, abs=0.01)


def state(epoch: int = 0) -> PartitionState:
    """A partition that broker 2 leads, and broker 1 copies."""
    return PartitionState((1, 2), (1, 2), leader=2, leader_epoch=epoch, controller_epoch=1)


def records(offset: int, epoch: int) -> bytes:
    """A batch of one record, as a leader in that epoch has it."""
    batch = bytearray(build_batch([(NOW_MS, None, b"x", ())]))
    pack_into(">q", batch, 0, offset)
    pack_into(">i", batch, 12, epoch)
    return bytes(batch)


class Link:
    """A leader that answers what a test says; in place of `LeaderLink`."""

    def __init__(self) -> None:
        self.away = False
        self.session = LeaderSession()
        #: what is to be fetched in this round; None: whatever is
        self.expected: dict[TopicPartition, Wanted] | None = None
        #: the answers to the next fetch, by partition; of the others nothing is said
        self.answers: dict[TopicPartition, Records] = {}
        self.wanted: dict[TopicPartition, Wanted] = {}

    async def names_divergence(self, _timeout_s: float) -> bool:
        if self.away:
            raise UnreachableError("away")
        return True

    async def epoch_ends(self, asked: Mapping[TopicPartition, Any], _: float) -> Any:
        if self.away:
            raise UnreachableError("away")
        return {tp: EpochEnd(ask.epoch, 10**6) for tp, ask in asked.items()}

    async def log_ends(self, asked: Mapping[TopicPartition, Any], _: float) -> Any:
        if self.away:
            raise UnreachableError("away")
        return {tp: LogEnds(0, 10**6) for tp in asked}

    async def fetch(self, wanted: WantedPartitions, *_: Any, **__: Any) -> Any:
        self.wanted |= wanted.partitions
        self.session.changes(wanted.partitions, by_topic_id=True, changed=wanted.changed)
        assert self.session.partitions == wanted.partitions
        wanted.said()
        if self.away:
            self.session.failed()
            raise UnreachableError("away")
        self.session.answered(5)
        answers, self.answers = self.answers, {}
        return {tp: answer for tp, answer in answers.items() if tp in self.wanted}


def by_looking_at_all(fetcher: ReplicaFetcher) -> dict[TopicPartition, Wanted]:
    """What is to be fetched, found without anything remembered."""
    found = {}
    for tp, each in fetcher.copied.items():
        ready = each.not_before <= fetcher._loop.time() and not each.partition.counted_out
        ready = ready and not each.cutting
        if ready and each.state is not None and each.state.phase is Phase.FETCHING:
            asking = follower.question(each.state, each.partition.log)
            if isinstance(asking, AskRecords) and not fetcher._is_held(each):
                found[tp] = Wanted(each.topic_id, asking)
    return found


class Cutter:
    """Cuts at once; in place of threads."""

    def cuts_nothing(self, partition: Partition, offset: int) -> bool:
        return offset >= partition.log.log_end_offset

    async def truncate(self, partition: Partition, offset: int) -> None:
        if offset < partition.log.log_end_offset:
            partition.log.truncate_to(offset, now_ms=NOW_MS)

    async def start_at(self, partition: Partition, offset: int) -> None:
        partition.log.truncate_fully_at(offset, now_ms=NOW_MS)

    def close(self) -> None:
        """There is no thread."""


class Copying:
    """A fetcher of broker 1 from broker 2, whose rounds a test has made."""

    def __init__(self, directory: Path, partitions: int) -> None:
        self.bench = Bench(directory)
        self.bench.see(image(*[state()] * partitions))
        self.link = Link()
        self.now_s = 0.0
        self.scan_ms = 0
        self.quota = ReplicationQuota(windows=3, window_ms=1000)
        given_settings = BrokerSettings({})
        self.fetcher = ReplicaFetcher(
            "f",
            self.link,  # type: ignore[arg-type]
            FetcherContext(
                broker_id=1,
                truncation=Cutter(),
                quota=self.quota,
                truncated_logs=TruncatedLogs(),
                settings=lambda: given_settings,
                broker_epoch=lambda: 1,
                monotonic_ms=lambda: self.scan_ms,
                clock_ms=lambda: NOW_MS,
            ),
            set_apart=lambda _tp: None,
        )
        self.fetcher._loop = SimpleNamespace(time=lambda: self.now_s)  # type: ignore[assignment]

    def check_rounds(self) -> None:
        """From now on compare what is fetched with what a look at all partitions finds."""
        real = self.fetcher._questions

        def questions(*given: Any) -> Any:
            asked = real(*given)
            self.link.expected = by_looking_at_all(self.fetcher)
            return asked

        self.fetcher._questions = questions  # type: ignore[method-assign,assignment]

    def partition(self, index: int) -> Partition:
        """A replica."""
        found = self.bench.manager.get(TopicPartition("t", index))
        assert found is not None
        return found

    def copy(self, index: int, *, epochs: int = 0) -> None:
        """The controller names the leader, or it in a later epoch."""
        partition = self.partition(index)
        known = partition.state
        partition.become(replace(known, leader_epoch=known.leader_epoch + epochs))
        self.fetcher.copy(partition, T_ID, partition.leader_epoch)

    async def round(self) -> bool:
        """One round; whether there was anything to ask. A leader that is away is no failure.

        What the round before has left to be cut is cut.
        """
        link = self.link
        if self.fetcher._cutting is not None:
            await self.fetcher._cutting
        link.wanted = {}
        try:
            asked = await self.fetcher._round()
        except UnreachableError:
            assert link.away
            return True
        if link.expected is not None and not link.away:  # In one request, or in parts.
            assert link.wanted == link.expected
        return asked


def test_a_round_looks_at_what_has_changed_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of hundred partitions the one of which records came."""
    looked: list[int] = []
    real = follower.question

    def counted(*given: Any) -> Any:
        looked.append(1)
        return real(*given)

    async def rounds() -> None:
        copying = Copying(tmp_path, 100)
        for index in range(100):
            copying.copy(index)
        await copying.round()  # Their logs are empty: they are cut to where they begin.
        await copying.round()
        assert len(copying.link.wanted) == 100
        monkeypatch.setattr(follower, "question", counted)
        await copying.round()
        assert looked == []
        copying.link.answers = {TopicPartition("t", 7): Records(Fetched(0, 0), records(0, 0))}
        await copying.round()
        await copying.round()
        assert len(looked) == 1
        assert copying.link.wanted[TopicPartition("t", 7)].ask.offset == 1

    asyncio.run(rounds())


def test_a_log_start_moved_by_retention_is_found_within_a_second(tmp_path: Path) -> None:
    """The follower's own retention moves the start of its log, which the leader has to hear."""

    async def rounds() -> None:
        copying = Copying(tmp_path, 2)
        copying.copy(0)
        copying.copy(1)
        for _ in range(2):
            await copying.round()
        copying.link.answers = {TopicPartition("t", 0): Records(Fetched(1, 0), records(0, 0))}
        for _ in range(2):
            await copying.round()
        assert copying.partition(0).log.high_watermark == 1
        copying.partition(0).log.delete_records_before(1)
        copying.scan_ms += 1_000
        await copying.round()
        assert copying.link.wanted[TopicPartition("t", 0)].ask.log_start == 1

    asyncio.run(rounds())


def asked_again_after_s(
    directory: Path, error: ErrorCode, pauses: int, *, step_s: float = 0.005
) -> list[float]:
    """How long a fetcher waits each time before it asks for a partition again."""
    found: list[float] = []

    async def rounds() -> None:
        copying = Copying(directory, 1)
        copying.copy(0)
        await copying.round()
        await copying.round()
        for _ in range(pauses):
            copying.link.answers = {TopicPartition("t", 0): Records(Fetched(error=error), b"")}
            await copying.round()
            began_s = copying.now_s
            while not await copying.round():
                copying.now_s += step_s
            found.append(copying.now_s - began_s)

    asyncio.run(rounds())
    return found


@pytest.mark.parametrize(
    "error",
    [
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
    ],
)
def test_a_leader_without_the_new_epoch_is_fetched_again_soon(
    tmp_path: Path, error: ErrorCode
) -> None:
    """Producers with acks=all wait for the follower; one that stays so is not asked for ever."""
    assert asked_again_after_s(tmp_path, error, 7) == approx([0.05, 0.1, 0.2, 0.4, 0.8, 1.0, 1.0])


def test_after_other_errors_a_partition_waits_for_the_backoff(tmp_path: Path) -> None:
    """What is no matter of milliseconds is asked for no more often than Apache's brokers do."""
    assert asked_again_after_s(tmp_path, ErrorCode.KAFKA_STORAGE_ERROR, 2) == approx([1.0, 1.0])


def test_a_fetcher_waits_no_longer_than_its_paused_partition(tmp_path: Path) -> None:
    """The pause of the partition ends the pause of the fetcher."""

    async def rounds() -> None:
        copying = Copying(tmp_path, 1)
        copying.copy(0)
        await copying.round()
        await copying.round()
        error = Records(Fetched(error=ErrorCode.UNKNOWN_LEADER_EPOCH), b"")
        copying.link.answers = {TopicPartition("t", 0): error}
        await copying.round()
        assert not await copying.round()
        copying.fetcher._changed.clear()
        await asyncio.wait_for(copying.fetcher._idle(backoff_s=1e9), seconds(ANSWER))

    asyncio.run(rounds())


EVENTS = ("records", "nothing", "error", "fenced", "reset", "diverges", "epoch", "again", "leave",
          "back", "time", "away", "throttle", "quota")  # fmt: skip


@settings(max_examples=max(settings().max_examples // 2, 50))
@given(st.lists(st.tuples(st.sampled_from(EVENTS), st.integers(0, 3)), min_size=10, max_size=50))
@example([("nothing", 0), ("throttle", 2), ("records", 2), ("quota", 1), ("nothing", 0),
          ("quota", 0), ("nothing", 1)])  # fmt: skip
def test_each_round_asks_what_a_look_at_all_would(events: list[tuple[str, int]]) -> None:
    """Whatever answers come, and whatever the controller says; see `Link.fetch`."""

    async def rounds(directory: Path) -> None:
        copying = Copying(directory, 4)
        copying.check_rounds()
        for index in range(4):
            copying.copy(index)
        for what, index in events:
            happens(copying, what, index)
            await copying.round()
        copying.link.away, copying.link.answers = False, {}
        copying.now_s += 10
        copying.quota.limit = 10**9
        for index in range(4):
            copying.copy(index)
        for _ in range(4):
            await copying.round()
        states = [it.state for it in copying.fetcher.copied.values()]
        live = [it for it in states if it is not None and it.phase is not Phase.STOPPED]
        assert len(copying.link.wanted) == len(live)

    with TemporaryDirectory() as directory:
        asyncio.run(rounds(Path(directory)))


def happens(copying: Copying, what: str, index: int) -> None:
    """One event before a round."""
    partition, tp = copying.partition(index), TopicPartition("t", index)
    end, epoch = partition.log.log_end_offset, partition.leader_epoch
    answers = {
        "records": Records(Fetched(end + index, 0), records(end, epoch)),
        "nothing": Records(Fetched(end, 0), b""),
        "error": Records(Fetched(error=ErrorCode.UNKNOWN_LEADER_EPOCH), b""),
        "fenced": Records(Fetched(error=ErrorCode.FENCED_LEADER_EPOCH), b""),
        "reset": Records(Fetched(error=ErrorCode.OFFSET_OUT_OF_RANGE), b""),
        "diverges": Records(Fetched(0, 0, EpochEnd(0, max(end - 1, 0))), b""),
    }
    if what in answers:
        copying.link.answers[tp] = answers[what]
    elif what == "epoch":
        copying.copy(index, epochs=1)
    elif what in ("again", "back"):
        copying.copy(index)
    elif what == "leave":
        copying.fetcher.leave(tp)
    elif what == "time":
        copying.now_s += Random(index).choice((0.2, 0.9, 1.1, 5.0))
    elif what == "away":
        copying.link.away = index % 2 == 0
    elif what == "quota":
        copying.quota.limit = 1 if index % 2 else 10**9
    else:
        partition.follower_throttled = index % 2 == 0
        copying.scan_ms += 1_000  # It is found by the look at all.
