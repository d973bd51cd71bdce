"""Fetch as followers send it: read up to the end of the log, and note how far they have come.

What a follower asks for it holds all before: that moves the high watermark and lets it into the
in-sync replicas (`replica.isr`). The answer carries the high watermark as it was before the
request, so a follower learns of a record's being committed with the next answer, as it does from
Apache's leaders. A fetch that finds nothing waits for the end of the log to move; when it is woken
it is only read again, for the follower has sent nothing new.

A follower that is not in sync gets no records of partitions whose sending is throttled while too
much is sent (`replica.replication_quota`), and its fetch does not wait for them.

Followers have fetch sessions of their own: consumers, however many, cannot evict them.
"""

from asyncio import Future, get_running_loop
from dataclasses import dataclass, field
from typing import cast

from barnabas_broker.cluster.failures import refusal
from barnabas_broker.cluster.image import PartitionState
from barnabas_broker.replica.delayed_fetch import DelayedFetch, Waitable
from barnabas_broker.replica.fetch_session import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    FetchContext,
    Key,
    Target,
)
from barnabas_broker.replica.follower_session import FollowerSession, FollowerTarget
from barnabas_broker.replica.partition import Partition
from barnabas_broker.replica.replication_quota import leader_withholds
from barnabas_broker.security.acls import AclOperation
from barnabas_broker.server.process.cooperative_scheduler import Work
from barnabas_broker.server.requests import current_leaders
from barnabas_broker.server.requests.fetch_sessions import (
    FIRST_WITH_SESSIONS,
    FIRST_WITH_TOPIC_IDS,
    JUDGED_FIRST,
    begin,
    gather,
)
from barnabas_broker.server.requests.request_context import RequestContext
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.ids import NO_EPOCH, ZERO_UUID, TopicPartition
from barnabas_kafka.protocol.codec import parts_length
from barnabas_kafka.protocol.messages.fetch import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from barnabas_kafka.settings import broker as keys


def handle(
    request: FetchRequest, call: RequestContext, follower: int, broker_epoch: int
) -> Work[FetchResponse | Future[object]]:
    """Answer a follower, now or when there is enough to answer it with."""
    allowed = call.allowed_on_cluster(AclOperation.CLUSTER_ACTION, audited=False)
    if call.usage is not None and allowed:
        call.usage.exempt()
    if not allowed and request.session_epoch == INITIAL_EPOCH:
        # Each partition is refused to it, and followers' sessions are none of its business.
        request.session_epoch = FINAL_EPOCH
    targets = yield from _targets(request, call)
    try:
        context = begin(request, call, targets, call.broker.follower_sessions)
    except KafkaError as error:
        return FetchResponse(error_code=error.code)
    session = cast("FollowerSession | None", context.session)
    fetch = _FollowerFetch(request, call, context, follower, broker_epoch)
    if call.version >= FIRST_WITH_SESSIONS:  # Before, an error response lists each partition.
        request.topics = []
    first = yield from fetch.read(arriving=True)
    if (
        request.max_wait_ms <= 0
        or not context.targets
        or first.at_once
        or first.size >= request.min_bytes
    ):
        return fetch.response(first)
    missing_bytes, watched = request.min_bytes - first.size, first.watched
    if session is not None:
        missing_bytes, watched = missing_bytes - session.grown, [session]
    if missing_bytes <= 0 or any(
        it.log.log_end_offset != end or it.state is not state for it, end, state in first.looked_at
    ):
        return (yield from fetch.again())  # Something came while others were served.
    if call.followed:
        return (yield from fetch.again())
    waiting = DelayedFetch(
        get_running_loop(),
        watched,
        missing_bytes=missing_bytes,
        wait_ms=request.max_wait_ms,
        answer=fetch.again,
    )
    call.hurry_by(waiting.complete)  # The follower has another partition to ask about.
    return waiting.future


def _targets(request: FetchRequest, call: RequestContext) -> Work[dict[Key, Target]]:
    image = call.broker.controller.image  # Followers know of topics before clients do.
    by_id = call.version >= FIRST_WITH_TOPIC_IDS
    targets: dict[Key, Target] = {}
    for topic in request.topics:
        name = image.topic_ids.get(topic.topic_id, "") if by_id else topic.topic
        for wanted in topic.partitions:
            targets[topic.topic_id if by_id else name, wanted.partition] = FollowerTarget(
                topic=name,
                topic_id=topic.topic_id if by_id else ZERO_UUID,
                partition=wanted.partition,
                fetch_offset=wanted.fetch_offset,
                max_bytes=wanted.partition_max_bytes,
                current_leader_epoch=wanted.current_leader_epoch,
                last_fetched_epoch=wanted.last_fetched_epoch,
                log_start_offset=wanted.log_start_offset,
            )
            yield
    return targets


@dataclass(slots=True)
class _Read:
    """What one pass over the partitions found; `at_once`: it holds something to send now.

    `looked_at`: how far the logs had come that are watched without a session, and the states of
    their partitions.
    """

    answers: list[tuple[Key, FollowerTarget, PartitionData]] = field(default_factory=list)
    watched: list[Waitable] = field(default_factory=list)
    looked_at: list[tuple[Partition, int, PartitionState]] = field(default_factory=list)
    size: int = 0
    throttled: int = 0  # Bytes of `size` that are of throttled partitions.
    at_once: bool = False


class _FollowerFetch:
    """One request of a follower."""

    __slots__ = ("_broker_epoch", "_call", "_context", "_follower", "_request", "_session")

    def __init__(
        self,
        request: FetchRequest,
        call: RequestContext,
        context: FetchContext,
        follower: int,
        broker_epoch: int,
    ) -> None:
        self._request = request
        self._call = call
        self._context = context
        self._session = cast("FollowerSession | None", context.session)
        self._follower = follower
        self._broker_epoch = broker_epoch

    def again(self) -> Work[FetchResponse]:
        """The response to what is there now."""
        return self.response((yield from self.read(arriving=False)))

    def read(self, *, arriving: bool) -> Work[_Read]:
        """Read the partitions in order, within the limits; what cannot be is last.

        Quiet partitions of a session are skipped.
        """
        call, request = self._call, self._request
        remaining = min(request.max_bytes, call.broker.settings[keys.FETCH_MAX_BYTES])
        allowed = call.allowed_on_cluster(AclOperation.CLUSTER_ACTION)
        found = _Read()
        refused: list[tuple[Key, FollowerTarget, PartitionData]] = []
        at_least_one = True
        for key, target in self._to_read(allowed=allowed, arriving=arriving):
            yield
            try:
                if not allowed:
                    raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
                data = self._look(
                    found,
                    key,
                    target,
                    min(remaining, target.max_bytes),
                    at_least_one=at_least_one,
                    arriving=arriving,
                )
            except Exception as error:
                data = _failed(target.partition, refusal(error, "Fetch by a follower", target))
                if self._session is not None:
                    self._session.failed(target)
            size = _size(data)
            if not size and self._rests(key, target, data):
                continue
            answers = refused if data.error_code in JUDGED_FIRST else found.answers
            answers.append((key, target, data))
            found.at_once |= bool(data.error_code) or data.diverging_epoch.end_offset >= 0
            if size:
                found.size += size
                remaining = max(0, remaining - size)
                at_least_one = False
        found.answers += refused
        return found

    def _look(
        self,
        found: _Read,
        key: Key,
        target: FollowerTarget,
        max_bytes: int,
        *,
        at_least_one: bool,
        arriving: bool,
    ) -> PartitionData:
        """Read one partition, and have it say when there is more; raises what says why not."""
        partition = self._partition(target)
        withheld = self._withholds(partition)
        if self._session is not None:
            self._session.watch(key, target, partition, deaf=withheld)
        elif not withheld:
            found.watched.append(partition.appends)
            end = partition.log.log_end_offset
            found.looked_at.append((partition, end, partition.state))
        data = self._read_partition(
            partition, target, max_bytes, at_least_one=at_least_one, arriving=arriving
        )
        if withheld:
            data.records = b""
        elif partition.leader_throttled:
            found.throttled += _size(data)
        return data

    def _to_read(self, *, allowed: bool, arriving: bool) -> list[tuple[Key, FollowerTarget]]:
        session = self._session
        if session is None:
            return list(cast("dict[Key, FollowerTarget]", self._context.targets).items())
        if not allowed:  # Each gets the error, and what it asks for proves nothing.
            session.activate_all()
        elif arriving:
            session.arrives(self._follower, self._broker_epoch, self._call.broker.monotonic_ms())
        return session.to_read()

    def _rests(self, key: Key, target: FollowerTarget, data: PartitionData) -> bool:
        """Whether an incremental answer says nothing of a partition, nor the next one."""
        return (
            self._session is not None
            and self._context.incremental
            and not data.error_code
            and data.diverging_epoch.end_offset < 0
            and self._session.rest_if_quiet(key, target)
        )

    def _partition(self, target: FollowerTarget) -> Partition:
        replicas = self._call.broker.replicas
        if target.topic_id != ZERO_UUID:
            # The id is looked up again: a session outlives topics.
            image = self._call.broker.controller.image
            target.topic = image.topic_ids.get(target.topic_id, "")
            if not target.topic:
                raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
        epoch = max(target.current_leader_epoch, NO_EPOCH)
        partition = replicas.leader(TopicPartition(target.topic, target.partition), epoch)
        if not partition.in_sync.knows(self._follower):
            # With an epoch this broker may not have received the assignment yet.
            raise KafkaError(
                ErrorCode.NOT_LEADER_OR_FOLLOWER
                if epoch == NO_EPOCH
                else ErrorCode.UNKNOWN_LEADER_EPOCH
            )
        return partition

    def _withholds(self, partition: Partition) -> bool:
        broker = self._call.broker
        return leader_withholds(
            broker.replication_quotas.leader,
            throttled=partition.leader_throttled,
            in_sync=self._follower in partition.state.isr,
            now_ms=broker.monotonic_ms(),
        )

    def _read_partition(
        self,
        partition: Partition,
        target: FollowerTarget,
        max_bytes: int,
        *,
        at_least_one: bool,
        arriving: bool,
    ) -> PartitionData:
        log = partition.log
        leader_end = log.log_end_offset
        offset = target.fetch_offset
        data = PartitionData(
            partition_index=target.partition,
            high_watermark=log.high_watermark,
            last_stable_offset=log.last_stable_offset,
            log_start_offset=log.log_start_offset,
            aborted_transactions=None,
            records=b"",
        )
        if target.last_fetched_epoch >= 0:
            epoch, end_offset = log.end_offset_for_epoch(target.last_fetched_epoch)
            if end_offset < 0 or offset < log.log_start_offset:
                raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
            if epoch < target.last_fetched_epoch or end_offset < offset:
                data.diverging_epoch = EpochEndOffset(epoch=epoch, end_offset=end_offset)
                return data
        found = log.read(offset, max_bytes, upper_bound=leader_end, at_least_one=at_least_one)
        if found.length:
            data.records = found
        if arriving:
            partition.follower_fetched(
                self._follower,
                offset=offset,
                log_start=target.log_start_offset,
                leader_end=leader_end,
                broker_epoch=self._broker_epoch,
            )
        return data

    def response(self, found: _Read) -> FetchResponse:
        """The response to what was found; an incremental one leaves out what did not change."""
        broker, session = self._call.broker, self._session
        if found.throttled:
            broker.replication_quotas.leader.record(found.throttled, broker.monotonic_ms())
        responses: list[FetchableTopicResponse] = []
        for key, target, data in found.answers:
            last_sent = (data.high_watermark, data.log_start_offset)
            has_records = _size(data) > 0
            news = has_records or data.error_code or data.diverging_epoch.end_offset >= 0
            if self._context.incremental and not news and last_sent == target.last_sent:
                continue
            if data.error_code:
                tp = TopicPartition(target.topic, target.partition)
                # Followers get no endpoints from Apache either: the controller sends those.
                current_leaders.IN_FETCH.name(self._call, tp, data, endpoints=[])
            # A follower takes the marks of neither an error nor a divergence.
            diverges = data.diverging_epoch.end_offset >= 0
            target.last_sent = None if data.error_code or diverges else last_sent
            gather(responses, key, target, data)
            if session is not None and has_records:
                session.move_to_end(key)
            elif session is not None and not news:
                session.rest_if_quiet(key, target)
        return FetchResponse(session_id=self._context.session_id, responses=responses)


def _size(data: PartitionData) -> int:
    return 0 if data.records is None else parts_length([data.records])


def _failed(partition: int, error: KafkaError) -> PartitionData:
    return PartitionData(
        partition_index=partition,
        error_code=error.code,
        high_watermark=-1,
        aborted_transactions=None,
        records=b"",
    )
