"""Tests of plans, which read as transcripts."""

from collections.abc import Iterable

from barnabas_operator.plan.steps import Step


def transcript(steps: Iterable[Step]) -> tuple[str, ...]:
    """The steps as lines."""
    return tuple(map(str, steps))
