"""The check before every call of a pass."""

from __future__ import annotations

import pytest

from barnabas_operator.handlers.guard import Deadline, PassAbortedError, guarded
from barnabas_operator.kube import CONFIG_MAPS, TOPICS, Kube
from tests.operator import examples
from tests.operator.memory_kube import MemoryKube

CONFIG_MAP = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "c", "namespace": "default"},
    "data": {"key": "value"},
}


class Stop:
    """Asked when it is."""

    asked = False


def test_a_pass_ends_before_its_next_call() -> None:
    """After its deadline, and once the operator stops."""
    stop = Stop()
    kube: Kube = guarded(MemoryKube(), Deadline(float("inf"), stop).check)
    assert kube.list(TOPICS, None) == []
    stop.asked = True
    with pytest.raises(PassAbortedError, match="the operator stops; list was not called"):
        kube.list(TOPICS, None)
    late: Kube = guarded(MemoryKube(), Deadline(0.0, Stop()).check)
    with pytest.raises(PassAbortedError, match="exceeded its deadline of 120 s before list"):
        late.list(TOPICS, None)


def test_without_leadership_nothing_is_written() -> None:
    """Reads go on; the check is before each write, not once a pass."""
    leading = True
    memory = MemoryKube()
    kube: Kube = guarded(memory, Deadline(float("inf"), Stop(), lambda _: leading).check)
    kube.apply(CONFIG_MAP)
    leading = False
    assert kube.get(CONFIG_MAPS, "default", "c") is not None
    with pytest.raises(PassAbortedError, match="not the leader of default; delete was not called"):
        kube.delete(CONFIG_MAPS, "default", "c", uid="any")
    assert memory.writes == ["apply ConfigMap c"]


def test_leadership_is_asked_for_where_something_is_written() -> None:
    """A pass over one namespace writes in another one as well, as the Secret of a user."""
    memory = MemoryKube()
    memory.put(examples.topic("orders"))
    asked = []

    def may_write(namespace: str) -> bool:
        asked.append(namespace)
        return namespace == "default"

    kube: Kube = guarded(memory, Deadline(float("inf"), Stop(), may_write).check)
    kube.patch_status(TOPICS, "default", "orders", {})
    elsewhere = {**CONFIG_MAP, "metadata": {"name": "c", "namespace": "team"}}
    for write in (
        lambda: kube.apply(elsewhere),
        lambda: kube.create(CONFIG_MAPS, "team", elsewhere),
        lambda: kube.evict("team", "pod", uid="any"),
    ):
        with pytest.raises(PassAbortedError, match="not the leader of team"):
            write()
    assert asked == ["default", "team", "team", "team"]
    assert memory.writes == ["status KafkaTopic orders"]
