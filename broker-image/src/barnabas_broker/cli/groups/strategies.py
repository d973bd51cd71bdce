"""Where a group's offsets go: the strategies of `reset-offsets`, without I/O."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

Partition = tuple[str, int]

_DURATION = re.compile(
    r"P(?:(\d+)D)?(?:T(?=\d)(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Bounds:
    """The first offset of a partition, and the one after its last."""

    first: int
    end: int

    def clamp(self, offset: int) -> int:
        """The nearest offset that a consumer can begin at."""
        return min(max(offset, self.first), self.end)


@dataclass(frozen=True, slots=True)
class Target:
    """Where a partition goes on, and where it was to."""

    offset: int
    wanted: int


Targets = Mapping[Partition, Target]


def clamped(wanted: Mapping[Partition, int], bounds: Mapping[Partition, Bounds]) -> Targets:
    """Every wanted offset, within what is there."""
    return {each: Target(bounds[each].clamp(offset), offset) for each, offset in wanted.items()}


def parse_datetime(text: str) -> int:
    """`2017-08-04T00:00:00.000` with or without a zone, which is UTC otherwise, as milliseconds.

    Raises ValueError.
    """
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return int(moment.timestamp() * 1000)


def parse_duration(text: str) -> int:
    """`P1DT2H3M4S` as milliseconds; raises ValueError."""
    match = _DURATION.fullmatch(text)
    if match is None or not any(match.groups()):
        raise ValueError(f"{text} is not a duration such as P1DT2H or PT0H5M0S")
    days, hours, minutes, seconds = (float(part or 0) for part in match.groups())
    span = timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
    return int(span.total_seconds() * 1000)


def shifted(
    current: Mapping[Partition, int], by: int, bounds: Mapping[Partition, Bounds]
) -> Targets:
    """Every committed offset moved by so many records, within what is there.

    Raises ValueError naming a partition without a committed offset.
    """
    for name, number in bounds:
        if (name, number) not in current:
            raise ValueError(
                f"Cannot shift offset for partition {name}-{number} since there is no current "
                "committed offset"
            )
    return clamped({each: current[each] + by for each in bounds}, bounds)


def moved(targets: Targets) -> Iterator[str]:
    """A sentence for each offset that could not be had."""
    for (name, number), target in targets.items():
        if target.offset < target.wanted:
            yield f"{name}-{number} ends before {target.wanted}: {target.offset}, its end, is taken"
        elif target.offset > target.wanted:
            yield (
                f"{name}-{number} begins after {target.wanted}: {target.offset}, its first offset, "
                "is taken"
            )
