"""AlterReplicaLogDirs: move partitions between the log directories of this broker (KIP-113)."""

import logging

from barnabas_broker.cluster.failures import refusal
from barnabas_broker.security.acls import AclOperation
from barnabas_broker.server.process.cooperative_scheduler import Work
from barnabas_broker.server.requests.handler import Handler
from barnabas_broker.server.requests.request_context import RequestContext
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.ids import TopicPartition
from barnabas_kafka.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)
from barnabas_kafka.protocol.registry import ApiKey, VersionRange

log = logging.getLogger(__name__)


def handle(
    request: AlterReplicaLogDirsRequest, call: RequestContext
) -> Work[AlterReplicaLogDirsResponse]:
    """Begin, redirect or cancel moves; of a partition named twice the last directory counts."""
    wanted: dict[TopicPartition, str] = {}
    for entry in request.dirs:
        yield
        for topic in entry.topics:
            yield
            for partition in topic.partitions:
                wanted[TopicPartition(topic.name, partition)] = entry.path
                yield
    allowed = call.allowed_on_cluster(AclOperation.ALTER)
    results: dict[str, AlterReplicaLogDirTopicResult] = {}
    for tp, path in wanted.items():
        code = _alter(call, tp, path) if allowed else ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        answer = AlterReplicaLogDirPartitionResult(partition_index=tp.partition, error_code=code)
        of_topic = results.setdefault(tp.topic, AlterReplicaLogDirTopicResult(topic_name=tp.topic))
        of_topic.partitions.append(answer)
        yield
    return AlterReplicaLogDirsResponse(results=list(results.values()))


def _alter(call: RequestContext, tp: TopicPartition, path: str) -> ErrorCode:
    try:
        call.broker.mover.alter(tp, path)
    except Exception as error:
        refused = refusal(error, "AlterReplicaLogDirs", tp)
        log.info(
            "Move between log directories rejected: partition=%s to=%s %s",
            tp,
            path,
            refused.message,
        )
        return refused.code
    return ErrorCode.NONE


HANDLER = Handler(ApiKey.ALTER_REPLICA_LOG_DIRS, VersionRange(0, 2), handle, large=True)
