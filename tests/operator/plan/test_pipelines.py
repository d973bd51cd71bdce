"""The plan of a pipeline: which image, what is held, and which user can be used."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas_operator.api.reading import read_pipeline
from barnabas_operator.plan.observed import Images
from barnabas_operator.plan.pipelines import PipelinePlan, plan_pipeline, user_problem
from barnabas_operator.plan.steps import Apply
from tests.operator import examples
from tests.operator.plan import transcript

IMAGES = Images(broker="b:1", zookeeper="z:1", pipeline="p:1", operator="1")


def _plan(document: examples.Document, found: dict[str, Any], images: Images) -> PipelinePlan:
    return plan_pipeline(
        read_pipeline(document),
        found,
        stateful_set=found.get("StatefulSet"),
        claims=(),
        images=images,
        bootstrap_servers="q:9092",
    )


def _applied(plan: PipelinePlan) -> dict[str, Any]:
    return {step.body["kind"]: step.body for step in plan.steps if isinstance(step, Apply)}


def test_steps_of_a_new_pipeline() -> None:
    """All objects, and none once they are there."""
    plan = _plan(examples.pipeline(), {}, IMAGES)
    assert transcript(plan.steps) == (
        "apply ConfigMap packages-to-parquet-pipeline: missing",
        "apply Service packages-to-parquet-pipeline: missing",
        "apply StatefulSet packages-to-parquet-pipeline: missing",
    )
    assert _plan(examples.pipeline(), _applied(plan), IMAGES).steps == ()


def test_a_pod_of_an_older_operator_stays_until_the_resource_changes() -> None:
    """But for a Service that was changed by hand: it replaces no pod."""
    found = _applied(_plan(examples.pipeline(), {}, IMAGES))
    newer = Images(broker="b:2", zookeeper="z:2", pipeline="p:2", operator="2")
    plan = _plan(examples.pipeline(), found, newer)
    assert plan.steps == ()
    assert plan.image == "p:1"
    assert plan.update_available
    changed = examples.pipeline(image="mine")
    changed["metadata"]["generation"] = 2
    plan = _plan(changed, found, newer)
    assert plan.image == "mine"
    assert not plan.update_available
    assert _applied(plan).keys() == {"ConfigMap", "StatefulSet"}


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        ({}, "UserNotReady"),
        ({"conditions": [{"type": "Ready", "status": "False", "reason": "X"}]}, "UserNotReady"),
        ({"conditions": [{"type": "Ready", "status": "True"}]}, None),
    ],
)
def test_a_user_has_to_be_ready(status: dict[str, Any], reason: str | None) -> None:
    """As its own conditions have it."""
    pipeline = read_pipeline(examples.pipeline(user="archivist"))
    found = user_problem(pipeline, {**examples.pipeline_user(), "status": status})
    assert (found.reason if found else None) == reason


def test_a_user_that_is_deleted_is_not_begun_with() -> None:
    """Its Secret goes with it."""
    user = examples.pipeline_user()
    user["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    found = user_problem(read_pipeline(examples.pipeline(user="archivist")), user)
    assert found is not None
    assert "is being deleted" in found.message
