"""One partition as a follower replicates it: what to ask the leader, and what its answers mean.

Decides where this replica's log agrees with the leader's, what to cut off, and what to fetch.
Pure: no I/O, no clock. Follows Apache Kafka 3.9's AbstractFetcherThread: truncation by leader
epoch (KIP-101) in as many rounds as it needs (KIP-279), or by the diverging epoch that a leader
names in its answer to a Fetch (as from Kafka 2.7 on); every request carries the leader epoch that
this replica follows, and an answer counts only if nothing has changed since (KIP-320).

How a shell uses it. `follow` when the controller names a leader or a new leader epoch; then in
turns: `question` says what to ask now; pass its answer to `on_epoch_end`, `on_log_ends` or
`on_fetch`. Each answers with a `Step`: perform its `effect` on the log, then go on with its
`state`:

* `Truncate`: cut the log to `offset` (in a thread: it syncs), then call `truncated`;
* `StartAt`: delete all of the log and begin it at `offset`, then call `truncated`;
* `Append`: append the answer's batches up to `max_epoch`, then call `appended`;
* `Wait`: ask again after the backoff (replica.fetch.backoff.ms);
* `Stop`: do not ask until the controller has said something new;
* None: the answer came too late, or is to an obsolete question.

One question is under way at a time. A failed append or truncation is the shell's to handle:
corrupt batches are fetched again, a failing directory stops the partition.
"""

from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Final, Protocol

from barnabas_broker.invariants import violated
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.ids import NO_EPOCH, NO_OFFSET


class ReplicaLog(Protocol):
    """What is asked of the log; `log.partition_log.PartitionLog` answers it."""

    @property
    def log_start_offset(self) -> int: ...
    @property
    def log_end_offset(self) -> int: ...
    @property
    def high_watermark(self) -> int: ...
    @property
    def latest_epoch(self) -> int:
        """The epoch of its last batch, -1 if it tracks none (message formats 0 and 1)."""

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """The greatest epoch at or below that one, and where it ends; (-1, -1) if unknown."""


class Phase(Enum):
    """What a follower is about."""

    TRUNCATING = auto()
    """Finding out where its log and the leader's agree."""
    RESETTING = auto()
    """Its end is outside the leader's log: finding out where that begins and ends."""
    FETCHING = auto()
    STOPPED = auto()
    """The leader knows a newer epoch: the controller will send it."""


@dataclass(frozen=True, slots=True)
class Following:
    """Where a follower is. `offset` is what it fetches next, or cuts to where epochs do not say.

    `fetched_epoch` is the epoch of the last batch below `offset`, -1 where unknown.
    `truncates_on_fetch` says that the leader names diverging epochs in its answers to Fetch
    (version 12 and inter.broker.protocol.version 2.7 or newer).
    """

    leader_epoch: int
    phase: Phase
    offset: int
    fetched_epoch: int
    truncates_on_fetch: bool


@dataclass(frozen=True, slots=True)
class AskEpochEnd:
    """OffsetsForLeaderEpoch: where does `epoch` end in your log?"""

    leader_epoch: int
    epoch: int


@dataclass(frozen=True, slots=True)
class AskLogEnds:
    """ListOffsets, as a replica: where does your log begin, and where does it end?"""

    leader_epoch: int


@dataclass(frozen=True, slots=True)
class AskRecords:
    """Fetch. `fetched_epoch` is -1 where the leader is not to look for divergence."""

    leader_epoch: int
    offset: int
    fetched_epoch: int
    log_start: int


Question = AskEpochEnd | AskLogEnds | AskRecords


@dataclass(frozen=True, slots=True)
class EpochEnd:
    """The leader's answer: the greatest epoch of its at or below the one asked, and its end.

    `epoch` is -1 where the leader only speaks OffsetsForLeaderEpoch version 0, `offset` is -1
    where it knows nothing of such an epoch.
    """

    epoch: int = NO_EPOCH
    offset: int = NO_OFFSET
    error: ErrorCode = ErrorCode.NONE


@dataclass(frozen=True, slots=True)
class LogEnds:
    """The first offset of the leader's log and the one after its last."""

    start: int = NO_OFFSET
    end: int = NO_OFFSET
    error: ErrorCode = ErrorCode.NONE


@dataclass(frozen=True, slots=True)
class Fetched:
    """The leader's answer to a Fetch, without its batches."""

    high_watermark: int = NO_OFFSET
    log_start: int = NO_OFFSET
    diverging: EpochEnd | None = None
    error: ErrorCode = ErrorCode.NONE


@dataclass(frozen=True, slots=True)
class Truncate:
    """Cut the log: nothing at or above `offset` stays. `agreed` once both logs match below it."""

    offset: int
    agreed: bool


@dataclass(frozen=True, slots=True)
class StartAt:
    """Delete the whole log, which the leader's begins after, and start it at `offset`."""

    offset: int


@dataclass(frozen=True, slots=True)
class Append:
    """Append the fetched batches that are of epochs up to `max_epoch`, then move the marks.

    A batch of a newer epoch than the one this replica follows was written by another leader after
    the request was judged (KAFKA-18723). The high watermark becomes `high_watermark`, or the log's
    end where that is smaller; the log start follows the leader's `log_start` up to there.
    """

    max_epoch: int
    high_watermark: int
    log_start: int


@dataclass(frozen=True, slots=True)
class Wait:
    """Ask again after the backoff; `error` says why."""

    error: ErrorCode


@dataclass(frozen=True, slots=True)
class Stop:
    """Ask no more in this leader epoch; `error` says why."""

    error: ErrorCode


Effect = Truncate | StartAt | Append | Wait | Stop


@dataclass(frozen=True, slots=True)
class Step:
    """What is to be done to the log, and the state to go on with."""

    state: Following
    effect: Effect | None = None


FENCED: Final = ErrorCode.FENCED_LEADER_EPOCH


def initial_offset(log: ReplicaLog) -> int:
    """Where replication begins: the log's end, or what is surely common if epochs are unknown."""
    return log.log_end_offset if log.latest_epoch != NO_EPOCH else log.high_watermark


def follow(
    log: ReplicaLog,
    *,
    leader_epoch: int,
    truncates_on_fetch: bool,
    before: Following | None = None,
) -> Following:
    """Begin with a leader; `before` goes on as it is if only other things than the epoch changed.

    A log without epochs is cut to its high watermark, which can lose committed records and leave
    others that the leader never had: it is all that message formats before version 2 allow.
    """
    if before is not None and before.leader_epoch == leader_epoch:
        return before
    epoch = log.latest_epoch
    fetches = truncates_on_fetch and epoch != NO_EPOCH

    return Following(
        leader_epoch=leader_epoch,
        phase=Phase.FETCHING if fetches else Phase.TRUNCATING,
        offset=initial_offset(log),
        fetched_epoch=epoch if fetches else NO_EPOCH,
        truncates_on_fetch=truncates_on_fetch,
    )


def question(state: Following, log: ReplicaLog) -> Question | Truncate | None:
    """What to ask the leader now; None while stopped.

    `Truncate`: nothing is asked, the log is cut by its own high watermark for want of epochs.
    """
    match state.phase:
        case Phase.TRUNCATING:
            if log.latest_epoch == NO_EPOCH:
                return Truncate(state.offset, agreed=True)
            return AskEpochEnd(state.leader_epoch, log.latest_epoch)
        case Phase.RESETTING:
            return AskLogEnds(state.leader_epoch)
        case Phase.FETCHING:
            fetched_epoch = state.fetched_epoch if state.truncates_on_fetch else NO_EPOCH
            return AskRecords(state.leader_epoch, state.offset, fetched_epoch, log.log_start_offset)
        case Phase.STOPPED:
            return None


def truncated(state: Following, log: ReplicaLog, done: Truncate | StartAt) -> Following:
    """The state once the log has been cut as asked."""
    agreed = isinstance(done, StartAt) or done.agreed
    assert log.log_end_offset <= done.offset, violated("a log that was cut ends there or before")
    return replace(
        state,
        phase=Phase.FETCHING if agreed or state.truncates_on_fetch else Phase.TRUNCATING,
        offset=done.offset,
        fetched_epoch=log.latest_epoch,
    )


def appended(state: Following, log: ReplicaLog) -> Following:
    """The state once batches have been appended, or once there were none."""
    epoch = log.latest_epoch
    return replace(
        state,
        offset=log.log_end_offset,
        fetched_epoch=epoch if epoch != NO_EPOCH else state.fetched_epoch,
    )


def on_epoch_end(state: Following, log: ReplicaLog, asked: AskEpochEnd, answer: EpochEnd) -> Step:
    """The leader said where an epoch ends."""
    if state.phase is not Phase.TRUNCATING or asked.leader_epoch != state.leader_epoch:
        return Step(state)
    if answer.error is not ErrorCode.NONE:
        return _refused(state, answer.error)
    cut = truncation(state, log, answer)
    assert cut.offset <= log.log_end_offset, violated("a log is cut at or below its end")
    return Step(state, cut)


def on_log_ends(state: Following, log: ReplicaLog, asked: AskLogEnds, answer: LogEnds) -> Step:
    """The leader said where its log begins and ends; `state` goes on from there.

    A log that is longer than the leader's is cut to it; one that ended before the leader's began is
    started again. Otherwise the leader's log has grown past this one's end meanwhile, and fetching
    goes on: after an unclean election the logs may then differ below that end, unless the leader
    looks for divergence.
    """
    if state.phase is not Phase.RESETTING or asked.leader_epoch != state.leader_epoch:
        return Step(state)
    if answer.error is not ErrorCode.NONE:
        return _refused(state, answer.error)
    end = log.log_end_offset
    if answer.end < end:
        return Step(state, Truncate(answer.end, agreed=True))
    if answer.start > end:
        return Step(state, StartAt(answer.start))
    return Step(replace(state, phase=Phase.FETCHING, offset=end, fetched_epoch=log.latest_epoch))


def on_fetch(state: Following, log: ReplicaLog, asked: AskRecords, answer: Fetched) -> Step:
    """The leader answered a Fetch."""
    if (
        state.phase is not Phase.FETCHING
        or asked.leader_epoch != state.leader_epoch
        or asked.offset != state.offset
    ):
        return Step(state)
    if answer.error is ErrorCode.OFFSET_OUT_OF_RANGE:
        return Step(replace(state, phase=Phase.RESETTING))
    if answer.error is not ErrorCode.NONE:
        return _refused(state, answer.error)
    if answer.diverging is not None and state.truncates_on_fetch:
        # The marks of this answer say nothing of a log that is yet to be cut.
        cut = truncation(state, log, answer.diverging)
        assert cut.offset <= log.log_end_offset, violated("a log is cut at or below its end")
        return Step(state, cut)
    return Step(state, Append(state.leader_epoch, answer.high_watermark, answer.log_start))


def truncation(state: Following, log: ReplicaLog, answer: EpochEnd) -> Truncate:
    """Where to cut the log, given where the leader's epoch ended (KIP-101, KIP-279)."""
    end = log.log_end_offset
    if answer.offset == NO_OFFSET:
        # The leader's log knows no epochs, or none as old: what is committed is common.
        return Truncate(min(state.offset, end), agreed=True)
    if answer.epoch == NO_EPOCH:
        return Truncate(min(answer.offset, end), agreed=True)
    epoch, own_offset = log.end_offset_for_epoch(answer.epoch)
    if own_offset == NO_OFFSET or epoch == NO_EPOCH:
        # Every epoch known here is newer: agreement ends at the latest where the leader's did.
        return Truncate(min(answer.offset, end), agreed=True)
    if epoch != answer.epoch:
        # Records of an epoch unknown to the leader went by: ask for the epoch before them.
        return Truncate(min(own_offset, end), agreed=False)
    return Truncate(min(own_offset, answer.offset, end), agreed=True)


def _refused(state: Following, error: ErrorCode) -> Step:
    if error is FENCED:
        return Step(replace(state, phase=Phase.STOPPED), Stop(error))
    return Step(state, Wait(error))
