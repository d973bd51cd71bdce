"""A broker as a process on loopback: started, found again, restarted with a reason.

Its server.properties comes from the template that pods get theirs from. Two things differ: where
it is the only broker it keeps the coordination data itself, and the ports are those that are free
here, counted on from broker to broker. A listener of type nodeport is reached under its port of the
nodes, for that is the port that clients outside of Kubernetes know.
"""

from __future__ import annotations

import json
import socket
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from barnabas_kafka.settings.properties import parse_properties
from barnabas_operator.api.clusters import KafkaCluster, ListenerStatus
from barnabas_operator.api.listeners import Listener
from barnabas_operator.api.reading import Resource
from barnabas_operator.local import processes
from barnabas_operator.local.state import LocalError, Port, Record, StateDirectory
from barnabas_operator.names import ClusterNames
from barnabas_operator.resources.config import (
    inter_broker_listener,
    is_replication,
    secured_settings,
    server_properties,
)
from barnabas_operator.resources.objects import digest

HOST: Final = "127.0.0.1"
# How long a broker that was not ready in time may take to end.
ABANDON_S: Final = 10.0

Cluster = Resource[KafkaCluster]
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class BrokerFiles(processes.ProcessFiles):
    """Where the files of the broker are."""

    NAME = "broker"

    @property
    def settings(self) -> Path:
        """server.properties."""
        return self.directory / "server.properties"

    @property
    def ready(self) -> Path:
        """What the broker writes when clients can connect."""
        return self.directory / "ready.json"

    def admin_url(self) -> str | None:
        """Where a ready broker serves its metrics; None if it has not come so far."""
        try:
            url: str | None = json.loads(self.ready.read_text()).get("admin")
        except FileNotFoundError:
            return None
        return url


def name_of(broker_id: int, record: Record) -> str:
    """What a broker is called, for a person."""
    return f"broker {broker_id}" if len(record.brokers) > 1 else "the broker"


def files_of(record: Record, state: StateDirectory) -> dict[str, BrokerFiles]:
    """The files of every broker of the cluster, by what it is called."""
    return {
        name_of(broker_id, record): BrokerFiles(state.broker(broker_id))
        for broker_id in record.brokers
    }


def asked_port(listener: Listener, broker_id: int) -> int:
    """The port that a client on this machine would try; 0, any, where no client comes."""
    if is_replication(listener):
        return 0
    first = listener.port if listener.node_port is None else listener.node_port
    return first + broker_id


def bootstrap_servers(cluster: Cluster, record: Record) -> str:
    """Where brokers are reached by each other, and from here."""
    return _servers(record, inter_broker_listener(cluster.body.spec.all_listeners).name)


def _servers(record: Record, listener: str) -> str:
    ports = (each.ports.get(listener) for each in record.brokers.values())
    return ",".join(f"{HOST}:{port.got}" for port in ports if port is not None)


def listeners(cluster: Cluster, record: Record) -> tuple[ListenerStatus, ...]:
    """Where each listener is reached, as far as it is known."""
    return tuple(
        ListenerStatus(
            name=each.name,
            type=each.type.value,
            bootstrap_servers=servers,
        )
        for each in cluster.body.spec.listeners
        if (servers := _servers(record, each.name))
    )


def settings_text(
    cluster: Cluster,
    ports: Mapping[str, Port],
    data: Path,
    connect: str | None = None,
    *,
    pki: Path,
) -> str:
    """The server.properties; a port of 0 takes a free one. `pki` has what TLS needs."""
    spec = cluster.body.spec
    here = tuple(replace(each, port=ports[each.name].got) for each in spec.all_listeners)
    secured: dict[str, str] = {}
    if spec.secured:
        names = ClusterNames(cluster.meta.name, cluster.meta.namespace)
        users = spec.authorization.super_users if spec.authorization else ()
        secured = secured_settings(names, users, str(pki))
    return server_properties(
        cluster.meta.name,
        listeners=here,
        config={**spec.broker_config, **secured},
        brokers=spec.brokers.replicas,
        zookeeper_connect=connect,
        data_directory=str(data),
        tls_directory=str(pki),
        host=HOST,
        admin_port=0,
    )


def differences(before: str, after: str) -> list[str]:
    """What is another setting than before, for a person."""
    old, new = (
        parse_properties(text.encode(), origin="server.properties") for text in (before, after)
    )
    changes = []
    for name in sorted(old.keys() | new.keys()):
        if name not in new:
            changes.append(f"{name} is no longer set")
        elif name not in old:
            changes.append(f"{name}={new[name]} is new")
        elif old[name] != new[name]:
            changes.append(f"{name} was {old[name]}, becomes {new[name]}")
    return changes


def is_free(port: int) -> bool:
    """Whether a port of the loopback address can be had now."""
    with socket.socket() as attempt:
        # As servers do: connections that are still closing are no hindrance.
        attempt.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            attempt.bind((HOST, port))
        except OSError:
            return False
    return True


def choose_port(listener: Listener, before: Port | None, *, keep: bool, broker_id: int = 0) -> Port:
    """The port for a start: the one asked for, else the one it had, else a free one (0).

    With `keep` the one it had comes first: clients are connected to it.
    """
    asked = asked_port(listener, broker_id)
    had = [before.got] if before is not None and before.asked == asked else []
    candidates = [*had, asked] if keep or not asked else [asked, *had]
    return Port(asked, next((port for port in candidates if is_free(port)), 0))


class Starting:
    """A broker between its command and its readiness."""

    def __init__(
        self, entry: processes.Entry, files: BrokerFiles, *, began: float, name: str
    ) -> None:
        self._entry = entry
        self._files = files
        self._began = began
        self._name = name

    def await_ready(self, deadline: float) -> tuple[Mapping[str, int], str, float]:
        """Ports by the listeners' names in Kafka, cluster id, seconds it took.

        Raises LocalError, with the broker's last words; it is not left running then.
        """
        ready = self._files.ready
        try:
            while not ready.exists():
                if not self._entry.running:
                    raise LocalError(self._why("cannot start"))
                if time.monotonic() > deadline:
                    raise LocalError(self._why("is not ready in time (--timeout)"))
                time.sleep(processes.POLL_S)
            document = json.loads(ready.read_text())
            # The moment of readiness, whatever else this command did meanwhile.
            seconds = ready.stat().st_mtime - self._began
        except BaseException:  # An interrupt must not leave a broker half started.
            self.abandon()
            raise
        ports = {
            name: int(address.rpartition(":")[2]) for name, address in document["listeners"].items()
        }
        return ports, document["cluster_id"], max(seconds, 0.0)

    def abandon(self) -> None:
        """End it; there is nothing to lose yet."""
        processes.abandon(self._entry, timeout_s=ABANDON_S)
        self._files.pid.unlink(missing_ok=True)

    def _why(self, what: str) -> str:
        said = processes.last_words(self._files.log)
        said = said.removeprefix("barnabas: ").removeprefix("cannot start: ")
        return f"{self._name} {what}: {said or 'it said nothing'} (log: {self._files.log})"


@dataclass(frozen=True, slots=True)
class LocalBroker:
    """One broker of a cluster; `connect` is where its coordination data are, None within it."""

    id: int
    cluster: Cluster
    record: Record
    state: StateDirectory
    connect: str | None
    authority: str = ""
    """The certificates that clients trust, where there are any."""

    @property
    def name(self) -> str:
        """What it is called, for a person."""
        return name_of(self.id, self.record)

    @property
    def files(self) -> BrokerFiles:
        """Where its files are."""
        return BrokerFiles(self.state.broker(self.id))

    @property
    def running(self) -> bool:
        """Whether its process lives."""
        entry = self.files.entry()
        return entry is not None and entry.running

    def ensure(self, *, say: Say, timeout_s: float) -> Starting | None:
        """Bring the process to what it should be; returns it if it had to be started.

        Settings take effect at a start, so other settings are another start; the reasons are
        printed.
        """
        files = self.files
        files.directory.mkdir(parents=True, exist_ok=True)
        entry = files.entry()
        running = entry is not None and entry.running
        if entry is not None and running:
            reasons = self._reasons(entry)
            if not reasons:
                return None
            say(f"restarting {self.name}: {'; '.join(reasons)}")
            end(files, name=self.name, timeout_s=timeout_s)
        elif entry is not None:
            say(processes.exit_message(self.name, files.log))
        known = self.record.brokers[self.id]
        before = known.ports
        known.ports = {
            each.name: choose_port(each, before.get(each.name), keep=running, broker_id=self.id)
            for each in self.cluster.body.spec.all_listeners
        }
        return self._start(self._settings(known.ports))

    def _settings(self, ports: Mapping[str, Port]) -> str:
        return settings_text(self.cluster, ports, self.files.data, self.connect, pki=self.state.pki)

    def _fingerprint(self, text: str) -> str:
        return digest([text, self.authority]) if self.authority else digest(text)

    def _reasons(self, entry: processes.Entry) -> list[str]:
        """Why the broker that runs is not the one that is wanted."""
        wanted = self.cluster.body.spec.all_listeners
        known = self.record.brokers[self.id].ports
        asked = {each.name: asked_port(each, self.id) for each in wanted}
        ports = {name: known.get(name, Port(port, 0)) for name, port in asked.items()}
        moved = [
            f"listener {name} asks for port {port} now"
            for name, port in asked.items()
            if ports[name].asked != port
        ]
        text = self._settings(ports)
        if self._fingerprint(text) == entry.fingerprint:
            return moved
        try:
            found = differences(self.files.settings.read_text(), text)
        except OSError:
            found = []
        unknown = "settings than it should" if not self.authority else "certificates than it should"
        return moved + (found or [f"it runs with other {unknown}"])

    def _start(self, text: str) -> Starting:
        files = self.files
        processes.write_atomically(files.settings, text)
        files.ready.unlink(missing_ok=True)
        # -P: a module in the current directory must not shadow one that the broker imports.
        command = [
            sys.executable, "-P", "-m", "barnabas_broker.cli", "broker", "start",
            "--config", str(files.settings), "--set", f"broker.id={self.id}",
            "--ready-file", str(files.ready), "--supervised",
        ]  # fmt: skip
        began = time.time()
        entry = processes.launch(
            command,
            directory=files.directory,
            log=files.log,
            pid_file=files.pid,
            fingerprint=self._fingerprint(text),
        )
        return Starting(entry, files, began=began, name=self.name)

    def settle(self, starting: Starting, deadline: float) -> list[str]:
        """Wait for a started broker and remember its ports; returns what a person should know."""
        known = self.record.brokers[self.id]
        got, self.record.cluster_id, known.startup_s = starting.await_ready(deadline)
        messages = []
        for each in self.cluster.body.spec.all_listeners:
            port = Port(asked_port(each, self.id), got[each.kafka_name])
            known.ports[each.name] = port
            if port.asked not in (0, port.got):
                messages.append(
                    f"port {port.asked} is in use; listener {each.name} is at {port.got}"
                )
        # From now on it is known what a free port was, and this is what the broker runs with.
        text = self._settings(known.ports)
        processes.write_atomically(self.files.settings, text)
        entry = self.files.entry()
        if entry is not None:
            entry = replace(entry, fingerprint=self._fingerprint(text))
            processes.write_entry(self.files.pid, entry)
        return messages


def end(files: BrokerFiles, *, name: str, timeout_s: float) -> bool:
    """Stop a broker; whether one was running. Raises LocalError if it does not stop in time."""
    entry = files.entry()
    running = entry is not None and entry.running
    if entry is not None and not processes.stop(entry, timeout_s=timeout_s):
        text = f"{name} does not stop within {timeout_s:g} s; it may be writing much"
        raise LocalError(f"{text}: see {files.log}, try again, or kill -9 {entry.pid}")
    files.pid.unlink(missing_ok=True)
    return running
