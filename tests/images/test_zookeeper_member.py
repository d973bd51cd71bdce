"""The entry of the ZooKeeper image, as the program that the container starts."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.waiting import RUN, seconds, wait_for
from tests.zookeeper.running import running as running_zookeeper

PROGRAM = Path(__file__).resolve().parents[2] / "zookeeper-image" / "zookeeper_member.py"
ENSEMBLE = """
tickTime=2000
# dataDir=/elsewhere
server.1=main-zookeeper-0.nodes:2888:3888
server.2=main-zookeeper-1.nodes:2888:3888
server.3=main-zookeeper-2.nodes:2888:3888
"""


class Container:
    """A data directory, a zoo.cfg, and a java that prints its arguments instead of running."""

    def __init__(self, directory: Path) -> None:
        self.data = directory / "data"
        self.config = directory / "zoo.cfg"
        self.config.write_text(f"{ENSEMBLE}dataDir={self.data}\n", encoding="utf-8")
        self.home = directory / "java"
        java = self.home / "bin" / "java"
        java.parent.mkdir(parents=True)
        java.write_text('#!/bin/sh\necho $$ "$@"\n', encoding="utf-8")
        java.chmod(0o755)

    def start(self, pod: str, *verb: str, **variables: str) -> tuple[int, int, str, str]:
        """Start as a pod; returns the process id, the exit status, and what was said."""
        environment = {
            "PATH": os.environ["PATH"],
            "POD_NAME": pod,
            "ZOOKEEPER_CONFIG": str(self.config),
            "JAVA_HOME": str(self.home),
            **variables,
        }
        with subprocess.Popen(
            [sys.executable, "-IS", str(PROGRAM), *verb],
            env=environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as process:
            said, complained = process.communicate(timeout=seconds(RUN))
        return process.pid, process.returncode, said, complained


@pytest.fixture
def container(tmp_path: Path) -> Container:
    """A fresh container."""
    return Container(tmp_path)


def test_the_ordinal_and_one_is_the_members_number(container: Container) -> None:
    """The pod ...-2 is server.3; it says so in its empty data directory."""
    _, status, _, _ = container.start("main-zookeeper-2")
    assert status == 0
    assert (container.data / "myid").read_text() == "3\n"


def test_the_server_takes_the_place_of_the_entry(container: Container) -> None:
    """Java has the entry's process id, so that SIGTERM reaches it; more JVM flags can be given."""
    pid, _, said, _ = container.start("main-zookeeper-0", ZOOKEEPER_JVM_FLAGS="-Xmx64m -Xss1m")
    told_pid, *arguments = said.split()
    assert int(told_pid) == pid
    assert arguments[-2:] == [
        "org.apache.zookeeper.server.quorum.QuorumPeerMain",
        str(container.config),
    ]
    assert {"-Xmx64m", "-Xss1m", "-XX:+ExitOnOutOfMemoryError"} <= set(arguments)


def test_a_restarted_member_keeps_its_number(container: Container) -> None:
    """The second start finds the number of the first and goes on."""
    container.start("main-zookeeper-1")
    _, status, _, complained = container.start("main-zookeeper-1")
    assert (status, complained) == (0, "")
    assert (container.data / "myid").read_text() == "2\n"


@pytest.mark.parametrize("written", ["1\n", "0", "", "two"])
def test_another_members_volume_is_refused(container: Container, written: str) -> None:
    """ZooKeeper is not started on data whose number is another's, or no number; they stay as is."""
    container.data.mkdir()
    (container.data / "myid").write_text(written, encoding="utf-8")
    _, status, said, complained = container.start("main-zookeeper-1")
    assert (status, said) == (1, "")
    assert "this pod is server.2" in complained
    assert (container.data / "myid").read_text() == written


def test_a_pod_beyond_the_ensemble_is_refused(container: Container) -> None:
    """A fourth pod is no member of an ensemble of three, and claims no volume."""
    _, status, _, complained = container.start("main-zookeeper-3")
    assert status == 1
    assert "server.4, but the configuration has only 1, 2, 3" in complained
    assert not (container.data / "myid").exists()


def test_a_single_server_needs_no_server_lines(container: Container) -> None:
    """Alone, ZooKeeper has no list of members; the number is written all the same."""
    container.config.write_text(f"dataDir={container.data}\n", encoding="utf-8")
    assert container.start("main-zookeeper-0")[1] == 0
    assert (container.data / "myid").read_text() == "1\n"


@pytest.mark.parametrize(
    ("pod", "config", "words"),
    [
        ("laptop", "dataDir=/data\n", "does not end in a number"),
        ("zookeeper-0", "tickTime=2000\n", "no dataDir"),
        ("zookeeper-0", "dataDir=data\n", "no dataDir that is an absolute path"),
        ("zookeeper-0", None, "cannot read"),
    ],
)
def test_a_startup_failure_is_one_line(
    container: Container, pod: str, config: str | None, words: str
) -> None:
    """The pod's log has the reason, not a traceback."""
    if config is None:
        container.config.unlink()
    else:
        container.config.write_text(config, encoding="utf-8")
    _, status, _, complained = container.start(pod)
    assert status == 1
    assert words in complained
    assert complained.count("\n") == 1


class Certificates:
    """A Secret as the kubelet mounts it: links, all of which are exchanged at once."""

    def __init__(self, directory: Path) -> None:
        self.mount, self.copy = directory / "secret", directory / "copy"
        self.mount.mkdir()
        self.copy.mkdir()
        self._round = 0

    def bring(self, **files: str) -> None:
        """Other contents."""
        self._round += 1
        version = self.mount / f"..{self._round}"
        version.mkdir()
        for name, text in files.items():
            (version / name).write_text(text)
            link = self.mount / name
            if not link.is_symlink():
                link.symlink_to(f"..data/{name}")
        link = self.mount / "..next"
        link.symlink_to(version.name)
        link.replace(self.mount / "..data")

    def copied(self) -> dict[str, str]:
        """What ZooKeeper finds."""
        return {each.name: each.read_text() for each in self.copy.iterdir()}


@pytest.fixture
def certificates(tmp_path: Path) -> Certificates:
    """A Secret with a first certificate."""
    found = Certificates(tmp_path)
    found.bring(store="one", trust="first")
    return found


@contextmanager
def running(
    container: Container, certificates: Certificates, java: str
) -> Iterator[subprocess.Popen[str]]:
    """A member with certificates and this script as its java, which says when it runs."""
    (container.home / "bin" / "java").write_text(f"#!/bin/sh\n{java}\n", encoding="utf-8")
    environment = {
        "PATH": os.environ["PATH"],
        "POD_NAME": "main-zookeeper-0",
        "ZOOKEEPER_CONFIG": str(container.config),
        "JAVA_HOME": str(container.home),
        "ZOOKEEPER_CERTIFICATES": str(certificates.mount),
        "ZOOKEEPER_CERTIFICATE_COPY": str(certificates.copy),
    }
    with subprocess.Popen(
        [sys.executable, "-IS", str(PROGRAM)], env=environment, text=True, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "runs\n"
        try:
            yield process
        finally:
            process.kill()


ENDS_IN_ORDER = "trap 'kill $!; exit 7' TERM; echo runs; sleep 600 & wait"


def test_renewed_certificates_are_copied(container: Container, certificates: Certificates) -> None:
    """By renaming, which ZooKeeper notices; nobody but ZooKeeper may read them."""
    with running(container, certificates, ENDS_IN_ORDER) as process:
        assert certificates.copied() == {"store": "one", "trust": "first"}
        assert {each.stat().st_mode & 0o777 for each in certificates.copy.iterdir()} == {0o600}
        before = (certificates.copy / "trust").stat().st_ino
        certificates.bring(store="two", trust="first")
        wait_for("the copy", certificates.copied, until=lambda it: it.get("store") == "two")
        assert (certificates.copy / "trust").stat().st_ino == before
        process.send_signal(signal.SIGTERM)
        assert process.wait(seconds(RUN)) == 7


def test_the_member_ends_as_its_server_does(
    container: Container, certificates: Certificates
) -> None:
    """Also by a signal, which a shell tells of so."""
    with running(container, certificates, "echo runs; kill -9 $$") as process:
        assert process.wait(seconds(RUN)) == 137


def test_files_that_cannot_be_read_leave_the_server_running(
    container: Container, certificates: Certificates
) -> None:
    """It goes on with what it has, and what follows is copied."""
    with running(container, certificates, ENDS_IN_ORDER) as process:
        gone = certificates.mount / "gone"
        gone.symlink_to("..data/gone")
        certificates.bring(store="two", trust="first")
        gone.unlink()
        wait_for("the copy", certificates.copied, until=lambda it: it.get("store") == "two")
        assert process.poll() is None


def _probe(container: Container, verb: str, port: int) -> tuple[int, str]:
    """The exit status of a probe, and its complaint; the member has the port for clients."""
    container.config.write_text(f"dataDir={container.data}\nclientPort={port}\n", "utf-8")
    _, status, said, complained = container.start("main-zookeeper-0", verb)
    assert said == ""
    assert not container.data.exists()
    return status, complained


@contextmanager
def without_quorum() -> Iterator[int]:
    """A member's port that accepts a connection, and answers as one without a quorum does."""
    answer = b"This ZooKeeper instance is not currently serving requests\n"
    with socket.create_server(("127.0.0.1", 0)) as server, ThreadPoolExecutor(1) as pool:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(4)
                connection.sendall(answer)

        served = pool.submit(serve)
        yield server.getsockname()[1]
        served.result(seconds(RUN))


@pytest.mark.parametrize("verb", ["live", "ready"])
def test_a_member_that_serves_is_live_and_ready(
    container: Container, tmp_path: Path, verb: str
) -> None:
    """Asked at the port of its configuration; neither probe starts a server or claims data."""

    async def scenario() -> tuple[int, str]:
        async with running_zookeeper(tmp_path / "zookeeper") as server:
            return await asyncio.to_thread(_probe, container, verb, server.port)

    assert asyncio.run(scenario()) == (0, "")


@pytest.mark.parametrize("verb", ["live", "ready"])
def test_a_member_without_a_port_is_neither(container: Container, verb: str) -> None:
    """The complaint, which Kubernetes shows in an event of the pod, has the reason."""
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    status, complained = _probe(container, verb, port)
    assert status == 1
    assert complained.startswith(f"zookeeper-member: no connection to port {port}: ")


def test_a_member_without_a_quorum_is_live_but_not_ready(container: Container) -> None:
    """It would be restarted for what only its peers can mend."""
    with without_quorum() as port:
        assert _probe(container, "live", port) == (0, "")
    with without_quorum() as port:
        status, complained = _probe(container, "ready", port)
    assert status == 1
    assert "does not serve: it answered srvr with 'This ZooKeeper instance is not" in complained


def test_an_unknown_verb_starts_no_server(container: Container) -> None:
    """A second server beside the pod's own would take its memory."""
    _, status, said, complained = container.start("main-zookeeper-0", "redy")
    assert (status, said) == (2, "")
    assert complained == "usage: zookeeper-member [live | ready]\n"
