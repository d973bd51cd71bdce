"""Log lines for partitions that have lost their leaders."""

import logging
from collections.abc import Collection, Iterable, Iterator
from itertools import islice
from typing import Final

from barnabas_broker.cluster.availability import Concern, why_leaderless
from barnabas_broker.cluster.image import NO_LEADER, MetadataImage
from barnabas_kafka.ids import TopicPartition

_log = logging.getLogger(__name__)

SHOWN_MAX: Final = 10
"""How many partitions a line in the log names."""


def lost(
    changed: Iterable[TopicPartition], before: MetadataImage, after: MetadataImage
) -> Iterator[Concern]:
    """Which of the partitions have no leader any more, and why."""
    for tp in changed:
        former, state = before.partition(tp), after.partition(tp)
        if former is None or state is None or former.leader == state.leader:
            continue
        if state.leader == NO_LEADER:
            yield Concern(tp, why_leaderless(state, after.brokers))


def log_leaderless(concerns: Iterable[Concern]) -> None:
    """Log them: a line for all that have no leader for the same reason."""
    partitions: dict[str, list[TopicPartition]] = {}
    for each in concerns:
        partitions.setdefault(each.reason, []).append(each.tp)
    for reason, those in partitions.items():
        _log.warning("No leader for partitions %s: %s", shown(those), reason)


def shown(partitions: Collection[TopicPartition]) -> str:
    """The first ones by name, and how many there are."""
    names = ", ".join(f"{tp.topic}-{tp.partition}" for tp in islice(partitions, SHOWN_MAX))
    return f"{names} ({len(partitions)})"
