"""One fetcher: copies partitions from one leader, over one connection, round after round.

A round asks about all partitions together: first where epochs end, for those that do not know yet
where their log and the leader's agree; then where the leader's logs begin and end, for those that
are outside of them; then for records. `replica.follower` decides what is asked of each and what
the answers mean; here it is asked, and done to the logs. Partitions whose fetching is throttled are
not asked for while too much comes (`replica.replication_quota`). What is asked of a partition is
found again only when something has happened to it, as that of the others is what it was: a round
costs what has changed, however many partitions there are.

What fails is tried again after `replica.fetch.backoff.ms`, the partition alone where only it
failed; where one partition has whole requests fail, it is found and set apart (`parts`). A leader
that has not received its leadership yet is asked again sooner: producers with acks=all wait. A
partition whose own disk fails, or that is fenced, is left until the controller sends its leader
again. One whose log is to be cut is left out until it is: a cut syncs files, and to wait for
thousands of them, as after a leader was killed, would have all others leave their ISRs. The next
fetch acknowledges everything before it: where records count only once they are on disk, it is not
sent before they are.
"""

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from struct import Struct
from typing import Final, NamedTuple, Protocol, TypeVar
from uuid import UUID

from barnabas_broker.cluster.failures import each_isolated
from barnabas_broker.log.health import StorageError
from barnabas_broker.log.truncated_logs import TruncatedLogs
from barnabas_broker.replica import follower
from barnabas_broker.replica.follower import (
    Append,
    AskEpochEnd,
    AskLogEnds,
    AskRecords,
    EpochEnd,
    Following,
    LogEnds,
    Phase,
    StartAt,
    Step,
    Stop,
    Truncate,
    Wait,
)
from barnabas_broker.replica.gradual_scan import GradualScan
from barnabas_broker.replica.leader_session import Wanted, WantedPartitions
from barnabas_broker.replica.partition import Partition
from barnabas_broker.replica.replication_quota import ReplicationQuota, follower_holds_back
from barnabas_broker.server.peers.peers import PeerError
from barnabas_broker.server.peers.replication.leader_end_point import (
    FetchLimits,
    LeaderEndPoint,
    Records,
)
from barnabas_broker.server.peers.replication.parts import Outcome, Parts
from barnabas_broker.server.process.supervised_tasks import background
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.ids import TopicPartition
from barnabas_kafka.primitives import Buffer
from barnabas_kafka.settings import broker as keys
from barnabas_kafka.settings.broker import BrokerSettings

log = logging.getLogger(__name__)

_BASE_OFFSET: Final = Struct(">q")

SCAN_MS: Final = 1_000
"""How often what is asked of a partition is found again though nothing happened to it here: its
own retention may have moved its start, its directory may have failed, a throttle may have come."""

NOT_LED_YET: Final = frozenset(
    {
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
    }
)
"""What a leader answers whose LeaderAndIsr is still on its way. Apache's followers wait for the
whole backoff then, and with them whatever else a produce request has for that leader."""

FIRST_RETRY_S: Final = 0.05
"""The first pause after such an answer; each further one is twice as long, up to the backoff."""

EARLY_MAX: Final = 16
"""How often the pause is doubled: it has reached any backoff then."""

APPENDED_AT_ONCE: Final = 1 << 20
"""Bytes that are appended before others have their turn on the event loop."""

Ask = TypeVar("Ask")


class Cutter(Protocol):
    """Cuts logs in a thread, one cut of a partition at a time; see `replication.truncation`."""

    def cuts_nothing(self, partition: Partition, offset: int) -> bool:
        """Whether `truncate` at that offset would leave the log as it is."""

    async def truncate(self, partition: Partition, offset: int) -> None:
        """Nothing at or above `offset` stays. Raises KafkaError."""

    async def start_at(self, partition: Partition, offset: int) -> None:
        """Nothing stays, and the log begins at `offset`. Raises KafkaError."""

    def close(self) -> None:
        """Finish what was begun, and end the threads. Blocks."""


@dataclass(slots=True, eq=False)
class Copied:
    """A partition that is copied from the leader."""

    partition: Partition
    topic_id: UUID
    leader_epoch: int
    state: Following | None = None  # None until the leader has been asked what it speaks.
    not_before: float = 0.0  # By the clock of the event loop.
    lag: int | None = None  # Offsets behind the leader's high watermark, at the last answer.
    logged_errors: set[ErrorCode] = field(default_factory=set)  # Errors in the log already.
    early: int = 0  # Answers that the leader does not lead yet, in this epoch.
    cutting: bool = False  # It is not asked about until its log is cut.


class FetcherContext(NamedTuple):
    """What all fetchers of a broker share; `settings` and `broker_epoch` are as they are now."""

    broker_id: int
    truncation: Cutter
    quota: ReplicationQuota
    truncated_logs: TruncatedLogs
    settings: Callable[[], BrokerSettings]
    broker_epoch: Callable[[], int]
    monotonic_ms: Callable[[], int]
    clock_ms: Callable[[], int]


class ReplicaFetcher:
    """Copies from one leader. `start` once, then `stop` once; lives on the event loop."""

    def __init__(
        self,
        name: str,
        link: LeaderEndPoint,
        context: FetcherContext,
        *,
        set_apart: Callable[[TopicPartition], None],
    ) -> None:
        self.name = name
        self.copied: dict[TopicPartition, Copied] = {}
        self._link = link
        self._truncation = context.truncation
        self._set_apart = set_apart
        self._parts = Parts()
        # Of which it is to be found again what to ask; those that wait, or are throttled.
        self._touched: dict[TopicPartition, None] = {}
        self._delayed: set[TopicPartition] = set()
        self._throttled: set[TopicPartition] = set()
        # The fields of every fetch, and this broker's identity.
        self._wanted = WantedPartitions()
        self._fetched: dict[TopicPartition, Copied] = {}
        self._scan: GradualScan[TopicPartition] = GradualScan(SCAN_MS, context.monotonic_ms())
        self._quota = context.quota
        self._truncated_logs = context.truncated_logs
        self._monotonic_ms = context.monotonic_ms
        self._settings = context.settings
        self._broker_epoch = context.broker_epoch
        self._clock_ms = context.clock_ms
        self._loop = asyncio.get_running_loop()
        self._changed = asyncio.Event()
        self._fetching = False  # Whether a fetch may be waiting at the leader.
        self._task: asyncio.Task[None] | None = None
        self._cuts: deque[tuple[TopicPartition, Copied, Truncate | StartAt]] = deque()
        self._cutting: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to fetch."""
        self._task = background().keep(self.name, self._run)

    async def stop(self) -> None:
        """Stop fetching; what was received but not appended is fetched again by the next."""
        tasks = {task for task in (self._task, self._cutting) if task is not None}
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def copy(self, partition: Partition, topic_id: UUID, leader_epoch: int) -> None:
        """Copy a partition in that leader epoch; nothing changes if it is copied so already."""
        known = self.copied.get(partition.tp)
        if (
            known is not None
            and known.partition is partition
            and known.leader_epoch == leader_epoch
            and known.topic_id == topic_id
        ):
            return
        self.copied[partition.tp] = Copied(partition, topic_id, leader_epoch)
        self._notice(partition.tp)

    def _notice(self, tp: TopicPartition) -> None:
        """Include a partition that earlier rounds could not ask about."""
        self._touched[tp] = None
        self._changed.set()
        if self._fetching:  # Without this one, and for up to `replica.fetch.wait.max.ms`.
            self._fetching = False
            background().once("hurrying a fetch", self._hurry())

    async def _hurry(self) -> None:
        with contextlib.suppress(PeerError):  # The fetch fails with it, too.
            await self._link.hurry(self._settings()[keys.REPLICA_SOCKET_TIMEOUT_MS] / 1000)

    def leave(self, tp: TopicPartition) -> None:
        """Stop copying a partition."""
        self.copied.pop(tp, None)
        self._touched[tp] = None

    # --- rounds

    async def _run(self) -> None:
        failing = False
        while True:
            self._changed.clear()
            backoff_s = self._settings()[keys.REPLICA_FETCH_BACKOFF_MS] / 1000
            try:
                if not await self._round():
                    await self._idle(backoff_s)
                failing = False
            except PeerError as error:
                # Log an unreachable leader once; the controller names the next one.
                log.log(logging.DEBUG if failing else logging.WARNING, "%s: %s", self.name, error)
                failing = True
                await self._pause(backoff_s)  # A leader that is named again has come back.
            except KafkaError as error:
                log.warning("%s: Fetch rejected by the leader: %s", self.name, error.code.name)
                await asyncio.sleep(backoff_s)
            except Exception:  # Replication must not end for good by what one round met.
                log.exception("%s failed; retrying", self.name)
                await asyncio.sleep(backoff_s)

    async def _idle(self, backoff_s: float) -> None:
        """Nothing is to be asked: wait for a new partition, or for a backoff to end."""
        now = self._loop.time()
        delayed = [self.copied[tp].not_before - now for tp in self._delayed if tp in self.copied]
        await self._pause(max(0.0, min([backoff_s, *delayed])))

    async def _pause(self, pause_s: float) -> None:
        """Wait, at most until another partition is to be copied."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(pause_s):
                await self._changed.wait()

    async def _round(self) -> bool:
        """Send one round of requests; False if there was nothing to ask."""
        timeout_s = self._settings()[keys.REPLICA_SOCKET_TIMEOUT_MS] / 1000
        touched, self._touched = self._due(), {}
        try:
            ready = self._ready(touched)
            await self._begin(ready, timeout_s)
        except BaseException:
            self._touched = touched | self._touched
            raise
        asked = self._questions(ready)
        if not asked and not self._wanted.partitions:
            return False
        for tp, cut in _those(asked, Truncate).items():
            each = ready[tp]
            await self._apart(tp, each, partial(_step, each, cut))
        outcome = Outcome(self._parts)
        if epochs := _those(asked, AskEpochEnd):
            await self._in_parts(outcome, partial(self._ask_epochs, ready), epochs, timeout_s)
        if ends := _those(asked, AskLogEnds):
            await self._in_parts(outcome, partial(self._ask_ends, ready), ends, timeout_s)
        # The fetch may wait at the leader for as long as no other partition has records.
        self._questions(self._ready(asked))
        if records := self._wanted.partitions:
            await self._in_parts(outcome, self._ask_records, records, timeout_s)
        for tp in outcome.judge():
            log.warning(
                "%s: Fetching separately from other partitions: partition=%s", self.name, tp
            )
            self._set_apart(tp)
        return True

    async def _in_parts(
        self,
        outcome: Outcome,
        ask: Callable[[Mapping[TopicPartition, Ask], float], Awaitable[None]],
        asked: Mapping[TopicPartition, Ask],
        timeout_s: float,
    ) -> None:
        """Ask about all partitions, in one request unless such a request failed; see `parts`."""
        parts = self._parts.split(asked)
        for part in parts:
            if len(parts) > 1:
                await self._link.names_divergence(timeout_s)  # Raises where the leader is away.
            try:
                await ask(part, timeout_s)
            except Exception as error:  # Whatever it is, the other parts are to go on.
                outcome.failed(part, error)
                if len(parts) > 1:
                    log.warning("%s: Request failed for %d of %d partitions: %s",
                                self.name, len(part), len(asked), error)  # fmt: skip
            else:
                outcome.passed += 1

    async def _apart(self, tp: TopicPartition, each: Copied, step: Callable[[], Step]) -> None:
        """Perform a partition's step, unless its state changed; a failure is its own."""
        try:
            if self._current(tp, each):
                await self._perform(tp, each, step())
        except Exception:  # Whatever it is, the other partitions are to go on.
            self._failed(tp, each)

    def _failed(self, tp: TopicPartition, each: Copied) -> None:
        log.exception("%s: Replication failed: partition=%s", self.name, tp)
        self._retry(tp, each, ErrorCode.UNKNOWN_SERVER_ERROR)

    def _retry(self, tp: TopicPartition, each: Copied, error: ErrorCode) -> None:
        """Ask again later, from where the log ends now: what failed may have appended before."""
        if each.state is not None and each.state.phase is Phase.FETCHING:
            each.state = follower.appended(each.state, each.partition.log)
        self._touched[tp] = None
        self._delay(tp, each, error)

    async def _begin(self, ready: Mapping[TopicPartition, Copied], timeout_s: float) -> None:
        """Give the new ones a state, which depends on what the leader speaks."""
        if any(each.state is None for each in ready.values()):
            divergence = await self._link.names_divergence(timeout_s)
            for tp, each in ready.items():
                try:
                    if each.state is None:
                        each.state = follower.follow(
                            each.partition.log,
                            leader_epoch=each.leader_epoch,
                            truncates_on_fetch=divergence,
                        )
                except Exception:  # Whatever it is, the other partitions are to go on.
                    self._failed(tp, each)

    def _due(self) -> dict[TopicPartition, None]:
        """The partitions whose next request has to be determined again."""
        touched, now = self._touched, self._loop.time()
        for tp in self._delayed:
            each = self.copied.get(tp)
            if each is None or each.not_before <= now:
                touched[tp] = None
        self._delayed.difference_update(touched)
        touched.update(dict.fromkeys(self._throttled))
        touched.update(dict.fromkeys(self._scan.due(self.copied.keys(), self._monotonic_ms())))
        return touched

    def _ready(self, touched: Iterable[TopicPartition]) -> dict[TopicPartition, Copied]:
        """Those partitions with something to ask about; the others are not fetched."""
        now = self._loop.time()
        ready = {}
        for tp in touched:
            each = self.copied.get(tp)
            if each is not None and each.not_before > now:
                self._delayed.add(tp)
            elif (
                each is not None
                and not each.cutting
                and not each.partition.counted_out
                and (each.state is None or each.state.phase is not Phase.STOPPED)
            ):
                ready[tp] = each
                continue
            self._fetch_no_more(tp)
        return ready

    def _fetch(self, tp: TopicPartition, each: Copied, asking: AskRecords) -> None:
        self._wanted.put(tp, Wanted(each.topic_id, asking))
        self._fetched[tp] = each

    def _fetch_no_more(self, tp: TopicPartition) -> None:
        self._wanted.remove(tp)
        self._fetched.pop(tp, None)
        self._throttled.discard(tp)

    def _is_held(self, each: Copied) -> bool:
        return follower_holds_back(
            self._quota,
            throttled=each.partition.follower_throttled,
            lag=each.lag,
            now_ms=self._monotonic_ms(),
        )

    def _questions(
        self, ready: Mapping[TopicPartition, Copied]
    ) -> dict[TopicPartition, follower.Question | Truncate | None]:
        """The next requests of those partitions; fetches repeat until determined again."""
        asked: dict[TopicPartition, follower.Question | Truncate | None] = {}
        for tp, each in ready.items():
            asking = None
            try:
                if each.state is not None:  # Else it could not begin.
                    asking = follower.question(each.state, each.partition.log)
            except Exception:  # Whatever it is, the other partitions are to go on.
                self._failed(tp, each)
            held = isinstance(asking, AskRecords) and self._is_held(each)
            if isinstance(asking, AskRecords) and not held:
                self._fetch(tp, each, asking)
            else:
                self._fetch_no_more(tp)
            if each.partition.follower_throttled:
                self._throttled.add(tp)
            else:
                self._throttled.discard(tp)
            if asking is not None and not isinstance(asking, AskRecords):
                asked[tp] = asking
                self._touched[tp] = None
        return asked

    async def _ask_epochs(
        self,
        ready: Mapping[TopicPartition, Copied],
        asked: Mapping[TopicPartition, AskEpochEnd],
        timeout_s: float,
    ) -> None:
        answers = await self._link.epoch_ends(asked, timeout_s)
        for tp, ask in asked.items():
            each = ready[tp]
            answer = answers.get(tp, EpochEnd(error=ErrorCode.UNKNOWN_SERVER_ERROR))
            await self._apart(tp, each, partial(_on_epoch_end, each, ask, answer))

    async def _ask_ends(
        self,
        ready: Mapping[TopicPartition, Copied],
        asked: Mapping[TopicPartition, AskLogEnds],
        timeout_s: float,
    ) -> None:
        answers = await self._link.log_ends(asked, timeout_s)
        for tp, ask in asked.items():
            each = ready[tp]
            answer = answers.get(tp, LogEnds(error=ErrorCode.UNKNOWN_SERVER_ERROR))
            await self._apart(tp, each, partial(_on_log_ends, each, ask, answer))

    async def _ask_records(self, asked: Mapping[TopicPartition, Wanted], timeout_s: float) -> None:
        settings = self._settings()
        wanted = self._wanted
        if asked is not wanted.partitions:  # The session is about a part, then about another.
            wanted, self._wanted.changed = WantedPartitions(asked), None
        # What has come since the round began is in the next fetch, which this one is not to delay.
        come = self._changed.is_set()
        limits = FetchLimits(
            max_wait_ms=0 if come else settings[keys.REPLICA_FETCH_WAIT_MAX_MS],
            min_bytes=settings[keys.REPLICA_FETCH_MIN_BYTES],
            max_bytes=settings[keys.REPLICA_FETCH_RESPONSE_MAX_BYTES],
            partition_max_bytes=settings[keys.REPLICA_FETCH_MAX_BYTES],
        )
        self._fetching = True
        try:
            answers = await self._link.fetch(
                wanted, limits, broker_epoch=self._broker_epoch(), timeout_s=timeout_s
            )
        finally:
            self._fetching = False
        appended: list[tuple[TopicPartition, Copied]] = []
        done = 0
        for tp, answer in answers.items():
            each, want = self._fetched.get(tp), asked.get(tp)
            if each is None or want is None or not self._current(tp, each):
                continue
            self._touched[tp] = None
            try:
                step = follower.on_fetch(_state(each), each.partition.log, want.ask, answer.fetched)
                if isinstance(step.effect, Append):
                    await self._append(tp, each, step.effect, answer)
                    appended.append((tp, each))
                    done += len(answer.batches)
                else:
                    await self._perform(tp, each, step)
            except Exception:  # Whatever it is, the other partitions are to go on.
                self._failed(tp, each)
            if done >= APPENDED_AT_ONCE:
                done = 0
                await asyncio.sleep(0)
        self._trust_idle(asked, answers)
        for tp, each in appended:
            try:
                await each.partition.until_durable()
            except Exception:
                self._failed(tp, each)

    def _trust_idle(
        self,
        asked: Mapping[TopicPartition, Wanted],
        answers: Mapping[TopicPartition, Records],
    ) -> None:
        """Trust the logs of which a session's answer says nothing: there is nothing behind them."""

        def look(tp: TopicPartition) -> None:
            each = self._fetched[tp]
            if (
                tp not in answers
                and each.lag == 0
                and each.partition.log.log_end_offset == asked[tp].ask.offset
                and self._current(tp, each)
            ):
                each.partition.trust()

        each_isolated(
            asked.keys() & self._truncated_logs.partitions, look, "Check for lost records"
        )

    def _current(self, tp: TopicPartition, each: Copied) -> bool:
        """Whether the partition's state is the one that the request was made for."""
        return self.copied.get(tp) is each and each.partition.leader_epoch == each.leader_epoch

    # --- effects

    async def _perform(self, tp: TopicPartition, each: Copied, step: Step) -> None:
        each.state = step.state
        match step.effect:
            case Truncate() as cut if self._truncation.cuts_nothing(each.partition, cut.offset):
                each.state = follower.truncated(each.state, each.partition.log, cut)
            case Truncate() | StartAt() as cut:
                self._cut_soon(tp, each, cut)
            case Wait(error):
                self._delay(tp, each, error)
            case Stop(error):
                log.info("%s: Waiting for a new leader: partition=%s %s",
                         self.name, tp, error.name)  # fmt: skip
            case _:
                each.logged_errors.clear()

    def _cut_soon(self, tp: TopicPartition, each: Copied, cut: Truncate | StartAt) -> None:
        each.cutting = True
        self._cuts.append((tp, each, cut))
        if self._cutting is None or self._cutting.done():
            self._cutting = background().once(f"cuts of {self.name}", self._cut_all())

    async def _cut_all(self) -> None:
        """Truncate logs one after the other; the controller's requests for each wait meanwhile."""
        while self._cuts:
            tp, each, cut = self._cuts.popleft()
            try:
                if self._current(tp, each):
                    await self._cut(tp, each, cut)
            except Exception:  # Whatever it is, the other partitions are to go on.
                self._failed(tp, each)
            each.cutting = False
            self._notice(tp)

    async def _cut(self, tp: TopicPartition, each: Copied, cut: Truncate | StartAt) -> None:
        partition = each.partition
        own = partition.log
        if isinstance(cut, StartAt) or cut.offset < own.log_end_offset:
            level = logging.WARNING if cut.offset < own.high_watermark else logging.INFO
            log.log(
                level, "%s: Truncating: partition=%s log=%d..%d high_watermark=%d to offset %d "
                    "(leader epoch %d)",
                self.name, tp, own.log_start_offset, own.log_end_offset, own.high_watermark,
                cut.offset, each.leader_epoch,
            )  # fmt: skip
        try:
            if isinstance(cut, StartAt):
                await self._truncation.start_at(partition, cut.offset)
            else:
                await self._truncation.truncate(partition, cut.offset)
        except KafkaError as error:
            if not self._current(tp, each):  # Deleted while its cut waited for a thread.
                return
            log.error("%s: Failed to truncate: partition=%s %s", self.name, tp, error)
            self._retry(tp, each, error.code)
            return
        if self._current(tp, each):
            each.state = follower.truncated(_state(each), partition.log, cut)

    async def _append(
        self, tp: TopicPartition, each: Copied, effect: Append, answer: Records
    ) -> None:
        partition = each.partition
        try:
            await self._take(tp, each, answer.batches, effect.max_epoch)
        except StorageError as error:
            # A directory that is full is given time, one that fails has said so itself.
            self._retry(tp, each, error.code)
            return
        except KafkaError as error:
            if self._current(tp, each):
                log.error(
                    "%s: Failed to append fetched records: partition=%s %s", self.name, tp, error
                )
                self._retry(tp, each, error.code)
            return
        if self._current(tp, each):
            partition.take_marks(high_watermark=effect.high_watermark, log_start=effect.log_start)
            each.lag = max(0, effect.high_watermark - partition.log.log_end_offset)
            if not (each.lag or answer.batches):
                partition.trust()
            if partition.follower_throttled:
                self._quota.record(len(answer.batches), self._monotonic_ms())
            each.state = follower.appended(_state(each), partition.log)
            each.logged_errors.clear()

    async def _take(
        self, tp: TopicPartition, each: Copied, batches: Buffer, max_epoch: int
    ) -> None:
        if not batches:
            return
        partition = each.partition
        append = partial(
            partition.append_as_follower, batches, max_epoch=max_epoch, now_ms=self._clock_ms()
        )
        try:
            append()
        except KafkaError as error:
            first = _BASE_OFFSET.unpack_from(batches)[0]
            own = partition.log
            if (
                error.code is not ErrorCode.OFFSET_OUT_OF_RANGE
                or own.log_start_offset != own.log_end_offset
                or first >= own.log_end_offset
            ):
                raise
            # Records were deleted up to the middle of a batch: an empty log begins with it.
            await self._truncation.start_at(partition, first)
            if self._current(tp, each):  # Else it may be led here by now, or copied by another.
                append()

    def _delay(self, tp: TopicPartition, each: Copied, error: ErrorCode) -> None:
        backoff_s = self._settings()[keys.REPLICA_FETCH_BACKOFF_MS] / 1000
        if error in NOT_LED_YET:
            backoff_s = min(backoff_s, FIRST_RETRY_S * 2 ** min(each.early, EARLY_MAX))
            each.early += 1
        each.not_before = self._loop.time() + backoff_s
        level = logging.DEBUG if error in each.logged_errors else logging.INFO
        each.logged_errors.add(error)
        log.log(level, "%s: Retrying: partition=%s %s", self.name, tp, error.name)


def _state(each: Copied) -> Following:
    if each.state is None:
        raise ValueError(f"{each.partition.tp} has not begun to follow")
    return each.state


def _step(each: Copied, cut: Truncate) -> Step:
    return Step(_state(each), cut)


def _on_epoch_end(each: Copied, ask: AskEpochEnd, answer: EpochEnd) -> Step:
    return follower.on_epoch_end(_state(each), each.partition.log, ask, answer)


def _on_log_ends(each: Copied, ask: AskLogEnds, answer: LogEnds) -> Step:
    return follower.on_log_ends(_state(each), each.partition.log, ask, answer)


def _those(asked: Mapping[TopicPartition, object], kind: type[Ask]) -> dict[TopicPartition, Ask]:
    return {tp: ask for tp, ask in asked.items() if isinstance(ask, kind)}
