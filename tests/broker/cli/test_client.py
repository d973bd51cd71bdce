"""Reaching a broker, or saying in one line why not."""

import socket
import threading
from pathlib import Path

import pytest

from barnabas_broker.testing import Broker
from tests.broker.cli.conftest import Run, run_command


@pytest.fixture
def closed_port() -> int:
    """A port on which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
    return port


@pytest.mark.parametrize("command", [("topics", "list"), ("produce", "t"), ("consume", "t")])
def test_a_refused_connection_is_reported_at_once(
    closed_port: int, command: tuple[str, ...]
) -> None:
    """The library would go on trying; a person wants to know that the port is wrong."""
    address = f"127.0.0.1:{closed_port}"
    error = run_command(*command, bootstrap=address, fails=1).stderr
    assert error == f"Error: cannot reach a broker at {address}: Connection refused\n"


def test_one_of_several_addresses_is_enough(closed_port: int, kafka_broker: Broker) -> None:
    """As with every Kafka client."""
    both = f"127.0.0.1:{closed_port},{kafka_broker.bootstrap_servers}"
    run_command("topics", "list", "-b", both)


def test_something_that_does_not_answer_ends_after_the_timeout() -> None:
    """A listener that accepts and stays silent costs no more than --timeout."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        error = run_command("topics", "list", "-b", address, "--timeout", "1", fails=1).stderr
    assert error.startswith(f"Error: no Kafka broker answers at {address}: ")
    assert error.count("\n") == 1


def test_something_that_is_no_broker_ends_after_the_timeout() -> None:
    """Nor does one that answers in another protocol print a log of failed attempts."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        ended = threading.Event()

        def answer() -> None:
            while not ended.is_set():
                connection, _ = server.accept()
                connection.close()

        thread = threading.Thread(target=answer)
        thread.start()
        address = f"127.0.0.1:{server.getsockname()[1]}"
        error = run_command("topics", "list", "-b", address, "--timeout", "1", fails=1).stderr
        ended.set()
        socket.create_connection(server.getsockname()).close()
        thread.join()
    assert error.startswith("Error: no Kafka broker answers at ")
    assert "the port is open: it may want TLS or a password (--command-config" in error
    assert error.count("\n") == 1


@pytest.mark.parametrize("address", ["nowhere:port", ":9092", "host:"])
def test_a_malformed_address_is_wrong_usage(address: str) -> None:
    """It is not the network's fault."""
    error = run_command("topics", "list", "-b", address, fails=2).stderr
    assert "is not a host:port" in error


def test_properties_reach_the_client(run: Run, tmp_path: Path) -> None:
    """A file, an option over it, and the refusal of a name that the library does not know."""
    path = tmp_path / "client.properties"
    path.write_text("client.id=me\nkey.serializer=x\nsecurity.protocol=PLAINTEXT\n")
    run("topics", "list", "--command-config", str(path), "-X", "client.id=you")
    error = run("topics", "list", "-X", "no.such.name=1", fails=2).stderr
    assert 'No such configuration property: "no.such.name"' in error
    run("topics", "list", "--command-config", str(tmp_path / "missing"), fails=2)
    run("topics", "list", "--timeout", "0", fails=2)


def test_all_invalid_addresses_are_reported(kafka_broker: Broker) -> None:
    """At once and with exit code 2, although one of them would do."""
    wrong = f"{kafka_broker.bootstrap_servers},h:99999,h:x,:9092,h:0"
    reported = run_command("topics", "list", "-b", wrong, fails=2).stderr
    assert reported == (
        "Error: 'h:99999': port 99999 is not between 1 and 65535; 'h:x' is not a host:port; "
        "':9092' is not a host:port; 'h:0': port 0 is not between 1 and 65535\n"
    )
