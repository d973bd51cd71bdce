"""A machine to try `barnabas local` on: a state directory, a file, and what was said."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from barnabas_operator.local import documents
from barnabas_operator.local.broker import BrokerFiles
from barnabas_operator.local.down import down
from barnabas_operator.local.processes import Entry
from barnabas_operator.local.repair import recorded_security
from barnabas_operator.local.state import StateDirectory
from barnabas_operator.local.up import up
from barnabas_operator.local.view import View, look
from tests.operator import examples
from tests.oracle.apache import free_port
from tests.waiting import START, seconds, wait_for

Document = dict[str, Any]


def cluster(*, config: Mapping[str, str] | None = None, **spec: Any) -> Document:
    """The quickstart's KafkaCluster on ports that are free here."""
    listeners = [
        {"name": "plain", "type": "internal", "port": free_port()},
        {"name": "external", "type": "nodeport", "port": 9094, "nodePort": free_port()},
    ]
    spec.setdefault("listeners", listeners)
    return bare(examples.cluster(config=dict(config or {}), **spec))


def topic(name: str = "packages", **spec: Any) -> Document:
    """A KafkaTopic of that cluster."""
    return bare(examples.topic(name, **spec))


def colliding_topics() -> tuple[Document, Document]:
    """Two of which a broker refuses the second: metrics have one name for both (KAFKA-2145)."""
    return topic("a.b"), topic("second", topicName="a_b")


def pipeline(**spec: Any) -> Document:
    """The quickstart's KafkaPipeline."""
    return bare(examples.pipeline(**spec))


def secured_cluster(**spec: Any) -> Document:
    """A KafkaCluster that is secured, with one listener on a port that is free here."""
    listener = {**examples.SECURED_LISTENER, "port": free_port()}
    return bare(examples.cluster(**{"listeners": [listener], "insecure": False, **spec}))


def bare(document: Document) -> Document:
    """As a person writes it."""
    return {**document, "metadata": {"name": document["metadata"]["name"]}}


class Laptop:
    """One state directory and one file in a temporary directory."""

    def __init__(self, directory: Path) -> None:
        self.file = directory / "cluster.yaml"
        self.state = StateDirectory(directory / "state")
        self.said: list[str] = []

    def write(self, *wanted: Document) -> None:
        """Write the file."""
        self.file.write_text(yaml.safe_dump_all(wanted))

    def up(self, *wanted: Document, **options: Any) -> View:
        """Write the file and bring it up."""
        if wanted:
            self.write(*wanted)
        self.said = []
        manifest = self.manifest(secure=options.pop("secure", False))
        options = {"timeout_s": seconds(START), **options}
        seen: View = up(manifest, self.file, self.state, say=self.said.append, **options)
        return seen

    def manifest(self, *, secure: bool = False) -> documents.Manifest:
        """What `up` reads, given what was recorded."""
        return documents.read_file(
            self.file, recorded=lambda _: recorded_security(self.state), secure=secure
        )

    def files(self) -> dict[str, bytes]:
        """What is kept of keys, and given to clients of users."""
        return {
            str(file.relative_to(self.state.path)): file.read_bytes()
            for directory in ("pki", "users")
            for file in self.state.path.joinpath(directory).rglob("*")
            if file.is_file()
        }

    def down(self, **options: Any) -> None:
        """Stop what runs."""
        self.said = []
        down(self.state, say=self.said.append, timeout_s=seconds(START), **options)

    def look(self) -> View:
        """What `status` sees."""
        record = self.state.load()
        assert record is not None
        return look(record, self.state)

    @property
    def broker(self) -> Entry:
        """The broker's process."""
        return self._process(0)

    def _process(self, broker_id: int) -> Entry:
        entry = BrokerFiles(self.state.broker(broker_id)).entry()
        assert entry is not None
        return entry

    def kill(self, broker_id: int = 0) -> Entry:
        """End a broker as a crash would; returns the process that it was.

        The signal is sent before the process has ended, and its ports are its own until then.
        """
        entry = self._process(broker_id)
        os.kill(entry.pid, signal.SIGKILL)
        wait_for("the end of the broker", lambda: entry.running, until=lambda it: not it)
        return entry
