"""The processes of a cluster, and those that ended without a request to stop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from barnabas_operator.local import broker, coordination, processes, zookeeper
from barnabas_operator.local.state import Record, StateDirectory

BROKER_ENDED: Final = "BrokerEnded"
ZOOKEEPER_ENDED: Final = "ZooKeeperEnded"


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """A process of a cluster: what it is called for a person, and the reason where it has ended."""

    name: str
    ended_reason: str
    files: broker.BrokerFiles | zookeeper.ZooKeeperFiles

    @property
    def stopped(self) -> bool:
        """Whether it was stopped on purpose, or never started."""
        return self.files.entry() is None

    @property
    def running(self) -> bool:
        """Whether it runs."""
        entry = self.files.entry()
        return entry is not None and entry.running

    def end(self) -> str | None:
        """That it ended by itself, with its last words; None where it runs or was stopped."""
        entry = self.files.entry()
        if entry is None or entry.running:
            return None
        said = processes.last_words(self.files.log) or "it said nothing"
        return f"{self.name} ended by itself; its last words: {said} (log: {self.files.log})"


def watched(record: Record, state: StateDirectory) -> list[Watched]:
    """Every process that serves the cluster, brokers first."""
    found = [
        Watched(name=name, ended_reason=BROKER_ENDED, files=files)
        for name, files in broker.files_of(record, state).items()
    ]
    found += [
        Watched(name=name, ended_reason=ZOOKEEPER_ENDED, files=files)
        for name, files in coordination.files_of(record, state).items()
    ]
    return found
