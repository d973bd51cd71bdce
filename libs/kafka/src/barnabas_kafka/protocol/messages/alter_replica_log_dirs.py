"""AlterReplicaLogDirs (key 34): moves replicas between the log directories of a broker.

Versions:
   1: the client does the waiting of a throttle.
   2: flexible.
"""

from barnabas_kafka.protocol.schema import (
    INT32,
    Request,
    Response,
    Struct,
    array,
    int16,
    int32,
    string,
)


class AlterReplicaLogDirTopic(Struct):
    """Element of `topics` in the request."""

    name: str = string("0+")
    partitions: list[int] = array(INT32, "0+")


class AlterReplicaLogDir(Struct):
    """Element of `dirs` in the request."""

    path: str = string("0+")
    topics: list[AlterReplicaLogDirTopic] = array(AlterReplicaLogDirTopic, "0+")


class AlterReplicaLogDirsRequest(Request, api_key=34, versions="0-2", flexible="2+"):
    """AlterReplicaLogDirs request."""

    dirs: list[AlterReplicaLogDir] = array(AlterReplicaLogDir, "0+")


class AlterReplicaLogDirPartitionResult(Struct):
    """Element of `partitions` in the response."""

    partition_index: int = int32("0+")
    error_code: int = int16("0+")


class AlterReplicaLogDirTopicResult(Struct):
    """Element of `results` in the response."""

    topic_name: str = string("0+")
    partitions: list[AlterReplicaLogDirPartitionResult] = array(
        AlterReplicaLogDirPartitionResult, "0+"
    )


class AlterReplicaLogDirsResponse(Response, api_key=34, versions="0-2", flexible="2+"):
    """AlterReplicaLogDirs response."""

    throttle_time_ms: int = int32("0+")
    results: list[AlterReplicaLogDirTopicResult] = array(AlterReplicaLogDirTopicResult, "0+")
