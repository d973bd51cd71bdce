"""How many brokers to run: as many as the spec asks for, and those above that hold replicas.

A broker that holds replicas is never removed: the partitions would lose them. A broker that holds
none goes, also one that has never started. If a removed broker turns out to hold replicas (a topic
was created in that moment), it is brought back, for its claim is still there.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """Brokers to run, and why there are more than the spec asks for; empty if there are not."""

    replicas: int
    kept: str = ""


def brokers_to_run(
    asked: int, existing: int, claims: Collection[int], replicas: Mapping[int, int] | None
) -> Size:
    """The size of the cluster.

    `existing` is what the StatefulSet has now, 0 before there is one. `claims` are the ordinals of
    the claims. `replicas` counts replicas by broker id, and is None if brokers do not answer.
    """
    if replicas is None:
        if existing <= asked:
            return Size(replicas=asked)
        text = f"{existing} brokers instead of {asked}: which of them hold replicas is not known"
        return Size(replicas=existing, kept=text)
    ordinals = {*range(existing), *claims}
    holding = sorted(each for each in ordinals if each >= asked and replicas.get(each, 0) > 0)
    if not holding:
        return Size(replicas=asked)
    counts = ", ".join(f"broker {each} holds {replicas[each]} replicas" for each in holding)
    size = holding[-1] + 1
    drain = " ".join(map(str, holding))
    text = f"{size} brokers instead of {asked}: {counts}; `barnabas reassign plan drain {drain}`"
    return Size(replicas=size, kept=text)
