"""A scripted life of a data directory, and what must be true of it after a stop at any point.

``play`` does one of everything a log does to its disk; after each step it notes where the disk
stands and what the logs hold. ``Scenario.check`` opens what a stop left and compares:

* every record that was there before and after the interrupted step is there: all of them after
  the death of the process, those below the recovery point after a power cut;
* no batch is there that was not appended, or was truncated before;
* offsets follow each other without a hole, from the first segment to the log end;
* leader epochs, producers and aborted transactions are those that a replay of the log gives;
* every index entry is true; and the log takes appends.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID

from barnabas_broker.log import batches, loader
from barnabas_broker.log.config import LogConfig
from barnabas_broker.log.directories import LogDirectories
from barnabas_broker.log.epochs import LeaderEpochs
from barnabas_broker.log.partition_log import PartitionLog
from barnabas_broker.log.producer_state import Origin, ProducerState
from barnabas_kafka.ids import TopicPartition
from tests.broker.log.disk import Disk
from tests.broker.log.images import Tree, write_tree
from tests.broker.log.samples import (
    NOW,
    batch_of,
    housekeep,
    marker_of,
    open_directories,
    validated,
)

SMALL = LogConfig(
    segment_bytes=600, index_interval_bytes=150, segment_index_bytes=240, file_delete_delay_ms=10
)
A, B = TopicPartition("a", 0), TopicPartition("b", 1)
TOPIC_A, TOPIC_B, TOPIC_B2 = UUID(int=1), UUID(int=2), UUID(int=3)

Contents = dict[int, bytes]


@dataclass(frozen=True)
class Held:
    """What one log held after a step; ``cuts`` counts truncations and new beginnings."""

    contents: Contents
    recovery_point: int
    cuts: int
    topic_id: UUID | None


@dataclass(frozen=True)
class Moment:
    """After a step: how many effects there were, and all logs."""

    name: str
    position: int
    logs: dict[TopicPartition, Held]


def contents_of(log: PartitionLog) -> Contents:
    """Base offset → stored bytes of every batch, from the files."""
    return {
        batch.base_offset: bytes(data)
        for segment in log.segments
        for batch, data in batches.scan(segment.file)
    }


@dataclass
class Scenario:
    """The notes of one run."""

    disk: Disk
    moments: list[Moment] = field(default_factory=list)
    cuts: dict[TopicPartition, int] = field(default_factory=dict)

    def note(self, name: str, logs: LogDirectories | None) -> None:
        held = dict(self.moments[-1].logs) if self.moments else {}
        if logs is not None:
            held = {
                tp: Held(contents_of(log), log.recovery_point, self.cuts.get(tp, 0), log.topic_id)
                for tp, log in logs.logs.items()
            }
        self.moments.append(Moment(name, len(self.disk.effects), held))

    def cut(self, tp: TopicPartition) -> None:
        """From the next note on, what lay above the log end must never come back."""
        self.cuts[tp] = self.cuts.get(tp, 0) + 1

    def around(self, position: int) -> tuple[int, int]:
        """The moments before and after ``position`` effects, by number."""
        after = next(n for n, moment in enumerate(self.moments) if moment.position >= position)
        exact = self.moments[after].position == position
        return (after if exact else after - 1), after

    def check(self, position: int, tree: Tree, directory: Path, *, power: bool) -> None:
        """Open what a stop after ``position`` effects left, and hold it against the notes."""
        before, after = self.around(position)
        write_tree(tree, directory)
        logs = open_directories(directory, config=SMALL)
        try:
            for tp, log in logs.logs.items():
                check_derived(log)
                self._check_contents(tp, log, before, after, power=power)
                check_appends(log)
            self._check_presence(logs, before, after, power=power)
            if position % 4 == 0:
                logs.close()
                logs = open_directories(directory, config=SMALL)
                for log in logs.logs.values():
                    check_derived(log)
        finally:
            logs.close(clean=False)

    def _check_contents(
        self, tp: TopicPartition, log: PartitionLog, before: int, after: int, *, power: bool
    ) -> None:
        found = contents_of(log)
        offset = log.segments[0].base_offset
        for batch in (batch for segment in log.segments for batch in batches.walk(segment.file)):
            assert batch.base_offset == offset, f"{tp} has a hole at {offset}"
            offset = batch.last_offset + 1
        assert offset == log.log_end_offset
        old, new = self.moments[before].logs.get(tp), self.moments[after].logs.get(tp)
        if old is not None and log.topic_id not in (None, old.topic_id):
            return  # the partition of a deleted topic is back; its id tells
        known = [
            moment.logs[tp].contents
            for moment in self.moments[: after + 1]
            if tp in moment.logs and (old is None or moment.logs[tp].cuts >= old.cuts)
        ]
        for base, data in found.items():
            assert any(data == contents.get(base) for contents in known), f"{tp}: alien at {base}"
        if old is None or new is None:
            return
        limit = min(old.recovery_point, new.recovery_point) if power else log.log_end_offset + 10**6
        for base, data in old.contents.items():
            if new.contents.get(base) == data and base < limit:
                assert found.get(base) == data, f"{tp}: {base} is lost"

    def _check_presence(
        self, logs: LogDirectories, before: int, after: int, *, power: bool
    ) -> None:
        old, new = self.moments[before].logs, self.moments[after].logs
        for tp in old.keys() & new.keys():
            if not power or min(old[tp].recovery_point, new[tp].recovery_point):
                assert tp in logs.logs, f"{tp} is gone"


def check_derived(log: PartitionLog) -> None:
    """Everything beside the log equals what a replay of the log gives."""
    epochs, producers, aborted = LeaderEpochs(), ProducerState(), []
    for segment in log.segments:
        ends = {}
        for batch, data in batches.scan(segment.file):
            ends[batch.position] = batch
            if batch.leader_epoch > epochs.latest:
                epochs.assign(batch.leader_epoch, batch.base_offset)
            aborted += loader.replay_producer(producers, batch, data)
        for number in range(len(segment.offsets)):
            offset, position = segment.offsets.entry(number)
            assert ends[position].last_offset == offset
        for number in range(len(segment.times)):
            timestamp, offset = segment.times.entry(number)
            times = [b.max_timestamp for b in ends.values() if b.last_offset <= offset]
            assert max(times) == timestamp
    # A log start that was not written down before the stop may have cut the epochs already.
    found = log.epochs.entries
    epochs.truncate_from_start(max(log.log_start_offset, found[0].start_offset if found else 0))
    assert found == epochs.entries
    for producer_id, entry in producers.producers.items():
        state = log.producers.producers[producer_id]
        assert (state.epoch, state.last_sequence, state.txn_first_offset) == (
            entry.epoch, entry.last_sequence, entry.txn_first_offset,
        )  # fmt: skip
    for producer_id in log.producers.producers.keys() - producers.producers.keys():
        known = log.producers.producers[producer_id].batches
        assert not known or known[-1].last_offset < log.segments[0].base_offset
    found_aborts = log.aborted_transactions(0, log.log_end_offset)
    assert {abort[:3] for abort in aborted} <= {abort[:3] for abort in found_aborts}


def check_appends(log: PartitionLog) -> None:
    """The log goes on where it ended."""
    end = log.log_end_offset
    info = log.append_as_leader(validated(batch_of()), leader_epoch=99, now_ms=NOW)
    assert info.first_offset == end
    assert log.read(end, 10_000, upper_bound=end + 1).length > 0


# --- the script --------------------------------------------------------------------------------


class Player:
    """One of everything, noted step by step."""

    def __init__(self, disk: Disk, directory: Path) -> None:
        self.scenario = Scenario(disk)
        self.directory = directory
        self.logs: LogDirectories
        self.sequence: dict[int, int] = {}
        self.now_ms = NOW
        self.scenario.note("nothing", None)

    def start(self) -> None:
        self.logs = open_directories(self.directory, config=SMALL)
        for log in self.logs.logs.values():
            log.advance_high_watermark(log.log_end_offset)
        self.note("start")

    def note(self, name: str) -> None:
        self.scenario.note(name, self.logs)

    def create(self, tp: TopicPartition, topic_id: UUID) -> None:
        self.scenario.cut(tp)
        self.logs.create(tp, SMALL, topic_id, self.now_ms)
        self.note(f"create {tp}")

    def append(self, tp: TopicPartition, count: int = 1, *, epoch: int = 0) -> None:
        for _ in range(count):
            self.write(tp, batch_of(2, timestamp=self.tick(), size=30), epoch=epoch)

    def tick(self) -> int:
        self.now_ms += 10
        return self.now_ms

    def write(
        self, tp: TopicPartition, data: bytes, *, epoch: int, origin: Origin = Origin.CLIENT
    ) -> None:
        log = self.logs.logs[tp]
        log.append_as_leader(validated(data), leader_epoch=epoch, now_ms=self.now_ms, origin=origin)
        log.advance_high_watermark(log.log_end_offset)
        self.note(f"append to {tp}")

    def produce(
        self, tp: TopicPartition, producer: int, *, epoch: int = 0, transactional: bool = False
    ) -> None:
        sequence = self.sequence.get(producer, 0)
        self.sequence[producer] = sequence + 1
        data = batch_of(
            timestamp=self.tick(), producer=(producer, 0, sequence), transactional=transactional
        )
        self.write(tp, data, epoch=epoch)

    def end(self, tp: TopicPartition, producer: int, *, commit: bool, epoch: int = 0) -> None:
        self.write(
            tp, marker_of(producer, 0, commit=commit), epoch=epoch, origin=Origin.COORDINATOR
        )

    def flush(self, tp: TopicPartition) -> None:
        self.logs.logs[tp].flush(now_ms=self.now_ms)
        self.note(f"flush {tp}")

    def checkpoint(self) -> None:
        self.logs.checkpoint()
        self.note("checkpoint")

    def truncate(self, tp: TopicPartition, offset: int) -> None:
        self.scenario.cut(tp)
        self.logs.truncate(tp, offset, now_ms=self.now_ms)
        self.note(f"truncate {tp} to {offset}")

    def start_again_at(self, tp: TopicPartition, offset: int) -> None:
        self.scenario.cut(tp)
        self.logs.truncate_fully_at(tp, offset, now_ms=self.now_ms)
        self.note(f"start {tp} again at {offset}")

    def delete_records(self, tp: TopicPartition, offset: int) -> None:
        self.logs.logs[tp].delete_records_before(offset)
        self.note(f"delete records of {tp} before {offset}")
        housekeep(self.logs, self.now_ms)
        self.note("rename old segments")
        self.now_ms += 20
        self.logs.remove_due(self.now_ms)
        self.note("remove old segments")

    def delete(self, tp: TopicPartition) -> None:
        self.logs.delete(tp, self.now_ms)
        self.note(f"delete {tp}")
        self.now_ms += 20
        self.logs.remove_due(self.now_ms)
        self.note(f"remove {tp}")

    def stop(self, *, clean: bool) -> None:
        # What a close leaves is what was there; only then is there nothing to look at.
        if clean:
            points = {
                tp: Held(
                    contents_of(log),
                    log.log_end_offset,
                    self.scenario.cuts.get(tp, 0),
                    log.topic_id,
                )
                for tp, log in self.logs.logs.items()
            }
            self.logs.close(broker_epoch=7, now_ms=self.now_ms)
            self.scenario.moments.append(Moment("stop", len(self.scenario.disk.effects), points))
        else:
            self.logs.close(clean=False)
            self.scenario.note("kill", None)


def play(disk: Disk, directory: Path) -> Scenario:
    """The whole life; `disk` is in use and above ``directory``."""
    player = Player(disk, directory)
    player.start()
    player.create(A, TOPIC_A)
    player.append(A, 2)
    player.produce(A, 1)
    player.produce(A, 2, transactional=True)
    player.append(A, 3)
    player.end(A, 2, commit=False)
    player.append(A, 2, epoch=1)
    player.flush(A)
    player.checkpoint()
    player.create(B, TOPIC_B)
    player.produce(A, 1, epoch=1)
    player.append(B, 8)
    player.append(A, 4, epoch=2)
    player.flush(B)
    player.checkpoint()
    player.truncate(A, 13)
    player.append(A, 6, epoch=3)
    player.produce(A, 3, epoch=3, transactional=True)
    player.end(A, 3, commit=True, epoch=3)
    player.truncate(A, 6)
    player.append(A, 7, epoch=4)
    player.stop(clean=True)
    player.start()
    player.append(A, 3, epoch=4)
    player.delete_records(A, 9)
    player.checkpoint()
    player.delete(B)
    player.create(B, TOPIC_B2)
    player.append(B, 7)
    player.stop(clean=False)
    player.start()
    player.append(B, 2, epoch=1)
    player.start_again_at(B, 40)
    player.append(B, 2, epoch=2)
    player.flush(B)
    player.append(A, 5, epoch=5)
    player.stop(clean=True)
    return player.scenario
