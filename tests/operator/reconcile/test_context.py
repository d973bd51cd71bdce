"""Events of a reconciliation: the scenario of a cluster, step by step."""

from __future__ import annotations

import dataclasses

from barnabas_operator.reconcile.context import Context, Regarding
from barnabas_operator.reconcile.reconciler import Key, reconcile
from tests.operator import examples
from tests.operator.memory_kube import MemoryKube
from tests.operator.ports import MemoryBrokers, context_on

KEY = Key("default", "quickstart")


class Scenario:
    """Events as lines."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def record(
        self, regarding: Regarding, *, action: str, reason: str, note: str, warning: bool = False
    ) -> None:
        """See Recorder."""
        kind = "Warning" if warning else "Normal"
        self.lines.append(f"{kind} {regarding.kind}/{regarding.name} {reason}: {note}")


def _context(kube: MemoryKube, scenario: Scenario) -> Context:
    return dataclasses.replace(context_on(kube, MemoryBrokers()), events=scenario)


def test_each_step_and_each_change_of_ready_is_an_event() -> None:
    """And nothing is, while nothing happens."""
    kube, scenario = MemoryKube(examples.cluster(), examples.topic()), Scenario()
    reconcile(KEY, _context(kube, scenario))
    text = "\n".join(scenario.lines)
    assert "Normal KafkaCluster/quickstart Apply: apply StatefulSet quickstart-broker: mis" in text
    assert "Normal KafkaCluster/quickstart Starting: " in text
    assert "Normal KafkaTopic/packages WaitingForCluster: " in text
    kube.settle()
    scenario.lines.clear()
    reconcile(KEY, _context(kube, scenario))
    assert any(line.startswith("Normal KafkaCluster/quickstart Ready: ") for line in scenario.lines)
    scenario.lines.clear()
    reconcile(KEY, _context(kube, scenario))
    assert scenario.lines == []


def test_a_refusal_is_a_warning() -> None:
    """With the step, and the API server's reason."""
    kube, scenario = MemoryKube(examples.cluster()), Scenario()
    kube.refuses["apply Service quickstart-bootstrap"] = "Service is invalid: spec: too long"
    reconcile(KEY, _context(kube, scenario))
    refusals = [line for line in scenario.lines if " Refused: apply Service" in line]
    assert len(refusals) == 1
    assert refusals[0].startswith("Warning KafkaCluster/quickstart ")
    assert "the API server refuses it: too long" in refusals[0]
