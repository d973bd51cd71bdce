"""Questions about every kind of resource, put by somebody who may do only some of what they need.

Names that begin with `t` are those that rules are about, `u` is a topic of others. No question
changes what a later one is answered with, but for records that are appended where that is allowed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import UUID

from barnabas_kafka.protocol.messages import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    allocate_producer_ids,
    alter_client_quotas,
    alter_configs,
    alter_partition,
    alter_partition_reassignments,
    alter_replica_log_dirs,
    controlled_shutdown,
    create_acls,
    create_delegation_token,
    create_partitions,
    create_topics,
    delete_acls,
    delete_groups,
    delete_records,
    delete_topics,
    describe_acls,
    describe_client_quotas,
    describe_cluster,
    describe_configs,
    describe_delegation_token,
    describe_groups,
    describe_log_dirs,
    describe_producers,
    describe_transactions,
    elect_leaders,
    end_txn,
    expire_delegation_token,
    fetch,
    find_coordinator,
    heartbeat,
    incremental_alter_configs,
    init_producer_id,
    join_group,
    leader_and_isr,
    leave_group,
    list_groups,
    list_offsets,
    list_partition_reassignments,
    list_transactions,
    offset_commit,
    offset_delete,
    offset_fetch,
    offset_for_leader_epoch,
    produce,
    renew_delegation_token,
    stop_replica,
    sync_group,
    txn_offset_commit,
    update_features,
    update_metadata,
    write_txn_markers,
)
from barnabas_kafka.protocol.messages import alter_user_scram_credentials as alter_scram_users
from barnabas_kafka.protocol.messages import describe_user_scram_credentials as scram_users
from barnabas_kafka.protocol.messages import metadata as metadata_messages
from barnabas_kafka.protocol.schema import Request
from barnabas_kafka.records.builder import build_batch
from tests.clients import START_MS

MINE, OTHERS, ABSENT = "t", "u", "t-absent"
GROUP, TXN = "t-group", "t-tx"
INTERNAL = ("__consumer_offsets", "__transaction_state")
BATCH = build_batch([(START_MS, None, b"value", ())])
TRANSACTIONAL = build_batch(
    [(START_MS, None, b"value", ())],
    producer_id=4_000_000,
    producer_epoch=0,
    base_sequence=0,
    transactional=True,
)
STALE_EPOCH, NO_BROKER, NO_PRODUCER = 0, 99, 4_000_000
TOPIC, BROKER, LOGGER, METRICS, GROUP_CONFIG = 2, 4, 8, 16, 32

Question = tuple[str, Request, int]


def questions(mine: UUID, others: UUID) -> Iterator[Question]:
    """Label, request and version; given are the ids of the two topics."""
    for part in PARTS:
        yield from part()
    yield from _by_id(mine, others)


def _records() -> Iterator[Question]:
    for version, acks in ((9, 1), (7, -1)):
        yield (
            f"produce with acks {acks}",
            produce.ProduceRequest(
                acks=acks,
                timeout_ms=1000,
                topic_data=[
                    produce.TopicProduceData(
                        name=name,
                        partition_data=[produce.PartitionProduceData(index=0, records=BATCH)],
                    )
                    for name in (MINE, OTHERS, ABSENT)
                ],
            ),
            version,
        )
    for version, name in ((9, TXN), (3, None)):
        yield (
            f"produce, also in the transaction of {name}",
            produce.ProduceRequest(
                transactional_id=name,
                acks=1,
                timeout_ms=1000,
                topic_data=[
                    produce.TopicProduceData(
                        name=topic,
                        partition_data=[produce.PartitionProduceData(index=0, records=batch)],
                    )
                    for topic, batch in ((MINE, BATCH), (OTHERS, TRANSACTIONAL))
                ],
            ),
            version,
        )
    for replica in (-1, NO_BROKER):
        yield (
            f"fetch as {replica}",
            fetch.FetchRequest(
                replica_id=replica,
                max_wait_ms=0,
                min_bytes=0,
                max_bytes=1000,
                session_epoch=-1,
                topics=[
                    fetch.FetchTopic(
                        topic=name,
                        partitions=[fetch.FetchPartition(partition=0, partition_max_bytes=100)],
                    )
                    for name in (MINE, OTHERS, ABSENT)
                ],
            ),
            12,
        )


def _offsets() -> Iterator[Question]:
    offsets = [
        list_offsets.ListOffsetsTopic(
            name=name,
            partitions=[list_offsets.ListOffsetsPartition(partition_index=0, timestamp=-2)],
        )
        for name in (MINE, OTHERS, ABSENT)
    ]
    yield "offsets", list_offsets.ListOffsetsRequest(replica_id=-1, topics=offsets), 7
    epochs = [
        offset_for_leader_epoch.OffsetForLeaderTopic(
            topic=name,
            partitions=[offset_for_leader_epoch.OffsetForLeaderPartition(leader_epoch=0)],
        )
        for name in (MINE, OTHERS, ABSENT)
    ]
    asked = offset_for_leader_epoch.OffsetForLeaderEpochRequest(replica_id=-1, topics=epochs)
    yield "ends of epochs", asked, 4
    yield (
        "deleted records",
        delete_records.DeleteRecordsRequest(
            timeout_ms=1000,
            topics=[
                delete_records.DeleteRecordsTopic(
                    name=name,
                    partitions=[delete_records.DeleteRecordsPartition(partition_index=0)],
                )
                for name in (MINE, OTHERS, ABSENT)
            ],
        ),
        2,
    )
    yield (
        "producers",
        describe_producers.DescribeProducersRequest(
            topics=[
                describe_producers.TopicRequest(name=name, partition_indexes=[0])
                for name in (MINE, OTHERS, ABSENT)
            ]
        ),
        0,
    )


def _metadata(version: int, *names: str, create: bool = False) -> Request:
    return metadata_messages.MetadataRequest(
        topics=[metadata_messages.MetadataRequestTopic(name=name) for name in names],
        allow_auto_topic_creation=create,
        include_topic_authorized_operations=version >= 8,
        include_cluster_authorized_operations=8 <= version <= 10,
    )


def _topics() -> Iterator[Question]:
    for version in (4, 10, 12):
        yield f"metadata {version}", _metadata(version, MINE, OTHERS, ABSENT, "u-absent"), version
        every = _metadata(version)
        every.topics = None  # type: ignore[attr-defined]
        yield f"all metadata {version}", every, version
    for version in (4, 10, 12):
        yield f"internal topics {version}", _metadata(version, *INTERNAL), version
    yield "metadata, created", _metadata(12, "t no name", "u no name", create=True), 12
    for version in (4, 7):
        yield (
            f"created {version}",
            create_topics.CreateTopicsRequest(
                timeout_ms=1000,
                validate_only=True,
                topics=[
                    create_topics.CreatableTopic(name=name, num_partitions=1, replication_factor=1)
                    for name in (MINE, OTHERS, "t-new", "u-new")
                ],
            ),
            version,
        )
    gone = [ABSENT, "u-absent"]
    yield "deleted", delete_topics.DeleteTopicsRequest(topic_names=gone, timeout_ms=1000), 5
    yield (
        "deleted 6",
        delete_topics.DeleteTopicsRequest(
            topics=[delete_topics.DeleteTopicState(name=name) for name in gone], timeout_ms=1000
        ),
        6,
    )
    yield (
        "partitions",
        create_partitions.CreatePartitionsRequest(
            topics=[
                create_partitions.CreatePartitionsTopic(name=name, count=3, assignments=None)
                for name in (MINE, OTHERS, ABSENT)
            ],
            timeout_ms=1000,
            validate_only=True,
        ),
        3,
    )


def _by_id(mine: UUID, others: UUID) -> Iterator[Question]:
    unknown = UUID(int=7)
    yield (
        "metadata by id",
        metadata_messages.MetadataRequest(
            topics=[
                metadata_messages.MetadataRequestTopic(topic_id=each, name=None)
                for each in (mine, others, unknown)
            ],
            allow_auto_topic_creation=False,
            include_topic_authorized_operations=True,
        ),
        12,
    )
    yield (
        "fetch by id",
        fetch.FetchRequest(
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=1000,
            session_epoch=-1,
            topics=[
                fetch.FetchTopic(
                    topic_id=each,
                    partitions=[fetch.FetchPartition(partition=0, partition_max_bytes=100)],
                )
                for each in (mine, others, unknown)
            ],
        ),
        13,
    )
    yield (
        "deleted by id",
        delete_topics.DeleteTopicsRequest(
            topics=[delete_topics.DeleteTopicState(name=None, topic_id=unknown)], timeout_ms=1000
        ),
        6,
    )


RESOURCES = (
    (TOPIC, MINE), (TOPIC, OTHERS), (TOPIC, ABSENT), (BROKER, "0"), (BROKER, ""), (LOGGER, "0"),
)  # fmt: skip


def _configs() -> Iterator[Question]:
    yield (
        "configs",
        describe_configs.DescribeConfigsRequest(
            resources=[
                describe_configs.DescribeConfigsResource(
                    resource_type=kind, resource_name=name, configuration_keys=["retention.ms"]
                )
                for kind, name in RESOURCES
            ]
        ),
        4,
    )
    yield (
        "configs altered",
        alter_configs.AlterConfigsRequest(
            resources=[
                alter_configs.AlterConfigsResource(
                    resource_type=kind, resource_name=name, configs=[]
                )
                for kind, name in RESOURCES
                if kind == TOPIC
            ],
            validate_only=True,
        ),
        2,
    )
    yield (
        "one config altered",
        incremental_alter_configs.IncrementalAlterConfigsRequest(
            resources=[
                incremental_alter_configs.AlterConfigsResource(
                    resource_type=kind, resource_name=name, configs=[]
                )
                for kind, name in RESOURCES
            ],
            validate_only=True,
        ),
        1,
    )


def committed_topics() -> list[offset_commit.OffsetCommitRequestTopic]:
    """What OffsetCommit has of each topic."""
    return [
        offset_commit.OffsetCommitRequestTopic(
            name=name,
            partitions=[
                offset_commit.OffsetCommitRequestPartition(partition_index=0, committed_offset=5)
            ],
        )
        for name in (MINE, OTHERS, ABSENT)
    ]


def topics_in_transaction() -> list[txn_offset_commit.TxnOffsetCommitRequestTopic]:
    """What TxnOffsetCommit has of each topic."""
    return [
        txn_offset_commit.TxnOffsetCommitRequestTopic(
            name=name,
            partitions=[
                txn_offset_commit.TxnOffsetCommitRequestPartition(
                    partition_index=0, committed_offset=1, committed_metadata=None
                )
            ],
        )
        for name in (MINE, OTHERS, ABSENT)
    ]


def deleted_topics() -> list[offset_delete.OffsetDeleteRequestTopic]:
    """What OffsetDelete has of each topic."""
    return [
        offset_delete.OffsetDeleteRequestTopic(
            name=name,
            partitions=[offset_delete.OffsetDeleteRequestPartition(partition_index=0)],
        )
        for name in (MINE, OTHERS, ABSENT)
    ]


def _groups() -> Iterator[Question]:
    for group in (GROUP, "u-group"):
        yield (
            f"committed in {group}",
            offset_commit.OffsetCommitRequest(
                group_id=group,
                generation_id_or_member_epoch=-1,
                topics=committed_topics(),
            ),
            8,
        )
    named = [MINE, OTHERS, ABSENT]
    for version in (1, 7):
        topics = [
            offset_fetch.OffsetFetchRequestTopic(name=name, partition_indexes=[0]) for name in named
        ]
        asked = offset_fetch.OffsetFetchRequest(group_id=GROUP, topics=topics)
        yield f"offsets of a group {version}", asked, version
    every = offset_fetch.OffsetFetchRequest(group_id=GROUP, topics=None)
    yield "all offsets of a group", every, 7
    several = [
        offset_fetch.OffsetFetchRequestGroup(group_id=group, topics=None)
        for group in (GROUP, "u-group")
    ]
    yield "offsets of groups", offset_fetch.OffsetFetchRequest(groups=several), 8


def _members() -> Iterator[Question]:
    for kind, key in ((0, GROUP), (1, TXN)):
        asked_for = find_coordinator.FindCoordinatorRequest(key=key, key_type=kind)
        yield f"coordinator of {key}", asked_for, 3
        keys = find_coordinator.FindCoordinatorRequest(coordinator_keys=[key, "u"], key_type=kind)
        yield f"coordinators of {key}", keys, 4
    member: dict[str, Any] = {"group_id": GROUP, "member_id": "nobody"}
    joining = join_group.JoinGroupRequest(
        **member, session_timeout_ms=1, rebalance_timeout_ms=1, protocol_type="consumer"
    )
    yield "joined", joining, 5
    yield "synchronised", sync_group.SyncGroupRequest(**member, generation_id=1), 3
    yield "heartbeat", heartbeat.HeartbeatRequest(**member, generation_id=1), 3
    leaving = leave_group.LeaveGroupRequest(
        group_id=GROUP, members=[leave_group.MemberIdentity(member_id="nobody")]
    )
    yield "left", leaving, 4
    yield (
        "groups described",
        describe_groups.DescribeGroupsRequest(
            groups=[GROUP, "u-group"], include_authorized_operations=True
        ),
        5,
    )
    yield "groups", list_groups.ListGroupsRequest(), 4
    none = ["t-gone", "u-gone"]
    yield "groups deleted", delete_groups.DeleteGroupsRequest(groups_names=none), 2
    yield (
        "offsets deleted",
        offset_delete.OffsetDeleteRequest(
            group_id="t-gone",
            topics=deleted_topics(),
        ),
        0,
    )


def _transactions() -> Iterator[Question]:
    producer: dict[str, Any] = {"producer_id": NO_PRODUCER, "producer_epoch": 0}
    none: dict[str, Any] = {"producer_id": -1, "producer_epoch": -1}
    idempotent = init_producer_id.InitProducerIdRequest(
        transactional_id=None, transaction_timeout_ms=1000, **none
    )
    yield "a producer id", idempotent, 4
    wrong = init_producer_id.InitProducerIdRequest(
        transactional_id=TXN, transaction_timeout_ms=0, **none
    )
    yield "a transactional producer id", wrong, 4
    partitions = [
        add_partitions_to_txn.AddPartitionsToTxnTopic(name=name, partitions=[0])
        for name in (MINE, OTHERS, ABSENT)
    ]
    old = add_partitions_to_txn.AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=TXN,
        v3_and_below_producer_id=NO_PRODUCER,
        v3_and_below_producer_epoch=0,
        v3_and_below_topics=partitions,
    )
    yield "partitions added", old, 3
    one = add_partitions_to_txn.AddPartitionsToTxnTransaction(
        transactional_id=TXN, verify_only=True, topics=partitions[:1], **producer
    )
    several = add_partitions_to_txn.AddPartitionsToTxnRequest(transactions=[one])
    yield "partitions verified", several, 4
    offsets = add_offsets_to_txn.AddOffsetsToTxnRequest(
        transactional_id=TXN, group_id=GROUP, **producer
    )
    yield "offsets added", offsets, 3
    yield "ended", end_txn.EndTxnRequest(transactional_id=TXN, committed=True, **producer), 3
    yield (
        "committed in a transaction",
        txn_offset_commit.TxnOffsetCommitRequest(
            transactional_id=TXN,
            group_id=GROUP,
            generation_id=7,
            member_id="nobody",
            topics=topics_in_transaction(),
            **producer,
        ),
        3,
    )
    described = describe_transactions.DescribeTransactionsRequest(transactional_ids=[TXN, "u"])
    yield "transactions described", described, 0
    yield "transactions", list_transactions.ListTransactionsRequest(), 0
    marker = write_txn_markers.WritableTxnMarker(
        transaction_result=False,
        topics=[write_txn_markers.WritableTxnMarkerTopic(name=ABSENT, partition_indexes=[0])],
        **producer,
    )
    yield "markers", write_txn_markers.WriteTxnMarkersRequest(markers=[marker]), 1


def _quotas() -> Iterator[Question]:
    yield "quotas", describe_client_quotas.DescribeClientQuotasRequest(strict=False), 1
    entry = alter_client_quotas.AlterClientQuotasRequestEntryData(
        entity=[alter_client_quotas.EntityData(entity_type="user", entity_name="somebody")],
        ops=[alter_client_quotas.OpData(key="producer_byte_rate", value=1e9)],
    )
    yield (
        "quota",
        alter_client_quotas.AlterClientQuotasRequest(entries=[entry], validate_only=True),
        1,
    )


def _users() -> Iterator[Question]:
    # Without a list, in the place of an empty one, Apache fails to refuse and answers nothing.
    for label, users in {"all": [], "nobody": ["t-user"], "no name": [""]}.items():
        named = [scram_users.UserName(name=name) for name in users]
        asked = scram_users.DescribeUserScramCredentialsRequest(users=named)
        yield f"SCRAM users, {label}", asked, 0
    # Too few iterations: nothing is set.
    set_ = alter_scram_users.ScramCredentialUpsertion(
        name="t-user", mechanism=1, iterations=1, salt=b"salt", salted_password=b"salted"
    )
    gone = alter_scram_users.ScramCredentialDeletion(name="u-user", mechanism=2)
    altered = alter_scram_users.AlterUserScramCredentialsRequest(upsertions=[set_, set_])
    yield "SCRAM user set twice", altered, 0
    altered = alter_scram_users.AlterUserScramCredentialsRequest(deletions=[gone])
    yield "SCRAM user removed", altered, 0
    altered = alter_scram_users.AlterUserScramCredentialsRequest(
        deletions=[gone], upsertions=[set_]
    )
    yield "SCRAM users", altered, 0
    tokens = create_delegation_token.CreateDelegationTokenRequest(max_lifetime_ms=-1)
    yield "a token", tokens, 3
    renewed = renew_delegation_token.RenewDelegationTokenRequest(hmac=b"none", renew_period_ms=-1)
    yield "a token renewed", renewed, 2
    expired = expire_delegation_token.ExpireDelegationTokenRequest(hmac=b"none")
    yield "a token expired", expired, 2
    yield "tokens", describe_delegation_token.DescribeDelegationTokenRequest(owners=None), 3


def _cluster() -> Iterator[Question]:
    ops = describe_cluster.DescribeClusterRequest(include_cluster_authorized_operations=True)
    yield "cluster", ops, 1
    yield "directories", describe_log_dirs.DescribeLogDirsRequest(topics=[]), 4
    move = alter_replica_log_dirs.AlterReplicaLogDir(
        path="/nowhere",
        topics=[alter_replica_log_dirs.AlterReplicaLogDirTopic(name=ABSENT, partitions=[0])],
    )
    yield "directory", alter_replica_log_dirs.AlterReplicaLogDirsRequest(dirs=[move]), 2
    yield (
        "elections",
        elect_leaders.ElectLeadersRequest(
            topic_partitions=[elect_leaders.TopicPartitions(topic=MINE, partitions=[0])],
            timeout_ms=1000,
        ),
        2,
    )
    yield (
        "reassigned",
        alter_partition_reassignments.AlterPartitionReassignmentsRequest(
            timeout_ms=1000,
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
        ),
        0,
    )
    listed = list_partition_reassignments.ListPartitionReassignmentsRequest(
        timeout_ms=1000, topics=None
    )
    yield "reassignments", listed, 0
    feature = update_features.FeatureUpdateKey(feature="", max_version_level=1, upgrade_type=1)
    yield "features", update_features.UpdateFeaturesRequest(feature_updates=[feature]), 1
    anything: dict[str, Any] = {
        "operation": 1,
        "permission_type": 1,
        "principal_filter": "User:nobody",
    }
    filter_ = {"resource_name_filter": None, "host_filter": None, "pattern_type_filter": 1}
    both = anything | filter_ | {"resource_type_filter": 1}
    yield "ACLs", describe_acls.DescribeAclsRequest(**both), 3
    wrong = create_acls.AclCreation(
        resource_type=2, resource_name="a/b", principal="User:a", host="*", operation=3,
        permission_type=3,
    )  # fmt: skip
    yield "ACLs created", create_acls.CreateAclsRequest(creations=[wrong]), 3
    none = delete_acls.DeleteAclsFilter(**both)
    yield "ACLs deleted", delete_acls.DeleteAclsRequest(filters=[none]), 3


def _between_brokers() -> Iterator[Question]:
    stale: dict[str, Any] = {
        "controller_id": 0,
        "controller_epoch": STALE_EPOCH,
        "broker_epoch": -1,
    }
    yield "leaders and ISRs", leader_and_isr.LeaderAndIsrRequest(**stale), 4
    yield "metadata from the controller", update_metadata.UpdateMetadataRequest(**stale), 6
    yield "replicas stopped", stop_replica.StopReplicaRequest(**stale), 3
    shutdown = controlled_shutdown.ControlledShutdownRequest(broker_id=NO_BROKER)
    yield "shutdown", shutdown, 3
    yield "ISR", alter_partition.AlterPartitionRequest(broker_id=NO_BROKER, broker_epoch=1), 2
    ids = allocate_producer_ids.AllocateProducerIdsRequest(broker_id=NO_BROKER, broker_epoch=1)
    yield "producer ids", ids, 0


PARTS = (
    _records, _offsets, _topics, _configs, _groups, _members, _transactions, _quotas, _users,
    _cluster, _between_brokers,
)  # fmt: skip
