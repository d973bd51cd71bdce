"""Operations on partitions: reassignments, leader elections, offsets, records, log directories."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import groupby
from typing import Any, Final

from barnabas_kafka.client.cluster import CONTROLLER, LeaderOf, OneBroker
from barnabas_kafka.client.errors import BrokerError, check
from barnabas_kafka.client.operation import (
    ONLY,
    Ask,
    Operation,
    Outcomes,
    Results,
    every,
    outcome,
    read_single,
    single,
    unique,
)
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.ids import CONSUMER_REPLICA_ID, LATEST_TIMESTAMP, TopicPartition
from barnabas_kafka.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from barnabas_kafka.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from barnabas_kafka.protocol.messages.describe_log_dirs import (
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
)
from barnabas_kafka.protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    TopicPartitions,
)
from barnabas_kafka.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from barnabas_kafka.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    ListPartitionReassignmentsTopics,
)
from barnabas_kafka.protocol.registry import ApiKey

ALL_RECORDS: Final = -1
"""As offset for delete_records: the high watermark."""
LIST_OFFSETS_NEWEST: Final = 9


class ElectionType(IntEnum):
    """How a leader is elected: the preferred replica, or any replica that is alive."""

    PREFERRED = 0
    UNCLEAN = 1


@dataclass(frozen=True, slots=True)
class Reassignment:
    """A reassignment under way: all replicas, those that are added, those that are removed."""

    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ListedOffset:
    """An offset with the timestamp and leader epoch of its record; -1 where there is none."""

    offset: int
    timestamp: int
    leader_epoch: int


@dataclass(frozen=True, slots=True)
class ReplicaInfo:
    """A replica in a log directory. `future` is one that is being moved there."""

    size: int
    offset_lag: int
    future: bool


@dataclass(frozen=True, slots=True)
class LogDir:
    """A log directory. `error` is why it is offline; sizes are -1 before Kafka 3.3."""

    path: str
    error: BrokerError | None
    total_bytes: int
    usable_bytes: int
    replicas: Mapping[TopicPartition, ReplicaInfo]


def alter_partition_reassignments(
    targets: Mapping[TopicPartition, Sequence[int] | None],
) -> Operation[Results[TopicPartition, None]]:
    """Move partitions to these replicas; None cancels the reassignment under way."""

    def request(ask: Ask[TopicPartition]) -> AlterPartitionReassignmentsRequest:
        return AlterPartitionReassignmentsRequest(
            timeout_ms=ask.timeout_ms,
            topics=[
                ReassignableTopic(
                    name=topic,
                    partitions=[
                        ReassignablePartition(
                            partition_index=each.partition, replicas=_list(targets[each])
                        )
                        for each in partitions
                    ],
                )
                for topic, partitions in by_topic(ask.keys)
            ],
        )

    def read(
        ask: Ask[TopicPartition], response: AlterPartitionReassignmentsResponse
    ) -> Outcomes[TopicPartition, None]:
        check(response.error_code, response.error_message)
        return {
            TopicPartition(topic.name, each.partition_index): outcome(
                each.error_code, each.error_message, None
            )
            for topic in response.responses
            for each in topic.partitions
        }

    return Operation(
        name="alter partition reassignments",
        keys=list(targets),
        target=lambda _: CONTROLLER,
        request=request,
        api_key=ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        read=read,
        finish=every,
    )


def list_partition_reassignments(
    partitions: Iterable[TopicPartition] | None = None,
) -> Operation[Mapping[TopicPartition, Reassignment]]:
    """The reassignments under way, of these partitions or of all."""
    wanted = None if partitions is None else unique(partitions)

    def request(ask: Ask[Any]) -> ListPartitionReassignmentsRequest:
        topics = None
        if wanted is not None:
            topics = [
                ListPartitionReassignmentsTopics(
                    name=topic, partition_indexes=[each.partition for each in members]
                )
                for topic, members in by_topic(wanted)
            ]
        return ListPartitionReassignmentsRequest(timeout_ms=ask.timeout_ms, topics=topics)

    def read(
        response: ListPartitionReassignmentsResponse,
    ) -> Mapping[TopicPartition, Reassignment]:
        check(response.error_code, response.error_message)
        return {
            TopicPartition(topic.name, each.partition_index): Reassignment(
                tuple(each.replicas), tuple(each.adding_replicas), tuple(each.removing_replicas)
            )
            for topic in response.topics
            for each in topic.partitions
        }

    return Operation(
        name="list partition reassignments",
        keys=[ONLY],
        target=lambda _: CONTROLLER,
        request=request,
        api_key=ApiKey.LIST_PARTITION_REASSIGNMENTS,
        read=read_single(read),
        finish=single,
    )


def elect_leaders(
    partitions: Iterable[TopicPartition] | None, election: ElectionType = ElectionType.PREFERRED
) -> Operation[Mapping[TopicPartition, BrokerError | None]]:
    """Elect leaders of these partitions, or of all; None where the election was held.

    ELECTION_NOT_NEEDED is the error of a partition that is led as it should be. Of all partitions,
    Kafka reports those alone that needed an election.
    """
    wanted = None if partitions is None else unique(partitions)

    def request(ask: Ask[Any]) -> ElectLeadersRequest:
        topics = None
        if wanted is not None:
            topics = [
                TopicPartitions(topic=topic, partitions=[each.partition for each in members])
                for topic, members in by_topic(wanted)
            ]
        return ElectLeadersRequest(
            election_type=election, topic_partitions=topics, timeout_ms=ask.timeout_ms
        )

    def read(response: ElectLeadersResponse) -> Mapping[TopicPartition, BrokerError | None]:
        check(response.error_code)
        elected = {
            TopicPartition(topic.topic, each.partition_id): outcome(
                each.error_code, each.error_message, None
            )
            for topic in response.replica_election_results
            for each in topic.partition_result
        }
        for error in elected.values():  # So that the call looks for the controller again.
            if error is not None and error.code is ErrorCode.NOT_CONTROLLER:
                raise error
        return elected

    return Operation(
        name="elect leaders",
        keys=[ONLY],
        target=lambda _: CONTROLLER,
        request=request,
        api_key=ApiKey.ELECT_LEADERS,
        read=read_single(read),
        finish=single,
    )


def list_offsets(
    partitions: Mapping[TopicPartition, int] | Iterable[TopicPartition],
    *,
    read_committed: bool = False,
) -> Operation[Results[TopicPartition, ListedOffset]]:
    """The first offset at or after each timestamp in milliseconds, or of a special timestamp.

    Partitions without timestamps get LATEST_TIMESTAMP; `ids.EARLIEST_TIMESTAMP` is the other usual
    one. With `read_committed` the latest offset is the last stable one.
    """
    if isinstance(partitions, Mapping):
        timestamps = dict(partitions)
    else:
        timestamps = dict.fromkeys(partitions, LATEST_TIMESTAMP)

    def request(ask: Ask[TopicPartition]) -> ListOffsetsRequest:
        return ListOffsetsRequest(
            replica_id=CONSUMER_REPLICA_ID,
            isolation_level=int(read_committed) if ask.version >= 2 else 0,
            topics=[
                ListOffsetsTopic(
                    name=topic,
                    partitions=[
                        ListOffsetsPartition(
                            partition_index=each.partition, timestamp=timestamps[each]
                        )
                        for each in members
                    ],
                )
                for topic, members in by_topic(ask.keys)
            ],
        )

    def read(
        ask: Ask[TopicPartition], response: ListOffsetsResponse
    ) -> Outcomes[TopicPartition, ListedOffset]:
        return {
            TopicPartition(topic.name, each.partition_index): outcome(
                each.error_code, None, ListedOffset(each.offset, each.timestamp, each.leader_epoch)
            )
            for topic in response.topics
            for each in topic.partitions
        }

    return Operation(
        name="list offsets",
        keys=list(timestamps),
        target=LeaderOf,
        request=request,
        api_key=ApiKey.LIST_OFFSETS,
        read=read,
        finish=every,
        newest=LIST_OFFSETS_NEWEST,
    )


def delete_records(
    before: Mapping[TopicPartition, int],
) -> Operation[Results[TopicPartition, int]]:
    """Delete the records before these offsets, or ALL_RECORDS; the new log start offsets."""

    def request(ask: Ask[TopicPartition]) -> DeleteRecordsRequest:
        return DeleteRecordsRequest(
            timeout_ms=ask.timeout_ms,
            topics=[
                DeleteRecordsTopic(
                    name=topic,
                    partitions=[
                        DeleteRecordsPartition(partition_index=each.partition, offset=before[each])
                        for each in members
                    ],
                )
                for topic, members in by_topic(ask.keys)
            ],
        )

    def read(
        ask: Ask[TopicPartition], response: DeleteRecordsResponse
    ) -> Outcomes[TopicPartition, int]:
        return {
            TopicPartition(topic.name, each.partition_index): outcome(
                each.error_code, None, each.low_watermark
            )
            for topic in response.topics
            for each in topic.partitions
        }

    return Operation(
        name="delete records",
        keys=list(before),
        target=LeaderOf,
        request=request,
        api_key=ApiKey.DELETE_RECORDS,
        read=read,
        finish=every,
        final=frozenset({ErrorCode.REQUEST_TIMED_OUT}),
    )


def describe_log_dirs(
    brokers: Iterable[int] | None = None,
) -> Operation[Results[int, tuple[LogDir, ...]]]:
    """The log directories of these brokers, or of all, with the replicas in them."""

    def read(ask: Ask[int], response: DescribeLogDirsResponse) -> Outcomes[int, tuple[LogDir, ...]]:
        check(response.error_code)
        return {ask.broker: tuple(_log_dir(each) for each in response.results)}

    return Operation(
        name="describe log dirs",
        keys=None if brokers is None else unique(brokers),
        target=OneBroker,
        request=lambda _: DescribeLogDirsRequest(topics=None),
        api_key=ApiKey.DESCRIBE_LOG_DIRS,
        read=read,
        finish=every,
    )


def by_topic(
    partitions: Iterable[TopicPartition],
) -> Iterable[tuple[str, list[TopicPartition]]]:
    """The partitions of each topic."""
    for topic, members in groupby(sorted(partitions), key=lambda each: each.topic):
        yield topic, list(members)


def _list(replicas: Sequence[int] | None) -> list[int] | None:
    return None if replicas is None else list(replicas)


def _log_dir(result: DescribeLogDirsResult) -> LogDir:
    return LogDir(
        path=result.log_dir,
        error=BrokerError(result.error_code) if result.error_code else None,
        total_bytes=result.total_bytes,
        usable_bytes=result.usable_bytes,
        replicas={
            TopicPartition(topic.name, each.partition_index): ReplicaInfo(
                each.partition_size, each.offset_lag, each.is_future_key
            )
            for topic in result.topics
            for each in topic.partitions
        },
    )
