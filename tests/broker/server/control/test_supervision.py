"""A process and its supervisor, each in both places; what dies, and what is made of it."""

import json
import logging
import os
import signal
import socket
import ssl
import struct
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from barnabas_broker.server.control.supervision import Supervision
from barnabas_broker.server.control.zookeeper_security import credentials
from barnabas_kafka.settings.broker import BrokerSettings
from tests.broker.server.control.test_supervisor import CLOSED, GRANTED, member
from tests.oracle.certificates import Certificate
from tests.waiting import START, seconds

PLAY = """
    import os, signal, sys
    from barnabas_broker.server.control.supervision import Supervision
    way = Supervision.begin(sys.argv[1], as_parent=sys.argv[2] == "parent")
    # Not print: its buffer is locked while the line below is flushed, which wakes the test.
    signal.signal(signal.SIGUSR1, lambda *_: os.write(1, b"usr1\\n"))
    signal.signal(signal.SIGTERM, lambda *_: os._exit(7))
    if sys.argv[4]:
        way.secure(open(sys.argv[4], "rb").read())
    if sys.argv[3]:
        way.hand_over(-1, b"pw", 60_000, sys.argv[3])
    print(os.getpid(), os.getppid(), flush=True)
    for order in sys.stdin:
        if order == "forget\\n":
            way.forget()
        print(order, end="", flush=True)
"""


@dataclass
class Play:
    """The process that was started, and which one acts the broker."""

    process: subprocess.Popen[str]
    broker: int
    broker_parent: int

    def order(self, word: str) -> None:
        """Have the broker do something; returns when it has."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{word}\n")
        self.process.stdin.flush()
        assert self.hear() == word

    def hear(self) -> str:
        """The next line of the broker."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def ended(self) -> tuple[int, str]:
        """Exit code and last words, when both processes have ended."""
        code = self.process.wait(
            timeout=seconds(START)
        )  # Its input stays open, for at its end it ends, too.
        assert self.process.stderr is not None
        return code, self.process.stderr.read().strip()


@contextmanager
def play(
    place: str, hosts: str = "", shape: str = "text", material: Path | str = ""
) -> Iterator[Play]:
    """A broker of a few lines, and its supervisor."""
    command = [sys.executable, "-c", textwrap.dedent(PLAY), shape, place, hosts, str(material)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        try:
            assert process.stdout is not None
            broker, parent = process.stdout.readline().split()
            yield Play(process, int(broker), int(parent))
        finally:
            process.kill()


@pytest.mark.parametrize("place", ["parent", "child"])
@pytest.mark.parametrize("shape", ["text", "json"])
def test_a_broker_that_is_killed(place: str, shape: str) -> None:
    """Its session is closed, by the password it told; a parent exits as the broker did."""
    with member(GRANTED + CLOSED) as (address, heard), play(place, address, shape) as acting:
        assert (acting.broker == acting.process.pid) == (place == "child")
        assert (acting.broker_parent == acting.process.pid) == (place == "parent")
        os.kill(acting.broker, signal.SIGKILL)
        code, words = acting.ended()
        said = words if shape == "text" else json.loads(words)["message"]
        assert said.endswith("closing its session with ZooKeeper: 0xffffffffffffffff is closed now")
        assert code == (128 + signal.SIGKILL if place == "parent" else -signal.SIGKILL)
    assert b"".join(heard).endswith(struct.pack("!iii", 8, 1, -11))


@pytest.mark.parametrize("place", ["parent", "child"])
@pytest.mark.parametrize("store", ["own.pem", "encrypted.pem", "own.p12"])
def test_a_session_over_tls(place: str, store: str, tmp_path: Path) -> None:
    """It shows the broker's certificate, and only to a member that the trust store vouches for."""
    authority = Certificate("authority")
    own = Certificate("broker", authority)
    own.write_pem(tmp_path / "own.pem")
    own.write_pem(tmp_path / "encrypted.pem", password="secret")
    own.write_pkcs12(tmp_path / "own.p12", "secret")
    trust = authority.write_trust(tmp_path / "trust.pem")
    settings = {
        "zookeeper.connect": "127.0.0.1:1",
        "zookeeper.ssl.client.enable": "true",
        "zookeeper.ssl.enabled.protocols": "TLSv1.2,TLSv1.3",
        "zookeeper.ssl.truststore.location": str(trust),
        "zookeeper.ssl.keystore.location": str(tmp_path / store),
        "zookeeper.ssl.keystore.password": "secret",
    }
    material = credentials(BrokerSettings.from_mapping(settings), {}).material
    assert material is not None
    assert "secret" not in repr(material)
    (tmp_path / "material").write_bytes(material.encode())

    def server(signer: Certificate) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        named = Certificate("zookeeper", signer, host="127.0.0.1")
        context.load_cert_chain(named.write_pem(tmp_path / "server.pem"))
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(cadata=authority.pem.decode())
        return context

    with (
        member(GRANTED, tls=server(Certificate("impostor"))) as (impostor, stolen),
        member(GRANTED + CLOSED, tls=server(authority)) as (address, heard),
        play(place, f"{impostor},{address}", material=tmp_path / "material") as acting,
    ):
        os.kill(acting.broker, signal.SIGKILL)
        _, words = acting.ended()
    assert words.endswith("closing its session with ZooKeeper: 0xffffffffffffffff is closed now")
    assert b"".join(heard).endswith(struct.pack("!iii", 8, 1, -11))
    assert stolen == []


@pytest.mark.parametrize("place", ["parent", "child"])
def test_a_broker_that_stops_in_order(place: str) -> None:
    """It has closed its session itself: nobody is asked for anything."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        with play(place, f"127.0.0.1:{server.getsockname()[1]}") as acting:
            acting.order("forget")
            acting.process.terminate()
            assert acting.ended() == (7, "")
        with pytest.raises(BlockingIOError):
            server.accept()


def test_a_parent_hands_on_signals() -> None:
    """And stays, until the broker ends."""
    with play("parent") as acting:
        for _ in range(3):
            acting.process.send_signal(signal.SIGUSR1)
            assert acting.hear() == "usr1"
        acting.order("still here")
        acting.process.send_signal(signal.SIGTERM)
        assert acting.ended() == (7, "")


def test_a_child_ignores_signals_of_the_process_group() -> None:
    """What a terminal sends to all processes ends the broker, and then the supervisor."""
    with play("child") as acting:
        children = Path(f"/proc/{acting.broker}/task/{acting.broker}/children")
        os.kill(int(children.read_text()), signal.SIGTERM)
        acting.process.send_signal(signal.SIGUSR1)
        assert acting.hear() == "usr1"
        acting.process.terminate()
        assert acting.ended() == (7, "")


def test_without_its_supervisor_a_broker_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    """It is said once that a crash will be noticed later."""
    ours, theirs = socket.socketpair()
    with ours:
        way = Supervision(ours.fileno())
        way.hand_over(5, b"\x01", 6000, "h:1")
        assert theirs.recv(100) == b"5 01 6000 h:1\n"
        theirs.close()
        with caplog.at_level(logging.WARNING):
            way.hand_over(6, b"\x01", 6000, "h:1")
            way.forget()
    assert [record.message for record in caplog.records] == [
        (
            "Session supervisor ended: a crash of this broker is noticed when its ZooKeeper"
            " session times out"
        )
    ]
