"""Questions that both brokers are asked: what clients may do to the coordinators' topics.

Nothing is changed: settings and counts are only validated, and what Apache lets `__admin_client`
write is the tombstone of a group that never was.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from barnabas_broker.coordinator.group.records import OffsetRecord, encode
from barnabas_kafka import ids
from barnabas_kafka.protocol import codec
from barnabas_kafka.protocol.headers import RequestHeader, encode_request_header
from barnabas_kafka.protocol.messages import alter_configs, incremental_alter_configs
from barnabas_kafka.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from barnabas_kafka.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from barnabas_kafka.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from barnabas_kafka.protocol.messages.find_coordinator import FindCoordinatorRequest
from barnabas_kafka.protocol.messages.produce import ProduceResponse
from barnabas_kafka.records import batch, legacy
from barnabas_kafka.records.builder import build_batch
from barnabas_kafka.records.compression import Codec
from tests.clients import START_MS, wire
from tests.oracle.classic_members import await_coordinator
from tests.oracle.questions_about_topics import (
    APPEND,
    DELETE,
    SET,
    SUBTRACT,
    TOPIC,
    create,
    creation,
)
from tests.oracle.sides import Side

GROUPS: Final = "__consumer_offsets"
TRANSACTIONS: Final = "__transaction_state"
INTERNAL: Final = (GROUPS, TRANSACTIONS)
KEY, VALUE = encode(OffsetRecord("never-was", ids.TopicPartition("nowhere", 0), None))
TRANSACTIONAL_ID: Final = 1


def internal_topics_by_hand(side: Side) -> None:
    """Creating them before a coordinator does, with settings of one's own; only validated."""
    configs = {
        "no settings": [],
        "deleted": [("cleanup.policy", "delete")],
        "compacted": [("cleanup.policy", "compact")],
        "both": [("cleanup.policy", "compact,delete")],
        "no policy": [("cleanup.policy", "")],
        "another setting": [("segment.bytes", "1048576")],
    }
    for name in INTERNAL:
        for what, settings in configs.items():
            wanted = creation(name, 3, 1, configs=settings)
            create(side, f"{name}, {what}", wanted, only_validate=True)


def _make_internal_topics(side: Side) -> None:
    await_coordinator(side, "internal")
    side.wait(
        FindCoordinatorRequest(coordinator_keys=["internal"], key_type=TRANSACTIONAL_ID),
        4,
        settled=lambda answer: not answer.coordinators[0].error_code,
    )
    for name in INTERNAL:
        side.wait(wire.metadata(name), 9, settled=lambda it: not it.topics[0].error_code)


def produce_to_internal_topics(side: Side) -> None:
    """Every version and format, with sequences and in transactions."""
    _make_internal_topics(side)
    contents = [(START_MS, KEY, VALUE, ())]
    good = build_batch(contents)
    for name in INTERNAL:
        side.ask_all(name, wire.produce(name, good), range(3, 12))
        side.ask_all(f"{name}, acks 1", wire.produce(name, good, acks=1), (3, 7, 9))
        for magic in (0, 1):
            old = [batch.Record(0, START_MS if magic else -1, KEY, VALUE)]
            data = legacy.build_message_set(old, magic=magic)
            side.ask_all(f"{name}, format {magic}", wire.produce(name, data), range(3))
        for packing in (Codec.GZIP, Codec.ZSTD):
            data = build_batch(contents, codec=packing)
            side.ask(f"{name}, {packing.name}", wire.produce(name, data), 9)
        sequenced = build_batch(contents, producer_id=555, producer_epoch=0, base_sequence=0)
        side.ask(f"{name}, in sequence", wire.produce(name, sequenced), 9)
        side.ask(f"{name}, acks 7", wire.produce(name, good, acks=7), 9)
        side.ask(f"{name}, corrupt", wire.produce(name, good[:-1] + b"?"), 9)
        side.ask(f"{name}, no such partition", wire.produce(name, good, partition=99), 9)


def produce_as_admin_client(side: Side) -> None:
    """The client id that Apache's tools have, and any client may take."""
    _make_internal_topics(side)
    request = wire.produce(GROUPS, build_batch([(START_MS, KEY, VALUE, ())]))
    header = RequestHeader(request.api_key, 9, 1, "__admin_client")
    with wire.Wire(side.bootstrap) as connection:
        payload = encode_request_header(header) + codec.encode(request, 9)
        connection.send(wire.sized(payload))
        side.keep("answer", connection.receive(ProduceResponse, 9))


def delete_internal_records(side: Side) -> None:
    """Whatever the offset."""
    _make_internal_topics(side)
    for name in INTERNAL:
        for number in (0, 99):
            for offset in (0, -1, 5):
                entry = DeleteRecordsPartition(partition_index=number, offset=offset)
                topics = [DeleteRecordsTopic(name=name, partitions=[entry])]
                request = DeleteRecordsRequest(topics=topics, timeout_ms=60_000)
                side.ask(f"{name} {number} up to {offset}", request, 2)


def alter_internal_topics(side: Side) -> None:
    """Changes that keep the policy, and changes that do not; only validated."""
    _make_internal_topics(side)
    operations = {
        "set to delete": ("cleanup.policy", SET, "delete"),
        "set to compact": ("cleanup.policy", SET, "compact"),
        "set to both": ("cleanup.policy", SET, "compact,delete"),
        "delete added": ("cleanup.policy", APPEND, "delete"),
        "compact added": ("cleanup.policy", APPEND, "compact"),
        "compact subtracted": ("cleanup.policy", SUBTRACT, "compact"),
        "policy deleted": ("cleanup.policy", DELETE, None),
        "another setting": ("segment.bytes", SET, "1048576"),
    }
    replacements = {
        "policy replaced": [("cleanup.policy", "delete")],
        "policy left out": [("segment.bytes", "1048576")],
        "policy kept": [("segment.bytes", "1048576"), ("cleanup.policy", "compact")],
    }
    one = incremental_alter_configs.AlterableConfig
    another = alter_configs.AlterableConfig
    for name in INTERNAL:
        for what, (key, operation, value) in operations.items():
            change = incremental_alter_configs.AlterConfigsResource(
                resource_type=TOPIC,
                resource_name=name,
                configs=[one(name=key, config_operation=operation, value=value)],
            )
            side.ask(
                f"{name}, {what}",
                incremental_alter_configs.IncrementalAlterConfigsRequest(
                    resources=[change], validate_only=True
                ),
                1,
            )
        for what, settings in replacements.items():
            whole = alter_configs.AlterConfigsResource(
                resource_type=TOPIC,
                resource_name=name,
                configs=[another(name=key, value=value) for key, value in settings],
            )
            side.ask(
                f"{name}, {what}",
                alter_configs.AlterConfigsRequest(resources=[whole], validate_only=True),
                2,
            )


def grow_internal_topics(side: Side) -> None:
    """More partitions move groups and transactional ids to other coordinators; only validated."""
    _make_internal_topics(side)
    for name in INTERNAL:
        grown = CreatePartitionsTopic(name=name, count=5, assignments=None)
        request = CreatePartitionsRequest(topics=[grown], timeout_ms=60_000, validate_only=True)
        side.ask(name, request, 3)


def internal_topics_in_transactions(side: Side) -> None:
    """A client cannot have their partitions in its transaction."""
    _make_internal_topics(side)
    adding = partial(
        AddPartitionsToTxnRequest,
        v3_and_below_transactional_id="internal",
        v3_and_below_producer_id=555,
        v3_and_below_producer_epoch=0,
    )
    for name in INTERNAL:
        topics = [AddPartitionsToTxnTopic(name=name, partitions=[0])]
        side.ask_all(name, adding(v3_and_below_topics=topics), range(4))


QUESTIONS: Final = (
    internal_topics_by_hand, produce_to_internal_topics, produce_as_admin_client,
    delete_internal_records, alter_internal_topics, grow_internal_topics,
    internal_topics_in_transactions,
)  # fmt: skip
