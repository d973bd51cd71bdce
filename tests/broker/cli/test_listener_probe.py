"""Commands whose security protocol is not the listener's: they say which it is, and what to set.

Without waiting for `--timeout`, here a day: a listener of another protocol closes connections,
which to a client looks like a broker that is away.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from importlib import import_module
from itertools import permutations
from pathlib import Path

import pytest
from click.testing import CliRunner

from barnabas_broker.cli.listener_probe import Listener, advice, listener_at
from barnabas_broker.testing import Broker
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol import codec
from barnabas_kafka.protocol.frames import frame
from barnabas_kafka.protocol.messages.sasl_handshake import SaslHandshakeResponse
from tests.broker.cli.conftest import run_command
from tests.oracle.certificates import Certificate
from tests.waiting import ATTEMPT_S

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SOUGHT = {
    "PLAINTEXT": Listener(tls=False),
    "SSL": Listener(tls=True),
    "SASL_PLAINTEXT": Listener(tls=False, mechanisms=("PLAIN",)),
    "SASL_SSL": Listener(tls=True, mechanisms=("PLAIN",)),
    "MUTUAL": Listener(tls=True, wants_certificate=True),
}


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`trust.pem`, and the broker's `broker.pem`."""
    files = tmp_path_factory.mktemp("certificates")
    authority = Certificate("authority")
    authority.write_trust(files / "trust.pem")
    Certificate("broker", authority, host="localhost").write_pem(files / "broker.pem")
    return files


@pytest.fixture(scope="module")
def broker(certificates: Path) -> Iterator[Broker]:
    """A broker with a listener of each protocol, and one that wants client certificates."""
    settings = {
        "listeners": ",".join(f"{name}://localhost:0" for name in SOUGHT),
        "listener.security.protocol.map": "MUTUAL:SSL,"
        + ",".join(f"{name}:{name}" for name in PROTOCOLS),
        "listener.name.mutual.ssl.client.auth": "required",
        "ssl.keystore.location": str(certificates / "broker.pem"),
        "ssl.keystore.type": "PEM",
        "ssl.truststore.location": str(certificates / "trust.pem"),
        "ssl.truststore.type": "PEM",
        "sasl.enabled.mechanisms": "PLAIN",
        **{
            f"listener.name.{name.lower()}.plain.sasl.jaas.config": (
                f'{PLAIN} required user_alice="secret";'
            )
            for name in PROTOCOLS[2:]
        },
    }
    with Broker(settings) as running:
        running.create_topic("orders")
        yield running


def properties(protocol: str, certificates: Path) -> dict[str, str]:
    """Client properties that fit the listener of the protocol."""
    found = {"security.protocol": protocol}
    if "SASL" in protocol:
        found |= {"sasl.mechanism": "PLAIN", "sasl.username": "alice", "sasl.password": "secret"}
    if "SSL" in protocol:
        found["ssl.ca.location"] = str(certificates / "trust.pem")
    return found


@pytest.mark.parametrize("name", SOUGHT)
def test_each_listener_is_recognised(broker: Broker, name: str) -> None:
    """By one request."""
    host, _, port = broker.listeners[name].rpartition(":")
    assert listener_at(host, int(port), ATTEMPT_S) == SOUGHT[name]


COMMANDS = ("topics list", "acls list", "consume orders")


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(("listener", "client"), [*permutations(PROTOCOLS, 2)])
def test_another_protocol(
    broker: Broker, certificates: Path, listener: str, client: str, command: str
) -> None:
    """The error names both, and a setting."""
    address = broker.listeners[listener]
    given = [f"-X{name}={value}" for name, value in properties(client, certificates).items()]
    words = (*command.split(), "-b", address, "--timeout", "3600", *given)
    stderr = run_command(*words, fails=1).stderr
    assert f"{address} speaks {listener}, the client {client}: " in stderr
    assert f"set security.protocol={listener}" in stderr
    assert ("sasl.mechanism=PLAIN" in stderr) == ("SASL" in listener and "SASL" not in client)
    assert stderr.count("\n") == 1


@pytest.mark.parametrize("tool", ["topics --list", "console_consumer --topic orders"])
def test_tools_of_kafkas_names(broker: Broker, tool: str) -> None:
    """They say it in the same words."""
    module, *words = tool.split()
    main = import_module(f"barnabas_broker.cli.kafka.{module}").main
    address = broker.listeners["SASL_SSL"]
    done = CliRunner().invoke(main, [*words, "--bootstrap-server", address])
    assert done.exit_code == 1
    assert f"{address} speaks SASL_SSL, the client PLAINTEXT: " in done.output


def test_a_client_certificate_is_missing(broker: Broker, certificates: Path) -> None:
    """Brokers of TLS 1.3 refuse such a client after its handshake: connections only close."""
    trust = f"-Xssl.ca.location={certificates / 'trust.pem'}"
    words = ("-b", broker.listeners["MUTUAL"], "-Xsecurity.protocol=SSL")
    for command in ("topics list", "acls list"):
        stderr = run_command(*command.split(), *words, trust, fails=1).stderr
        assert "set ssl.certificate.location and ssl.key.location in the client" in stderr


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\x15\x03\x01"])
def test_a_port_of_another_program(answer: bytes) -> None:
    """Is not taken for Kafka: what is said of it stays what it was."""
    with port_that_sends([answer]) as port:
        assert listener_at("127.0.0.1", port, ATTEMPT_S) is None


def test_an_answer_that_comes_byte_by_byte_has_one_deadline() -> None:
    """A command would wait for as long as a port sends a byte in time for the next."""
    sasl = codec.encode(SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE), 1)
    answer = frame(bytes(4), sasl)
    with port_that_sends([answer]) as port:
        assert listener_at("127.0.0.1", port, ATTEMPT_S) == Listener(tls=False)
    short_s = ATTEMPT_S / 10
    with port_that_sends([bytes([byte]) for byte in answer], pause_s=short_s / 4) as port:
        assert listener_at("127.0.0.1", port, short_s) is None


@contextmanager
def port_that_sends(pieces: Sequence[bytes], pause_s: float = 0) -> Iterator[int]:
    """A port that answers each connection with these, whatever it is asked."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:

        def serve() -> None:
            while not ended.is_set():
                connection, _ = server.accept()
                with connection, suppress(ConnectionError):
                    connection.recv(1)
                    for piece in pieces:
                        connection.sendall(piece)
                        ended.wait(pause_s)

        ended = threading.Event()
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield server.getsockname()[1]
        finally:
            ended.set()
            socket.create_connection(server.getsockname()).close()
            thread.join()


def test_properties_that_fit_need_no_advice(certificates: Path) -> None:
    """The failure has another reason then."""
    for name in PROTOCOLS:
        assert not advice(SOUGHT[name], properties(name, certificates))
    whole = {"security.protocol": "SSL", "ssl.certificate.location": "client.pem"}
    assert not advice(SOUGHT["MUTUAL"], whole)
