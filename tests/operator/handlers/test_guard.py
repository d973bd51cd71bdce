"""The check before every call of a pass."""

from __future__ import annotations

import pytest

from barnabas_operator.handlers.guard import Deadline, PassAbortedError, guarded
from barnabas_operator.kube import CONFIG_MAPS, TOPICS, Kube
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
    kube: Kube = guarded(memory, Deadline(float("inf"), Stop(), lambda: leading).check)
    kube.apply(CONFIG_MAP)
    leading = False
    assert kube.get(CONFIG_MAPS, "default", "c") is not None
    with pytest.raises(PassAbortedError, match="not the leader; delete was not called"):
        kube.delete(CONFIG_MAPS, "default", "c", uid="any")
    assert memory.writes == ["apply ConfigMap c"]
