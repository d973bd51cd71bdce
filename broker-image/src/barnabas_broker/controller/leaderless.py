"""Log lines for partitions that have lost their leaders."""

import logging
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import islice
from typing import Final

from barnabas_broker.cluster.availability import Concern, why_leaderless
from barnabas_broker.cluster.image import NO_LEADER, MetadataImage
from barnabas_broker.controller.careful_election import Ends
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


def log_careful_elections(found: Mapping[tuple[int, str], Mapping[TopicPartition, Ends]]) -> None:
    """Log how elections stand that ask all replicas, by the only one in sync and the outcome."""
    for (broker, outcome), ends in found.items():
        named = ", ".join(f"{tp} {each!r}" for tp, each in islice(ends.items(), SHOWN_MAX))
        _log.warning(
            "Leader election after an unclean shutdown of the only in-sync replica: broker=%d %s; "
            "logs end at (epoch, offset): %s (%d)",
            broker, outcome, named, len(ends),
        )  # fmt: skip


def shown(partitions: Collection[TopicPartition]) -> str:
    """The first ones by name, and how many there are."""
    names = ", ".join(f"{tp.topic}-{tp.partition}" for tp in islice(partitions, SHOWN_MAX))
    return f"{names} ({len(partitions)})"
