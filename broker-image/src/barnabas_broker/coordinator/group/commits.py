"""Committed offsets: authorization of commits, retention, and deletion.

Retention (KIP-211; Kafka's `offsetExpirationCondition`):

    group                                    an offset expires, retention after
    EMPTY, had members                       the group became empty
    STABLE, of type "consumer"               its commit, if no member subscribes to its topic
    never had members                        its commit
    of the consumer protocol                 its commit, if no member subscribes to its topic
    any other                                never

An offset that was committed with a retention of its own expires then, under the same conditions.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, TypeVar

from barnabas_broker.coordinator.group.consumer.group import ConsumerGroup
from barnabas_broker.coordinator.group.group import CONSUMERS, Group
from barnabas_broker.coordinator.group.records import CommittedOffset, OffsetRecord
from barnabas_broker.coordinator.group.states import GroupState
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.ids import NO_TIMESTAMP, TopicPartition
from barnabas_kafka.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from barnabas_kafka.protocol.messages.offset_delete import (
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from barnabas_kafka.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

T = TypeVar("T")

_Made = tuple[Callable[..., T], Callable[..., Any]]
_COMMIT: Final = (OffsetCommitResponseTopic, OffsetCommitResponsePartition)
_TXN: Final = (TxnOffsetCommitResponseTopic, TxnOffsetCommitResponsePartition)

DEFAULT_RETENTION = -1
EPOCHS_SINCE = 9
"""From this version of OffsetCommit on, clients understand error codes of member epochs."""


def commit_fault(
    group: Group,
    generation: int,
    member_id: str,
    instance_id: str | None,
    *,
    version: int = EPOCHS_SINCE,
) -> ErrorCode | None:
    """Why a group does not take a commit as a whole; None if it does.

    Without generation and member it is one by a consumer that assigns partitions itself, and taken
    while the group is empty.
    """
    if group.consumers is not None:
        if generation < 0 and group.is_empty:
            return None
        return epoch_fault(group.consumers, member_id, generation, version)
    if generation < 0 and group.state is GroupState.EMPTY:
        return None
    if generation >= 0 or member_id or instance_id is not None:
        code = group.check_member(member_id, instance_id)
        if code is not None:
            return code
        if generation != group.generation:
            return ErrorCode.ILLEGAL_GENERATION
    else:
        return ErrorCode.UNKNOWN_MEMBER_ID
    if group.state is GroupState.COMPLETING_REBALANCE:
        # It knows its generation, but not yet what it reads in it.
        return ErrorCode.REBALANCE_IN_PROGRESS
    return None


def epoch_fault(
    group: ConsumerGroup, member_id: str, epoch: int, version: int = EPOCHS_SINCE
) -> ErrorCode | None:
    """Why a member of such a group is refused, None if it is where it says (KIP-848).

    Members of the classic protocol know their epoch as their generation.
    """
    member = group.members.get(member_id)
    if member is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    if member.classic is None and version < EPOCHS_SINCE:
        return ErrorCode.UNSUPPORTED_VERSION
    if epoch == member.epoch:
        return None
    is_classic = member.classic is not None
    return ErrorCode.ILLEGAL_GENERATION if is_classic else ErrorCode.STALE_MEMBER_EPOCH


def commits(
    group_id: str, request: OffsetCommitRequest, *, metadata_bytes_max: int, now_ms: int
) -> tuple[list[OffsetRecord], OffsetCommitResponse]:
    """The records of a commit that its group takes, and the answer for when they are written."""
    expires = NO_TIMESTAMP
    if request.retention_time_ms != DEFAULT_RETENTION:
        expires = now_ms + request.retention_time_ms

    def committed(partition: OffsetCommitRequestPartition) -> CommittedOffset:
        sent = partition.commit_timestamp
        return CommittedOffset(
            offset=partition.committed_offset,
            leader_epoch=partition.committed_leader_epoch,
            metadata=partition.committed_metadata or "",
            commit_timestamp=now_ms if sent == NO_TIMESTAMP else sent,
            expire_timestamp=expires,
        )

    records, topics = _committed(
        group_id, request.topics, committed, _COMMIT, metadata_bytes_max=metadata_bytes_max
    )
    return records, OffsetCommitResponse(topics=topics)


def transactional_commit_fault(group: Group, request: TxnOffsetCommitRequest) -> ErrorCode | None:
    """Why a group does not take a commit that is part of a transaction; None if it does.

    Before version 3 a producer could not say for which member it commits (KIP-447), so one that
    names none is taken in every state.
    """
    if request.generation_id < 0 and group.is_empty:
        return None
    if request.generation_id < 0 and not request.member_id and request.group_instance_id is None:
        return None
    if group.consumers is not None:
        return epoch_fault(group.consumers, request.member_id, request.generation_id)
    code = group.check_member(request.member_id, request.group_instance_id)
    if code is not None:
        return code
    if request.generation_id != group.generation:
        return ErrorCode.ILLEGAL_GENERATION
    return None


def transactional_commits(
    request: TxnOffsetCommitRequest, *, metadata_bytes_max: int, now_ms: int
) -> tuple[list[OffsetRecord], TxnOffsetCommitResponse]:
    """The records of such a commit, and the answer for when they are written."""

    def committed(partition: TxnOffsetCommitRequestPartition) -> CommittedOffset:
        return CommittedOffset(
            offset=partition.committed_offset,
            leader_epoch=partition.committed_leader_epoch,
            metadata=partition.committed_metadata or "",
            commit_timestamp=now_ms,
        )

    records, topics = _committed(
        request.group_id, request.topics, committed, _TXN, metadata_bytes_max=metadata_bytes_max
    )
    return records, TxnOffsetCommitResponse(topics=topics)


def _committed(
    group_id: str,
    topics: Iterable[Any],
    committed: Callable[[Any], CommittedOffset],
    made: _Made[T],
    *,
    metadata_bytes_max: int,
) -> tuple[list[OffsetRecord], list[T]]:
    """The records of partitions whose metadata is short enough, and the topics of the response."""
    records: list[OffsetRecord] = []
    make, make_partition = made
    answered: list[T] = []
    for topic in topics:
        partitions = []
        for each in topic.partitions:
            code = ErrorCode.NONE
            if len((each.committed_metadata or "").encode()) > metadata_bytes_max:
                code = ErrorCode.OFFSET_METADATA_TOO_LARGE
            else:
                partition = TopicPartition(topic.name, each.partition_index)
                records.append(OffsetRecord(group_id, partition, committed(each)))
            partitions.append(make_partition(partition_index=each.partition_index, error_code=code))
        answered.append(make(name=topic.name, partitions=partitions))
    return records, answered


def refused_commit(request: OffsetCommitRequest, code: ErrorCode) -> OffsetCommitResponse:
    """The same error for every partition."""
    return OffsetCommitResponse(topics=_refused(request.topics, code, _COMMIT))


def refused_transactional_commit(
    request: TxnOffsetCommitRequest, code: ErrorCode
) -> TxnOffsetCommitResponse:
    """The same error for every partition."""
    return TxnOffsetCommitResponse(topics=_refused(request.topics, code, _TXN))


def _refused(topics: Iterable[Any], code: ErrorCode, made: _Made[T]) -> list[T]:
    make, make_partition = made
    return [
        make(
            name=topic.name,
            partitions=[
                make_partition(partition_index=each.partition_index, error_code=code)
                for each in topic.partitions
            ],
        )
        for topic in topics
    ]


def commit_write_error(code: ErrorCode) -> ErrorCode:
    """What a failed append means to the committing client (Kafka's `storeOffsets`)."""
    if code in _TOO_LARGE:
        return ErrorCode.INVALID_COMMIT_OFFSET_SIZE
    return write_error(code)


def group_write_error(code: ErrorCode) -> ErrorCode:
    """What a failed append means to members (Kafka's `storeGroup`)."""
    if code in _TOO_LARGE:
        return ErrorCode.UNKNOWN_SERVER_ERROR
    if code is ErrorCode.REQUEST_TIMED_OUT:
        return ErrorCode.REBALANCE_IN_PROGRESS
    return write_error(code)


def consumer_group_write_error(code: ErrorCode) -> ErrorCode:
    """The same for members of the consumer protocol (`CoordinatorOperationExceptionHelper`).

    It has no rebalance in progress: a client that sees one gives up for good.
    """
    if code is ErrorCode.REQUEST_TIMED_OUT:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    return group_write_error(code)


def write_error(code: ErrorCode) -> ErrorCode:
    """What a failed append means to any client of a coordinator."""
    if code in _UNAVAILABLE:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    if code in _ELSEWHERE:
        return ErrorCode.NOT_COORDINATOR
    return code


_TOO_LARGE = (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE)
_UNAVAILABLE = (
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
)
_ELSEWHERE = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.KAFKA_STORAGE_ERROR)


# --- the end of offsets


def expired(group: Group, *, retention_ms: int, now_ms: int) -> Iterator[TopicPartition]:
    """The partitions whose offsets the group need not keep any longer."""
    since, kept = _retention(group)
    if kept is None:
        return
    for partition, committed in group.offsets.items():
        if partition.topic in kept or partition in group.pending_offsets:
            continue
        if committed.expire_timestamp != NO_TIMESTAMP:
            is_due = now_ms >= committed.expire_timestamp
        else:
            begins = committed.commit_timestamp if since is None else since
            is_due = now_ms - begins >= retention_ms
        if is_due:
            yield partition


def _retention(group: Group) -> tuple[int | None, frozenset[str] | None]:
    """Since when the retention runs (None: each offset's commit), and the topics it spares.

    With None for topics, all offsets are kept.
    """
    if group.consumers is not None:
        return None, group.subscriptions()
    if group.state is GroupState.EMPTY:
        return (None if group.protocol_type is None else group.state_since_ms), frozenset()
    if group.state is GroupState.STABLE and group.protocol_type == CONSUMERS:
        return None, group.subscriptions()
    return None, None


def deletion_fault(group: Group, partition: TopicPartition) -> ErrorCode | None:
    """Why OffsetDelete spares an offset (KIP-496), None if it may go."""
    if group.is_empty:
        return None
    topics = group.subscriptions() or frozenset()
    return ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if partition.topic in topics else None


def deletions(faults: Mapping[TopicPartition, ErrorCode | None]) -> OffsetDeleteResponse:
    """The answer of OffsetDelete that says this of each partition."""
    topics: dict[str, OffsetDeleteResponseTopic] = {}
    for (name, partition), fault in faults.items():
        topic = topics.setdefault(name, OffsetDeleteResponseTopic(name=name))
        topic.partitions.append(
            OffsetDeleteResponsePartition(
                partition_index=partition, error_code=fault or ErrorCode.NONE
            )
        )
    return OffsetDeleteResponse(topics=list(topics.values()))


def tombstones(group: Group, partitions: Iterable[TopicPartition]) -> list[OffsetRecord]:
    """The records that delete offsets; those that are not there need none."""
    return [OffsetRecord(group.id, each, None) for each in partitions if each in group.offsets]
