"""Rolling: which pod is next, and what stands against it, as situations."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from barnabas_operator.plan.findings import Reason
from barnabas_operator.plan.rolling import (
    PodView,
    SetView,
    Together,
    absences,
    broken_to_replace,
    newly_broken,
    next_to_replace,
    outdated,
)

SEEN = SetView(replicas=3, update_revision="new", current=True)


def _pods(*states: str) -> list[PodView]:
    """Pods by words: `old` or `new`, with `broken`, `unready` or `terminating`."""
    return [
        PodView(
            name=f"b-{ordinal}",
            uid=f"u{ordinal}",
            revision="old" if "old" in state else "new",
            ready="broken" not in state and "unready" not in state,
            broken="CrashLoopBackOff" if "broken" in state else "",
            terminating="terminating" in state,
        )
        for ordinal, state in enumerate(states)
    ]


@pytest.mark.parametrize(
    ("states", "last", "chosen"),
    [
        (("new", "new", "new"), "", None),
        (("old", "old", "old"), "", "b-2"),
        (("old", "old", "old"), "b-2", "b-1"),
        (("old", "new", "old"), "b-2", "b-0"),
        (("new", "new", "old"), "b-2", "b-2"),
        (("old", "old", "new"), "", "b-1"),
        (("old", "old terminating", "new"), "", "b-0"),
    ],
)
def test_order(states: tuple[str, ...], last: str, chosen: str | None) -> None:
    """From the last to the first; the pod that leads is replaced after all others."""
    steps = next_to_replace(_pods(*states), SEEN, {last})
    assert [step.name for step in steps] == ([chosen] if chosen else [])


@pytest.mark.parametrize(
    ("states", "chosen"),
    [
        (("old", "old broken", "old broken"), "b-1"),
        (("new unready", "old broken", "old"), "b-1"),
        (("old", "new broken", "old"), None),
        (("old unready", "old", "old"), None),
        (("old", "old broken terminating", "old"), None),
    ],
)
def test_only_a_broken_pod_of_an_older_template_is_replaced_at_once(
    states: tuple[str, ...], chosen: str | None
) -> None:
    """A pod that is merely not ready may be in log recovery: it is never taken for broken."""
    step = broken_to_replace(_pods(*states), SEEN)
    assert (step.name if step else None) == chosen


def test_a_broken_pod_of_the_current_template_is_found_while_others_are_old() -> None:
    """The next pod would break in the same way."""
    assert [pod.name for pod in newly_broken(_pods("old", "old broken", "new broken"), SEEN)] == [
        "b-2"
    ]
    assert newly_broken(_pods("new", "new", "new broken"), SEEN) == []


def test_absences_name_each_pod_and_its_state() -> None:
    """What a roll waits for is named, with the progress of log recovery where a broker tells it."""
    seen = SetView(replicas=5, update_revision="new", current=False)
    pods = _pods("new terminating", "new broken", "new unready", "new")
    found = absences("broker", pods, seen, {"b-2": "logs=3/9"})
    assert [(each.reason, each.message) for each in found] == [
        (
            Reason.STATEFUL_SET_PENDING,
            "broker: its StatefulSet was changed and not observed yet",
        ),
        (Reason.POD_TERMINATING, "b-0 is terminating"),
        (Reason.POD_BROKEN, "b-1 cannot start: CrashLoopBackOff"),
        (Reason.POD_NOT_READY, "b-2 is not ready: log recovery: logs=3/9"),
        (Reason.POD_MISSING, "broker: 4 of 5 pods exist"),
    ]
    assert absences("broker", _pods("old", "new", "new"), SEEN, {}) == []


def test_a_second_broken_pod_waits_until_the_first_is_back() -> None:
    """Whatever ails them all, they are not gone all at once."""
    broken = [replace(pod, broken="CrashLoopBackOff", ready=False) for pod in _pods(*["old"] * 3)]
    first = broken_to_replace(broken, SEEN)
    assert first is not None
    assert first.name == broken[0].name
    terminating = [replace(broken[0], terminating=True), *broken[1:]]
    assert broken_to_replace(terminating, SEEN) is None
    assert broken_to_replace(broken[1:], SEEN) is None


def test_a_pod_whose_container_never_ran_is_replaced_by_another_template() -> None:
    """A volume that cannot be mounted keeps it waiting for ever, and it serves nothing."""
    pods = _pods("old", "old unready", "new")
    assert broken_to_replace(pods, SEEN) is None
    pods[1] = replace(pods[1], unstarted="ContainerCreating")
    step = broken_to_replace(pods, SEEN)
    assert step is not None
    assert str(step) == "delete Pod b-1: ContainerCreating, and its pod template changed"
    assert broken_to_replace([replace(pod, revision="new") for pod in pods], SEEN) is None


def test_a_pod_that_only_its_sidecar_breaks_is_replaced_first_and_not_at_once() -> None:
    """It serves, so that the rules for pods that serve apply; with the new template it stops."""
    pods = _pods("old unready", "old", "new")
    pods[0] = replace(pods[0], sidecar="container agent is in CrashLoopBackOff")
    assert pods[0].is_available
    assert not pods[0].serves
    assert broken_to_replace(pods, SEEN) is None
    assert newly_broken(pods, SEEN) == []
    assert [step.name for step in next_to_replace(pods, SEEN)] == ["b-0"]
    (finding,) = absences("broker", pods, SEEN, {})
    assert finding.message == "b-0 is not ready: container agent is in CrashLoopBackOff"
    now = replace(pods[0], revision="new")
    assert newly_broken([now, *pods[1:]], SEEN) == [now]


@pytest.mark.parametrize(
    ("own", "sidecar"),
    [
        ({"ready": True}, "container agent is in ErrImagePull"),
        ({"ready": False}, ""),
    ],
)
def test_a_sidecar_is_blamed_only_where_the_broker_is_ready(
    own: dict[str, Any], sidecar: str
) -> None:
    """A broker in log recovery beside a broken sidecar is waited for."""
    waiting = {"waiting": {"reason": "ErrImagePull"}}
    statuses = [{"name": "agent", "state": waiting}, {"name": "broker", **own}]
    pod = {"metadata": {"name": "b-0", "uid": "u"}, "status": {"containerStatuses": statuses}}
    assert PodView.of(pod).sidecar == sidecar


@pytest.mark.parametrize(
    ("container", "unstarted"),
    [
        ({"state": {"waiting": {"reason": "ContainerCreating"}}}, "ContainerCreating"),
        ({"state": {"waiting": {}}}, "ContainerCreating"),
        ({"state": {"waiting": {"reason": "CrashLoopBackOff"}}, "restartCount": 2}, ""),
        ({"state": {"running": {}}}, ""),
    ],
)
def test_pods_that_never_started(container: dict[str, Any], unstarted: str) -> None:
    """A container that waits for a restart has run, and may have data in memory."""
    status = {"containerStatuses": [{"name": "broker", **container}]}
    pod = {"metadata": {"name": "b-0", "uid": "u"}, "status": status}
    assert PodView.of(pod).unstarted == unstarted


def test_nothing_is_outdated_before_the_set_was_observed() -> None:
    """Right after a change the revision of the set is still the one before."""
    seen = SetView(replicas=1, update_revision="older", current=False)
    assert outdated(_pods("old"), seen) == []


def test_views_read_objects() -> None:
    """Views take what they need from objects as the API server gives them, in any stage."""
    fresh = PodView.of({"metadata": {"name": "b-0", "uid": "u"}})
    assert (fresh.ready, fresh.terminating, fresh.revision) == (False, False, "")
    meta = {"generation": 2}
    assert not SetView.of({"metadata": meta, "spec": {"replicas": 1}}).current
    observed = {"observedGeneration": 2, "updateRevision": "r"}
    assert SetView.of({"metadata": meta, "spec": {"replicas": 1}, "status": observed}).current


def _waiting(reason: str, kind: str = "containerStatuses", name: str = "broker") -> dict[str, Any]:
    return {kind: [{"name": name, "state": {"waiting": {"reason": reason}}}]}


@pytest.mark.parametrize(
    ("status", "broken"),
    [
        (_waiting("CrashLoopBackOff"), "CrashLoopBackOff"),
        (_waiting("ImagePullBackOff"), "ImagePullBackOff"),
        (_waiting("CreateContainerConfigError"), "CreateContainerConfigError"),
        (_waiting("ErrImagePull", "initContainerStatuses", "rack"), "ErrImagePull"),
        (_waiting("CrashLoopBackOff", name="a-sidecar"), ""),
        (_waiting("ContainerCreating"), ""),
        (_waiting("PodInitializing"), ""),
        (
            {"containerStatuses": [
                {"name": "broker", "state": {"running": {}}, "restartCount": 4}]},
            "",
        ),
        (
            {"conditions": [
                {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]},
            "Unschedulable",
        ),
        (
            {"conditions": [
                {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]},
            "",
        ),
        ({"conditions": [{"type": "Ready", "status": "False"}]}, ""),
    ],
)  # fmt: skip
def test_broken_pods(status: dict[str, Any], broken: str) -> None:
    """Only what Kubernetes calls by name; a container that runs and is not ready is not broken."""
    pod = {"metadata": {"name": "b-0", "uid": "u"}, "status": status}
    assert PodView.of(pod).broken == broken


def _in_racks(racks: str) -> list[PodView]:
    """Pods of an older template; a letter for the rack of each, and a dot for none."""
    pods = _pods(*["old"] * len(racks))
    return [replace(pod, rack=rack.strip(".")) for pod, rack in zip(pods, racks, strict=True)]


@pytest.mark.parametrize(
    ("racks", "limit", "sharing", "last", "groups"),
    [
        ("abcabc", 1, (), "", [[5], [4], [3], [2], [1], [0]]),
        ("abcabc", 2, (), "", [[5, 2], [4, 1], [3, 0]]),
        ("aaaa", 3, (), "", [[3, 2, 1], [0]]),
        ("aaaa", 9, (), "", [[3, 2, 1, 0]]),
        # Two that have a replica of one partition do not go together, and others may.
        ("aaaa", 9, ({3, 2},), "", [[3, 1, 0], [2]]),
        ("aaaa", 9, ({0, 1, 2, 3},), "", [[3], [2], [1], [0]]),
        ("aabb", 9, ({0, 2}, {1, 3}), "", [[3, 2], [1, 0]]),
        # The controller is last, and alone.
        ("aaaa", 9, (), "b-2", [[3, 1, 0], [2]]),
        ("....", 9, (), "", [[3], [2], [1], [0]]),
        ("a.a.", 9, (), "", [[3], [2, 0], [1]]),
    ],
)
def test_groups_are_of_one_rack_and_share_no_partition(
    racks: str, limit: int, sharing: tuple[set[int], ...], last: str, groups: list[list[int]]
) -> None:
    """So that no partition loses two replicas at once."""
    together = Together(limit=limit, replica_sets=frozenset(map(frozenset, sharing)))
    found = together.groups(_in_racks(racks), {last})
    assert [[pod.ordinal for pod in group] for group in found] == groups


def test_the_others_of_a_group_follow_its_first() -> None:
    """Which takes the disruption that the budget has."""
    steps = next_to_replace(_in_racks("aba"), SEEN, (), Together(limit=2))
    assert [(step.name, step.beside) for step in steps] == [("b-2", ""), ("b-0", "b-2")]
    assert str(steps[1]).endswith(", together with b-2")
