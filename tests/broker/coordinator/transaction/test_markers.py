"""Markers as they lie in a log, and who hears of them."""

from pathlib import Path

from barnabas_broker.coordinator.results import Producer
from barnabas_broker.coordinator.transaction.markers import Marker, MarkerWriter
from barnabas_broker.replica.partition import Partition
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.ids import TopicPartition
from barnabas_kafka.records.batch import headers
from tests.broker.server.running import Wire, port_of, running_node
from tests.broker.server.transactional import Transactional

T0 = TopicPartition("t", 0)


def test_a_marker_is_one_control_batch(tmp_path: Path) -> None:
    """Of the producer whose transaction it ends; groups hear of it at once, the caller when it
    counts.
    """
    reported: list[tuple[TopicPartition, ErrorCode]] = []
    heard: list[tuple[TopicPartition, int, bool, int]] = []

    def ended(partition: Partition, producer_id: int, *, committed: bool, end: int) -> None:
        heard.append((partition.tp, producer_id, committed, end))

    with running_node(tmp_path) as node, Wire(port_of(node)) as wire:
        wire.create_topic("t")
        producer = Transactional(wire, "tx")
        producer.init()
        producer.add("t")
        producer.produce("t", b"v")
        writer = MarkerWriter(leader=node.broker.replicas.leader, ended=ended, clock_ms=lambda: 9)
        marker = Marker(Producer(producer.id, producer.epoch), True, 3)
        assert writer.write(T0, marker, lambda tp, code: reported.append((tp, code))) is None
        log = node.broker.replicas.leader(T0).log
        data = log.read(1, 1000, upper_bound=2).read()
        ((_, header),) = headers(data)
        assert (header.is_control, header.is_transactional) == (True, True)
        assert (header.producer_id, header.producer_epoch) == (producer.id, producer.epoch)
        assert header.max_timestamp == 9
        nowhere = TopicPartition("t", 9)
        assert writer.write(nowhere, marker, lambda tp, code: reported.append((tp, code))) is None
    assert heard == [(T0, producer.id, True, 2)]
    assert reported == [(T0, ErrorCode.NONE), (nowhere, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]
