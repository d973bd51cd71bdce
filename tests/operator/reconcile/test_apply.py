"""Steps taken on the API server."""

from __future__ import annotations

from dataclasses import replace

import pytest

from barnabas_operator.api.reading import read_cluster
from barnabas_operator.kube import KubeError
from barnabas_operator.plan.steps import Apply, DeletePod, Step
from barnabas_operator.reconcile.apply import apply_steps, short, summary
from tests.operator import examples
from tests.operator.memory_kube import MemoryKube
from tests.operator.ports import context_on

META = read_cluster(examples.cluster()).meta


def _apply(name: str) -> Apply:
    meta = {"name": name, "namespace": "default"}
    return Apply(body={"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}, reason="missing")


def test_a_refused_step_does_not_stop_the_others() -> None:
    """What was refused is told in one short message."""
    kube = MemoryKube()
    kube.refuses = {"apply ConfigMap a": "no a", "apply ConfigMap c": "no c"}
    steps = [_apply(name) for name in "abc"]
    counted: list[tuple[str, str]] = []
    counting = replace(context_on(kube), count_step=lambda *step: counted.append(step))
    refused = apply_steps(steps, META, counting)
    assert [result for _, result in counted] == ["refused", "applied", "refused"]
    assert [each.message for each in refused] == ["no a", "no c"]
    reported = "apply ConfigMap a is refused: no a (and 1 more)"
    assert summary(refused) == reported
    assert kube.writes == ["apply ConfigMap b"]


def test_an_api_server_that_is_gone_ends_the_pass() -> None:
    """Nothing after it would succeed; the pass is tried again as a whole."""

    steps: list[Step] = [_apply("a"), DeletePod(name="p", uid="u", reason="r")]
    kube = MemoryKube()
    kube.fail("apply", 0)
    with pytest.raises(KubeError, match="timed out"):
        apply_steps(steps, META, context_on(kube))
    assert kube.writes == []


def test_a_kind_that_is_not_served_stops_nothing_else() -> None:
    """Its definition is not installed, as that of the Gateway API's routes may be."""
    kube = MemoryKube()
    kube.fail("apply ConfigMap a", 404)
    (refused,) = apply_steps([_apply("a"), _apply("b")], META, context_on(kube))
    assert refused.message == "the API server has no ConfigMap of v1; install what defines it"
    assert kube.writes == ["apply ConfigMap b"]


def test_an_eviction_that_fails_gates_nothing() -> None:
    """The API server answers 500 for as long as several budgets select the pod."""
    kube = MemoryKube()
    kube.fail("evict", 500)
    steps: list[Step] = [DeletePod(name="p", uid="u", reason="r"), _apply("a")]
    (refused,) = apply_steps(steps, META, context_on(kube))
    assert refused.step == steps[0]
    assert kube.writes == ["apply ConfigMap a"]


def test_a_long_refusal_is_one_short_line() -> None:
    """The API server's message of a kilobyte is for the log; the condition has its end."""
    message = (
        'PATCH /apis/apps/v1/namespaces/a/statefulsets/b: StatefulSet.apps "b" is invalid: '
        "spec: Forbidden: updates to statefulset spec\nfor fields other than " + "'replicas', " * 90
    )
    text = short(message)
    assert text.startswith("updates to statefulset spec for fields other than 'replicas',")
    assert len(text) == 200
