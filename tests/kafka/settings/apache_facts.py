"""What Apache Kafka 3.9.1 declares of its settings, as printed by fixtures/SettingFacts.java."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

FIXTURES = Path(__file__).parent / "fixtures"


@dataclass(frozen=True, slots=True)
class Fact:
    """One declaration: `accepted` has every candidate text that Kafka takes, by Kafka's verdict."""

    scope: str
    name: str
    kind: str
    default: str | None
    importance: str
    update: str
    internal: bool
    accepted: dict[str, bool]


def read_facts() -> list[Fact]:
    """Every broker and topic setting of Kafka 3.9.1."""
    first, *lines = (FIXTURES / "kafka-3.9.1.tsv").read_text("utf-8").splitlines()
    candidates = first.removeprefix("candidates\t").split("\x1f")
    facts = []
    for line in lines:
        scope, name, kind, default, importance, update, internal, verdicts = line.split("\t")
        facts.append(
            Fact(
                scope=scope,
                name=name,
                kind=kind,
                default=None if default == "\\N" else default,
                importance=importance.lower(),
                update=update,
                internal=internal == "true",
                accepted={
                    text: verdict == "1"
                    for text, verdict in zip(candidates, verdicts, strict=True)
                    if verdict != "-"
                },
            )
        )
    return facts


FACTS = read_facts()
