"""Whether a partition is part of a transaction, asked before the first record is taken."""

from pathlib import Path

import pytest

from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.broker.server.running import Wire, port_of, running_node
from tests.broker.server.transactional import Transactional


@pytest.mark.parametrize("version", [9, 11])
def test_a_late_batch_opens_nothing(wire: Wire, topic: str, version: int) -> None:
    """After the end of its transaction it is refused, in words that the client knows."""
    producer = Transactional(wire, topic)
    producer.init()
    producer.add(topic)
    assert producer.produce(topic, b"in time") == 0
    producer.end(commit=True)
    while (code := producer.produce(topic, b"late", version=version)) == (
        ErrorCode.NOT_ENOUGH_REPLICAS
    ):
        pass  # The markers are on their way.
    late = ErrorCode.INVALID_TXN_STATE if version < 11 else ErrorCode.TRANSACTION_ABORTABLE
    assert code == late


def test_a_fenced_producer_writes_nothing(wire: Wire, topic: str) -> None:
    """Also to a partition that has not heard of the newer epoch."""
    producer = Transactional(wire, topic)
    producer.init()
    Transactional(wire, topic).init()
    assert producer.produce(topic, b"v") == ErrorCode.INVALID_PRODUCER_EPOCH
    producer.id += 1
    assert producer.produce(topic, b"v") == ErrorCode.INVALID_PRODUCER_ID_MAPPING


def test_writing_is_joining_in_the_second_protocol(wire: Wire, topic: str) -> None:
    """Nobody has asked for the partition; the next transaction waits for the markers itself."""
    producer = Transactional(wire, topic)
    producer.init()
    for value in (b"first", b"second", b"third"):
        assert producer.produce(topic, value, version=12) == 0
        assert producer.bump(commit=True).error_code == 0
    read = wire.fetch(topic, isolation_level=1)
    while read.last_stable_offset < 6:
        read = wire.fetch(topic, isolation_level=1)
    assert read.aborted_transactions == []


def test_a_late_batch_of_the_second_protocol_opens_nothing(wire: Wire, topic: str) -> None:
    """The epoch of its transaction is over, in partitions that have heard of it and in others."""
    wire.create_topic(f"{topic}-other")
    producer = Transactional(wire, topic)
    producer.init()
    assert producer.produce(topic, b"in time", version=12) == 0
    epoch = producer.epoch
    assert producer.bump(commit=True).error_code == 0
    producer.epoch = epoch
    for name in (topic, f"{topic}-other"):
        assert producer.produce(name, b"late", version=12) == ErrorCode.INVALID_PRODUCER_EPOCH


def test_an_unknown_producer_begins_at_the_beginning(wire: Wire, topic: str) -> None:
    """What comes first is missing where a partition that never heard of it gets what follows."""
    wire.create_topic(f"{topic}-other")
    producer = Transactional(wire, topic)
    producer.init()
    producer.skip(topic)
    out_of_order = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert producer.produce(topic, b"second", version=12) == out_of_order
    assert producer.produce(f"{topic}-other", b"first", version=12) == 0


def test_only_the_transactions_producer_adds_partitions(wire: Wire, topic: str) -> None:
    """Others are told as if they had asked, partition by partition."""
    producer = Transactional(wire, topic)
    producer.init()
    producer.id += 1
    code = producer.produce(topic, b"v", version=12)
    assert code == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    missing = producer.produce(topic, b"v", partition=7, version=12)
    assert missing == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_joining_counts_before_records_are_taken(tmp_path: Path) -> None:
    """Where records count when they are on disk, the transaction is there first."""
    with (
        running_node(tmp_path, {"barnabas.durability": "fsync"}) as node,
        Wire(port_of(node)) as wire,
    ):
        wire.create_topic("t")
        producer = Transactional(wire, "tx")
        producer.init()
        for value in (b"first", b"second"):
            assert producer.produce("t", value, version=12) == 0
            assert producer.bump(commit=False).error_code == 0
        read = wire.fetch("t", isolation_level=1)
        while len(read.aborted_transactions or []) < 2:
            read = wire.fetch("t", isolation_level=1)


def test_it_can_be_switched_off(tmp_path: Path) -> None:
    """Also while the broker runs, at the price of transactions that may hang."""
    name = "transaction.partition.verification.enable"
    with running_node(tmp_path, {name: "false"}) as node, Wire(port_of(node)) as wire:
        wire.create_topic("t")
        producer = Transactional(wire, "tx")
        producer.init()
        assert producer.produce("t", b"v") == 0
        change = AlterableConfig(name=name, config_operation=0, value="true")
        broker = AlterConfigsResource(resource_type=4, resource_name="", configs=[change])
        wire.ask(IncrementalAlterConfigsRequest(resources=[broker]), 1)
        other = Transactional(wire, "other")
        other.init()
        assert other.produce("t", b"v") == ErrorCode.INVALID_TXN_STATE
