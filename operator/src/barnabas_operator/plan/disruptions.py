"""How many brokers others may evict: one, and none while a replica is out of sync.

A PodDisruptionBudget counts pods that are ready. A broker is ready long before its replicas are in
sync, so that a second node drained right after a first would take partitions below their min ISR.
A broker that goes leaves the ISR at once, so the budget is closed before it is ready again. Pods
that are not ready may be evicted whatever the budget says (`AlwaysAllow`): a node can be drained of
a broker that does not serve.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from barnabas_operator.plan.observed import ClusterView


def max_unavailable(
    replicas: int, view: ClusterView | None, present: Mapping[str, Any] | None
) -> int:
    """`maxUnavailable` of the budget of so many brokers; `present` is the budget that exists.

    Replicas on brokers that the cluster no longer has never come back, and do not count.
    """
    if view is not None:
        return 0 if any(broker < replicas for broker in view.out_of_sync) else 1
    # Brokers that do not answer say nothing about replicas: the budget stays as it is.
    allowed = 1 if present is None else present["spec"].get("maxUnavailable", 1)
    # Another program may have written a percentage, which is taken back.
    return allowed if isinstance(allowed, int) else 1
