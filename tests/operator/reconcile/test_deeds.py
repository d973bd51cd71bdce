"""Steps taken on the API server."""

from __future__ import annotations

import pytest

from barnabas_operator.api.reading import read_cluster
from barnabas_operator.kube import KubeError
from barnabas_operator.plan.steps import Apply, DeletePod, Step
from barnabas_operator.reconcile.deeds import take
from tests.operator import examples
from tests.operator.memory_kube import MemoryKube
from tests.operator.ports import context_on

META = read_cluster(examples.cluster()).meta


def _apply(name: str) -> Apply:
    meta = {"name": name, "namespace": "default"}
    return Apply(body={"kind": "ConfigMap", "metadata": meta}, reason="missing")


def test_a_refused_step_does_not_stop_the_others() -> None:
    """What was refused is told, all of it."""
    kube = MemoryKube()
    kube.refuses = {"apply ConfigMap a": "no a", "apply ConfigMap c": "no c"}
    steps = [_apply(name) for name in "abc"]
    assert take(steps, META, context_on(kube)) == "no a; no c"
    assert kube.writes == ["apply ConfigMap b"]


def test_an_api_server_that_is_gone_ends_the_pass() -> None:
    """Nothing after it would succeed; the pass is tried again as a whole."""

    class Gone(MemoryKube):
        def apply(self, body: object) -> dict[str, object]:
            raise KubeError(0, "gone")

    steps: list[Step] = [_apply("a"), DeletePod(name="p", uid="u", reason="r")]
    kube = Gone()
    with pytest.raises(KubeError, match="gone"):
        take(steps, META, context_on(kube))
    assert kube.writes == []
