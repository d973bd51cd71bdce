"""Topics over a plain socket."""

import socket
import threading

import pytest

from barnabas_broker.testing import Broker, topics
from barnabas_kafka.errors import ErrorCode, KafkaError


def test_a_topic_is_made_as_asked_and_deleted(kafka_broker: Broker) -> None:
    """Partitions and settings reach the broker."""
    address = (kafka_broker.host, kafka_broker.port)
    topics.create(address, "over-a-socket", partitions=2, config={"retention.ms": "1000"})
    assert (kafka_broker.log_dir / "over-a-socket-1").is_dir()
    topics.delete(address, "over-a-socket")
    assert not (kafka_broker.log_dir / "over-a-socket-1").exists()


def test_the_brokers_reason_is_raised(kafka_broker: Broker) -> None:
    """Code and sentence are the broker's own."""
    address = (kafka_broker.host, kafka_broker.port)
    with pytest.raises(KafkaError) as refused:
        topics.create(address, "no such name!")
    assert refused.value.code == ErrorCode.INVALID_TOPIC_EXCEPTION
    with pytest.raises(KafkaError) as missing:
        topics.delete(address, "never-made")
    assert missing.value.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\0\0\0\x20short"])
def test_something_that_is_no_broker_is_an_error_and_no_hang(answer: bytes) -> None:
    """A wrong port that accepts connections, closes early or speaks another protocol."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(1 << 16)
                connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        with pytest.raises(ConnectionError):
            topics.create(server.getsockname(), "t")
        thread.join()
