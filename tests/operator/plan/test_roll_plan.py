"""The plan of a roll, as the status shows it before the first pod is replaced."""

from __future__ import annotations

from dataclasses import replace

from barnabas_operator.reconcile.reconciler import RESYNC_S, reconcile
from tests.operator.rolls import FIRST, KEY, VIEW, changed, roll


def test_the_plan_is_written_before_the_first_pod_is_replaced() -> None:
    """Whoever watches sees all of it, and can still pause it."""
    kube, _, context = changed()
    reconcile(KEY, context)
    assert kube.writes.index("status KafkaCluster quickstart") < kube.writes.index(FIRST)
    shown = roll(kube)
    assert shown["order"] == [
        "quickstart-zookeeper-2", "quickstart-zookeeper-0", "quickstart-zookeeper-1",
        "quickstart-broker-1", "quickstart-broker-0", "quickstart-broker-2",
    ]  # fmt: skip
    assert shown["estimateSeconds"] == 6 * 35
    assert "the configuration changed" in shown["reason"] or "template" in shown["reason"]


def test_the_estimate_is_what_the_present_pods_took() -> None:
    """From their creation until they were ready, and the soak between them."""
    kube, _, context = changed(roll={"soakSeconds": 60})
    for (kind, _, _), body in kube.objects.items():
        if kind == "Pod":
            body["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
            body["status"]["conditions"][0]["lastTransitionTime"] = "2026-01-01T00:00:07Z"
    reconcile(KEY, context)
    assert roll(kube)["estimateSeconds"] == 6 * (7 + 5) + 2 * 2 * 60


def test_after_a_roll_leaders_go_back_to_their_preferred_replicas() -> None:
    """Once every replica is in sync; the plan ends with that."""
    kube, brokers, context = changed()
    for _ in range(6):
        reconcile(KEY, context)
        kube.settle()
    brokers.view = replace(VIEW, out_of_sync=frozenset({1}))
    reconcile(KEY, context)
    assert "preferred replicas" in "".join(roll(kube)["blockers"])
    assert "elect" not in brokers.requests
    brokers.view = VIEW
    reconcile(KEY, context)
    assert brokers.requests.count("elect") == 1
    assert roll(kube) == {}
    reconcile(KEY, context)
    kube.writes.clear()
    reconcile(KEY, context)
    assert (kube.writes, brokers.requests.count("elect")) == ([], 1)


def test_a_roll_waits_for_its_window() -> None:
    """Saturday night: nothing is evicted before, and the first pod is as soon as it opens."""
    window = {"days": ["Sat"], "start": "22:30", "hours": 4}
    kube, _, context = changed(roll={"policy": "Window", "window": window})
    before = reconcile(KEY, replace(context, now="2026-01-03T22:29:59Z"))
    # A window is hours away: there is nothing to look for soon.
    assert before.again_in == RESYNC_S
    assert not [each for each in kube.writes if each.startswith(("evict", "delete"))]
    conditions = kube.find("KafkaCluster", "quickstart")["status"]["conditions"]
    (held,) = [each for each in conditions if each["type"] == "Reconciling"]
    assert held["reason"] == "RollHeldBack"
    assert "window" in held["message"]
    reconcile(KEY, replace(context, now="2026-01-03T22:30:00Z"))
    assert [each for each in kube.writes if each.startswith("evict")] == [FIRST]
