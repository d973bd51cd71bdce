"""What transactional producers and members of groups have written down, and what in it is wrong."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, TopicPartition

from tests.clients.client_process import reported
from tests.clients.under_load import PARTITIONS, TOPIC
from tests.waiting import ANSWER, seconds


@dataclass
class Attempt:
    """One transaction: what was written in it, and what its producer knows of its end."""

    values: list[str]
    outcome: str = "unknown"


@dataclass
class Notes:
    """What all clients were told, and what they found wrong."""

    attempts: list[Attempt] = field(default_factory=list)
    read: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    met: Counter[str] = field(default_factory=Counter)

    @classmethod
    def of(cls, directory: Path) -> Notes:
        """From what the clients have written down so far."""
        notes = cls()
        for scenario in directory.glob("*.jsonl"):
            for line in reported(scenario):
                notes._add(line)
        return notes

    def _add(self, line: dict[str, Any]) -> None:
        match line:
            case {"values": values}:
                self.attempts.append(Attempt(values))
            case {"outcome": outcome}:
                self.attempts[-1].outcome = outcome
            case {"read": values}:
                self.read.update(values)
            case {"fault": fault}:
                self.faults.append(fault)
            case {"met": what}:
                self.met[what] += 1
            case _:
                raise AssertionError(line)


def commit_first_offsets(bootstrap: str, team: str, properties: Mapping[str, str]) -> None:
    """Where members begin: from here on the group has an offset for every partition."""
    first = Consumer({"bootstrap.servers": bootstrap, "group.id": team} | dict(properties))
    first.commit(
        offsets=[TopicPartition(TOPIC, each, 0) for each in range(PARTITIONS)], asynchronous=False
    )
    first.close()


def check_values(attempts: list[Attempt], visible: Counter[str]) -> None:
    """All of a transaction once or nothing of it, as its producer was told."""
    assert not [value for value, count in visible.items() if count > 1], "doubled"
    for attempt in attempts:
        found = {value in visible for value in attempt.values}
        assert len(found) == 1, f"torn: {attempt}"
        if attempt.outcome != "unknown":
            assert found == {attempt.outcome == "committed"}, attempt


def committed(bootstrap: str, team: str, properties: Mapping[str, str]) -> dict[int, int]:
    """How far a team has come, by what its coordinator answers."""
    reader = Consumer({"bootstrap.servers": bootstrap, "group.id": team} | dict(properties))
    asked = [TopicPartition(TOPIC, it) for it in range(PARTITIONS)]
    found: defaultdict[int, int] = defaultdict(int)
    found |= {
        it.partition: max(it.offset, 0) for it in reader.committed(asked, timeout=seconds(ANSWER))
    }
    reader.close()
    return found
