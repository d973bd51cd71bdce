"""Fetch: records of many partitions at once, as slices of their segment files.

A fetch is answered at once when it found `min_bytes`, may not wait, or met an error; otherwise
it waits (KIP-41 long poll). Limits are soft, as clients rely on: the first partition with
records always gives a whole batch, however large (KIP-74). From version 11 on followers serve
consumers too, up to the high watermark that they know, and a leader may send a consumer that names
its rack to a follower in it (KIP-392; `replica.selector` decides). Clients older than version 4 get
their records converted to the format they know, which needs a copy; all others get bytes as stored.
"""

from asyncio import Future, get_running_loop
from dataclasses import dataclass
from typing import Final

from barnabas_broker.cluster.failures import refusal
from barnabas_broker.cluster.views import racks
from barnabas_broker.log.files import FileSlice
from barnabas_broker.replica.delayed_fetch import DelayedFetch
from barnabas_broker.replica.fetch_session import (
    FetchContext,
    Key,
    Target,
    still_quiet,
)
from barnabas_broker.replica.partition import READ_COMMITTED, Partition
from barnabas_broker.server.process.cooperative_scheduler import Work
from barnabas_broker.server.requests import current_leaders, follower_fetches
from barnabas_broker.server.requests.fast.fetch import serve as serve_fast
from barnabas_broker.server.requests.fetch_checks import may_read, most_bytes, readable
from barnabas_broker.server.requests.fetch_conversion import (
    CONVERSION_BYTES_MAX,
    FIRST_WITH_ZSTD,
    records_for_version,
)
from barnabas_broker.server.requests.fetch_sessions import (
    FIRST_WITH_SESSIONS,
    FIRST_WITH_TOPIC_IDS,
    JUDGED_FIRST,
    begin,
    gather,
)
from barnabas_broker.server.requests.handler import Handler
from barnabas_broker.server.requests.request_context import RequestContext
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.ids import ZERO_UUID, TopicPartition
from barnabas_kafka.protocol import codec
from barnabas_kafka.protocol.codec import parts_length
from barnabas_kafka.protocol.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    NodeEndpoint,
    PartitionData,
)
from barnabas_kafka.protocol.registry import ApiKey, VersionRange

FIRST_WITH_HARD_RULES: Final = 3
"""Before this version a response never exceeds its limits, even if that means no progress."""

SIZE_BYTES: Final = 4
"""The size in front of a response."""

MANY_AT_ONCE: Final = 0xFF
"""How many quiet partitions are skipped without reading the clock, as bits of their count."""


def handle(request: FetchRequest, call: RequestContext) -> Work[FetchResponse | Future[object]]:
    """Answer a fetch, now or when there is enough to answer it with."""
    state = request.replica_state
    if request.replica_id >= 0 or state.replica_id >= 0:
        follower = max(request.replica_id, state.replica_id)
        return (yield from follower_fetches.handle(request, call, follower, state.replica_epoch))
    targets = yield from _targets(request, call, by_id=call.version >= FIRST_WITH_TOPIC_IDS)
    try:
        context = begin(request, call, targets, call.broker.fetch_sessions)
    except KafkaError as error:
        return FetchResponse(error_code=error.code)
    fetch = _Fetch(request, call, context)
    if call.version >= FIRST_WITH_SESSIONS:  # Before, an error response lists each partition.
        request.topics = []  # They may be many, and it may wait long.
    loop = get_running_loop()
    ends_at_s = loop.time() + request.max_wait_ms / 1000
    min_bytes, wait_ms = min(request.min_bytes, fetch.limit), request.max_wait_ms
    found = yield from fetch.read()
    while wait_ms > 0 and context.targets and not found.at_once and found.size < min_bytes:
        if not (found.interrupted and fetch.missed_any(found)):
            return DelayedFetch(
                loop,
                found.watched,
                missing_bytes=min_bytes - found.size,
                wait_ms=wait_ms,
                answer=fetch.again,
            ).future
        # What came while others were served may be enough, or not yet.
        found = yield from fetch.read()
        wait_ms = int((ends_at_s - loop.time()) * 1000)
    return (yield from fetch.response(found))


def _targets(
    request: FetchRequest, call: RequestContext, *, by_id: bool
) -> Work[dict[Key, Target]]:
    """What is asked of each partition; the last word counts where one is named twice."""
    image = call.broker.image
    targets: dict[Key, Target] = {}
    for topic in request.topics:
        name, topic_id = topic.topic, ZERO_UUID
        if by_id:
            topic_id = topic.topic_id
            name = image.topic_ids.get(topic_id, "")
        for wanted in topic.partitions:
            targets[topic_id if by_id else name, wanted.partition] = Target(
                topic=name,
                topic_id=topic_id,
                partition=wanted.partition,
                fetch_offset=wanted.fetch_offset,
                max_bytes=wanted.partition_max_bytes,
                current_leader_epoch=wanted.current_leader_epoch,
                last_fetched_epoch=wanted.last_fetched_epoch,
            )
            yield
    return targets


_Answer = tuple[Key, Target, PartitionData, Partition | None]


@dataclass(slots=True)
class _Read:
    """What one pass over the partitions found; `at_once`: it holds something to send now.

    `interrupted`: others were served meanwhile.
    """

    answers: list[_Answer]
    watched: list[Partition]
    size: int = 0
    at_once: bool = False
    interrupted: bool = False


class _Fetch:
    """One fetch request, which may be read more than once: when it comes and when it is woken."""

    __slots__ = ("_call", "_context", "_request", "_selector", "limit")

    def __init__(self, request: FetchRequest, call: RequestContext, context: FetchContext) -> None:
        self._request = request
        self._call = call
        self._context = context
        self._selector = call.broker.selector if request.rack_id else None
        #: the most that is read
        self.limit = most_bytes(request.max_bytes, call)

    def again(self) -> Work[FetchResponse]:
        """The response with what is there now."""
        return (yield from self.response((yield from self.read())))

    def read(self) -> Work[_Read]:
        """Read the partitions in order, within the limits; what cannot be is last."""
        call = self._call
        remaining = self.limit
        at_least_one = call.version >= FIRST_WITH_HARD_RULES
        found = _Read([], [])
        unknown_ids: list[_Answer] = []
        refused: list[_Answer] = []
        for key, target in (yield from self._loud(found)):
            if (yield):
                found.interrupted = True
            partition = None
            try:
                partition = self._partition(target)
                found.watched.append(partition)
                data = self._read_partition(
                    partition,
                    target,
                    min(remaining, target.max_bytes),
                    at_least_one,
                    convert_bytes=max(0, CONVERSION_BYTES_MAX - found.size),
                )
                size = _size(data)
            except Exception as error:
                rejection = refusal(error, "Fetch", target)
                data, size = _failed(target.partition, rejection), 0
            if _must_be_sent(data):
                found.at_once = True
            answers = found.answers
            if data.error_code in JUDGED_FIRST:
                unknown_id = data.error_code == ErrorCode.UNKNOWN_TOPIC_ID
                answers = unknown_ids if unknown_id else refused
            answers.append((key, target, data, partition))
            if size:
                found.size += size
                remaining = max(0, remaining - size)
                at_least_one = False
        found.answers += unknown_ids + refused
        return found

    def missed_any(self, found: _Read) -> bool:
        """Whether a partition has changed since it was read.

        More can be read of it, or it is no longer served here (Kafka's DelayedFetch checks both
        before it waits).
        """
        isolation_level = self._request.isolation_level
        for _, target, data, partition in found.answers:
            committed = isolation_level == READ_COMMITTED
            seen = data.last_stable_offset if committed else data.high_watermark
            if partition is not None and (
                partition.readable_until(isolation_level) != seen
                or not self._serves(partition, target)
            ):
                return True
        read = {key for key, *_ in found.answers}
        return any(
            target.quiet is not None and not still_quiet(target, target.quiet, isolation_level)
            for key, target in self._context.targets.items()
            if key not in read
        )

    def _loud(self, found: _Read) -> Work[list[tuple[Key, Target]]]:
        """The partitions to read; those without changes since the last read only wait.

        A consumer of a thousand partitions polls many times before one partition has records, so
        skipping one must cost next to nothing.
        """
        targets, session = self._context.targets, self._context.session
        if session is None or self._selector is not None:  # Each may be served by another replica.
            return list(targets.items())
        session.take_image(self._call.broker.image)
        isolation_level = self._request.isolation_level
        allowed: dict[str, bool] = {}
        loud = []
        passed = 0
        for key, target in list(targets.items()):
            passed += 1
            if not passed & MANY_AT_ONCE and (yield):
                found.interrupted = True
            partition = target.quiet
            if partition is not None and still_quiet(target, partition, isolation_level):
                topic = target.topic
                if topic not in allowed:
                    allowed[topic] = may_read(self._call, topic)
                if allowed[topic]:
                    found.watched.append(partition)
                    continue
            loud.append((key, target))
        return loud

    def response(self, found: _Read) -> Work[FetchResponse]:
        """The response to what was found; an incremental one leaves out what did not change."""
        call, session = self._call, self._context.session
        if call.usage is not None and not call.usage.fetched(self._response_size(found)):
            return self._throttled(call.usage.throttle_ms)
        responses: list[FetchableTopicResponse] = []
        endpoints: list[NodeEndpoint] = []
        for key, target, data, partition in found.answers:
            yield
            last_sent = (data.high_watermark, data.log_start_offset)
            size = _size(data)
            has_records = size > 0
            if data.error_code:
                _note_refusal(call, target.topic, data)
                tp = TopicPartition(target.topic, target.partition)
                current_leaders.IN_FETCH.name(call, tp, data, endpoints)
            elif partition is not None:
                partition.traffic.fetches += 1
                partition.traffic.bytes_out += size
            target.quiet = None
            news = has_records or _must_be_sent(data)
            if partition is not None and not news:
                target.is_quiet(partition)
            if self._context.incremental and not news and last_sent == target.last_sent:
                continue
            # Every response repeats an error until it is gone.
            target.last_sent = None if data.error_code else last_sent
            gather(responses, key, target, data)
            if session is not None and has_records:
                session.move_to_end(key)
        return FetchResponse(
            session_id=self._context.session_id,
            responses=responses,
            node_endpoints=endpoints,
        )

    def _response_size(self, found: _Read) -> int:
        """How large the response will be (Kafka's `FetchResponse.sizeOf`); nothing is changed."""
        responses: list[FetchableTopicResponse] = []
        for key, target, data, _ in found.answers:
            last_sent = (data.high_watermark, data.log_start_offset)
            news = _size(data) > 0 or _must_be_sent(data) or last_sent != target.last_sent
            if news or not self._context.incremental:
                gather(responses, key, target, data)
        parts = codec.encode_parts(FetchResponse(responses=responses), self._call.version)
        return SIZE_BYTES + sum(each.length if type(each) is FileSlice else parts_length([each])
                                for each in parts)  # fmt: skip

    def _throttled(self, throttle_ms: int) -> FetchResponse:
        """The response of a client beyond its quota: nothing; a full fetch opens no session."""
        context = self._context
        if context.session is not None and not context.incremental:
            self._call.broker.fetch_sessions.drop(context.session_id)
            return FetchResponse(throttle_time_ms=throttle_ms)
        return FetchResponse(throttle_time_ms=throttle_ms, session_id=context.session_id)

    def _partition(self, target: Target) -> Partition:
        """The partition to read; raises KafkaError where the client may not or cannot."""
        topic_id = target.topic_id if self._call.version >= FIRST_WITH_TOPIC_IDS else None
        return readable(
            self._call, target.topic, topic_id, target.partition, target.current_leader_epoch
        )

    def _serves(self, partition: Partition, target: Target) -> bool:
        try:
            return self._partition(target) is partition
        except KafkaError:
            return False

    def _elsewhere(self, partition: Partition, target: Target) -> int | None:
        """The preferred read replica for this client, if it is not this broker."""
        if self._selector is None:
            return None
        return partition.preferred_replica(
            self._selector,
            self._request.rack_id,
            fetch_offset=target.fetch_offset,
            racks=racks(self._call.broker.image, self._call.listener),
        )

    def _read_partition(
        self,
        partition: Partition,
        target: Target,
        max_bytes: int,
        at_least_one: bool,
        *,
        convert_bytes: int,
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
        elsewhere = self._elsewhere(partition, target)
        if elsewhere is not None:
            data.preferred_read_replica = elsewhere
            return data
        if target.last_fetched_epoch >= 0:
            epoch, end_offset = log.end_offset_for_epoch(target.last_fetched_epoch)
            if end_offset < 0 or target.fetch_offset < log.log_start_offset:
                # An epoch without a leader here, or records that are gone whichever leader wrote
                # them.
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
                        max_bytes=convert_bytes,
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
    records = data.records
    if type(records) is FileSlice:
        return records.length
    return 0 if records is None else parts_length([records])


def _note_refusal(call: RequestContext, topic: str, data: PartitionData) -> None:
    call.broker.requests.of("Fetch").failed(ErrorCode(data.error_code))
    traffic = call.broker.replicas.traffic.get(topic)
    if traffic is not None:  # Only topics that exist are counted: names are the client's to invent.
        traffic.fetches += 1
        traffic.fetches_failed += 1


def _must_be_sent(data: PartitionData) -> bool:
    """Whether the response must be sent now: an error, another log, or another replica."""
    return (
        data.error_code != ErrorCode.NONE
        or data.diverging_epoch.end_offset >= 0
        or data.preferred_read_replica >= 0
    )


def _failed(partition: int, error: KafkaError) -> PartitionData:
    return PartitionData(
        partition_index=partition,
        error_code=error.code,
        high_watermark=-1,
        aborted_transactions=None,
        records=b"",
    )


HANDLER = Handler(ApiKey.FETCH, VersionRange(0, 17), handle, large=True, fast=serve_fast)
