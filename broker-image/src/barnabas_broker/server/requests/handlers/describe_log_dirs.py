"""DescribeLogDirs: how large each partition is and how full each disk (KIP-113, KIP-827)."""

from typing import Final

from barnabas_broker.cluster.failures import refusal
from barnabas_broker.log.directory import DirectoryUsage
from barnabas_broker.security.acls import AclOperation
from barnabas_broker.server.process.cooperative_scheduler import Work
from barnabas_broker.server.requests.handler import Handler
from barnabas_broker.server.requests.request_context import RequestContext
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.ids import TopicPartition
from barnabas_kafka.protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from barnabas_kafka.protocol.registry import ApiKey, VersionRange

INVALID_OFFSET_LAG: Final = -1


def handle(request: DescribeLogDirsRequest, call: RequestContext) -> Work[DescribeLogDirsResponse]:
    """Every log directory, with the partitions asked for; None asks for all."""
    if not call.allowed_on_cluster(AclOperation.DESCRIBE):
        return DescribeLogDirsResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    asked = None
    if request.topics is not None:
        asked = {
            TopicPartition(topic.topic, partition)
            for topic in request.topics
            for partition in topic.partitions
        }
    results = []
    for usage in call.broker.logs.usage():
        try:
            results.append((yield from _described(usage, asked, call)))
        except Exception as error:
            code = refusal(error, "DescribeLogDirs", usage.directory).code
            results.append(DescribeLogDirsResult(log_dir=str(usage.directory), error_code=code))
    return DescribeLogDirsResponse(results=results)


def _described(
    usage: DirectoryUsage, asked: set[TopicPartition] | None, call: RequestContext
) -> Work[DescribeLogDirsResult]:
    if usage.offline:
        code = ErrorCode.KAFKA_STORAGE_ERROR
        return DescribeLogDirsResult(log_dir=str(usage.directory), error_code=code)
    topics: dict[str, DescribeLogDirsTopic] = {}
    for tp, size in usage.sizes.items():
        yield
        if asked is not None and tp not in asked:
            continue
        topic = topics.setdefault(tp.topic, DescribeLogDirsTopic(name=tp.topic))
        topic.partitions.append(
            DescribeLogDirsPartition(
                partition_index=tp.partition,
                partition_size=size,
                offset_lag=_lag(call, tp),
            )
        )
    for move in usage.arriving:
        if asked is None or move.tp in asked:
            name = move.tp.topic
            topic = topics.setdefault(name, DescribeLogDirsTopic(name=name))
            topic.partitions.append(
                DescribeLogDirsPartition(
                    partition_index=move.tp.partition,
                    partition_size=move.copied_bytes,
                    offset_lag=move.offset_lag,
                    is_future_key=True,
                )
            )
    return DescribeLogDirsResult(
        log_dir=str(usage.directory),
        topics=list(topics.values()),
        total_bytes=usage.total_bytes,
        usable_bytes=usage.usable_bytes,
    )


def _lag(call: RequestContext, tp: TopicPartition) -> int:
    """How far a log ends below its high watermark, as Kafka's getLogEndOffsetLag."""
    partition_log = call.broker.logs.logs.get(tp)
    if partition_log is None:  # It was deleted since.
        return INVALID_OFFSET_LAG
    return max(partition_log.high_watermark - partition_log.log_end_offset, 0)


HANDLER = Handler(ApiKey.DESCRIBE_LOG_DIRS, VersionRange(0, 4), handle)
