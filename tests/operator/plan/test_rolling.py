"""Rolling: which pod is next, told as situations."""

from __future__ import annotations

import pytest

from barnabas_operator.plan.rolling import PodView, SetView, next_to_roll, outdated

SEEN = SetView(replicas=3, update_revision="new", current=True)


def _pods(*states: str) -> list[PodView]:
    """Pods by words: `old` or `new`, with `broken` or `leaving`."""
    return [
        PodView(
            name=f"b-{ordinal}",
            uid=f"u{ordinal}",
            revision="old" if "old" in state else "new",
            ready="broken" not in state,
            leaving="leaving" in state,
            node_address="",
        )
        for ordinal, state in enumerate(states)
    ]


@pytest.mark.parametrize(
    ("states", "chosen"),
    [
        (("new", "new", "new"), None),
        (("old", "old", "old"), "b-2"),
        (("old", "old", "new"), "b-1"),
        (("old", "old", "new broken"), None),
        (("old", "new"), None),
        (("old", "old broken", "old"), "b-1"),
        (("new broken", "old broken", "old"), "b-1"),
        (("old", "old", "new leaving"), None),
        (("old broken", "old", "new leaving"), None),
    ],
)
def test_next_pod(states: tuple[str, ...], chosen: str | None) -> None:
    """One at a time from the last; none while another is not well; the broken ones first."""
    step = next_to_roll(_pods(*states), SEEN)
    assert (step.name if step else None) == chosen


def test_nothing_is_outdated_before_the_set_was_looked_at() -> None:
    """Right after a change the revision of the set is still the one before."""
    seen = SetView(replicas=1, update_revision="older", current=False)
    assert outdated(_pods("old"), seen) == []


def test_views_read_objects() -> None:
    """Views take what they need from objects as the API server gives them, in any stage."""
    fresh = PodView.of({"metadata": {"name": "b-0", "uid": "u"}})
    assert (fresh.ready, fresh.leaving, fresh.revision) == (False, False, "")
    meta = {"generation": 2}
    assert not SetView.of({"metadata": meta, "spec": {"replicas": 1}}).current
    told = {"observedGeneration": 2, "updateRevision": "r"}
    assert SetView.of({"metadata": meta, "spec": {"replicas": 1}, "status": told}).current
