"""Faults at random under all kinds of clients: what is done in a campaign, drawn from a seed.

Each round hurts a cluster of three brokers and three members of ZooKeeper in one way or in two at
once, for a moment or for longer than sessions last, and heals it. Some rounds wait until every
replica is in sync, others begin in the middle of the recovery from the one before.
"""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from itertools import permutations
from random import Random
from time import monotonic
from typing import Final

from tests.clients.brokers import Barnabas
from tests.cluster.ensemble import member_host
from tests.cluster.network import Network
from tests.cluster.running import NOT_YET, Cluster, broker_host
from tests.faults.disk import FaultyDisk
from tests.oracle.apache import ZooKeeper
from tests.waiting import RUN, forget, wait_for

SESSION_MS: Final = 6000
MOMENTS_S: Final = (0.2, 2.0)
LONG_S: Final = (7.0, 14.0)
"""Longer than a session."""
LONG_SHARE: Final = 0.3
TWO_AT_ONCE: Final = 0.4
WHOLE_SHARE: Final = 0.5
"""How many of the rounds wait until all replicas are in sync."""
SLOW_SYNC_MS: Final = 700

Link = tuple[str, str]


class Campaign:
    """A cluster on a network and on disks, and what is done to them."""

    def __init__(
        self,
        cluster: Cluster,
        network: Network,
        disks: Mapping[int, FaultyDisk],
        random: Random,
        say: Callable[[str], object],
    ) -> None:
        self.cluster, self.network, self.disks, self.random = cluster, network, disks, random
        self.done: Counter[str] = Counter()
        self.recoveries_s: list[float] = []
        """How long it took until all replicas were in sync, after all that was hurt was well."""
        self.until_stopped: list[Barnabas] = []
        """Brokers that were told to stop, and are not waited for yet."""
        self._say = say
        self._hurt: set[int] = set()

    def run(self, rounds: int) -> None:
        """So many rounds; everything is whole in the end."""
        for number in range(rounds):
            self._round(number)
            if self.random.random() < WHOLE_SHARE:
                self.until_whole()
        self.until_whole()

    def until_whole(self) -> None:
        """Wait until each broker's metadata has every replica of every partition in sync."""
        began = monotonic()
        wait_for(
            "partitions that are not led, or lack replicas in sync",
            self.incomplete,
            until=lambda found: not found,
            within=RUN,
        )
        self.recoveries_s.append(monotonic() - began)

    def incomplete(self) -> list[str]:
        """What each broker says of partitions whose replicas are not all in sync."""
        found = []
        for broker, process in self.cluster.brokers.items():
            try:
                topics = self.cluster.metadata(bootstrap=process.bootstrap).topics
            except NOT_YET as error:
                found.append(f"broker {broker}: {error}")
                continue
            found += [
                f"broker {broker}: {name}-{number} {each.leader} {each.isrs} of {each.replicas}"
                for name, topic in topics.items()
                for number, each in topic.partitions.items()
                if each.leader < 0 or {*each.isrs} != {*each.replicas}
            ]
        return found

    def _round(self, number: int) -> None:
        names = self.random.sample(sorted(FAULTS), 2 if self.random.random() < TWO_AT_ONCE else 1)
        long = self.random.random() < LONG_SHARE
        held_s = self.random.uniform(*(LONG_S if long else MOMENTS_S))
        self._say(f"round {number}: {' and '.join(names)} for {held_s:.1f} s")
        self._hurt = set()
        with ExitStack() as hurt:
            for name in names:
                self.done[name] += 1
                hurt.enter_context(FAULTS[name](self))
            began = monotonic()
            wait_for("the fault's end", lambda: monotonic() - began >= held_s, within=RUN)
        self._start_missing()
        self._say(f"round {number} healed")

    def _start_missing(self) -> None:
        """Start what has died, once nothing else is wrong any more; as its supervisor does."""
        self.cluster.zookeeper.start()
        while self.until_stopped:
            self.until_stopped.pop().stop(within=RUN)
        brokers = self.cluster.brokers.items()
        if dead := [number for number, each in brokers if each.exit_code is not None]:
            self.cluster.start(*dead)

    def a_broker(self) -> int:
        """One that nothing has been done to in this round, any where there is none left."""
        well = sorted({*self.cluster.brokers} - self._hurt) or sorted(self.cluster.brokers)
        broker = self.random.choice(well)
        self._hurt.add(broker)
        return broker

    def a_member(self) -> ZooKeeper:
        """A member of the ensemble; the leader half of the time."""
        leader = self.cluster.zookeeper.leader() if self.random.random() < 0.5 else None
        return leader or self.random.choice([*self.cluster.zookeeper.members.values()])

    @contextmanager
    def cut(self, *links: Link) -> Iterator[None]:
        """Lose what is sent on these links meanwhile."""
        for link in links:
            self.network.cut(*link)
        try:
            yield
        finally:
            for link in links:
                self.network.heal(*link)


Fault = Callable[[Campaign], AbstractContextManager[None]]


@contextmanager
def killed(campaign: Campaign) -> Iterator[None]:
    """A broker dies (SIGKILL); its supervisor ends its session."""
    campaign.cluster.brokers[campaign.a_broker()].kill()
    yield


@contextmanager
def crashed(campaign: Campaign) -> Iterator[None]:
    """A machine dies: the broker with its supervisor, so that its session has to expire."""
    process = campaign.cluster.brokers[campaign.a_broker()]
    if process.exit_code is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    yield


@contextmanager
def all_killed(campaign: Campaign) -> Iterator[None]:
    """All brokers die."""
    for process in campaign.cluster.brokers.values():
        process.kill()
    yield


@contextmanager
def stopped(campaign: Campaign) -> Iterator[None]:
    """A broker is stopped in order (SIGTERM)."""
    process = campaign.cluster.brokers[campaign.a_broker()]
    if process.exit_code is None:
        os.kill(process.pid, signal.SIGTERM)
        forget(process.pid)
    yield
    campaign.until_stopped.append(process)


@contextmanager
def paused(campaign: Campaign) -> Iterator[None]:
    """A broker hangs (SIGSTOP), and comes back as a zombie."""
    broker = campaign.a_broker()
    if campaign.cluster.brokers[broker].exit_code is not None:
        yield
        return
    with campaign.cluster.frozen(broker):
        yield


@contextmanager
def without_a_member(campaign: Campaign) -> Iterator[None]:
    """A member of the ensemble dies."""
    campaign.a_member().kill()
    yield


@contextmanager
def without_a_quorum(campaign: Campaign) -> Iterator[None]:
    """Two members of the ensemble die."""
    for member in campaign.random.sample([*campaign.cluster.zookeeper.members.values()], 2):
        member.kill()
    yield


@contextmanager
def paused_member(campaign: Campaign) -> Iterator[None]:
    """A member of the ensemble hangs."""
    member = campaign.a_member()
    if not member.running:
        yield
        return
    pid = member.pid
    forget(pid)
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        if member.running:
            os.kill(pid, signal.SIGCONT)


def cut_between_brokers(campaign: Campaign) -> AbstractContextManager[None]:
    """Two brokers do not reach each other, or one does not reach the other."""
    one, other = map(broker_host, campaign.random.sample(sorted(campaign.cluster.brokers), 2))
    links = [(one, other), (other, one)]
    return campaign.cut(*links[: campaign.random.randint(1, 2)])


def cut_from_zookeeper(campaign: Campaign) -> AbstractContextManager[None]:
    """A broker and all members do not reach each other."""
    broker = broker_host(campaign.a_broker())
    members = map(member_host, campaign.cluster.zookeeper.members)
    return campaign.cut(*(link for it in members for link in ((broker, it), (it, broker))))


def cut_from_a_member(campaign: Campaign) -> AbstractContextManager[None]:
    """A broker and the member it may be connected to do not reach each other."""
    broker = broker_host(campaign.a_broker())
    member = member_host(campaign.random.choice([*campaign.cluster.zookeeper.members]))
    return campaign.cut((broker, member), (member, broker))


def isolated(campaign: Campaign) -> AbstractContextManager[None]:
    """A broker reaches nothing but clients."""
    broker = broker_host(campaign.a_broker())
    others = {*map(broker_host, campaign.cluster.brokers)} - {broker}
    others |= {*map(member_host, campaign.cluster.zookeeper.members)}
    return campaign.cut(*(link for it in sorted(others) for link in ((broker, it), (it, broker))))


def cut_between_members(campaign: Campaign) -> AbstractContextManager[None]:
    """Two members of the ensemble do not reach each other."""
    members = [*map(member_host, campaign.cluster.zookeeper.members)]
    pair = campaign.random.choice([*permutations(members, 2)])
    return campaign.cut(pair, pair[::-1])


@contextmanager
def full_disk(campaign: Campaign) -> Iterator[None]:
    """One of a broker's two disks is full."""
    disk = campaign.disks[campaign.a_broker()]
    disk.fill(campaign.random.choice((0, 100, 5000)))
    try:
        yield
    finally:
        disk.heal()


@contextmanager
def slow_disk(campaign: Campaign) -> Iterator[None]:
    """Each sync of one of a broker's two disks takes long."""
    disk = campaign.disks[campaign.a_broker()]
    disk.faults.sync_delay_ms = SLOW_SYNC_MS
    try:
        yield
    finally:
        disk.heal()


@contextmanager
def broken_disk(campaign: Campaign) -> Iterator[None]:
    """One of a broker's two disks fails; the broker starts again on a good one."""
    broker = campaign.a_broker()
    campaign.disks[broker].break_down()
    try:
        yield
    finally:
        campaign.disks[broker].heal()
        campaign.cluster.brokers[broker].kill()


FAULTS: Final[Mapping[str, Fault]] = {
    fault.__name__: fault
    for fault in (
        killed, crashed, all_killed, stopped, paused, without_a_member, without_a_quorum,
        paused_member, cut_between_brokers, cut_from_zookeeper, cut_from_a_member, isolated,
        cut_between_members, full_disk, slow_disk, broken_disk,
    )
}  # fmt: skip
