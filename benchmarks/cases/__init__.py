"""All cases, in the order they run."""

from __future__ import annotations

from typing import Final

from benchmarks.cases import consumers, groups, partitions, producers, requests, startup, volume
from benchmarks.model import Case

ALL: Final[tuple[Case, ...]] = (
    *startup.CASES,
    *producers.CASES,
    *consumers.CASES,
    *requests.CASES,
    *volume.CASES,
    *partitions.CASES,
    *groups.CASES,
)
