"""Leader election of partitions, each strategy a function of the controller's state.

Kafka's `PartitionLeaderElectionAlgorithms` and `Election`. A leader comes from the in-sync
replicas, for these have everything that was ever acknowledged; among them the first alive in the
order of preference. Where none is alive the partition waits, leaderless, unless its topic allows
an unclean election: then any replica alive may lead, and what only the others had is lost.

Every change takes the next leader epoch, and the changed state names the controller epoch it was
decided in. None from an election means that no replica can be elected: the state stays as it is.

A controller whose own process has just started gives the partitions that its broker leads a new
epoch, too. Apache's, finding the leader alive, would keep the old one; but a start is also the
moment when a log that was not shut down cleanly may have lost its tail, and a new epoch is what
lets consumers notice (KIP-320).
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from barnabas_broker.cluster.image import NO_LEADER
from barnabas_broker.invariants import violated
from barnabas_broker.zk.znodes import LeaderAndIsr

# The epoch of a partition's first leader.
FIRST_LEADER_EPOCH = 0


def first_leader(replicas: tuple[int, ...], *, controller_epoch: int) -> LeaderAndIsr:
    """The state of a new partition whose replicas alive are `replicas`: all are in sync.

    The preferred one leads. Replicas that are not alive when a partition is made join later.
    """
    return LeaderAndIsr(
        leader=replicas[0] if replicas else NO_LEADER,
        leader_epoch=FIRST_LEADER_EPOCH,
        isr=replicas,
        controller_epoch=controller_epoch,
    )


@dataclass(frozen=True, slots=True)
class LiveBrokers:
    """Which brokers can be counted on: `brokers` are alive, `stopping` are about to stop.

    `restarted` are alive, but with another registration than when the partition was last settled:
    what they were then, and had then, is over. `unclean_shutdowns` are alive and registered after
    one: what they had synced they still have, and perhaps not the rest. `careful` says that no sole
    in-sync replica among those is elected before others were asked (`careful_election`), unless one
    is `silent`: alive, and of a kind that cannot answer.
    """

    brokers: Collection[int]
    stopping: Collection[int] = frozenset()
    restarted: Collection[int] = frozenset()
    unclean_shutdowns: Collection[int] = frozenset()
    silent: Collection[int] = frozenset()
    careful: bool = False

    @property
    def steady(self) -> frozenset[int]:
        """The brokers that may become leaders and have not restarted."""
        return self.eligible.difference(self.restarted)

    @property
    def eligible(self) -> frozenset[int]:
        """The brokers that may become leaders."""
        return frozenset(self.brokers) - frozenset(self.stopping)

    def is_careful_about(self, replicas: Collection[int], isr: tuple[int, ...]) -> bool:
        """Whether no replica of `isr` may be elected before all `replicas` have been asked."""
        return (
            self.careful
            and len(isr) == 1
            and len(replicas) > 1
            and isr[0] in self.unclean_shutdowns
            and not set(replicas).intersection(self.silent)
        )

    def without(self, offline: Collection[int]) -> "LiveBrokers":
        """The same for a partition whose replicas on these brokers cannot be used."""
        if not offline:
            return self
        return replace(self, brokers=frozenset(self.brokers).difference(offline))


def unseen_restarts(
    leader: int,
    written: int,
    *,
    registered: Mapping[int, int],
    unclean_shutdowns: Collection[int],
) -> frozenset[int]:
    """Brokers that may have restarted since a partition's state was written, for a new controller.

    `written` is the transaction that wrote the state (its mzxid), `registered` has the ones that
    made registrations. A leader that registered later did restart. One that registered before need
    not have led since: the controller before may have known its former registration still, and
    its write been late. So all that report an unclean shutdown may have, leaders too.
    """
    restarted = frozenset(unclean_shutdowns)
    assert restarted.issuperset(unclean_shutdowns), violated(
        "a replica with an unclean shutdown has restarted"
    )
    return restarted | {leader} if registered.get(leader, 0) > written else restarted


def settle(
    replicas: tuple[int, ...],
    state: LeaderAndIsr,
    present: LiveBrokers,
    *,
    unclean: bool,
    controller_epoch: int,
) -> LeaderAndIsr | None:
    """Compute the new state of a partition from the live brokers; None if it is unchanged.

    A leader that is alive leads on; a replica that is not alive leaves the in-sync replicas, and so
    does one that restarted, unless no other one is left. Without a leader alive there is an offline
    election, and where that elects none the partition has no leader. Then all that were in sync
    remain on record: none could fall behind without a leader.

    A leader that restarted leads on, if at all, in a new epoch: of what it had written and not
    synced others may have more, in the same epoch, and would never notice (KIP-380 for restarts
    that a controller sees; Apache's next controller keeps the epoch of those it did not see).

    A replica that restarted after an unclean shutdown leaves the in-sync replicas also where those
    left are offline: the partition waits for them. Apache's brokers do not report how they ended,
    and count as clean. Where all would leave, all stay, or with a careful election the last one:
    then it does not matter which, for all replicas are asked.
    """
    unclean_restarts = frozenset(present.restarted).intersection(present.unclean_shutdowns)
    left = tuple(broker for broker in state.isr if broker not in unclean_restarts)
    if not left:
        careful = present.is_careful_about(replicas, state.isr[-1:])
        left = state.isr[-1:] if careful and not unclean else state.isr
    assert set(left) <= set(state.isr), violated("no replica joins the ISR without having all")
    assert left or not state.isr, violated("the last replica in sync stays on record")
    steady = tuple(
        broker for broker in left if broker in present.brokers and broker not in present.restarted
    )
    if state.leader in steady:
        if steady == state.isr:
            return None
        assert set(steady) <= set(state.isr), violated(
            "no replica joins the ISR without having all"
        )
        return _successor(state, state.leader, steady, controller_epoch)
    if not unclean and present.is_careful_about(replicas, left):
        elected = None
    else:
        elected = _elected(replicas, replace(state, isr=left), present, unclean, controller_epoch)
    assert elected is None or unclean or elected.leader in state.isr, violated(
        "only an unclean election makes a leader of a replica that was not in sync"
    )
    assert elected is None or elected.leader in present.eligible, violated(
        "a leader is alive, and not about to stop"
    )
    if elected is None and (state.leader, state.isr) != (NO_LEADER, left):
        return _successor(state, NO_LEADER, left, controller_epoch)
    return elected


def _elected(
    replicas: tuple[int, ...],
    state: LeaderAndIsr,
    present: LiveBrokers,
    unclean: bool,
    controller_epoch: int,
) -> LeaderAndIsr | None:
    """The offline election, which prefers replicas that did not restart."""
    return elect_offline(
        replicas,
        state,
        live=present.steady if present.steady.intersection(state.isr) else present.eligible,
        unclean=unclean,
        controller_epoch=controller_epoch,
    )


def elect_offline(
    replicas: Iterable[int],
    state: LeaderAndIsr,
    *,
    live: Collection[int],
    unclean: bool,
    controller_epoch: int,
) -> LeaderAndIsr | None:
    """A leader for a partition that has lost its own.

    A clean winner keeps those of the in-sync replicas that are alive. A winner that was not in
    sync is alone in sync afterwards, and has the log to recover (KIP-704).
    """
    order = tuple(replicas)
    leader = _first(order, among=state.isr, live=live)
    if leader is not None:
        in_sync = tuple(broker for broker in state.isr if broker in live)
        assert leader in in_sync, violated("a leader is in its ISR")
        return _successor(state, leader, in_sync, controller_epoch)
    if not unclean:
        return None
    survivor = next((broker for broker in order if broker in live), None)
    if survivor is None:
        return None
    assert survivor not in state.isr, violated("an in-sync replica is elected cleanly")
    elected = _successor(state, survivor, (survivor,), controller_epoch)
    return replace(elected, recovering=True)


def elect_for_reassignment(
    target: Iterable[int],
    state: LeaderAndIsr,
    *,
    live: Collection[int],
    controller_epoch: int,
) -> LeaderAndIsr | None:
    """A leader among the target replicas of a reassignment; in-sync replicas stay in sync."""
    leader = _first(target, among=state.isr, live=live)
    assert leader is None or leader in live, violated("a leader is alive")
    return None if leader is None else _successor(state, leader, state.isr, controller_epoch)


def elect_preferred(
    replicas: Iterable[int],
    state: LeaderAndIsr,
    *,
    live: Collection[int],
    controller_epoch: int,
) -> LeaderAndIsr | None:
    """The first replica as the leader, if it is alive and in sync."""
    preferred = tuple(replicas)[:1]
    leader = _first(preferred, among=state.isr, live=live)
    assert leader is None or (leader,) == preferred, violated("the preferred replica is the first")
    return None if leader is None else _successor(state, leader, state.isr, controller_epoch)


def elect_for_shutdown(
    replicas: Iterable[int],
    state: LeaderAndIsr,
    *,
    live: Collection[int],
    stopping: Collection[int],
    controller_epoch: int,
) -> LeaderAndIsr | None:
    """A leader in place of one that is about to stop; those that stop are no longer in sync.

    `live` may hold brokers that are in `stopping`.
    """
    staying = [broker for broker in live if broker not in stopping]
    leader = _first(replicas, among=state.isr, live=staying)
    if leader is None:
        return None
    in_sync = tuple(broker for broker in state.isr if broker not in stopping)
    assert leader in in_sync, violated("a leader is in its ISR")
    assert leader not in stopping, violated("a stopping broker is not elected")
    return _successor(state, leader, in_sync, controller_epoch)


def without_replica(
    state: LeaderAndIsr, broker: int, *, controller_epoch: int
) -> LeaderAndIsr | None:
    """The state after a replica has gone offline; None where it was not in sync.

    The last replica in sync stays on record, though it does not lead: only it has everything.
    """
    if broker not in state.isr:
        return None
    leader = NO_LEADER if broker == state.leader else state.leader
    left = tuple(each for each in state.isr if each != broker)
    assert len(left) < len(state.isr), violated("an offline replica leaves the ISR")
    assert leader != broker, violated("an offline replica does not lead")
    return _successor(state, leader, left or state.isr, controller_epoch)


def _first(order: Iterable[int], *, among: Collection[int], live: Collection[int]) -> int | None:
    return next((broker for broker in order if broker in among and broker in live), None)


def _successor(
    state: LeaderAndIsr, leader: int, isr: tuple[int, ...], controller_epoch: int
) -> LeaderAndIsr:
    assert isr or not state.isr, violated("the last replica in sync stays on record")
    return replace(
        state,
        leader=leader,
        leader_epoch=state.leader_epoch + 1,
        isr=isr,
        controller_epoch=controller_epoch,
    )
