"""Questions of APIs and versions that Apache serves since 4.0, by clients that may do only some.

Names are those of questions_about_access. Groups of the consumer protocol are joined and left, so
that each question finds what the one before found.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import UUID

from barnabas_kafka.protocol.messages import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    alter_partition_reassignments,
    consumer_group_describe,
    consumer_group_heartbeat,
    delete_groups,
    describe_cluster,
    describe_groups,
    describe_producers,
    describe_topic_partitions,
    describe_transactions,
    end_txn,
    fetch,
    find_coordinator,
    init_producer_id,
    list_groups,
    list_offsets,
    list_transactions,
    offset_commit,
    offset_delete,
    offset_fetch,
    produce,
    txn_offset_commit,
    write_txn_markers,
)
from barnabas_kafka.protocol.messages import metadata as metadata_messages
from barnabas_kafka.protocol.schema import Request
from tests.oracle.questions_about_access import (
    ABSENT,
    BATCH,
    GROUP,
    INTERNAL,
    MINE,
    NO_PRODUCER,
    OTHERS,
    TRANSACTIONAL,
    TXN,
    Question,
    committed_topics,
    deleted_topics,
    topics_in_transaction,
)
from tests.oracle.sides import Side

#: Groups with a member, and the topics that it reads; their members are the admin's.
GROUPS = {
    "t-both": [MINE, OTHERS],
    "t-mine": [MINE],
    "t-unassigned": [MINE, "z"],
    "u-others": [OTHERS],
}
MEMBER, SOMEBODY = "AAAAAAAAAAAAAAAAAAAAAA", "BBBBBBBBBBBBBBBBBBBBBB"
UNNAMED = "t no name"
LONG_MS = 3_600_000


def begin(admin: Side) -> None:
    """Have each group joined by a member that stays."""
    for group, topics in GROUPS.items():
        joined = admin.wait(
            _beat(group, MEMBER, 0, topics), 1, settled=lambda it: not it.error_code
        )
        assert joined.member_epoch > 0, joined


def questions(mine: UUID, others: UUID) -> Iterator[Question]:
    """Label, request and version; given are the ids of the two topics."""
    for part in PARTS:
        yield from part()
    yield from _records(mine, others)


def _beat(group: str, member: str, epoch: int, topics: list[str] | None, **more: Any) -> Request:
    joins = epoch == 0
    return consumer_group_heartbeat.ConsumerGroupHeartbeatRequest(
        group_id=group,
        member_id=member,
        member_epoch=epoch,
        rebalance_timeout_ms=LONG_MS if joins else -1,
        subscribed_topic_names=topics,
        topic_partitions=[] if joins else None,
        **more,
    )


def _described(*names: str, limit: int = 2000, cursor: str | None = None, at: int = 0) -> Request:
    return describe_topic_partitions.DescribeTopicPartitionsRequest(
        topics=[describe_topic_partitions.TopicRequest(name=name) for name in names],
        response_partition_limit=limit,
        cursor=None
        if cursor is None
        else describe_topic_partitions.Cursor(topic_name=cursor, partition_index=at),
    )


def _topics() -> Iterator[Question]:
    yield "topics described", _described(MINE, OTHERS, ABSENT, "u-absent"), 0
    yield "internal topics described", _described(*INTERNAL), 0
    yield "no names described", _described(UNNAMED, "u no name", ""), 0
    yield "all topics described", _described(), 0
    for limit in (0, 1):
        yield f"{limit} partitions described", _described(MINE, OTHERS, limit=limit), 0
    for name in ("", "t", "t-absent", "u", "z"):
        yield f"described from {name!r}", _described(cursor=name), 0
        yield f"named and described from {name!r}", _described(MINE, OTHERS, cursor=name), 0
    yield "described from the middle", _described(MINE, cursor=MINE, at=1), 0
    yield "described from before", _described(MINE, cursor=MINE, at=-1), 0
    for names in (INTERNAL, (MINE, OTHERS, ABSENT, "u-absent")):
        asked = [metadata_messages.MetadataRequestTopic(name=name) for name in names]
        yield (
            f"metadata of {names}",
            metadata_messages.MetadataRequest(
                topics=asked,
                allow_auto_topic_creation=False,
                include_topic_authorized_operations=True,
            ),
            12,
        )


def _members() -> Iterator[Question]:
    for topics in ([MINE], [OTHERS], [MINE, OTHERS, ABSENT], []):
        yield f"joined for {topics}", _beat("t-joined", SOMEBODY, 0, topics), 1
        yield f"left for {topics}", _beat("t-joined", SOMEBODY, -1, None), 1
    yield "joined another's group", _beat("u-joined", SOMEBODY, 0, [MINE]), 1
    yield "joined without a group", _beat("", SOMEBODY, 0, [MINE]), 1
    odd = _beat("t-joined", SOMEBODY, 0, [MINE], server_assignor="none")
    yield "joined with an assignor that is not there", odd, 1
    wrong = _beat("t-joined", SOMEBODY, 0, None, subscribed_topic_regex="(")
    yield "joined with a pattern that is none", wrong, 1
    for group in (*GROUPS, "t-gone", "u-gone"):
        yield f"heartbeat in {group}", _beat(group, SOMEBODY, 3, None), 1
        yield f"left {group}", _beat(group, SOMEBODY, -1, None), 1


def _groups() -> Iterator[Question]:
    names = [*GROUPS, "t-gone", "u-gone", ""]
    for operations in (False, True):
        yield (
            f"groups described, operations {operations}",
            consumer_group_describe.ConsumerGroupDescribeRequest(
                group_ids=names, include_authorized_operations=operations
            ),
            1,
        )
    yield (
        "groups described as classic ones",
        describe_groups.DescribeGroupsRequest(groups=names, include_authorized_operations=True),
        5,
    )
    for filters in ({}, {"types_filter": ["Consumer"]}, {"types_filter": ["classic"]},
                    {"states_filter": ["Stable"]}):  # fmt: skip
        yield f"groups of {filters}", list_groups.ListGroupsRequest(**filters), 5
    deleted = delete_groups.DeleteGroupsRequest(groups_names=names[:-1])
    yield "groups deleted", deleted, 2
    for group in GROUPS:
        asked = offset_delete.OffsetDeleteRequest(
            group_id=group,
            topics=deleted_topics(),
        )
        yield f"offsets of {group} deleted", asked, 0
        keys = find_coordinator.FindCoordinatorRequest(coordinator_keys=[group], key_type=0)
        yield f"coordinator of {group}", keys, 6


def _offsets() -> Iterator[Question]:
    for group, member, epoch in (
        ("t-both", MEMBER, 99), ("t-both", SOMEBODY, 1), ("t-both", "", -1), ("u-others", "", -1),
    ):  # fmt: skip
        label = f"in {group} by {member!r} at {epoch}"
        committed = offset_commit.OffsetCommitRequest(
            group_id=group,
            member_id=member,
            generation_id_or_member_epoch=epoch,
            topics=committed_topics(),
        )
        yield f"committed {label}", committed, 9
        for names in (None, [MINE, OTHERS, ABSENT]):
            several = offset_fetch.OffsetFetchRequestGroup(
                group_id=group,
                member_id=member or None,
                member_epoch=epoch,
                topics=None
                if names is None
                else [
                    offset_fetch.OffsetFetchRequestTopics(name=name, partition_indexes=[0])
                    for name in names
                ],
            )
            asked = offset_fetch.OffsetFetchRequest(groups=[several])
            yield f"offsets of {names} {label}", asked, 9
    offsets = [
        list_offsets.ListOffsetsTopic(
            name=name,
            partitions=[list_offsets.ListOffsetsPartition(partition_index=0, timestamp=-2)],
        )
        for name in (MINE, OTHERS, ABSENT)
    ]
    yield "offsets", list_offsets.ListOffsetsRequest(replica_id=-1, topics=offsets), 9


def _transactions() -> Iterator[Question]:
    producer: dict[str, Any] = {"producer_id": NO_PRODUCER, "producer_epoch": 0}
    none: dict[str, Any] = {"producer_id": -1, "producer_epoch": -1}
    for name, timeout_ms in ((None, 1000), (TXN, 0), ("u-tx", 0)):
        asked = init_producer_id.InitProducerIdRequest(
            transactional_id=name, transaction_timeout_ms=timeout_ms, **none
        )
        yield f"a producer id for {name}", asked, 5
    topics = [
        add_partitions_to_txn.AddPartitionsToTxnTopic(name=name, partitions=[0])
        for name in (MINE, OTHERS, ABSENT)
    ]
    for version, only_verified in ((4, True), (4, False), (5, True), (5, False)):
        several = add_partitions_to_txn.AddPartitionsToTxnRequest(
            transactions=[
                add_partitions_to_txn.AddPartitionsToTxnTransaction(
                    transactional_id=name, verify_only=only_verified, topics=topics, **producer
                )
                for name in (TXN, "u-tx")
            ]
        )
        yield f"partitions added, verified {only_verified}, version {version}", several, version
    for name, group in ((TXN, GROUP), ("u-tx", GROUP), (TXN, "u-group")):
        offsets = add_offsets_to_txn.AddOffsetsToTxnRequest(
            transactional_id=name, group_id=group, **producer
        )
        yield f"offsets of {group} added to {name}", offsets, 4
        committed = txn_offset_commit.TxnOffsetCommitRequest(
            transactional_id=name,
            group_id=group,
            topics=topics_in_transaction(),
            **producer,
        )
        yield f"committed in {group} and {name}", committed, 5
    for name in (TXN, "u-tx"):
        ended = end_txn.EndTxnRequest(transactional_id=name, committed=True, **producer)
        yield f"{name} ended", ended, 5


def _transactions_seen() -> Iterator[Question]:
    for duration in (-1, 0, 10):
        asked_for = list_transactions.ListTransactionsRequest(duration_filter=duration)
        yield f"transactions of {duration} ms", asked_for, 1
    filters = list_transactions.ListTransactionsRequest(state_filters=["Open"])
    yield "transactions in a state that is none", filters, 1
    described = describe_transactions.DescribeTransactionsRequest(
        transactional_ids=[TXN, "u-tx", ""]
    )
    yield "transactions described", described, 0
    yield (
        "producers",
        describe_producers.DescribeProducersRequest(
            topics=[
                describe_producers.TopicRequest(name=name, partition_indexes=[0, 1])
                for name in (MINE, OTHERS, ABSENT, "u-absent", UNNAMED)
            ]
        ),
        0,
    )
    marker = write_txn_markers.WritableTxnMarker(
        producer_id=NO_PRODUCER,
        producer_epoch=0,
        transaction_result=False,
        topics=[write_txn_markers.WritableTxnMarkerTopic(name=ABSENT, partition_indexes=[0])],
    )
    yield "markers", write_txn_markers.WriteTxnMarkersRequest(markers=[marker]), 1


def _cluster() -> Iterator[Question]:
    ops = describe_cluster.DescribeClusterRequest(include_cluster_authorized_operations=True)
    yield "cluster", ops, 1
    for factor in (False, True):
        moved = alter_partition_reassignments.AlterPartitionReassignmentsRequest(
            timeout_ms=1000,
            allow_replication_factor_change=factor,
            topics=[
                alter_partition_reassignments.ReassignableTopic(
                    name=ABSENT,
                    partitions=[
                        alter_partition_reassignments.ReassignablePartition(
                            partition_index=0, replicas=[0]
                        )
                    ],
                )
            ],
        )
        yield f"reassigned, factor {factor}", moved, 1


def _records(mine: UUID, others: UUID) -> Iterator[Question]:
    for acks, name in ((1, None), (-1, None), (-1, TXN), (-1, "u-tx")):
        yield (
            f"produced, acks {acks}, in {name}",
            produce.ProduceRequest(
                transactional_id=name,
                acks=acks,
                timeout_ms=1000,
                topic_data=[
                    produce.TopicProduceData(
                        name=topic,
                        partition_data=[
                            produce.PartitionProduceData(
                                index=0, records=BATCH if name is None else TRANSACTIONAL
                            )
                        ],
                    )
                    for topic in (MINE, OTHERS, ABSENT)
                ],
            ),
            12,
        )
    for replica in (-1, 99):
        yield (
            f"fetched as {replica}",
            fetch.FetchRequest(
                replica_state=fetch.ReplicaState(replica_id=replica),
                max_wait_ms=0,
                min_bytes=0,
                max_bytes=1000,
                session_epoch=-1,
                topics=[
                    fetch.FetchTopic(
                        topic_id=each,
                        partitions=[fetch.FetchPartition(partition=0, partition_max_bytes=100)],
                    )
                    for each in (mine, others, UUID(int=7))
                ],
            ),
            17,
        )


PARTS = (_topics, _members, _groups, _offsets, _transactions, _transactions_seen, _cluster)
