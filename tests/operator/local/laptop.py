"""A machine to try `barnabas local` on: a state directory, a file, and what was said."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from barnabas_operator.local import documents
from barnabas_operator.local.broker import BrokerFiles
from barnabas_operator.local.down import down
from barnabas_operator.local.processes import Entry
from barnabas_operator.local.state import StateDirectory
from barnabas_operator.local.up import up
from barnabas_operator.local.view import View, look
from tests.operator import examples
from tests.oracle.apache import free_port
from tests.waiting import START, seconds

Document = dict[str, Any]


def cluster(*, config: Mapping[str, str] | None = None, **spec: Any) -> Document:
    """The quickstart's KafkaCluster on ports that are free here."""
    listeners = [
        {"name": "plain", "type": "internal", "port": free_port()},
        {"name": "external", "type": "nodeport", "port": 9094, "nodePort": free_port()},
    ]
    spec.setdefault("listeners", listeners)
    return _bare(examples.cluster(config=dict(config or {}), **spec))


def topic(name: str = "packages", **spec: Any) -> Document:
    """A KafkaTopic of that cluster."""
    return _bare(examples.topic(name, **spec))


def pipeline(**spec: Any) -> Document:
    """The quickstart's KafkaPipeline."""
    return _bare(examples.pipeline(**spec))


def _bare(document: Document) -> Document:
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
        manifest = documents.read_file(self.file)
        options = {"timeout_s": seconds(START), **options}
        seen: View = up(manifest, self.file, self.state, say=self.said.append, **options)
        return seen

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
        entry = BrokerFiles(self.state.broker(0)).entry()
        assert entry is not None
        return entry
