"""Which replica a consumer that names its rack should read from (KIP-392).

Decides, for a leader that a consumer asked, whether another replica is to be preferred. Pure; the
rules are those of Apache Kafka 3.9's `ReplicaManager.findPreferredReadReplica` and
`RackAwareReplicaSelector`. A follower is considered only while it is in sync, holds the offset
that is asked for, and lives on a broker that can be reached through the consumer's listener: one
that lags would hold its readers back for as long as it does.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from barnabas_broker.replica.isr import InSync
from barnabas_kafka.settings import broker as keys


@dataclass(frozen=True, slots=True)
class Candidate:
    """A replica that could be read from; `rack` is None where its broker names none.

    `behind_ms` is the time since it last had all of the leader's log, 0 for the leader itself.
    """

    broker: int
    rack: str | None
    log_end_offset: int
    behind_ms: int = 0


Selector = Callable[[str, Candidate, Iterable[Candidate]], Candidate]
"""Picks one for a consumer's rack, given the leader and the followers that may be read from."""


def rack_aware(rack: str, leader: Candidate, followers: Iterable[Candidate]) -> Candidate:
    """The leader if it is in that rack or no follower is, else the best follower there.

    That is the one that has most of the log; of several, the one that had all of it last, and of
    several still the one of the highest number, so that all get the same.
    """
    near = [each for each in followers if each.rack == rack]
    if not near or leader.rack == rack:
        return leader
    return max(near, key=lambda each: (each.log_end_offset, -each.behind_ms, each.broker))


SELECTORS: Final[Mapping[str, Selector | None]] = {
    keys.READ_FROM_LEADER: None,
    keys.READ_FROM_SAME_RACK: rack_aware,
}
"""By value of replica.selector.class; None leaves every consumer with the leader."""


def preferred(
    selector: Selector,
    rack: str,
    in_sync: InSync,
    *,
    leader: int,
    log_end: int,
    fetch_offset: int,
    racks: Mapping[int, str | None],
    now_ms: int,
) -> int | None:
    """The broker that a consumer in `rack` should read from instead of this leader; or None.

    `racks` has every broker that can be reached through the consumer's listener; `now_ms` is of
    the clock that `in_sync` goes by. A consumer that names no rack stays with the leader.
    """
    if not rack:
        return None
    followers = [
        Candidate(broker, racks[broker], follower.log_end_offset, now_ms - follower.caught_up_ms)
        for broker, follower in in_sync.followers.items()
        if broker in racks
        and broker in in_sync.isr
        and follower.log_start_offset <= fetch_offset <= follower.log_end_offset
    ]
    own = Candidate(leader, racks.get(leader), log_end)
    chosen = selector(rack, own, followers)
    return None if chosen is own else chosen.broker
