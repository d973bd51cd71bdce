"""InitProducerId, as a client sees it."""

from pathlib import Path

import pytest

from barnabas_broker.server.node.broker_server import clock_ms
from barnabas_broker.zk.embedded import FILE_NAME
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    TopicRequest,
)
from barnabas_kafka.protocol.messages.init_producer_id import InitProducerIdRequest
from barnabas_kafka.protocol.messages.produce import PartitionProduceResponse
from barnabas_kafka.records.builder import build_batch
from tests.broker.server.running import Wire, port_of, running_node
from tests.broker.server.transactional import Transactional
from tests.waiting import wait_for


def idempotent() -> InitProducerIdRequest:
    """What a producer without transactional id sends."""
    return InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)


@pytest.mark.parametrize("version", range(6))
def test_every_producer_gets_its_own_id(wire: Wire, version: int) -> None:
    """Two producers with one id would be taken for each other's duplicates."""
    first, second = (wire.ask(idempotent(), version) for _ in range(2))
    assert (first.error_code, first.producer_epoch) == (0, 0)
    assert second.producer_id == first.producer_id + 1


def test_ids_are_not_given_again_after_a_restart(tmp_path: Path) -> None:
    """The claimed block is durable before the first id of it is told."""
    given = []
    for _ in range(2):
        with running_node(tmp_path) as node, Wire(port_of(node)) as wire:
            given.append(wire.ask(idempotent(), 4).producer_id)
    assert given == [0, 1000]


def test_a_transactional_producer_keeps_its_id(wire: Wire) -> None:
    """Every initialisation bumps the epoch, whoever asks."""
    first, second = Transactional(wire, "keeps"), Transactional(wire, "keeps")
    first.init()
    second.init(version=0)
    assert (first.id, first.epoch + 1) == (second.id, second.epoch)


def test_a_producer_bumps_its_own_epoch(wire: Wire) -> None:
    """It may ask twice (KIP-360); one that was fenced may not, in words that its version knows."""
    producer = Transactional(wire, "bumps")
    producer.init()
    identity = {"producer_id": producer.id, "producer_epoch": 0}
    assert producer.init(**identity).producer_epoch == 1
    assert producer.init(**identity).producer_epoch == 1
    Transactional(wire, "bumps").init()
    assert producer.init(**identity).error_code == ErrorCode.PRODUCER_FENCED
    assert producer.init(version=3, **identity).error_code == ErrorCode.INVALID_PRODUCER_EPOCH


@pytest.mark.parametrize("timeout_ms", [0, -1, 900_001])
def test_timeouts_have_bounds(wire: Wire, timeout_ms: int) -> None:
    """An open transaction holds readers up: transaction.max.timeout.ms is the most."""
    answer = Transactional(wire, "slow", timeout_ms=timeout_ms).init()
    assert answer.error_code == ErrorCode.INVALID_TRANSACTION_TIMEOUT


def test_an_empty_transactional_id_is_refused(wire: Wire) -> None:
    """It would be somebody's by accident."""
    assert Transactional(wire, "").init().error_code == ErrorCode.INVALID_REQUEST


def test_half_an_identity_is_refused(wire: Wire) -> None:
    """KIP-360: producer id and epoch come together or not at all."""
    request = idempotent()
    request.producer_id = 5
    assert wire.ask(request, 4).error_code == ErrorCode.INVALID_REQUEST


def test_ids_begin_above_those_in_the_logs(tmp_path: Path) -> None:
    """A directory taken over from elsewhere holds the state of producers nobody here has named.

    To give their ids away again would take new producers for them; a made-up id of astronomical
    size must not use up the rest.
    """

    def batch_of(producer_id: int) -> bytes:
        return build_batch(
            [(clock_ms(), None, b"v", ())],
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=0,
        )

    with running_node(tmp_path) as node, Wire(port_of(node)) as wire:
        wire.create_topic("t")
        for producer_id in (4321, 2**63 - 1):
            assert wire.produce("t", batch_of(producer_id)).error_code == 0
    (tmp_path / FILE_NAME).unlink()
    with running_node(tmp_path) as node, Wire(port_of(node)) as wire:
        assert wire.ask(idempotent(), 4).producer_id == 4322


def test_a_flood_of_producers_leaves_few_behind(tmp_path: Path) -> None:
    """Each with a batch: the longest idle are forgotten, and go on as producers nobody knows."""
    settings = {"barnabas.producer.ids.per.partition.max": "20"}
    with running_node(tmp_path, settings) as node, Wire(port_of(node)) as wire:
        wire.create_topic("flooded")

        def write(producer: int, sequence: int) -> PartitionProduceResponse:
            batch = build_batch(
                [(1000, None, b"v", ())],
                producer_id=producer,
                producer_epoch=0,
                base_sequence=sequence,
            )
            return wire.produce("flooded", batch)

        ids = [wire.ask(idempotent(), 4).producer_id for _ in range(100)]
        assert [write(producer, 0).error_code for producer in ids] == [0] * 100
        assert write(ids[-1], 0).base_offset == 99  # Known, as what it sent already.
        request = DescribeProducersRequest(
            topics=[TopicRequest(name="flooded", partition_indexes=[0])]
        )
        reported = wire.ask(request, 0).topics[0].partitions[0].active_producers
        assert len(reported) <= 20
        assert ids[-1] in [each.producer_id for each in reported]
        assert write(ids[0], 1).base_offset == 100
        assert write(ids[0], 3).error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_flood_of_producers_leaves_few_behind_in_all_partitions(tmp_path: Path) -> None:
    """However they are spread: who wrote last is remembered, in each of the partitions."""
    settings = {"barnabas.producer.ids.max": "20"}
    with running_node(tmp_path, settings) as node, Wire(port_of(node)) as wire:
        topics = [f"flooded-{number}" for number in range(4)]
        for topic in topics:
            wire.create_topic(topic)
        for number in range(80):
            batch = build_batch(
                [(1000, None, b"v", ())], producer_id=number, producer_epoch=0, base_sequence=0
            )
            assert wire.produce(topics[number % 4], batch).error_code == 0
        asked = DescribeProducersRequest(
            topics=[TopicRequest(name=topic, partition_indexes=[0]) for topic in topics]
        )

        def remembered() -> list[set[int]]:
            reported = wire.ask(asked, 0).topics
            return [
                {each.producer_id for each in it.partitions[0].active_producers} for it in reported
            ]

        left = wait_for(
            "the producers that are remembered, to be few",
            remembered,
            until=lambda found: sum(map(len, found)) <= 20,
        )
        assert [max(each) for each in left] == [76, 77, 78, 79]


def test_a_flood_of_transactional_ids_is_refused(tmp_path: Path) -> None:
    """With an error that producers try again after; the ids that there are go on."""
    settings = {"barnabas.transactions.memory.max.bytes": str(100 * 1024)}
    with running_node(tmp_path, settings) as node, Wire(port_of(node)) as wire:
        known = Transactional(wire, "known")
        assert known.init().error_code == 0

        def code(name: str) -> int:
            request = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=1000)
            return int(wire.ask(request, 4).error_code)

        codes = [code(f"{number:030000}") for number in range(10)]
        assert codes.count(ErrorCode.COORDINATOR_NOT_AVAILABLE) >= 6
        assert known.init().error_code == 0
