"""Several requests on one connection at once: answered in order, behind long polls too."""

from __future__ import annotations

from barnabas_kafka.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas_kafka.protocol.messages.fetch import FetchResponse
from barnabas_kafka.protocol.messages.metadata import MetadataResponse
from barnabas_kafka.protocol.messages.produce import ProduceResponse
from barnabas_kafka.records.batch import records
from tests.clients import wire
from tests.clients.brokers import Broker
from tests.clients.wire import Wire


def test_many_requests_in_one_segment(broker: Broker, topic: str) -> None:
    """A hundred requests sent at once are answered in their order."""
    with Wire(broker.bootstrap) as connection:
        connection.send(b"".join(wire.frame(wire.metadata(topic), 9, n) for n in range(100)))
        for number in range(100):
            connection.receive(MetadataResponse, 9, number)


def test_pipelined_produce_keeps_order(broker: Broker, topic: str) -> None:
    """Offsets follow the order of the requests."""
    with Wire(broker.bootstrap) as connection:
        requests = [wire.produce(topic, wire.some_batch(b"%d" % n)) for n in range(50)]
        connection.send(b"".join(wire.frame(request, 9, n) for n, request in enumerate(requests)))
        for number in range(50):
            response = connection.receive(ProduceResponse, 9, number)
            assert response.responses[0].partition_responses[0].base_offset == number


def test_requests_behind_a_long_poll_wait_for_it(broker: Broker, topic: str) -> None:
    """A parked fetch holds back what was pipelined behind it, and is answered by an append."""
    requests = [
        wire.frame(ApiVersionsRequest(), 0, 1),
        wire.frame(wire.fetch(topic, 0, max_wait_ms=60_000), 11, 2),
        wire.frame(wire.metadata(topic), 9, 3),
        wire.frame(wire.produce(topic, wire.some_batch(b"third")), 9, 4),
    ]
    with Wire(broker.bootstrap) as connection, Wire(broker.bootstrap) as other:
        connection.send(b"".join(requests))
        connection.receive(ApiVersionsResponse, 0, 1)
        other.ask(wire.metadata(topic), MetadataResponse, 9)
        assert connection.is_silent()
        other.ask(wire.produce(topic, wire.some_batch(b"first")), ProduceResponse, 9)
        fetched = connection.receive(FetchResponse, 11, 2).responses[0].partitions[0]
        assert fetched.high_watermark == 1
        assert isinstance(fetched.records, (bytes, memoryview))
        assert [record.value for record in records(fetched.records)] == [b"first"]
        connection.receive(MetadataResponse, 9, 3)
        produced = connection.receive(ProduceResponse, 9, 4)
        assert produced.responses[0].partition_responses[0].base_offset == 1


def test_long_poll_that_ends_with_nothing(broker: Broker, topic: str) -> None:
    """After max_wait_ms the answer is empty, and the next request is served."""
    with Wire(broker.bootstrap) as connection:
        connection.send(
            wire.frame(wire.fetch(topic, 0, max_wait_ms=50), 11, 1)
            + wire.frame(wire.metadata(topic), 9, 2)
        )
        fetched = connection.receive(FetchResponse, 11, 1).responses[0].partitions[0]
        assert (fetched.error_code, fetched.high_watermark) == (0, 0)
        assert not fetched.records
        connection.receive(MetadataResponse, 9, 2)


def test_fetch_waits_for_min_bytes(broker: Broker, topic: str) -> None:
    """Fewer bytes than min_bytes do not end the wait; the append that reaches them does."""
    batch = wire.some_batch(bytes(100))
    with Wire(broker.bootstrap) as connection, Wire(broker.bootstrap) as other:
        request = wire.fetch(topic, 0, max_wait_ms=60_000, min_bytes=2 * len(batch))
        connection.send(wire.frame(request, 11))
        other.ask(wire.produce(topic, batch), ProduceResponse, 9)
        other.ask(wire.metadata(topic), MetadataResponse, 9)
        assert connection.is_silent()
        other.ask(wire.produce(topic, batch), ProduceResponse, 9)
        fetched = connection.receive(FetchResponse, 11).responses[0].partitions[0]
        assert isinstance(fetched.records, (bytes, memoryview))
        assert len(fetched.records) == 2 * len(batch)


def test_no_acknowledgement_means_no_response(broker: Broker, topic: str) -> None:
    """acks=0 is answered by nothing: the next response is the next request's."""
    with Wire(broker.bootstrap) as connection:
        connection.send(
            wire.frame(wire.produce(topic, wire.some_batch(b"quiet"), acks=0), 9, 1)
            + wire.frame(wire.fetch(topic, 0), 11, 2)
        )
        fetched = connection.receive(FetchResponse, 11, 2).responses[0].partitions[0]
        assert isinstance(fetched.records, (bytes, memoryview))
        assert [record.value for record in records(fetched.records)] == [b"quiet"]


def test_failure_without_acknowledgement_ends_the_connection(broker: Broker, topic: str) -> None:
    """With acks=0 closing is the only way to tell the producer that its metadata is wrong."""
    with Wire(broker.bootstrap) as connection:
        connection.send(
            wire.frame(wire.produce(topic, wire.some_batch(), acks=0, partition=7), 9, 1)
        )
        connection.assert_closed()


def test_invalid_acks(broker: Broker, topic: str) -> None:
    """Only 0, 1 and -1 mean something: everything else is INVALID_REQUIRED_ACKS."""
    with Wire(broker.bootstrap) as connection:
        response = connection.ask(
            wire.produce(topic, wire.some_batch(), acks=2), ProduceResponse, 9
        )
        assert response.responses[0].partition_responses[0].error_code == 21


def test_client_that_leaves_during_a_long_poll(broker: Broker, topic: str) -> None:
    """A parked fetch of a client that is gone harms nobody."""
    with Wire(broker.bootstrap) as connection:
        connection.send(wire.frame(wire.fetch(topic, 0, max_wait_ms=60_000), 11))
    with Wire(broker.bootstrap) as other:
        produced = other.ask(wire.produce(topic, wire.some_batch()), ProduceResponse, 9)
        assert produced.responses[0].partition_responses[0].error_code == 0
        fetched = other.ask(wire.fetch(topic, 0), FetchResponse, 11)
        assert fetched.responses[0].partitions[0].high_watermark == 1
