"""Produce, as a client sees it."""

from pathlib import Path

import pytest

from barnabas_broker.security.acls import AclOperation, Permission, ResourceType
from barnabas_broker.server.node.broker_server import BrokerServer, clock_ms
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from barnabas_kafka.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from barnabas_kafka.records.batch import parse_header, records
from barnabas_kafka.records.builder import build_batch
from barnabas_kafka.records.compression import Codec
from tests.broker.server.running import Wire, port_of, produce_request, running_node

BATCH = build_batch([(1000, b"key", b"value", (("h", b"x"),))])


def sequenced(sequence: int, *, count: int = 1) -> bytes:
    """A batch of idempotent producer 7, which is young enough to be remembered."""
    return build_batch(
        [(clock_ms(), None, b"v", ())] * count,
        producer_id=7,
        producer_epoch=0,
        base_sequence=sequence,
    )


@pytest.mark.parametrize("version", range(3, 12))
def test_every_version_appends(wire: Wire, topic: str, version: int) -> None:
    """The base offset comes back, and the log start where the version has it."""
    for expected in (0, 1):
        answer = wire.produce(topic, BATCH, version=version)
        assert (answer.error_code, answer.base_offset) == (0, expected)
        assert answer.log_start_offset == (0 if version >= 5 else -1)


def test_a_produced_record_is_stored_unchanged(wire: Wire, topic: str) -> None:
    """Key, value, headers and timestamp survive; offset and leader epoch are the broker's."""
    wire.produce(topic, BATCH)
    wire.produce(topic, BATCH)
    stored = bytes(wire.fetch(topic, 1).records or b"")  # type: ignore[arg-type]
    (record,) = records(stored)
    assert record == (1, 1000, b"key", b"value", (("h", b"x"),))
    assert parse_header(stored).leader_epoch == 0


def test_acks_0_gets_no_response_but_is_stored(wire: Wire, topic: str) -> None:
    """The next response on the connection belongs to the next request."""
    wire.send(produce_request(topic, BATCH, acks=0), 9)
    assert wire.produce(topic, BATCH).base_offset == 1


def test_a_failure_with_acks_0_ends_the_connection(wire: Wire) -> None:
    """It is the only way to tell a producer that does not listen."""
    wire.send(produce_request("nowhere", BATCH, acks=0), 9)
    assert wire.closed_by_broker()


@pytest.mark.parametrize("acks", [2, -2, 100])
def test_impossible_acks(wire: Wire, topic: str, acks: int) -> None:
    """Only 0, 1 and -1 mean anything."""
    assert wire.produce(topic, BATCH, acks=acks).error_code == ErrorCode.INVALID_REQUIRED_ACKS
    nowhere = wire.produce("nowhere", BATCH, acks=acks)
    assert nowhere.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert wire.produce(topic, BATCH).base_offset == 0


def test_an_unknown_partition(wire: Wire, topic: str) -> None:
    """One bad partition does not spoil the others of the request."""
    response: ProduceResponse = wire.ask(
        ProduceRequest(
            acks=-1,
            timeout_ms=1000,
            topic_data=[
                TopicProduceData(
                    name=topic,
                    partition_data=[
                        PartitionProduceData(index=5, records=BATCH),
                        PartitionProduceData(index=0, records=BATCH),
                    ],
                )
            ],
        ),
        9,
    )
    unknown, good = response.responses[0].partition_responses
    assert (unknown.error_code, unknown.base_offset) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)
    assert (good.error_code, good.base_offset) == (0, 0)


def test_no_more_replicas_are_asked_for_than_there_are(wire: Wire) -> None:
    """With min.insync.replicas=2 and one replica, all is one, as with Apache."""
    wire.create_topic("careful", min_insync_replicas="2")
    assert wire.produce("careful", BATCH).base_offset == 0
    assert wire.fetch("careful").high_watermark == 1


def test_a_flipped_bit(wire: Wire, topic: str) -> None:
    """A batch that was damaged on its way is refused and not stored."""
    damaged = bytearray(BATCH)
    damaged[-2] ^= 1
    assert wire.produce(topic, bytes(damaged)).error_code == ErrorCode.CORRUPT_MESSAGE
    assert wire.fetch(topic).high_watermark == 0


def test_a_keyless_record_on_a_compacted_topic(wire: Wire) -> None:
    """The records at fault are listed, with a message for people."""
    wire.create_topic("compacted", cleanup_policy="compact")
    batch = build_batch([(1, b"k", b"v", ()), (2, None, b"v", ())])
    answer = wire.produce("compacted", batch)
    assert answer.error_code == ErrorCode.INVALID_RECORD
    assert [error.batch_index for error in answer.record_errors] == [1]
    assert answer.record_errors[0].batch_index_error_message


def test_a_batch_above_the_topics_limit(wire: Wire) -> None:
    """`max.message.bytes` of the topic counts, whatever the broker's default."""
    wire.create_topic("small", max_message_bytes="500")
    big = build_batch([(1, None, b"x" * 1000, ())])
    assert wire.produce("small", big).error_code == ErrorCode.MESSAGE_TOO_LARGE
    assert wire.produce("small", BATCH).error_code == 0


def test_the_brokers_clock(wire: Wire) -> None:
    """With LogAppendTime the answer and the record bear the broker's time."""
    wire.create_topic("stamped", message_timestamp_type="LogAppendTime")
    answer = wire.produce("stamped", BATCH)
    (record,) = records(bytes(wire.fetch("stamped").records or b""))  # type: ignore[arg-type]
    assert record.timestamp == answer.log_append_time_ms > 1000


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD])
def test_the_topics_codec(wire: Wire, codec: Codec) -> None:
    """`compression.type` of the topic re-compresses what came otherwise."""
    topic = f"codec-{codec.name}"
    wire.create_topic(topic, compression_type=codec.name.lower())
    wire.produce(topic, BATCH)
    stored = bytes(wire.fetch(topic).records or b"")  # type: ignore[arg-type]
    assert parse_header(stored).codec == codec
    assert records(stored)[0].value == b"value"


def test_zstd_needs_version_7(wire: Wire, topic: str) -> None:
    """KIP-110, on the producing side."""
    batch = build_batch([(1, None, b"v" * 100, ())], codec=Codec.ZSTD)
    refused = wire.produce(topic, batch, version=6)
    assert refused.error_code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert wire.produce(topic, batch, version=7).error_code == 0


def test_a_duplicate_gets_its_first_offset(wire: Wire, topic: str) -> None:
    """An idempotent producer that never saw our answer sends again, and nothing is stored twice."""
    first = wire.produce(topic, sequenced(0, count=3))
    again = wire.produce(topic, sequenced(0, count=3))
    assert (again.error_code, again.base_offset) == (0, first.base_offset)
    assert wire.produce(topic, sequenced(3)).base_offset == 3


def test_a_gap_in_the_sequence(wire: Wire, topic: str) -> None:
    """A lost batch must not be papered over."""
    wire.produce(topic, sequenced(0))
    refused = wire.produce(topic, sequenced(2))
    assert refused.error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_sequences_survive_a_restart(tmp_path: Path) -> None:
    """What the producer sent before the broker went down is still a duplicate after."""
    with running_node(tmp_path) as node, Wire(port_of(node)) as wire:
        wire.create_topic("t")
        wire.produce("t", sequenced(0, count=2))
    with running_node(tmp_path) as node, Wire(port_of(node)) as wire:
        assert wire.produce("t", sequenced(0, count=2)).base_offset == 0
        assert wire.produce("t", sequenced(2)).base_offset == 2


def test_transactional_records_need_a_transactional_id(wire: Wire, topic: str) -> None:
    """Whoever leaves it out must not get around what is allowed with one (CVE-2018-17196)."""
    batch = build_batch(
        [(1, None, b"v", ())],
        producer_id=7,
        producer_epoch=0,
        base_sequence=0,
        transactional=True,
    )
    code = wire.produce(topic, batch).error_code
    assert code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert wire.fetch(topic).high_watermark == 0


@pytest.mark.parametrize("version", [3, 9, 12])
@pytest.mark.parametrize("transactional_id", [None, "theirs"])
def test_nothing_is_appended_before_the_transaction_is_authorized(
    tmp_path: Path, version: int, transactional_id: str | None
) -> None:
    """Batches of no transaction that come first are refused, too, as in `handleProduceRequest`.

    A client that is told that its request was refused sends it again.
    """
    settings = {
        "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
        "allow.everyone.if.no.acl.found": "true",
    }
    with running_node(tmp_path, settings) as node, Wire(port_of(node)) as wire:
        wire.create_topic("t", partitions=3)
        denied = AclCreation(
            resource_type=ResourceType.TRANSACTIONAL_ID,
            resource_name="theirs",
            principal="User:ANONYMOUS",
            host="*",
            operation=AclOperation.WRITE,
            permission_type=Permission.DENY,
        )
        assert not wire.ask(CreateAclsRequest(creations=[denied]), 3).results[0].error_code
        transactional = build_batch(
            [(1, None, b"v", ())],
            producer_id=7,
            producer_epoch=0,
            base_sequence=0,
            transactional=True,
        )
        partitions = [
            PartitionProduceData(index=0, records=BATCH),
            PartitionProduceData(index=1, records=None),
            PartitionProduceData(index=2, records=transactional),
        ]
        request = ProduceRequest(
            transactional_id=transactional_id,
            acks=1,
            timeout_ms=1000,
            topic_data=[TopicProduceData(name="t", partition_data=partitions)],
        )
        (answered,) = wire.ask(request, version).responses
        code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        assert [each.error_code for each in answered.partition_responses] == [code] * 3
        assert wire.fetch("t").high_watermark == 0
        request.acks = 0
        wire.send(request, version)
        assert wire.closed_by_broker()


@pytest.mark.parametrize("version", [3, 9])
def test_nothing_is_appended_of_transactions_of_two_producers(
    wire: Wire, topic: str, version: int
) -> None:
    """Nor what is beside them, as in `handleProduceAppend`."""
    two = f"two-{version}"
    wire.create_topic(two, partitions=2)

    def records(producer_id: int) -> bytes:
        return build_batch(
            [(1, None, b"v", ())],
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=0,
            transactional=True,
        )

    written = [BATCH, records(7), records(8), BATCH]
    request = ProduceRequest(
        transactional_id="mine",
        acks=1,
        timeout_ms=1000,
        topic_data=[
            TopicProduceData(
                name=name, partition_data=[PartitionProduceData(index=index, records=each)]
            )
            for (name, index), each in zip(
                [(two, 0), (two, 1), (topic, 0), ("nowhere", 0)], written, strict=True
            )
        ],
    )
    answer = wire.ask(request, version)
    codes = [each.partition_responses[0].error_code for each in answer.responses]
    assert codes == [ErrorCode.INVALID_PRODUCER_ID_MAPPING] * 4
    assert wire.fetch(two).high_watermark == 0


def test_an_image_of_several_connections(node: BrokerServer, topic: str) -> None:
    """Offsets are handed out once, whoever asks."""
    with Wire(port_of(node)) as first, Wire(port_of(node)) as second:
        taken = [connection.produce(topic, BATCH).base_offset for connection in (first, second)]
    assert taken == [0, 1]
