"""DescribeLogDirs: how large each partition is and how full each disk (KIP-113, KIP-827)."""

from barnabas_broker.security.acls import AclOperation
from barnabas_broker.server.call import Call
from barnabas_broker.server.handler import Handler
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


def handle(request: DescribeLogDirsRequest, call: Call) -> DescribeLogDirsResponse:
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
        topics: dict[str, DescribeLogDirsTopic] = {}
        for tp, size in usage.sizes.items():
            if asked is not None and tp not in asked:
                continue
            topic = topics.setdefault(tp.topic, DescribeLogDirsTopic(name=tp.topic))
            topic.partitions.append(
                DescribeLogDirsPartition(partition_index=tp.partition, partition_size=size)
            )
        results.append(
            DescribeLogDirsResult(
                log_dir=str(usage.directory),
                topics=list(topics.values()),
                total_bytes=usage.total_bytes,
                usable_bytes=usage.usable_bytes,
            )
        )
    return DescribeLogDirsResponse(results=results)


HANDLER = Handler(ApiKey.DESCRIBE_LOG_DIRS, VersionRange(0, 4), handle)
