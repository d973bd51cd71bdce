"""The careful election: a sole in-sync replica that may have lost its end is not elected blindly.

A broker that says it was not stopped in order may have lost what it had not synced, and if it alone
is in sync, some other replica may have more. The partition then has no leader until all replicas
have said, in that leader epoch, how far their logs go; the longest leads, by the epoch of its end,
then by the end. A replica that has answered follows no earlier leader, so that no log grows
meanwhile; what was said in another epoch, or by a broker that has registered again since, does not
count. Nothing bounds the waiting: to elect without one replica may lose what only that one has.
"""

from collections.abc import Collection
from dataclasses import replace
from typing import NamedTuple

from barnabas_broker.cluster.image import NO_LEADER
from barnabas_broker.controller.elections import LiveBrokers
from barnabas_broker.invariants import violated
from barnabas_broker.zk.znodes import LeaderAndIsr


class LogEnd(NamedTuple):
    """How far a log goes: the latest epoch in it, -1 without one, and the offset of its end."""

    epoch: int
    end: int


class EndsAnswer(NamedTuple):
    """What a broker says of its replica of a partition, in that leader epoch."""

    leader_epoch: int
    log_end: LogEnd


def waits(replicas: Collection[int], state: LeaderAndIsr, present: LiveBrokers) -> bool:
    """Whether a partition has no leader because replicas are to be asked how far they go."""
    return state.leader == NO_LEADER and present.is_careful_about(replicas, state.isr)


class Ends:
    """The answers of one partition's replicas in one leader epoch."""

    __slots__ = ("_by_broker", "leader_epoch")

    def __init__(self, leader_epoch: int) -> None:
        self.leader_epoch = leader_epoch
        self._by_broker: dict[int, LogEnd] = {}

    def add_log_end(self, broker: int, end: LogEnd) -> None:
        """A replica has answered."""
        self._by_broker[broker] = end

    def forget(self, brokers: Collection[int]) -> None:
        """Brokers have gone or come again; they have to answer once more."""
        for broker in brokers:
            self._by_broker.pop(broker, None)
            assert broker not in self._by_broker, violated("a stopped broker has to answer again")

    def missing(self, replicas: Collection[int]) -> frozenset[int]:
        """The replicas that have not answered."""
        return frozenset(replicas) - self._by_broker.keys()

    def longest(self, replicas: Collection[int]) -> int:
        """Whose log is the longest, once all have answered; the first by preference of equals."""
        return max(replicas, key=lambda broker: self._by_broker[broker])

    def elect(
        self,
        replicas: Collection[int],
        state: LeaderAndIsr,
        *,
        live: Collection[int],
        controller_epoch: int,
    ) -> LeaderAndIsr | None:
        """The replica with the longest log as leader, alone in sync; None while one is missing.

        Among equally long logs the first in the order of preference. None, too, while the longest
        is not among `live`.
        """
        if self.missing(replicas):
            return None
        longest = self.longest(replicas)
        if longest not in live:
            return None
        ends = self._by_broker
        assert all(ends[each] <= ends[longest] for each in replicas), violated(
            "no replica has more than the one that is elected"
        )
        assert longest in replicas, violated("a leader is a replica")
        return replace(
            state,
            leader=longest,
            leader_epoch=state.leader_epoch + 1,
            isr=(longest,),
            controller_epoch=controller_epoch,
        )

    def __repr__(self) -> str:
        ends = {broker: (each.epoch, each.end) for broker, each in self._by_broker.items()}
        return f"{ends} in leader epoch {self.leader_epoch}"
