"""Fetch: records of many partitions at once, as slices of their segment files.

A fetch is answered at once when it found `min_bytes`, may not wait, or met an error; otherwise
it waits (KIP-41 long poll). Limits are soft, as clients rely on: the first partition with
records always gives a whole batch, however large (KIP-74). Clients older than version 4 get their
records converted to the format they know, which needs a copy; all others get bytes as stored.
"""

from asyncio import Future, get_running_loop
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from barnabas_broker.replica.delayed_fetch import DelayedFetch
from barnabas_broker.replica.fetch_session import (
    FetchContext,
    Key,
    SessionRequest,
    Target,
)
from barnabas_broker.replica.partition import READ_COMMITTED, Partition
from barnabas_broker.security.acls import AclOperation, ResourceType
from barnabas_broker.server.call import Call, QuotaKind
from barnabas_broker.server.fetch_conversion import FIRST_WITH_ZSTD, records_for_version
from barnabas_broker.server.handler import Handler
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.ids import NO_EPOCH, ZERO_UUID, TopicPartition
from barnabas_kafka.protocol.codec import parts_length
from barnabas_kafka.protocol.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from barnabas_kafka.protocol.registry import ApiKey, VersionRange
from barnabas_kafka.settings import broker as keys

FIRST_WITH_HARD_RULES: Final = 3
"""Before this version a response never exceeds its limits, even if that means no progress."""

FIRST_WITH_SESSIONS: Final = 7
FIRST_WITH_TOPIC_IDS: Final = 13


def handle(request: FetchRequest, call: Call) -> FetchResponse | Future[object]:
    """Answer a fetch, now or when there is enough to answer it with."""
    try:
        context = _begin(request, call)
    except KafkaError as error:
        return FetchResponse(error_code=error.code)
    fetch = _Fetch(request, call, context)
    first = fetch.read()
    limit = min(request.max_bytes, call.broker.settings[keys.FETCH_MAX_BYTES])
    min_bytes = min(request.min_bytes, limit)
    if request.max_wait_ms <= 0 or not context.targets or first.failed or first.size >= min_bytes:
        return fetch.response(first)
    return DelayedFetch(
        get_running_loop(),
        first.watched,
        missing_bytes=min_bytes - first.size,
        wait_ms=request.max_wait_ms,
        answer=lambda: fetch.response(fetch.read()),
    ).future


def _begin(request: FetchRequest, call: Call) -> FetchContext:
    """The partitions to read, with the session they belong to."""
    by_id = call.version >= FIRST_WITH_TOPIC_IDS
    targets = dict(_targets(request, call, by_id=by_id))
    if call.version < FIRST_WITH_SESSIONS:
        return FetchContext(targets, None, incremental=False)
    forgotten = tuple(
        (topic.topic_id if by_id else topic.topic, partition)
        for topic in request.forgotten_topics_data
        for partition in topic.partitions
    )
    return call.broker.fetch_sessions.begin(
        SessionRequest(
            request.session_id, request.session_epoch, str(call.principal), by_id, forgotten
        ),
        targets,
        draw_id=call.broker.draw_session_id,
        now_ms=call.now_ms,
    )


def _targets(request: FetchRequest, call: Call, *, by_id: bool) -> Iterator[tuple[Key, Target]]:
    image = call.broker.image
    for topic in request.topics:
        name, topic_id = topic.topic, ZERO_UUID
        if by_id:
            topic_id = topic.topic_id
            name = image.topic_ids.get(topic_id, "")
        for wanted in topic.partitions:
            yield (
                (topic_id if by_id else name, wanted.partition),
                Target(
                    topic=name,
                    topic_id=topic_id,
                    partition=wanted.partition,
                    fetch_offset=wanted.fetch_offset,
                    max_bytes=wanted.partition_max_bytes,
                    current_leader_epoch=wanted.current_leader_epoch,
                    last_fetched_epoch=wanted.last_fetched_epoch,
                ),
            )


@dataclass(slots=True)
class _Read:
    """What one pass over the partitions found."""

    answers: list[tuple[Key, Target, PartitionData]]
    watched: list[Partition]
    size: int = 0
    failed: bool = False


class _Fetch:
    """One fetch request, which may be read more than once: when it comes and when it is woken."""

    __slots__ = ("_call", "_context", "_request")

    def __init__(self, request: FetchRequest, call: Call, context: FetchContext) -> None:
        self._request = request
        self._call = call
        self._context = context

    def read(self) -> _Read:
        """Read every partition in order, within the limits of the request."""
        call, request = self._call, self._request
        remaining = min(request.max_bytes, call.broker.settings[keys.FETCH_MAX_BYTES])
        at_least_one = call.version >= FIRST_WITH_HARD_RULES
        found = _Read([], [])
        for key, target in self._context.targets.items():
            try:
                partition = self._partition(target)
                found.watched.append(partition)
                data = self._read_partition(
                    partition, target, min(remaining, target.max_bytes), at_least_one
                )
                size = _size(data)
                if _diverges(data):
                    found.failed = True
            except KafkaError as error:
                data, size = _failed(target.partition, error), 0
                found.failed = True
            found.answers.append((key, target, data))
            if size:
                found.size += size
                remaining = max(0, remaining - size)
                at_least_one = False
        return found

    def response(self, found: _Read) -> FetchResponse:
        """The response to what was found; an incremental one leaves out what did not change."""
        call, session = self._call, self._context.session
        throttle_ms = call.throttle_ms(QuotaKind.FETCH, found.size)
        topics: dict[str | object, FetchableTopicResponse] = {}
        for key, target, data in found.answers:
            told = (data.high_watermark, data.log_start_offset)
            has_records = _size(data) > 0
            if self._context.incremental and not (
                has_records or data.error_code or _diverges(data) or told != target.told
            ):
                continue
            # An error is told again with every response until it is gone.
            target.told = None if data.error_code else told
            topic = topics.get(key[0])
            if topic is None:
                topic = FetchableTopicResponse(topic=target.topic, topic_id=target.topic_id)
                topics[key[0]] = topic
            topic.partitions.append(data)
            if session is not None and has_records:
                session.move_to_end(key)
        return FetchResponse(
            throttle_time_ms=throttle_ms,
            session_id=self._context.session_id,
            responses=list(topics.values()),
        )

    def _partition(self, target: Target) -> Partition:
        """The partition to read; raises KafkaError where the client may not or cannot."""
        call = self._call
        if not target.topic and call.version >= FIRST_WITH_TOPIC_IDS:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
        if target.topic_id != ZERO_UUID:
            topic = call.broker.image.topics.get(target.topic)
            if topic is None or topic.id != target.topic_id:
                raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
        if not call.allowed(AclOperation.READ, ResourceType.TOPIC, target.topic):
            raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        partition = call.broker.replicas.leader(
            TopicPartition(target.topic, target.partition),
            max(target.current_leader_epoch, NO_EPOCH),
        )
        if self._request.replica_id >= 0 or self._request.replica_state.replica_id >= 0:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)  # No follower is assigned to us.
        return partition

    def _read_partition(
        self, partition: Partition, target: Target, max_bytes: int, at_least_one: bool
    ) -> PartitionData:
        log = partition.log
        data = PartitionData(
            partition_index=target.partition,
            high_watermark=log.high_watermark,
            last_stable_offset=log.last_stable_offset,
            log_start_offset=log.log_start_offset,
            aborted_transactions=None,  # Not asked for, unlike none.
            records=b"",
        )
        if target.last_fetched_epoch >= 0:
            epoch, end_offset = log.end_offset_for_epoch(target.last_fetched_epoch)
            if end_offset < 0 or target.fetch_offset < log.log_start_offset:
                # An epoch that nobody here led in, or records that are gone whoever wrote them.
                raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
            if epoch < target.last_fetched_epoch or end_offset < target.fetch_offset:
                data.diverging_epoch = EpochEndOffset(epoch=epoch, end_offset=end_offset)
                return data
        isolation_level = self._request.isolation_level
        upper_bound = partition.readable_until(isolation_level)
        if target.fetch_offset != upper_bound:
            found = log.read(
                target.fetch_offset,
                max_bytes,
                upper_bound=upper_bound,
                at_least_one=at_least_one,
            )
            if found.length:
                data.records = found
                if self._call.version < FIRST_WITH_ZSTD:
                    data.records = records_for_version(
                        found,
                        self._call.version,
                        fetch_offset=target.fetch_offset,
                        rules=partition.rules,
                    )
        if isolation_level == READ_COMMITTED:
            data.aborted_transactions = [
                AbortedTransaction(
                    producer_id=aborted.producer_id, first_offset=aborted.first_offset
                )
                for aborted in log.aborted_transactions(target.fetch_offset, upper_bound)
            ]
        return data


def _size(data: PartitionData) -> int:
    return 0 if data.records is None else parts_length([data.records])


def _diverges(data: PartitionData) -> bool:
    return data.diverging_epoch.end_offset >= 0


def _failed(partition: int, error: KafkaError) -> PartitionData:
    return PartitionData(
        partition_index=partition,
        error_code=error.code,
        high_watermark=-1,
        aborted_transactions=None,
        records=b"",
    )


HANDLER = Handler(ApiKey.FETCH, VersionRange(0, 17), handle)
