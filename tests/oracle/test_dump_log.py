"""`kafka-dump-log` beside Apache's DumpLogSegments, on records of both coordinators.

The records are encoded as the coordinators encode them, in every kind and value version.
"""

from pathlib import Path
from uuid import UUID

import pytest
from click.testing import CliRunner

from barnabas_broker.cli.kafka.dump_log import main
from barnabas_broker.coordinator.group import records as group
from barnabas_broker.coordinator.group.consumer.records import ConsumerRecord, Kind
from barnabas_broker.coordinator.transaction.records import KIND, PLAIN, TAGGED, TransactionRecord
from barnabas_broker.coordinator.transaction.states import TransactionState
from barnabas_broker.coordinator.transaction.transaction import Transaction
from barnabas_kafka.ids import TopicPartition
from barnabas_kafka.protocol import embedded, embedded_consumers
from barnabas_kafka.protocol.consumer_protocol import Assignment, Subscription, TopicPartitions
from barnabas_kafka.protocol.embedded import pack
from barnabas_kafka.protocol.schema import Message
from barnabas_kafka.records.builder import build_batch
from tests.broker.log.samples import NOW, append, open_log
from tests.oracle.apache import run_tool

pytestmark = pytest.mark.jvm

Encoded = tuple[bytes, bytes | None]

TOOL = "kafka.tools.DumpLogSegments"
PARTITION = TopicPartition("orders", 3)
TOPIC = [embedded_consumers.AssignedTopic(topic_id=UUID(int=7), partitions=[0, 2])]


def offsets() -> list[Encoded]:
    """Commits, in the three value versions that differ, and a deleted one."""
    values = [
        group.CommittedOffset(5, NOW, 'a "note", ü', leader_epoch=2),
        group.CommittedOffset(6, NOW, expire_timestamp=NOW + 1),
        None,
    ]
    found = [group.encode(group.OffsetRecord("g", PARTITION, value)) for value in values]
    key, _ = found[0]
    later = embedded.OffsetCommitValue(offset=7, metadata="m", commit_timestamp=NOW)
    return [*found, *((key, pack(later, version)) for version in (0, 2, 4))]


def generations() -> list[Encoded]:
    """A generation of consumers, one of another type, and the end of a group."""
    owned = [TopicPartitions(topic="orders", partitions=[1])]
    subscription = Subscription(topics=["orders"], user_data=b"u", owned_partitions=owned)
    members = [
        embedded.MemberMetadata(
            member_id=f"m{version}",
            group_instance_id="static" if version else None,
            client_id="c",
            client_host="/127.0.0.1",
            rebalance_timeout=300_000,
            session_timeout=10_000,
            subscription=pack(subscription, version),
            assignment=pack(Assignment(assigned_partitions=owned), version) if version else b"",
        )
        for version in range(4)
    ]
    members.append(embedded.MemberMetadata(member_id="odd", subscription=b"?", assignment=b"\0"))
    values = [
        embedded.GroupMetadataValue(
            protocol_type=kind, generation=4, protocol="range", leader="m0",
            current_state_timestamp=NOW, members=members,
        )
        for kind in ("consumer", "connect")
    ]  # fmt: skip
    found = [group.encode(group.GroupRecord("g", value)) for value in (*values, None)]
    key, _ = found[0]
    return [*found, *((key, pack(values[0], version)) for version in (0, 1, 2, 4))]


def consumer_groups() -> list[Encoded]:
    """Every kind of record of KIP-848 groups that Kafka 3.9 has, and its end."""
    classic = embedded_consumers.ClassicMemberMetadata(
        session_timeout_ms=7,
        supported_protocols=[embedded_consumers.ClassicProtocol(name="range", metadata=b"\1\2")],
    )
    topic = embedded_consumers.TopicMetadata(
        topic_id=UUID(int=7), topic_name="orders", num_partitions=3,
        partition_metadata=[embedded_consumers.PartitionMetadata(partition=0, racks=["a", "b"])],
    )  # fmt: skip
    values: list[tuple[Kind, Message]] = [
        (Kind.GROUP, embedded_consumers.ConsumerGroupMetadataValue(epoch=3)),
        (Kind.TOPICS, embedded_consumers.ConsumerGroupPartitionMetadataValue(topics=[topic])),
        (Kind.TARGET_EPOCH,
         embedded_consumers.ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=3)),
        (Kind.TARGET,
         embedded_consumers.ConsumerGroupTargetAssignmentMemberValue(topic_partitions=TOPIC)),
        (Kind.CURRENT, embedded_consumers.ConsumerGroupCurrentMemberAssignmentValue(
            member_epoch=3, previous_member_epoch=2, state=1, assigned_partitions=TOPIC)),
        *((Kind.MEMBER, embedded_consumers.ConsumerGroupMemberMetadataValue(
            client_id="c", client_host="/127.0.0.1", subscribed_topic_names=["orders"],
            server_assignor="uniform", classic_member_metadata=metadata))
          for metadata in (None, classic)),
    ]  # fmt: skip
    ends = [(kind, None) for kind, _ in values]
    return [ConsumerRecord("g", kind, "m", value).encoded() for kind, value in (*values, *ends)]


def transactions() -> list[Encoded]:
    """Every state that is written, in both value versions, and a forgotten id."""
    found: list[Encoded] = [KIND.encode(TransactionRecord("tx", None))]
    never_written = {TransactionState.DEAD, TransactionState.PREPARE_EPOCH_FENCE}
    for state in (each for each in TransactionState if each not in never_written):
        partitions = frozenset() if state is TransactionState.EMPTY else frozenset({PARTITION})
        it = Transaction(
            id="tx", producer_id=1 << 40, epoch=2, timeout_ms=60_000, state=state,
            partitions=partitions, started_ms=NOW, updated_ms=NOW + 1, previous_id=5, protocol=2,
        )  # fmt: skip
        found += [KIND.encode(TransactionRecord("tx", it, version)) for version in (PLAIN, TAGGED)]
    return [*found, (b"\0\x07later", b"")]


@pytest.mark.parametrize(
    ("option", "records"),
    [
        ("--offsets-decoder", [*offsets(), *generations(), *consumer_groups(), (b"\0\x63", b"")]),
        ("--transaction-log-decoder", transactions()),
    ],
    ids=["offsets", "transactions"],
)
def test_decoders_print_what_kafkas_tool_prints(
    tmp_path: Path, option: str, records: list[Encoded]
) -> None:
    """Letter for letter: keys, values, tombstones, and kinds that it does not know."""
    log = open_log(tmp_path)
    append(log, build_batch([(NOW, key, value, ()) for key, value in records]))
    log.close()
    file = str(tmp_path / "orders-3" / f"{0:020d}.log")
    ours = CliRunner().invoke(main, ["--files", file, option])
    assert ours.exit_code == 0, ours.output
    assert ours.stdout == run_tool(TOOL, "--files", file, option).stdout
