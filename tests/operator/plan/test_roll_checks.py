"""What stands against the next pod of a roll, and what overrules it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from barnabas_operator.brokers import BrokersError
from barnabas_operator.names import FORCE_ROLL, MANUAL_ROLL
from barnabas_operator.plan.observed import ClusterView
from barnabas_operator.reconcile.context import Context
from barnabas_operator.reconcile.reconciler import reconcile
from barnabas_operator.restart_check import AdminAccess, CheckResult
from tests.operator import examples
from tests.operator.memory_kube import MemoryKube
from tests.operator.ports import MemoryBrokers, context_on
from tests.operator.rolls import FIRST, KEY, VIEW, changed, put, roll, settled


def test_blockers_are_in_the_plan_and_a_pause_is_one() -> None:
    """A paused roll replaces nothing, and says how it goes on."""
    kube, _, context = changed({"barnabas.io/pause-roll": "true"})
    reconcile(KEY, context)
    assert FIRST not in kube.writes
    assert "pause-roll" in "".join(roll(kube)["blockers"])
    put(kube, images={"broker": "b:2", "zookeeper": "z:2"}, config={"num.partitions": "3"})
    reconcile(KEY, context)
    assert FIRST in kube.writes


def test_a_forced_roll_replaces_what_is_not_ready_and_asks_no_broker() -> None:
    """It is the way out of a roll that waits for a pod which its new template would mend."""
    kube, brokers, context = changed(roll={"policy": "OnApproval"})
    kube.unready("quickstart-broker-0")
    brokers.view = replace(VIEW, out_of_sync=frozenset({0}))
    reconcile(KEY, context)
    assert not [each for each in kube.writes if "Pod " in each]
    kube.objects["KafkaCluster", "default", "quickstart"]["metadata"]["annotations"] = {
        "barnabas.io/force-roll": roll(kube)["token"]
    }
    deleted: list[str] = []
    for _ in range(12):
        kube.writes.clear()
        reconcile(KEY, context)
        found = [each for each in kube.writes if "Pod " in each and "Budget" not in each]
        assert len(found) <= 1
        deleted += found
        kube.settle()
    assert sorted({*deleted}) == [
        f"evict Pod quickstart-{component}-{ordinal}"
        for component in ("broker", "zookeeper")
        for ordinal in range(3)
    ]


def test_a_forced_roll_that_is_over_overrules_nothing_any_more() -> None:
    """Its annotation stays: a pod that is annotated later, and the budget, have all checks."""
    kube, brokers, context = changed(roll={"policy": "OnApproval"})
    reconcile(KEY, context)
    token = roll(kube)["token"]
    kube.edit(
        "KafkaCluster",
        "quickstart",
        lambda body: body["metadata"].update(annotations={FORCE_ROLL: token}),
    )
    for _ in range(12):
        reconcile(KEY, context)
        kube.settle()
    assert not roll(kube)
    refusing = replace(context, restart_check=lambda *_: CheckResult(ok=False, reason="at risk"))
    brokers.view = replace(VIEW, out_of_sync=frozenset({0}))
    kube.edit(
        "Pod",
        "quickstart-broker-1",
        lambda body: body["metadata"].update(annotations={MANUAL_ROLL: "true"}),
    )
    kube.writes.clear()
    reconcile(KEY, refusing)
    assert not [each for each in kube.writes if each.startswith("evict")]
    assert "at risk" in "".join(roll(kube)["blockers"])
    budget = kube.find("PodDisruptionBudget", "quickstart-broker")
    assert budget["spec"]["maxUnavailable"] == 0


def test_a_template_that_comes_back_is_another_roll() -> None:
    """What was approved or forced says nothing about it."""
    kube, _, context = settled()
    tokens = []
    for partitions in ("3", "1", "3"):
        put(kube, config={"num.partitions": partitions}, roll={"policy": "OnApproval"})
        reconcile(KEY, context)
        kube.settle(pods=False)
        reconcile(KEY, context)
        tokens.append(roll(kube)["token"])
    assert len({*tokens}) == 3


def test_a_soak_keeps_the_next_pod_until_the_last_has_proved_itself() -> None:
    """The time is that of its Ready condition."""
    kube, _, context = changed(roll={"soakSeconds": 600})
    reconcile(KEY, context)
    kube.settle()
    pod = kube.objects["Pod", "default", "quickstart-zookeeper-2"]
    pod["status"]["conditions"][0]["lastTransitionTime"] = context.now
    kube.writes.clear()
    reconcile(KEY, context)
    assert not [each for each in kube.writes if each.startswith("evict")]
    assert "soakSeconds is 600" in "".join(roll(kube)["blockers"])
    reconcile(KEY, replace(context, now="2027-01-01T00:00:00Z"))
    assert [each for each in kube.writes if each.startswith("evict")]


def test_an_annotated_pod_is_replaced_alone_and_needs_no_approval() -> None:
    """The order comes from a person; the checks of brokers and budget hold all the same."""
    kube, _, context = settled()
    put(kube, roll={"policy": "OnApproval"})
    reconcile(KEY, context)
    kube.edit(
        "Pod",
        "quickstart-broker-0",
        lambda body: body["metadata"].update(annotations={MANUAL_ROLL: "true"}),
    )
    kube.settle()
    kube.writes.clear()
    reconcile(KEY, context)
    assert [each for each in kube.writes if "Pod " in each] == ["evict Pod quickstart-broker-0"]
    assert roll(kube)["order"] == ["quickstart-broker-0"]
    kube.settle()
    kube.writes.clear()
    reconcile(KEY, context)
    assert not [each for each in kube.writes if "Pod " in each]


def test_the_guarantee_all_healthy_waits_for_every_replica() -> None:
    """Ready asks no broker; KeepHealthy is the default."""
    kube, brokers, context = changed(roll={"guarantee": "AllHealthy"})
    for _ in range(3):
        reconcile(KEY, context)
        kube.settle()
    brokers.view = replace(VIEW, out_of_sync=frozenset({0}))
    kube.writes.clear()
    reconcile(KEY, context)
    assert not [each for each in kube.writes if each.startswith("evict")]
    assert "brokers 0 are not in sync" in "".join(roll(kube)["blockers"])


YES = CheckResult(ok=True)
ZONE = "topology.kubernetes.io/zone"
RACKS = {0: "a", 1: "b", 2: "c", 3: "b", 4: "a", 5: "b"}
SIX = ClusterView(
    cluster_id="an-id",
    broker_ids=tuple(RACKS),
    controller_id=0,
    replica_sets=frozenset({frozenset({0, 1, 2})}),
)


def _six(view: ClusterView = SIX, **roll: Any) -> tuple[MemoryKube, MemoryBrokers, Context]:
    """Six brokers in three racks, whose template has changed."""
    rack = {"topologyKey": ZONE}
    spec = {"brokers": {"replicas": 6, "storage": {"size": "1Gi"}, "rack": rack}, "roll": roll}
    kube, brokers = MemoryKube(examples.cluster(**spec)), MemoryBrokers(view=view)
    context = context_on(kube, brokers)
    for _ in range(3):
        reconcile(KEY, context)
        kube.settle()
        for number, name in RACKS.items():
            if ("Pod", "default", f"quickstart-broker-{number}") in kube.objects:
                pod = kube.find("Pod", f"quickstart-broker-{number}")
                pod["metadata"]["labels"][ZONE] = name
    kube.put(examples.cluster(**spec, config={"num.partitions": "3"}))
    reconcile(KEY, context)
    kube.settle(pods=False)
    kube.writes.clear()
    return kube, brokers, context


def _replaced(kube: MemoryKube) -> list[str]:
    return [each for each in kube.writes if each.startswith(("evict Pod", "delete Pod"))]


def test_brokers_of_a_rack_go_together_and_the_plan_shows_them() -> None:
    """One is evicted, the others are deleted under its disruption; other racks wait for them."""
    kube, _, context = _six(maxUnavailablePerRack=2)
    reconcile(KEY, context)
    assert _replaced(kube) == [
        "evict Pod quickstart-broker-5",
        "delete Pod quickstart-broker-3",
    ]
    shown = roll(kube)
    assert shown["groups"] == [
        {"rack": "b", "pods": ["quickstart-broker-5", "quickstart-broker-3"]}
    ]
    assert shown["order"] == [f"quickstart-broker-{n}" for n in (5, 3, 4, 2, 1, 0)]
    reconcile(KEY, context)
    assert len(_replaced(kube)) == 2


def test_one_goes_at_a_time_by_default_and_where_partitions_are_not_known() -> None:
    """Nothing is taken for granted: neither racks, nor that brokers share no partition."""
    asked: dict[str, Any] = {"maxUnavailablePerRack": 3}
    views = (SIX, replace(SIX, replica_sets=None), replace(SIX, broker_ids=(0, 1, 2)))
    for view, given in zip(views, ({}, asked, asked), strict=True):
        kube, _, context = _six(view, **given)
        reconcile(KEY, context)
        assert _replaced(kube) == ["evict Pod quickstart-broker-5"]
        assert not roll(kube).get("groups")
    kube, _, context = _six(**asked)
    del kube.find("Pod", "quickstart-broker-0")["metadata"]["labels"][ZONE]
    reconcile(KEY, context)
    assert _replaced(kube) == ["evict Pod quickstart-broker-5"]


def test_a_refused_eviction_keeps_its_whole_group() -> None:
    """A drain was first: the others were to go under a disruption that is not granted."""
    kube, _, context = _six(maxUnavailablePerRack=3)
    kube.refuses["evict Pod quickstart-broker-5"] = "it would violate the disruption budget"
    reconcile(KEY, context)
    assert _replaced(kube) == []


def _refusing(address: str) -> Callable[[str, AdminAccess], CheckResult]:
    def check(url: str, _: AdminAccess) -> CheckResult:
        return CheckResult(ok=False, reason="at risk") if url.startswith(address) else YES

    return check


def test_a_broker_that_may_not_go_yet_is_left_out_of_its_group() -> None:
    """What the first one of a group may not, none does."""
    for broker, gone in ((3, ["evict 5", "delete 1"]), (5, [])):
        kube, _, context = _six(maxUnavailablePerRack=3)
        answers = replace(context, restart_check=_refusing(f"http://10.0.1.{broker}:"))
        reconcile(KEY, answers)
        names = [each.replace("Pod quickstart-broker-", "") for each in _replaced(kube)]
        assert names == gone
        assert ("at risk" in "".join(roll(kube).get("blockers", ()))) == (not gone)


def test_a_topic_created_since_the_plan_keeps_its_other_replica() -> None:
    """Brokers say once more what they share when one is about to join another."""
    for broker, gone in ((3, ["evict 5", "delete 1"]), (1, ["evict 5", "delete 3"])):
        kube, brokers, context = _six(maxUnavailablePerRack=3)
        shared = replace(
            SIX, replica_sets=frozenset({frozenset({0, 1, 2}), frozenset({5, broker})})
        )

        def check(
            _url: str, _: AdminAccess, brokers: MemoryBrokers = brokers, view: ClusterView = shared
        ) -> CheckResult:
            brokers.view = view
            return YES

        reconcile(KEY, replace(context, restart_check=check))
        assert [each.replace("Pod quickstart-broker-", "") for each in _replaced(kube)] == gone


def test_brokers_that_do_not_say_what_they_share_go_one_at_a_time() -> None:
    """As those of which it was never known."""
    kube, brokers, context = _six(maxUnavailablePerRack=3)

    def check(_url: str, _: AdminAccess) -> CheckResult:
        brokers.error = BrokersError("_TIMED_OUT", "timed out", reachable=False)
        return YES

    reconcile(KEY, replace(context, restart_check=check))
    assert _replaced(kube) == ["evict Pod quickstart-broker-5"]


def test_a_forced_roll_replaces_one_at_a_time() -> None:
    """It asks no broker, so that nothing is known of partitions."""
    kube, _, context = _six(maxUnavailablePerRack=3, policy="OnApproval")
    reconcile(KEY, context)
    notes = {FORCE_ROLL: roll(kube)["token"]}
    kube.edit("KafkaCluster", "quickstart", lambda body: body["metadata"].update(annotations=notes))
    reconcile(KEY, context)
    assert _replaced(kube) == ["evict Pod quickstart-broker-5"]
