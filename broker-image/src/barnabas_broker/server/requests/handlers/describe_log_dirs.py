"""DescribeLogDirs: how large each partition is and how full each disk (KIP-113, KIP-827)."""

from asyncio import Future, ensure_future
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from pathlib import Path
from typing import Final

from barnabas_broker.cluster.failures import refusal
from barnabas_broker.log.directory import VolumeUsage
from barnabas_broker.log.partition_log import PartitionLog
from barnabas_broker.security.acls import AclOperation
from barnabas_broker.server.process.cooperative_scheduler import Work, each
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
UNKNOWN_VOLUME: Final = VolumeUsage(-1, -1)
"""Of a directory whose disk does not answer in time, as of brokers that do not say (KIP-827)."""

Held = Sequence[tuple[TopicPartition, PartitionLog]]
Asked = AbstractSet[TopicPartition] | None


def handle(
    request: DescribeLogDirsRequest, call: RequestContext
) -> DescribeLogDirsResponse | Future[Work[DescribeLogDirsResponse]]:
    """Every log directory, with the partitions asked for; None asks for all."""
    if not call.allowed_on_cluster(AclOperation.DESCRIBE):
        return DescribeLogDirsResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    return ensure_future(_measured(request, call))


async def _measured(
    request: DescribeLogDirsRequest, call: RequestContext
) -> Work[DescribeLogDirsResponse]:
    return _answer(request, call, await call.broker.volumes.usage(call.broker.logs))


def _answer(
    request: DescribeLogDirsRequest,
    call: RequestContext,
    volumes: Mapping[Path, VolumeUsage | None],
) -> Work[DescribeLogDirsResponse]:
    asked: set[TopicPartition] | None = None
    if request.topics is not None:
        asked = set()
        for topic in request.topics:
            asked.update((yield from each(topic.partitions, partial(TopicPartition, topic.topic))))
    logs = call.broker.logs
    held: dict[Path, list[tuple[TopicPartition, PartitionLog]]] = {}
    for tp, partition_log in list(logs.logs.items()):
        held.setdefault(partition_log.directory.parent, []).append((tp, partition_log))
        yield
    results = []
    for path in logs.paths:
        volume = volumes.get(path, UNKNOWN_VOLUME)
        try:
            result = yield from _described(path, volume, held.get(path, ()), asked, call)
        except Exception as error:
            code = refusal(error, "DescribeLogDirs", path).code
            result = DescribeLogDirsResult(log_dir=str(path), error_code=code)
        results.append(result)
    return DescribeLogDirsResponse(results=results)


def _described(
    path: Path, volume: VolumeUsage | None, held: Held, asked: Asked, call: RequestContext
) -> Work[DescribeLogDirsResult]:
    if volume is None:
        code = ErrorCode.KAFKA_STORAGE_ERROR
        return DescribeLogDirsResult(log_dir=str(path), error_code=code)
    topics: dict[str, DescribeLogDirsTopic] = {}
    for tp, partition_log in held:
        yield
        if asked is not None and tp not in asked:
            continue
        topic = topics.setdefault(tp.topic, DescribeLogDirsTopic(name=tp.topic))
        topic.partitions.append(
            DescribeLogDirsPartition(
                partition_index=tp.partition,
                partition_size=partition_log.size,
                offset_lag=_lag(call, tp),
            )
        )
    for move in list(call.broker.logs.moves.values()):
        if move.target.path == path and (asked is None or move.tp in asked):
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
        log_dir=str(path),
        topics=list(topics.values()),
        total_bytes=volume.total_bytes,
        usable_bytes=volume.usable_bytes,
    )


def _lag(call: RequestContext, tp: TopicPartition) -> int:
    """How far a log ends below its high watermark, as Kafka's getLogEndOffsetLag."""
    partition_log = call.broker.logs.logs.get(tp)
    if partition_log is None:  # It was deleted since.
        return INVALID_OFFSET_LAG
    return max(partition_log.high_watermark - partition_log.log_end_offset, 0)


HANDLER = Handler(ApiKey.DESCRIBE_LOG_DIRS, VersionRange(0, 4), handle, large=True)
