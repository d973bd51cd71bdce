#!/usr/bin/python3 -IS
"""Settles which member of a ZooKeeper ensemble this pod is, then starts ZooKeeper's server.

The configuration is an ordinary zoo.cfg, the same for all members (`ZOOKEEPER_CONFIG`, by default
/etc/barnabas/zoo.cfg). Who a member is follows from its name: the pod `main-zookeeper-2` is
`server.3`, since ZooKeeper counts from 1. The number is kept in the data directory as `myid`; a
directory that has another number belongs to another member. To start on it would give one vote to
the ensemble twice and could lose what was agreed, so that is refused.

Certificates come in a directory (`ZOOKEEPER_CERTIFICATES`) whose files are links that Kubernetes
exchanges, which ZooKeeper's watch of its key store does not notice. So their content is copied to
another one (`ZOOKEEPER_CERTIFICATE_COPY`) by renaming, at the start and for as long as the server
runs. Without that this process becomes the server.

`zookeeper-member live` and `zookeeper-member ready` are the pod's probes: whether the server
accepts connections, and whether it serves, which a member without a quorum does not.

The image's entry point; standard library only.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

DEFAULT_CONFIG: Final = "/etc/barnabas/zoo.cfg"
DEFAULT_HOME: Final = "/opt/zookeeper"
DEFAULT_JAVA: Final = "/opt/java"
MAIN_CLASS: Final = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
# The heap is what the data tree needs; threads, buffers and the log's page cache share the rest.
JVM_FLAGS: Final = (
    "-XX:MaxRAMPercentage=60",
    "-XX:+UseSerialGC",
    "-XX:+ExitOnOutOfMemoryError",
    "-XX:-UsePerfData",  # Its file would be the only one written outside the data directory.
    "-Djava.awt.headless=true",
    # Members start together, and the first finds nobody. It asks again after twice the time before:
    # up to a minute by default, while the others may be there after seconds.
    "-Dzookeeper.fastleader.maxNotificationInterval=2000",
)
# Java remembers for ten seconds that a host has no address; that of a new pod comes in less.
SECURITY_PROPERTIES: Final = "conf/java.security"
# The kubelet brings a renewed certificate within about a minute; it is copied as soon after.
RENEWAL_INTERVAL_S: Final = 2.0
# Of a probe: less than the kubelet gives it, so that it can say what it waited for.
PROBE_TIMEOUT_S: Final = 4.0
# Far more than an answer to `srvr` has.
LONGEST_ANSWER: Final = 64 * 1024
_MODE: Final = re.compile(rb"^Mode: ", re.MULTILINE)
_POD_NAME: Final = re.compile(r".*-([0-9]+)")
_SERVER: Final = re.compile(r"server\.([0-9]+)")


class MemberError(Exception):
    """Why this member cannot start, in words for the person who reads the pod's log."""


def main(arguments: Sequence[str], environment: Mapping[str, str]) -> int:
    """Start the server, or ask the one that runs; 1 where that fails, 2 for an unknown verb."""
    verbs = {(): start, ("live",): live, ("ready",): ready}
    verb = verbs.get(tuple(arguments))
    if verb is None:
        sys.stderr.write("usage: zookeeper-member [live | ready]\n")
        return 2
    try:
        return verb(environment)
    except (MemberError, OSError) as error:
        sys.stderr.write(f"zookeeper-member: {error}\n")
        return 1


def live(environment: Mapping[str, str]) -> int:
    """Whether the server of this pod accepts connections."""
    with _connected(environment):
        return 0


def ready(environment: Mapping[str, str]) -> int:
    """Whether it serves: only then its answer to `srvr` has a mode."""
    answer = b""
    with _connected(environment) as connection:
        connection.sendall(b"srvr")
        while (part := connection.recv(LONGEST_ANSWER)) and len(answer) < LONGEST_ANSWER:
            answer += part
    if not _MODE.search(answer):
        text = answer.decode("utf-8", "replace").strip() or "nothing"
        raise MemberError(f"this member does not serve: it answered srvr with {text[:200]!r}")
    return 0


def _connected(environment: Mapping[str, str]) -> socket.socket:
    """At the port without TLS, which is the pod's own where the others are secured."""
    config = Path(environment.get("ZOOKEEPER_CONFIG", DEFAULT_CONFIG))
    port = read_settings(config).get("clientPort", "")
    if not port.isdecimal():
        raise MemberError(f"{config} has no clientPort that is a number")
    try:
        return socket.create_connection(("127.0.0.1", int(port)), PROBE_TIMEOUT_S)
    except OSError as error:
        raise MemberError(f"no connection to port {port}: {error}") from error


def start(environment: Mapping[str, str]) -> int:
    """Check the member against its data directory, and run the server; returns its status."""
    config = Path(environment.get("ZOOKEEPER_CONFIG", DEFAULT_CONFIG))
    settings = read_settings(config)
    data = Path(settings.get("dataDir", ""))
    if not data.is_absolute():
        raise MemberError(f"{config} has no dataDir that is an absolute path")
    servers = {int(match[1]) for key in settings if (match := _SERVER.fullmatch(key))}
    claim(data, member_id(environment.get("POD_NAME") or socket.gethostname(), servers))
    home = environment.get("ZOOKEEPER_HOME", DEFAULT_HOME)
    java = environment.get("JAVA_HOME", DEFAULT_JAVA) + "/bin/java"
    security = f"-Djava.security.properties={home}/{SECURITY_PROPERTIES}"
    flags = [*JVM_FLAGS, security, *environment.get("ZOOKEEPER_JVM_FLAGS", "").split()]
    command = [java, *flags, "-cp", f"{home}/conf:{home}/lib/*", MAIN_CLASS, str(config)]
    source = environment.get("ZOOKEEPER_CERTIFICATES")
    if not source:
        # As this very process: the SIGTERM of Kubernetes reaches Java, which closes its log.
        os.execve(java, command, dict(environment))  # noqa: S606 - no shell is the point
    copy = Copy(Path(source), Path(environment["ZOOKEEPER_CERTIFICATE_COPY"]))
    return run(command, environment, copy)


class Copy:
    """The certificates as ZooKeeper reads them; raises OSError."""

    def __init__(self, source: Path, target: Path) -> None:
        self._source, self._target = source, target
        self.renew()

    def renew(self) -> None:
        """Copy each file that differs, whole or not at all; nobody else may read it."""
        for file in sorted(self._source.iterdir()):
            if file.name.startswith("."):
                continue
            content, place = file.read_bytes(), self._target / file.name
            if place.exists() and place.read_bytes() == content:
                continue
            partial = self._target / f".{file.name}.part"
            partial.unlink(missing_ok=True)
            partial.touch(0o600, exist_ok=False)
            partial.write_bytes(content)
            partial.replace(place)


def run(command: list[str], environment: Mapping[str, str], copy: Copy) -> int:
    """Run the server beside this process, which copies renewed certificates and hands on signals.

    Returns the status of the server, as a shell would where a signal ended it.
    """
    handed_on = {signal.SIGTERM, signal.SIGINT}
    awaited = {*handed_on, signal.SIGCHLD}
    signal.pthread_sigmask(signal.SIG_BLOCK, awaited)
    server = os.posix_spawn(command[0], command, dict(environment), setsigmask=())
    while (status := _reap(server)) is None:
        told = signal.sigtimedwait(awaited, RENEWAL_INTERVAL_S)
        if told is not None and told.si_signo in handed_on:
            os.kill(server, told.si_signo)
        elif told is None:
            try:
                copy.renew()
            except OSError as error:
                # The server goes on with what it has; what it lacks is copied the next time.
                sys.stderr.write(f"zookeeper-member: certificates are not renewed: {error}\n")
    return status if status >= 0 else 128 - status


def _reap(server: int) -> int | None:
    """The exit code of the server, negative for a signal; None while it runs.

    Of a container's first process orphans become children, too; several may have ended at once.
    """
    while True:
        ended, status = os.waitpid(-1, os.WNOHANG)
        if ended == server:
            return os.waitstatus_to_exitcode(status)
        if not ended:
            return None


def read_settings(path: Path) -> dict[str, str]:
    """The keys and values of a zoo.cfg; raises MemberError where it cannot be read."""
    try:
        lines = path.read_text("utf-8").splitlines()
    except OSError as error:
        raise MemberError(f"cannot read {path}: {error.strerror}") from error
    pairs = (line.partition("=") for line in lines if not line.lstrip().startswith("#"))
    return {key.strip(): value.strip() for key, equals, value in pairs if equals}


def member_id(pod: str, servers: set[int]) -> int:
    """The number of the member that runs in a pod; an ensemble's configuration must have it."""
    match = _POD_NAME.fullmatch(pod)
    if match is None:
        raise MemberError(f"the name of this pod, {pod}, does not end in a number")
    number = int(match[1]) + 1
    if servers and number not in servers:
        known = ", ".join(map(str, sorted(servers)))
        raise MemberError(f"pod {pod} is server.{number}, but the configuration has only {known}")
    return number


def claim(data: Path, number: int) -> None:
    """Write `myid`, or hold the one that is there against this member's number."""
    path = data / "myid"
    try:
        written = path.read_text("utf-8").strip()
    except FileNotFoundError:
        data.mkdir(parents=True, exist_ok=True)
        _write_durably(path, f"{number}\n")
        return
    if written != str(number):
        raise MemberError(
            f"{path} says server.{written}, but this pod is server.{number}: this is the volume"
            " of another member; ZooKeeper is not started on it"
        )


def _write_durably(path: Path, text: str) -> None:
    """Whole or not at all, also when the node loses power: half a myid would stop the member."""
    partial = path.with_name(f".{path.name}.part")
    with partial.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], os.environ))
