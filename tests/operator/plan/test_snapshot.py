"""The snapshot and the draft: what checks see of a cluster and of each other's steps."""

from __future__ import annotations

from barnabas_operator.api.reading import read_cluster
from barnabas_operator.plan.observed import ClusterView, Images, Observed
from barnabas_operator.plan.snapshot import Draft, shortened, snapshot_of
from barnabas_operator.plan.steps import Apply, DeletePod
from tests.operator import examples

IMAGES = Images(broker="b:1", zookeeper="z:1", pipeline="p:1")


def test_the_cluster_of_a_snapshot_has_the_brokers_that_must_be_kept() -> None:
    """All objects are built for the brokers that hold replicas, whatever the spec asks for."""
    observed = Observed(
        objects={("StatefulSet", "quickstart-broker"): {
            "metadata": {"name": "quickstart-broker"},
            "spec": {"replicas": 3, "template": {"spec": {"containers": [{"image": "b:0"}]}}},
        }},
        pods={},
        claims={},
        brokers=ClusterView(
                cluster_id="c", broker_ids=(0, 1, 2), controller_id=0, replicas={0: 1, 1: 2}
            ),
    )  # fmt: skip
    snapshot = snapshot_of(read_cluster(examples.cluster()), observed, IMAGES)
    assert snapshot.cluster.body.spec.brokers.replicas == snapshot.size.replicas == 2
    assert (snapshot.chosen.broker, snapshot.chosen.zookeeper) == ("b:0", "z:1")


def test_a_draft_knows_what_was_planned_before() -> None:
    """Only the objects that pods are made from hold their roll back."""
    draft = Draft()
    draft.steps.append(Apply(body={"kind": "Service", "metadata": {"name": "s"}}, reason="r"))
    assert not draft.changes_templates("s")
    draft.steps.append(Apply(body={"kind": "ConfigMap", "metadata": {"name": "s"}}, reason="r"))
    assert draft.changes_templates("s")
    assert not draft.deletes_pod()
    draft.steps.append(DeletePod(name="p-0", uid="u", reason="r"))
    assert draft.deletes_pod()


def test_long_lists_are_shortened() -> None:
    """A condition is read by people."""
    assert shortened(["a", "b", "c", "d", "e"], separator=", ") == "a, b, c and 2 more"


def test_leaders_and_stateful_sets() -> None:
    """A StatefulSet that does not exist is None; only members in mode leader lead."""
    modes = {"z-0": "follower", "z-1": "leader", "z-2": ""}
    observed = Observed(objects={}, pods={}, claims={}, modes=modes)
    assert observed.stateful_set("z") is None
    assert observed.leaders() == {"z-1"}
