"""What is done to three brokers and three members of ZooKeeper while clients work, as a table.

A row is a fault. Whatever it is, one checker goes over all that clients did and saw, every record
is acknowledged in the end, and the brokers part with the same logs. How long a partition took no
records is told at the end of the run, and is nothing that a test could promise for any machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from typing import Final

import pytest
from kazoo.client import KazooClient

from barnabas_broker.server.control.supervisor import end_session
from tests.clients.brokers import Barnabas
from tests.cluster.history import Outcome, anomalies
from tests.cluster.load import PER_SECOND, Load, under_load
from tests.cluster.running import Cluster, Leadership, on_record
from tests.gaps import LONGEST_GAP
from tests.oracle.apache import ZooKeeper
from tests.waiting import ATTEMPT_S, RUN

PARTITIONS: Final = 3
SESSION_MS: Final = "12000"
"""A broker that hangs is replaced when its session expires; a busy one must keep its session."""

ROWS: Final[Mapping[str, tuple[str, ...]]] = {
    "the leader is killed, and the next one": (
        "kill leader", "others lead", "start it", "all in sync",
        "kill leader", "others lead", "writes go on", "start it", "all in sync",
    ),
    "the controller is killed": (
        "kill controller", "another controls", "others lead", "writes go on", "start it",
        "all in sync",
    ),
    "all brokers are stopped in turn": (
        "stop 0", "others lead", "start it", "all in sync",
        "stop 1", "others lead", "start it", "all in sync",
        "stop 2", "others lead", "start it", "all in sync",
    ),
    "the leader hangs, and comes back as a zombie": (
        "pause leader", "others lead", "writes go on", "resume it", "writes go on", "all in sync",
    ),
    "the controller hangs, and comes back as a zombie": (
        "pause controller", "another controls", "others lead", "writes go on", "resume it",
        "all in sync",
    ),
    "a follower hangs": (
        "pause follower", "it is out of sync", "writes go on", "resume it", "all in sync",
    ),
    "the leader of the ensemble is killed": (
        "lose member", "writes go on", "another member leads", "start ensemble", "all in sync",
    ),
    "the ensemble is killed": (
        "lose ensemble", "writes go on", "writes go on", "start ensemble",
        "kill leader", "others lead", "start it", "all in sync",
    ),
    "all sessions end": (
        "end sessions", "writes go on", "all in sync",
    ),
}  # fmt: skip
"""What is done and awaited, one after the other; `it` is the broker that was hurt last."""


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Three brokers on an ensemble of three, for the module."""
    settings = {"zookeeper.session.timeout.ms": SESSION_MS}
    with Cluster(tmp_path_factory.mktemp("faults"), settings=settings, members=3) as started:
        yield started


class Scene:
    """A cluster at work, and what the steps of a row do to it and wait for.

    Brokers are asked that are not hurt: who hangs does not answer, and who comes back tells for a
    while how it was.
    """

    def __init__(self, cluster: Cluster, znodes: KazooClient, topic: str, load: Load) -> None:
        self._cluster, self._znodes, self._topic, self._load = cluster, znodes, topic, load
        self._epoch = self._controller_epoch()
        self._it = -1
        self._paused = ExitStack()

    def play(self, step: str) -> None:
        """Do what the step says, or wait until it is so."""
        verb, _, whom = step.partition(" ")
        hurt = {"kill": self._kill, "stop": self._stop, "pause": self._pause}
        if verb in hurt:
            self._it = self._broker(whom)
            hurt[verb]()
        else:
            getattr(self, step.replace(" ", "_"))()

    def _broker(self, whom: str) -> int:
        match whom:
            case "leader":
                return self._cluster.leader(self._topic)
            case "follower":
                leader = self._cluster.leader(self._topic)
                return next(broker for broker in self._cluster.brokers if broker != leader)
            case "controller":
                return self._cluster.known_controller()
            case number:
                return int(number)

    def _kill(self) -> None:
        self._cluster.brokers[self._it].kill()

    def _stop(self) -> None:
        self._cluster.brokers[self._it].stop()
        words = self._cluster.brokers[self._it].tail(60)
        assert "Controlled shutdown succeeded" in words

    def _pause(self) -> None:
        self._paused.enter_context(self._cluster.frozen(self._it))

    def start_it(self) -> None:
        """The broker that was killed or stopped."""
        self._cluster.start(self._it)

    def resume_it(self) -> None:
        """The broker that hangs."""
        self._paused.close()

    def lose_member(self) -> None:
        """The one of the ensemble that leads the others is killed."""
        self._ensemble_leader().kill()

    def another_member_leads(self) -> None:
        """One that runs."""
        self._ensemble_leader()

    def _ensemble_leader(self) -> ZooKeeper:
        leader = self._cluster.wait_for(
            "a leader of the ensemble",
            self._cluster.zookeeper.leader,
            until=lambda it: it is not None,
        )
        assert leader is not None
        return leader

    def lose_ensemble(self) -> None:
        """All members are killed."""
        self._cluster.zookeeper.kill()

    def start_ensemble(self) -> None:
        """All members that do not run."""
        self._cluster.zookeeper.start()

    def end_sessions(self) -> None:
        """Those of all brokers, as if they had expired; each comes back with another."""
        brokers = {*self._cluster.brokers}
        before = self._cluster.wait_for(
            "a session of every broker", self._sessions, until=lambda it: it.keys() == brokers
        )

        def ended() -> dict[int, int]:
            now = self._sessions()
            for broker, session in before.items():
                if now.get(broker) == session:
                    end_session(known_session(session, self._cluster.zookeeper.connect))
            return now

        self._cluster.wait_for(
            f"other sessions than {before}",
            ended,
            until=lambda now: all(now.get(it, before[it]) != before[it] for it in before),
        )

    def others_lead(self) -> None:
        """Each partition has a leader, and it is not the broker that was hurt."""
        self._until(
            f"leaders other than broker {self._it}",
            lambda found: all(leader not in (self._it, -1) for leader, _ in found),
        )

    def it_is_out_of_sync(self) -> None:
        """The broker that was hurt, with every partition."""
        self._until(
            f"in-sync replicas without broker {self._it}",
            lambda found: all(self._it not in isr for _, isr in found),
        )

    def another_controls(self) -> None:
        """In a later epoch than the one before."""
        asked = self._cluster.admin(self._another().bootstrap)
        left = {*self._cluster.brokers} - {self._it}
        self._cluster.wait_for(
            f"one of the brokers {left} as the controller",
            lambda: asked.list_topics(timeout=ATTEMPT_S).controller_id,
            until=lambda found: found in left,
        )
        assert self._controller_epoch() > self._epoch

    def writes_go_on(self) -> None:
        """For some seconds, and whatever has become of brokers and ensemble."""
        enough = self._load.acknowledged() + 4 * PER_SECOND
        self._cluster.wait_for(
            f"{enough} acknowledged records",
            self._load.acknowledged,
            until=lambda count: count >= enough,
            within=RUN,
        )

    def all_in_sync(self) -> None:
        """Every broker tells the same, which is that every replica is in sync."""
        brokers = self._cluster.brokers
        self._cluster.wait_for(
            f"the same leaders and {len(brokers)} in-sync replicas in the metadata of all brokers",
            lambda: [
                self._cluster.read_leadership(self._topic, it.bootstrap) for it in brokers.values()
            ],
            until=lambda found: all(
                each == found[0] and all(len(isr) == len(brokers) for _, isr in each)
                for each in found
            ),
        )

    def heal(self) -> None:
        """Nobody hangs, and the ensemble is whole, whatever went wrong before."""
        self._paused.close()
        self._cluster.zookeeper.start()

    def _another(self) -> Barnabas:
        return next(it for number, it in self._cluster.brokers.items() if number != self._it)

    def _until(self, what: str, until: Callable[[Leadership], object]) -> None:
        """Wait until the metadata of another broker is so."""
        self._cluster.wait_for_leadership(what, self._topic, until, self._another().bootstrap)

    def _sessions(self) -> dict[int, int]:
        """Those of the brokers that are registered."""
        read = partial(self._znodes.retry, self._znodes.exists)
        stats = {it: read(f"/brokers/ids/{it}") for it in self._cluster.brokers}
        return {it: stat.ephemeralOwner for it, stat in stats.items() if stat is not None}

    def _controller_epoch(self) -> int:
        return int(self._znodes.retry(self._znodes.get, "/controller_epoch")[0])


def known_session(session: int, connect: str) -> str:
    """A session of others as supervisors are told of it: ZooKeeper makes passwords from numbers.

    The rule is that of `ZooKeeperServer.generatePasswd`: 16 bytes of a java.util.Random that is
    seeded with the number and a constant.
    """
    state = (session ^ 0xB3415C00 ^ 0x5DEECE66D) & (1 << 48) - 1
    password = b""
    for _ in range(4):
        state = (state * 0x5DEECE66D + 0xB) & (1 << 48) - 1
        password += (state >> 16).to_bytes(4, "little")
    return f"{session % (1 << 64):x} {password.hex()} {SESSION_MS} {connect}"


@pytest.mark.parametrize("row", ROWS)
def test_nothing_is_lost_when(
    cluster: Cluster,
    topic: str,
    row: str,
    record_property: Callable[[str, object], None],
) -> None:
    """Nor read twice, out of order or differently by two; the history is Jepsen's."""
    cluster.create(topic, PARTITIONS)
    with under_load(cluster.bootstrap, topic, PARTITIONS) as load, on_record(cluster) as znodes:
        scene = Scene(cluster, znodes, topic, load)
        try:
            for step in ROWS[row]:
                scene.play(step)
        finally:
            scene.heal()
    record_property(LONGEST_GAP, f"{load.gap_s:.1f} s: {row}")
    assert anomalies(load.history) == []
    assert {send.outcome for send in load.history.sends} == {Outcome.OK}
    for partition in range(PARTITIONS):
        cluster.until_same_logs(topic, partition)
