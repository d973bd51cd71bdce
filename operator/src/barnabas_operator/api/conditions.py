"""Conditions as kstatus reads them: Ready, Reconciling and Stalled.

Flux, Argo CD and `kubectl wait` follow these: an object is current when `observedGeneration` is its
generation, Ready is True and neither Reconciling nor Stalled is. Reconciling and Stalled are there
only while they hold (they are "abnormal-true"); Ready is always there. An error that waits for a
person is Stalled; what will pass by itself is Reconciling.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Final

from barnabas_operator.api.facts import Doc, Longest, Pattern

READY: Final = "Ready"
RECONCILING: Final = "Reconciling"
STALLED: Final = "Stalled"
WARNING: Final = "Warning"

HeldGeneration = Annotated[
    int,
    Doc(
        "The generation that an operator without stamps on its objects applied;"
        " -1 if there was none, or it had not applied it in full."
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """One observation about a resource."""

    type: Annotated[str, Doc("Ready, Reconciling, Stalled or Warning."), Longest(64)]
    status: Annotated[
        str, Doc("True, False or Unknown."), Pattern("^(True|False|Unknown)$", "a truth value")
    ]
    reason: Annotated[str, Doc("One word for programs."), Longest(128)]
    message: Annotated[str, Doc("What is so, and what can be done."), Longest(4096)] = ""
    last_transition_time: Annotated[str, Doc("When the status last changed, RFC 3339.")] = ""
    observed_generation: Annotated[int, Doc("The generation that this is about.")] = 0


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of one reconcile of a resource; becomes its conditions.

    `ready` means that it can be used now. `settled` is False while work goes on. `stalled` means
    that only a changed resource or a helping hand will move it. Reconciling and Stalled have the
    verdict's reason and message, or those of `pending`.
    """

    ready: bool
    reason: str
    message: str = ""
    settled: bool = True
    stalled: bool = False
    warnings: tuple[str, ...] = ()
    pending: tuple[str, str] | None = None
    warning_reason: str = "Warning"


def conditions(
    verdict: Verdict, *, generation: int, previous: Sequence[Condition], now: str
) -> tuple[Condition, ...]:
    """The conditions of a verdict; the time of one changes only when its status does."""
    wanted = [(READY, verdict.ready, verdict.reason, verdict.message)]
    pending = verdict.pending or (verdict.reason, verdict.message)
    if verdict.stalled:
        wanted.append((STALLED, True, *pending))
    elif not verdict.settled:
        wanted.append((RECONCILING, True, *pending))
    if verdict.warnings:
        wanted.append((WARNING, True, verdict.warning_reason, "; ".join(verdict.warnings)))
    before = {condition.type: condition for condition in previous}
    result = []
    for kind, holds, reason, message in wanted:
        status = "True" if holds else "False"
        old = before.get(kind)
        unchanged = old is not None and old.status == status and old.last_transition_time
        time = old.last_transition_time if old is not None and unchanged else now
        result.append(
            Condition(
                type=kind,
                status=status,
                reason=reason,
                message=message[:4096],
                last_transition_time=time,
                observed_generation=generation,
            )
        )
    return tuple(result)


def is_ready(found: Sequence[Condition]) -> bool:
    """Whether Ready is among the conditions and True."""
    return any(condition.type == READY and condition.status == "True" for condition in found)


def is_stalled(found: Sequence[Condition]) -> bool:
    """Whether Stalled is among the conditions and True."""
    return any(condition.type == STALLED and condition.status == "True" for condition in found)
