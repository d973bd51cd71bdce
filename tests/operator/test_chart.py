"""The operator's own objects, as the chart renders them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import yaml

ROOT: Final = Path(__file__).resolve().parents[2]
CHART: Final = ROOT / "charts" / "barnabas-operator"


def rendered(kind: str) -> Any:
    """The one object of a kind in the rendered manifest."""
    text = (ROOT / "manifests" / "install.yaml").read_text(encoding="utf-8")
    (found,) = (each for each in yaml.safe_load_all(text) if each["kind"] == kind)
    return found


def test_the_operator_has_a_priority_class_and_a_budget() -> None:
    """The class is a value of the chart; the budget selects the pods and blocks no drain for ever.

    A single operator may be evicted: nothing serves through it.
    """
    deployment, budget = rendered("Deployment"), rendered("PodDisruptionBudget")
    selector = budget["spec"]["selector"]["matchLabels"]
    assert selector == deployment["spec"]["selector"]["matchLabels"]
    assert selector.items() <= deployment["spec"]["template"]["metadata"]["labels"].items()
    assert budget["spec"]["maxUnavailable"] == 1
    assert budget["spec"]["unhealthyPodEvictionPolicy"] == "AlwaysAllow"
    values = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    template = (CHART / "templates" / "deployment.yaml").read_text(encoding="utf-8")
    assert values["priorityClassName"] == ""
    assert "priorityClassName: {{ . }}" in template
