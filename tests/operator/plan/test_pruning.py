"""What is wanted no longer goes, if it is ours."""

from __future__ import annotations

from typing import Any

from barnabas_operator.reconcile.reconciler import Key, reconcile
from tests.operator import examples
from tests.operator.memory_kube import MemoryKube
from tests.operator.ports import MemoryBrokers, context_on

KEY = Key("default", "quickstart")
EXTERNAL = "quickstart-broker-0-external"
INTERNAL = [{"name": "plain", "port": 9092}]


def _without_external() -> MemoryKube:
    """A cluster that has run with an external listener, and whose resource has it no longer."""
    kube = MemoryKube(examples.cluster())
    for _ in range(2):
        reconcile(KEY, context_on(kube, MemoryBrokers()))
        kube.settle()
    assert ("Service", "default", EXTERNAL) in kube.objects
    kube.put(examples.cluster(listeners=INTERNAL))
    return kube


def test_the_service_of_a_removed_listener_goes() -> None:
    """It would keep a port of the nodes for ever. Nothing else goes."""
    kube = _without_external()
    before = set(kube.objects)
    reconcile(KEY, context_on(kube))
    assert before - set(kube.objects) == {("Service", "default", EXTERNAL)}


def test_only_what_the_resource_controls_goes() -> None:
    """Not a Service with our labels that somebody else made, or that another resource has."""
    kube = _without_external()
    labels = kube.find("Service", EXTERNAL)["metadata"]["labels"]
    spec = {"selector": {"a": "b"}, "ports": [{"name": "a", "port": 1}]}
    reference = {"kind": "Other", "name": "o", "uid": "u", "controller": True}
    for name, owners in (("mine", []), ("theirs", [reference])):
        meta: dict[str, Any] = {"name": name, "labels": labels, "ownerReferences": owners}
        kube.put({"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": spec})
    reconcile(KEY, context_on(kube))
    assert {"mine", "theirs"} <= {name for kind, _, name in kube.objects if kind == "Service"}


def test_nothing_goes_in_a_pass_in_which_something_was_refused() -> None:
    """What is wrong may be what is wanted."""
    kube = _without_external()
    kube.refuses["apply ConfigMap quickstart-broker"] = "no"
    reconcile(KEY, context_on(kube))
    assert ("Service", "default", EXTERNAL) in kube.objects


def test_an_operator_that_does_not_know_a_field_prunes_nothing() -> None:
    """A newer one may have made the object for it."""
    kube = _without_external()
    kube.put(examples.cluster(listeners=INTERNAL, gateway={"class": "new"}))
    reconcile(KEY, context_on(kube))
    assert ("Service", "default", EXTERNAL) in kube.objects
