"""ListOffsets: the first or last offset of a partition, or the one at a time.

Consumers never learn of offsets beyond what they may read: the high watermark, or the last
stable offset where only committed records are asked for. All other callers may read to the end.

A debugging replica is answered by any replica (`fetchOnlyFromLeader` in Kafka). Without a leader
it gets the latest epoch in the log with its end, which Apache's brokers do not send: a
controller asks so before a careful election.
"""

from collections import Counter
from functools import partial

from barnabas_broker.cluster.failures import refusal
from barnabas_broker.cluster.image import NO_LEADER
from barnabas_broker.replica.partition import Partition
from barnabas_broker.security.acls import AclOperation, ResourceType
from barnabas_broker.server.process.cooperative_scheduler import Work, each
from barnabas_broker.server.requests.handler import Handler
from barnabas_broker.server.requests.request_context import RequestContext
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.ids import (
    CONSUMER_REPLICA_ID,
    DEBUGGING_REPLICA_ID,
    EARLIEST_LOCAL_TIMESTAMP,
    EARLIEST_TIMESTAMP,
    LATEST_TIERED_TIMESTAMP,
    LATEST_TIMESTAMP,
    MAX_TIMESTAMP,
    NO_EPOCH,
    NO_OFFSET,
    NO_TIMESTAMP,
    TopicPartition,
)
from barnabas_kafka.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
    ListOffsetsTopicResponse,
)
from barnabas_kafka.protocol.registry import ApiKey, VersionRange

# The version from which each of the special timestamps may be asked for.
SPECIAL_SINCE = {
    LATEST_TIMESTAMP: 0,
    EARLIEST_TIMESTAMP: 0,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL_TIMESTAMP: 8,
    LATEST_TIERED_TIMESTAMP: 9,
}

FIRST_WITH_ONE_ANSWER = 1
"""Before this version a partition has a list of offsets, and may be asked about twice."""

FIRST_WITH_OFFSET_NOT_AVAILABLE = 5

FIRST_WITH_LEADER_EPOCH = 4


def handle(request: ListOffsetsRequest, call: RequestContext) -> Work[ListOffsetsResponse]:
    """Look up every partition asked for; each has an error of its own."""
    asked: Counter[tuple[str, int]] = Counter()
    for topic in request.topics:
        for entry in topic.partitions:
            asked[topic.name, entry.partition_index] += 1
            yield
    repeated = {
        key for key, times in asked.items() if times > 1 and call.version >= FIRST_WITH_ONE_ANSWER
    }
    response = ListOffsetsResponse()
    for topic in request.topics:
        answer = partial(_answer, request, call, topic, repeated=repeated)
        answers = yield from each(topic.partitions, answer)
        response.topics.append(ListOffsetsTopicResponse(name=topic.name, partitions=answers))
        yield
    return response


def _answer(
    request: ListOffsetsRequest,
    call: RequestContext,
    topic: ListOffsetsTopic,
    entry: ListOffsetsPartition,
    *,
    repeated: set[tuple[str, int]],
) -> ListOffsetsPartitionResponse:
    answer = ListOffsetsPartitionResponse(partition_index=entry.partition_index)
    try:
        if (topic.name, entry.partition_index) in repeated:
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        if not call.allowed(AclOperation.DESCRIBE, ResourceType.TOPIC, topic.name):
            raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        _check_special(entry.timestamp, call.version)
        tp = TopicPartition(topic.name, entry.partition_index)
        find = call.broker.replicas.leader
        if request.replica_id == DEBUGGING_REPLICA_ID:
            find = call.broker.replicas.readable
        partition = find(tp, entry.current_leader_epoch)
        if call.version < FIRST_WITH_ONE_ANSWER:
            answer.old_style_offsets = _old_style(request, call, partition, entry)
        else:
            _find(request, partition, entry.timestamp, call.version, answer)
    except Exception as error:
        answer.error_code = refusal(error, "ListOffsets", (topic.name, entry)).code
    return answer


def _check_special(timestamp: int, version: int) -> None:
    if timestamp < 0 and SPECIAL_SINCE.get(timestamp, version + 1) > version:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)


def _find(
    request: ListOffsetsRequest,
    partition: Partition,
    timestamp: int,
    version: int,
    answer: ListOffsetsPartitionResponse,
) -> None:
    log = partition.log
    leader_epoch = NO_EPOCH
    readable_until = _readable_until(request, partition)
    if timestamp == LATEST_TIMESTAMP:
        _check_settled(request, partition, version)
        answer.offset = readable_until
        unled = partition.state.leader == NO_LEADER
        leader_epoch = log.latest_epoch if unled else partition.leader_epoch
    elif timestamp in (EARLIEST_TIMESTAMP, EARLIEST_LOCAL_TIMESTAMP):
        answer.offset = log.log_start_offset
        leader_epoch = log.epochs.epoch_at(log.log_start_offset)
    elif timestamp == LATEST_TIERED_TIMESTAMP:
        answer.offset = NO_OFFSET  # Nothing is ever tiered here.
    else:
        if timestamp == MAX_TIMESTAMP:
            found = log.offset_of_max_timestamp()
        else:
            found = log.offset_for_timestamp(timestamp)
        if found is not None and found.offset < readable_until:
            answer.offset = found.offset
            answer.timestamp = found.timestamp
            leader_epoch = found.leader_epoch
        else:
            _check_settled(request, partition, version)
            answer.offset, answer.timestamp = NO_OFFSET, NO_TIMESTAMP
    if version >= FIRST_WITH_LEADER_EPOCH:
        answer.leader_epoch = leader_epoch


def _readable_until(request: ListOffsetsRequest, partition: Partition) -> int:
    if request.replica_id == CONSUMER_REPLICA_ID:
        return partition.readable_until(request.isolation_level)
    return partition.log.log_end_offset


def _check_settled(request: ListOffsetsRequest, partition: Partition, version: int) -> None:
    """Raise while a new leader does not know yet how much is committed (KIP-207).

    Records of earlier epochs that are committed may lie above its high watermark; to deny them
    would have consumers see the end of the partition go back. A transaction that is open since
    before the epoch holds back the last stable offset alone, without an effect on this one.
    """
    if request.replica_id != CONSUMER_REPLICA_ID:
        return
    if partition.log.high_watermark < partition.in_sync.epoch_start:
        raise KafkaError(
            ErrorCode.OFFSET_NOT_AVAILABLE
            if version >= FIRST_WITH_OFFSET_NOT_AVAILABLE
            else ErrorCode.LEADER_NOT_AVAILABLE
        )


def _old_style(
    request: ListOffsetsRequest,
    call: RequestContext,
    partition: Partition,
    entry: ListOffsetsPartition,
) -> list[int]:
    """Version 0: offsets at which segments start, latest first, as clients before 0.10.1 ask.

    The end of the log counts as a start that is as new as can be (Kafka's
    `legacyFetchOffsetsBefore`).
    """
    log = partition.log
    segments = list(log.segments)
    starts = [max(segment.base_offset, log.log_start_offset) for segment in segments]
    if segments[-1].size:
        starts.append(log.log_end_offset)
    if entry.timestamp == EARLIEST_TIMESTAMP:
        del starts[1:]
    elif entry.timestamp != LATEST_TIMESTAMP:
        if len(starts) > len(segments) and entry.timestamp < call.now_ms:
            starts.pop()
        while len(starts) <= len(segments) and starts:
            if segments[len(starts) - 1].file.modified_ms() <= entry.timestamp:
                break
            starts.pop()
    offsets = starts[::-1][: max(0, entry.max_num_offsets)]
    if request.replica_id != CONSUMER_REPLICA_ID:
        return offsets
    readable = [offset for offset in offsets if offset <= log.high_watermark]
    return readable if len(readable) == len(offsets) else [log.high_watermark, *readable]


HANDLER = Handler(ApiKey.LIST_OFFSETS, VersionRange(0, 9), handle, large=True)
