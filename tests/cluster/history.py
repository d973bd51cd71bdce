"""What clients did and saw, and what in it no correct broker lets happen.

The anomalies are those of Jepsen's workload for Kafka. A history is what producers were told of
their sends and what consumers were given by their polls, in the order in which each client did it.
Values are unique. Pure: nothing here knows of brokers.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

Partition = tuple[str, int]
"""A topic and the number of a partition."""


class Outcome(Enum):
    """What a producer was told."""

    OK = "acknowledged"
    FAILED = "certainly not written"
    UNKNOWN = "may or may not have been written"


@dataclass(frozen=True, slots=True)
class Send:
    """One record of one producer; `offset` is -1 where it was not told.

    `error` is what the producer was told instead, "" where it was told nothing.
    """

    producer: str
    partition: Partition
    value: str
    outcome: Outcome
    offset: int = -1
    transaction: str | None = None
    error: str = ""


@dataclass(frozen=True, slots=True)
class Poll:
    """What one poll gave a consumer of one partition: offsets and values in their order.

    `assigned` says that the consumer had the partition for itself, not by a group whose members
    may change hands between polls.
    """

    consumer: str
    partition: Partition
    records: tuple[tuple[int, str], ...]
    assigned: bool = True
    transaction: str | None = None


@dataclass(slots=True)
class History:
    """Everything that happened. `aborted` names transactions that were certainly not committed."""

    sends: list[Send] = field(default_factory=list)
    polls: list[Poll] = field(default_factory=list)
    aborted: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Anomaly:
    """Something that must not be; `kind` is Jepsen's name of it."""

    kind: str
    partition: Partition
    detail: str

    def __str__(self) -> str:
        return f"{self.kind} in {self.partition[0]}-{self.partition[1]}: {self.detail}"


def anomalies(history: History, *, complete: bool = True) -> list[Anomaly]:
    """Everything wrong with a history.

    `complete`: the polls include a final reading of all there is, so that what was not read is
    not there.
    """
    values = _values_by_offset(history)
    return [
        *_inconsistent_offsets(values),
        *_duplicates(values),
        *_lost_writes(history, values, complete=complete),
        *_aborted_reads(history),
        *_precommitted_reads(history),
        *_within_polls(history.polls),
        *_between_polls(history.polls),
        *_nonmonotonic_sends(history.sends),
    ]


Values = Mapping[Partition, Mapping[int, set[str]]]


def _values_by_offset(history: History) -> Values:
    found: dict[Partition, dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
    for poll in history.polls:
        for offset, value in poll.records:
            found[poll.partition][offset].add(value)
    for send in history.sends:
        if send.outcome is Outcome.OK and send.offset >= 0:
            found[send.partition][send.offset].add(send.value)
    return found


def _inconsistent_offsets(values: Values) -> Iterable[Anomaly]:
    """Two values at one offset."""
    for partition, by_offset in values.items():
        for offset, there in sorted(by_offset.items()):
            if len(there) > 1:
                yield Anomaly("inconsistent-offsets", partition, f"{sorted(there)} at {offset}")


def _duplicates(values: Values) -> Iterable[Anomaly]:
    """One value at two offsets."""
    for partition, by_offset in values.items():
        places: dict[str, list[int]] = defaultdict(list)
        for offset, there in sorted(by_offset.items()):
            for value in there:
                places[value].append(offset)
        for value, offsets in sorted(places.items()):
            if len(offsets) > 1:
                yield Anomaly("duplicate", partition, f"{value} at {offsets}")


def _lost_writes(history: History, values: Values, *, complete: bool) -> Iterable[Anomaly]:
    """Acknowledged, and never read, though what lies behind it was: it is gone.

    In a complete history what nothing lies behind must have been read too (`unseen`).
    """
    read: dict[Partition, set[str]] = defaultdict(set)
    furthest: dict[Partition, int] = defaultdict(lambda: -1)
    for poll in history.polls:
        for offset, value in poll.records:
            read[poll.partition].add(value)
            furthest[poll.partition] = max(furthest[poll.partition], offset)
    for send in history.sends:
        if (
            send.outcome is not Outcome.OK
            or send.value in read[send.partition]
            or send.transaction in history.aborted
        ):
            continue
        detail = f"{send.value} at {send.offset}"
        if 0 <= send.offset <= furthest[send.partition]:
            yield Anomaly("lost-write", send.partition, detail)
        elif complete:
            yield Anomaly("unseen", send.partition, detail)


def _aborted_reads(history: History) -> Iterable[Anomaly]:
    """A value was read that was certainly never committed (G1a)."""
    never = {
        (send.partition, send.value)
        for send in history.sends
        if send.outcome is Outcome.FAILED or send.transaction in history.aborted
    }
    seen = set()
    for poll in history.polls:
        for offset, value in poll.records:
            place = poll.partition, value
            if place in never and place not in seen:
                seen.add(place)
                yield Anomaly("G1a", poll.partition, f"{value} at {offset}")


def _precommitted_reads(history: History) -> Iterable[Anomaly]:
    """A transaction read what it had itself written and not committed yet."""
    own = {
        (send.transaction, send.partition, send.value)
        for send in history.sends
        if send.transaction is not None
    }
    for poll in history.polls:
        for offset, value in poll.records:
            if (poll.transaction, poll.partition, value) in own:
                yield Anomaly("precommitted-read", poll.partition, f"{value} at {offset}")


def _within_polls(polls: Sequence[Poll]) -> Iterable[Anomaly]:
    """Offsets within one poll go up, and leave nothing out that another reader was given."""
    known = _offsets_read(polls)
    for poll in polls:
        for (before, _), (after, _) in zip(poll.records, poll.records[1:], strict=False):
            if after <= before:
                yield Anomaly("int-nonmonotonic-poll", poll.partition, f"{after} after {before}")
            elif skipped := _between(known[poll.partition], before, after):
                yield Anomaly("int-poll-skip", poll.partition, f"{skipped} left out")


def _between_polls(polls: Sequence[Poll]) -> Iterable[Anomaly]:
    """The same from one poll of a consumer to its next, where no group stands between them."""
    known = _offsets_read(polls)
    last: dict[tuple[str, Partition], int] = {}
    for poll in polls:
        if not poll.records:
            continue
        reader = poll.consumer, poll.partition
        before, after = last.get(reader), poll.records[0][0]
        last[reader] = poll.records[-1][0]
        if before is None or not poll.assigned:
            continue
        if after <= before:
            yield Anomaly("nonmonotonic-poll", poll.partition, f"{after} after {before}")
        elif skipped := _between(known[poll.partition], before, after):
            yield Anomaly("poll-skip", poll.partition, f"{skipped} left out")


def _nonmonotonic_sends(sends: Sequence[Send]) -> Iterable[Anomaly]:
    """A later send of one producer lies before an earlier one."""
    last: dict[tuple[str, Partition], Send] = {}
    for send in sends:
        if send.outcome is not Outcome.OK or send.offset < 0:
            continue
        writer = send.producer, send.partition
        before = last.get(writer)
        if before is not None and send.offset < before.offset:
            detail = f"{send.value} at {send.offset}, sent after {before.value} at {before.offset}"
            yield Anomaly("nonmonotonic-send", send.partition, detail)
        last[writer] = send


def _offsets_read(polls: Sequence[Poll]) -> Mapping[Partition, set[int]]:
    known: dict[Partition, set[int]] = defaultdict(set)
    for poll in polls:
        known[poll.partition].update(offset for offset, _ in poll.records)
    return known


def _between(known: set[int], before: int, after: int) -> list[int]:
    """Offsets between two that somebody was given: markers and compacted records are not there."""
    return [offset for offset in range(before + 1, after) if offset in known]
