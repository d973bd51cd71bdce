"""Sends the controller's decisions to the other brokers, each at its own pace.

Kafka's `ControllerChannelManager`. While this broker is the controller there is one channel to each
other broker that is registered. A channel remembers the state its broker acknowledged, and when the
target state is another, works out the difference (`controller.target_state`), sends it, and reports
the acknowledgement. There is no queue: a broker that does not answer gets everything that
happened meanwhile at once, when it does. A channel ends when its broker is no longer registered.

Where a careful election waits for a broker, it is asked how far its logs go, once it has received
the leader epoch of the question, and again until it answers.

What concerns this very broker and is in no image, replicas to be given up, is done at once.
Lives on the event loop.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol, TypeVar

from barnabas_broker.cluster.image import BrokerRegistration
from barnabas_broker.controller.careful_election import EndsAnswer, LogEnd
from barnabas_broker.controller.commands import DeletionPendingError, Failures
from barnabas_broker.controller.offline_replicas import Answered, StorageAnswer
from barnabas_broker.controller.target_state import (
    Orders,
    Sender,
    TargetState,
    ends_wanted,
    orders,
    own_stops,
)
from barnabas_broker.server.peers.peers import PeerError, Peers
from barnabas_broker.server.peers.replication.leader_end_point import error_code
from barnabas_broker.server.process.repeated_failure import RepeatedFailure
from barnabas_broker.server.process.supervised_tasks import background
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.ids import DEBUGGING_REPLICA_ID, LATEST_TIMESTAMP, TopicPartition
from barnabas_kafka.protocol.codec import EncodeError
from barnabas_kafka.protocol.messages.leader_and_isr import (
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
)
from barnabas_kafka.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from barnabas_kafka.protocol.messages.stop_replica import StopReplicaResponse
from barnabas_kafka.protocol.messages.update_metadata import UpdateMetadataResponse
from barnabas_kafka.protocol.registry import ApiKey
from barnabas_kafka.protocol.schema import Request, Response

log = logging.getLogger(__name__)

RETRY_S = 0.1
"""Between two attempts to send to a broker that did not answer (Kafka's own pause)."""

PAUSE_MAX_S = 1.0
"""The longest pause of a channel after unexpected errors."""

DOUBLED_MAX = 8
"""How often the pause is doubled; it has reached the longest then."""

LAST_WORDS_S = 1.0
"""How long a stopping controller waits for brokers to acknowledge its last decisions: its
successor would send the same, later."""

RECOVERY_SINCE = 6
"""From this version of LeaderAndIsr on leaders learn of an unclean election (KIP-704)."""

Ended = Callable[[Exception | None], None]
Stop = Callable[[TopicPartition, bool, Ended], bool]
Report = Callable[[int, TargetState, frozenset[str]], Coroutine[Any, Any, None]]
Storage = Callable[[int, Answered], Coroutine[Any, Any, None]]
Ends = Callable[[int, int, Mapping[TopicPartition, EndsAnswer]], Coroutine[Any, Any, None]]
Answer = TypeVar("Answer", bound=Response)


class OwnReplicas(Protocol):
    """The replicas of this very broker, which is asked directly."""

    @property
    def all_usable(self) -> bool:
        """Whether all replicas are usable, with nothing to report."""

    def is_counted_out(self, tp: TopicPartition) -> bool:
        """Whether the cluster is to go on without one, for its log directory."""

    def log_end(self, tp: TopicPartition, leader_epoch: int) -> tuple[int, int]:
        """The latest epoch in the log and its end, in that leader epoch. Raises KafkaError."""


@dataclass(slots=True)
class _Channel:
    registration: BrokerRegistration
    task: asyncio.Task[None]
    wake: asyncio.Event
    acknowledged: TargetState | None = None
    unusable: set[TopicPartition] = field(default_factory=set)
    failed_in_a_row: int = 0  # How often its broker answered with an error.
    failure: RepeatedFailure = field(default_factory=RepeatedFailure)
    ends_failure: RepeatedFailure = field(default_factory=RepeatedFailure)


class ControllerChannelManager:
    """The channels of one broker. `close` when done with it."""

    def __init__(
        self,
        broker_id: int,
        peers: Peers,
        *,
        listener: str,
        timeout_s: float,
        stop: Stop,
        report: Report,
        storage: Storage,
        ends: Ends,
        own: OwnReplicas,
    ) -> None:
        """`stop` gives up a partition of this broker, deleting its log or not.

        It returns whether that is done; else it calls what it is given later, with the error if
        there is one. `report(broker, view, refused)` is called when a broker acknowledges a view
        but for the deletion of the topics `refused`; `storage(broker, answered)` which of its
        replicas can be used, and `ends(broker, broker_epoch, answered)` how far its logs go; both
        raise KafkaError where they are to be called again.
        """
        self._broker_id = broker_id
        self._peers = peers
        self._listener = listener
        self._timeout_s = timeout_s
        self._stop = stop
        self._report = report
        self._storage = storage
        self._ends = ends
        self._own = own
        self._own_reported = True  # That all of this broker's replicas can be used.
        self._own_late: dict[str, set[TopicPartition]] = {}  # Replicas that are not deleted yet.
        self._own_task: asyncio.Task[None] | None = None
        self._own_ends_task: asyncio.Task[None] | None = None
        self._view: TargetState | None = None
        self._sender = Sender(broker_id, 0, listener)
        self._channels: dict[int, _Channel] = {}
        self._acknowledgement = asyncio.Event()
        self._closed = False

    def take(self, view: TargetState | None, epoch: int) -> Failures:
        """Send this view to all brokers from now on, None to none; returns local failures."""
        if self._closed:
            return {}
        old, self._view = self._view, view
        if view is None or epoch != self._sender.controller_epoch:
            self._end_all()
            old = None
            self._sender = Sender(self._broker_id, epoch, self._listener)
        if view is None:
            return {}
        for broker, channel in list(self._channels.items()):
            if view.image.brokers.get(broker) != channel.registration:
                self._end(broker)
        for broker, registration in view.image.brokers.items():
            if broker != self._broker_id and broker not in self._channels:
                self._begin(registration)
        for channel in self._channels.values():
            channel.wake.set()
        self._begin_reporting_own()
        if self._own_ends_task is None and ends_wanted(self._broker_id, view):
            self._own_ends_task = self._keep("reporting own log ends", self._report_own_ends)
        return self._stop_own(old, view)

    async def close(self) -> None:
        """End all channels, after `LAST_WORDS_S` at most for what is not acknowledged yet."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LAST_WORDS_S):
                while not self._all_acknowledged:
                    self._acknowledgement.clear()
                    await self._acknowledgement.wait()
        tasks = [channel.task for channel in self._channels.values()]
        tasks += [task for task in (self._own_task, self._own_ends_task) if task is not None]
        self.take(None, self._sender.controller_epoch)
        self._closed = True
        await asyncio.gather(*tasks, return_exceptions=True)
        self._peers.close()

    @property
    def _all_acknowledged(self) -> bool:
        return all(channel.acknowledged is self._view for channel in self._channels.values())

    def _stop_own(self, old: TargetState | None, view: TargetState) -> Failures:
        if len(view.image.brokers) == 1 and not view.deleting:
            return {}
        failures: dict[str, KafkaError] = {}
        for tp, delete in own_stops(self._broker_id, old, view):
            try:
                ended = partial(self._own_ended, view, tp)
                if self._stop(tp, delete, ended) or tp.topic not in view.deleting:
                    continue
                failures[tp.topic] = DeletionPendingError(tp)
            except KafkaError as error:
                failures[tp.topic] = error
            except Exception:  # The others are to be given up all the same.
                log.exception("Failed to cancel control requests: %s", tp)
                failures[tp.topic] = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
            if tp.topic in view.deleting:  # One that failed ends no more: its topic stays.
                self._own_late.setdefault(tp.topic, set()).add(tp)
        return failures

    def _own_ended(self, view: TargetState, tp: TopicPartition, error: Exception | None) -> None:
        """A replica of this broker has been given up late; one that failed is tried again."""
        waiting = self._own_late.get(tp.topic, set())
        if error is not None or tp not in waiting:
            return
        waiting.discard(tp)
        if not waiting:
            del self._own_late[tp.topic]
            # Of the others in this view nothing is said.
            others = frozenset(view.deleting) - {tp.topic}
            report = partial(self._report, self._broker_id, view, others)
            self._keep("reporting own deletions", report)

    def _begin_reporting_own(self) -> None:
        if not (self._own_reported and self._own.all_usable) and self._own_task is None:
            self._own_task = self._keep("reporting own directories", self._report_own)

    async def _report_own(self) -> None:
        """Until the view says of this broker's replicas what is so."""
        failure = RepeatedFailure()
        while (view := self._view) is not None:
            answered = own_answers(self._broker_id, view, self._own)
            if not answered:
                self._own_reported = self._own.all_usable
                break
            self._own_reported = False
            try:
                await self._storage(self._broker_id, answered)
            except KafkaError as error:
                level = failure.failed()
                log.log(level, "Own log directory failure not handled yet: %s", error)
            if self._view is view:
                await asyncio.sleep(RETRY_S)
        self._own_task = None

    async def _report_own_ends(self) -> None:
        """Until no election waits for how far this broker's logs go."""
        failure = RepeatedFailure()
        while (view := self._view) and (wanted := ends_wanted(self._broker_id, view)):
            answered = {}
            for tp, epoch in wanted.items():
                with contextlib.suppress(KafkaError):
                    answered[tp] = EndsAnswer(epoch, LogEnd(*self._own.log_end(tp, epoch)))
            try:
                epoch = view.image.brokers[self._broker_id].epoch
                await self._ends(self._broker_id, epoch, answered)
            except KafkaError as error:
                log.log(failure.failed(), "Leader election is waiting for this broker: %s", error)
            if self._view is view:
                await asyncio.sleep(RETRY_S)
        self._own_ends_task = None

    def _begin(self, registration: BrokerRegistration) -> None:
        wake = asyncio.Event()
        name = f"control channel to broker {registration.id}"
        task = self._keep(name, lambda: self._serve(registration, wake))
        # The task begins later than this.
        self._channels[registration.id] = _Channel(registration, task, wake)

    def _keep(self, name: str, work: Callable[[], Awaitable[None]]) -> asyncio.Task[None]:
        return background().keep(name, work, pause_max_s=PAUSE_MAX_S)

    def _end_all(self) -> None:
        for broker in list(self._channels):
            self._end(broker)
        if self._own_task is not None:
            self._own_task.cancel()
            self._own_task = None
        if self._own_ends_task is not None:
            self._own_ends_task.cancel()
            self._own_ends_task = None
        self._own_reported = True
        self._own_late.clear()

    def _end(self, broker: int) -> None:
        self._channels.pop(broker).task.cancel()
        self._peers.forget(broker)

    async def _serve(self, registration: BrokerRegistration, wake: asyncio.Event) -> None:
        channel = self._channels[registration.id]
        while True:
            await wake.wait()
            wake.clear()
            try:
                await self._serve_once(registration, channel)
            except BaseException:
                wake.set()  # For when it begins again: a broker must not stay uninformed.
                raise

    async def _serve_once(self, registration: BrokerRegistration, channel: _Channel) -> None:
        """Send what has changed since the last time; a failure is retried with the next wake."""
        wake = channel.wake
        view, sender, acknowledged = self._view, self._sender, channel.acknowledged
        if view is None:
            return
        if view is acknowledged:
            await self._ask_ends(channel, view)
            return
        # The first time it is everything there is, which may take long to work out.
        given = (
            await asyncio.to_thread(orders, registration, acknowledged, view, sender)
            if acknowledged is None
            else orders(registration, acknowledged, view, sender)
        )
        try:
            refused = await self._give(registration.id, given, fresh=acknowledged is None)
        except (PeerError, EncodeError, KafkaError) as error:
            log.log(
                channel.failure.failed(),
                "Control requests failed, retrying: broker=%d attempts=%d %s",
                registration.id,
                channel.failure.attempts,
                error,
            )
            # To a broker that cannot be reached, `Peers` pauses by itself.
            known = not isinstance(error, PeerError)
            await asyncio.sleep(min(RETRY_S * 2**channel.failed_in_a_row, PAUSE_MAX_S))
            channel.failed_in_a_row = min(channel.failed_in_a_row + known, DOUBLED_MAX)
            wake.set()
            return
        channel.acknowledged, channel.failed_in_a_row = view, 0
        channel.failure.over()
        self._acknowledgement.set()
        if view.deleting:
            try:
                await self._report(registration.id, view, refused)
            except BaseException:
                channel.acknowledged = acknowledged  # So that it is reported again.
                raise
        await self._ask_ends(channel, view)

    async def _ask_ends(self, channel: _Channel, view: TargetState) -> None:
        """Ask how far logs go of which a view wants to know, and have it done again if need be."""
        broker = channel.registration.id
        wanted = ends_wanted(broker, view)
        if not wanted:
            return
        try:
            answer = await self._send(broker, _ends_request(wanted), ListOffsetsResponse)
            await self._ends(broker, channel.registration.epoch, ends_answers(wanted, answer))
            channel.ends_failure.over()
        except (PeerError, EncodeError, KafkaError) as error:
            level = channel.ends_failure.failed()
            log.log(level, "Leader election is waiting: broker=%d %s", broker, error)
        if self._view is view:
            await asyncio.sleep(RETRY_S)
            channel.wake.set()

    async def _give(self, broker: int, given: Orders, *, fresh: bool) -> frozenset[str]:
        """Send orders; returns the topics that could not be deleted. Raises PeerError, KafkaError.

        A broker that knows nothing yet must learn the others' addresses before it can follow them.
        One that fails to obey a request is sent the others: it may fail at that for ever.
        """
        failed: KafkaError | None = None
        refused: frozenset[str] = frozenset()
        steps = [self._give_leadership, self._give_metadata]
        for step in reversed(steps) if fresh else steps:
            try:
                await step(broker, given)
            except KafkaError as error:
                failed = failed or error
        try:
            refused = await self._give_stops(broker, given)
        except KafkaError as error:
            failed = failed or error
        if failed is not None:
            raise failed
        return refused

    async def _give_stops(self, broker: int, given: Orders) -> frozenset[str]:
        if given.stop_replica is None:
            return frozenset()
        stopped = await self._send(broker, given.stop_replica, StopReplicaResponse)
        _check(broker, "StopReplica", stopped.error_code)
        if stopped.error_code != ErrorCode.NONE:
            return frozenset(topic.topic_name for topic in given.stop_replica.topic_states)
        return frozenset(
            each.topic_name
            for each in stopped.partition_errors
            if each.error_code != ErrorCode.NONE
        )

    async def _give_leadership(self, broker: int, given: Orders) -> None:
        if given.leader_and_isr is None:
            return
        version = await self._peers.version(
            broker, ApiKey.LEADER_AND_ISR, timeout_s=self._timeout_s
        )
        if version < RECOVERY_SINCE:
            for topic in given.leader_and_isr.topic_states:
                for state in topic.partition_states:
                    state.leader_recovery_state = 0
        led = await self._send(broker, given.leader_and_isr, LeaderAndIsrResponse)
        _check(broker, "LeaderAndIsr", led.error_code)
        codes = [each.error_code for each in led.partition_errors]
        codes += [each.error_code for topic in led.topics for each in topic.partition_errors]
        failed = sorted({error_code(code).name for code in codes if code != ErrorCode.NONE})
        if failed:
            log.warning("LeaderAndIsr rejected: broker=%d %s", broker, ", ".join(failed))
        answered = storage_answers(given.leader_and_isr, led)
        unusable = {tp for tp, answer in answered.items() if not answer.usable}
        channel = self._channels[broker]
        if unusable or not channel.unusable.isdisjoint(answered):
            await self._storage(broker, answered)
        channel.unusable = (channel.unusable - answered.keys()) | unusable

    async def _give_metadata(self, broker: int, given: Orders) -> None:
        if given.update_metadata is None:
            return
        updated = await self._send(broker, given.update_metadata, UpdateMetadataResponse)
        _check(broker, "UpdateMetadata", updated.error_code)

    async def _send(self, broker: int, request: Request, kind: type[Answer]) -> Answer:
        return await self._peers.send(broker, request, kind, timeout_s=self._timeout_s)


def own_answers(
    broker_id: int, view: TargetState, own: OwnReplicas
) -> dict[TopicPartition, StorageAnswer]:
    """What is to be said of replicas of this broker of which a view does not say it yet."""
    answered = {}
    for topic in view.image.topics.values():
        for number, state in enumerate(topic.partitions):
            if broker_id not in state.replicas or state.leader_epoch < 0:
                continue
            tp = TopicPartition(topic.name, number)
            usable = not own.is_counted_out(tp)
            if usable == (broker_id in state.offline):
                answered[tp] = StorageAnswer(state.leader_epoch, usable=usable)
    return answered


def storage_answers(
    request: LeaderAndIsrRequest, response: LeaderAndIsrResponse
) -> dict[TopicPartition, StorageAnswer]:
    """What a broker's answer says of its replicas: can be used, or not for their log directory.

    Refusals for other reasons say nothing about that.
    """
    codes = {
        TopicPartition(each.topic_name, each.partition_index): each.error_code
        for each in response.partition_errors
    }
    names = {topic.topic_id: topic.topic_name for topic in request.topic_states}
    for topic in response.topics:
        for each in topic.partition_errors:
            if topic.topic_id in names:
                tp = TopicPartition(names[topic.topic_id], each.partition_index)
                codes[tp] = each.error_code
    answered = {}
    for topic_state in request.topic_states:
        for state in topic_state.partition_states:
            tp = TopicPartition(topic_state.topic_name, state.partition_index)
            code = codes.get(tp)
            if code in (ErrorCode.NONE, ErrorCode.KAFKA_STORAGE_ERROR):
                usable = code == ErrorCode.NONE
                answered[tp] = StorageAnswer(state.leader_epoch, usable=usable)
    return answered


def _ends_request(wanted: Mapping[TopicPartition, int]) -> ListOffsetsRequest:
    topics: dict[str, ListOffsetsTopic] = {}
    for tp, epoch in wanted.items():
        topic = topics.setdefault(tp.topic, ListOffsetsTopic(name=tp.topic))
        topic.partitions.append(
            ListOffsetsPartition(
                partition_index=tp.partition,
                current_leader_epoch=epoch,
                timestamp=LATEST_TIMESTAMP,
            )
        )
    return ListOffsetsRequest(replica_id=DEBUGGING_REPLICA_ID, topics=list(topics.values()))


def ends_answers(
    wanted: Mapping[TopicPartition, int], response: ListOffsetsResponse
) -> dict[TopicPartition, EndsAnswer]:
    """The log ends in a broker's response; some may be of an earlier leader epoch."""
    answered = {}
    for topic in response.topics:
        for each in topic.partitions:
            epoch = wanted.get(tp := TopicPartition(topic.name, each.partition_index))
            if epoch is not None and each.error_code == ErrorCode.NONE:
                answered[tp] = EndsAnswer(epoch, LogEnd(each.leader_epoch, each.offset))
    return answered


def _check(broker: int, what: str, code: int) -> None:
    """Raise KafkaError for a request that the broker failed to obey, and is to be sent again.

    Another epoch means that there is another controller, or another process of that broker, to
    which another channel belongs.
    """
    if code == ErrorCode.NONE:
        return
    refusal = error_code(code)
    if refusal not in _ANOTHER_EPOCH:
        raise KafkaError(refusal, f"{what} failed")
    log.warning("Request rejected: broker=%d %s: %s", broker, what, refusal.name)


_ANOTHER_EPOCH = (ErrorCode.STALE_CONTROLLER_EPOCH, ErrorCode.STALE_BROKER_EPOCH)
