"""A log is cut in a thread: what the controller says of it meanwhile waits, and not the loop."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from barnabas_broker.cluster.image import TopicImage
from barnabas_broker.log import files
from barnabas_kafka.ids import TopicPartition
from barnabas_kafka.protocol.messages.api_versions import ApiVersionsRequest
from tests.broker.server.peers.replication.hand_made import T0, HandMade, Member
from tests.broker.server.peers.replication.test_replica_fetcher import batch, content, until_same
from tests.broker.server.running import Wire
from tests.waiting import ANSWER, seconds, wait_for

SYNCS = frozenset({"fsync", "fdatasync"})


class SlowDisk:
    """What `os` does; syncs of threads that cut wait until the disk is free."""

    def __init__(self) -> None:
        self.free = threading.Event()
        self.waiting = threading.Event()

    def __getattr__(self, name: str) -> Any:
        call = getattr(os, name)
        return self._slow(call) if name in SYNCS else call

    def _slow(self, call: Any) -> Any:
        def slow(*arguments: Any) -> Any:
            if threading.current_thread().name.startswith("cut"):
                self.waiting.set()
                self.free.wait()
            return call(*arguments)

        return slow


@contextmanager
def slow_cuts() -> Iterator[SlowDisk]:
    """Cuts wait for the disk that this yields."""
    before, disk = files.system, SlowDisk()
    files.system = disk
    try:
        yield disk
    finally:
        disk.free.set()
        files.system = before


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[HandMade]:
    """Two brokers, of which 0 is about to cut a record that only it has."""
    with ExitStack() as stack:
        cluster = HandMade()
        for broker in range(2):
            disks = tmp_path / str(broker), tmp_path / f"{broker}-other"
            given = {"log.dirs": ",".join(map(str, disks)), "replica.fetch.backoff.ms": "50"}
            member = Member(broker, disks[0], given)
            member.start()
            stack.callback(member.stop)
            cluster.add(member)
        cluster.appoint(0)
        with Wire(cluster.members[0].port) as wire:
            assert wire.produce("t", batch(b"both")).error_code == 0
            until_same(cluster)
            cluster.appoint(1, isr=(1,), only=(1,))
            assert wire.produce("t", batch(b"lost"), acks=1).error_code == 0
        with Wire(cluster.members[1].port) as wire:
            assert wire.produce("t", batch(b"kept")).error_code == 0
        yield cluster


def test_a_follower_that_is_elected_while_its_log_is_cut(
    pair: HandMade, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It answers others meanwhile, and leads once the cut has ended: without what was cut.

    Coordinators, which live in partitions that are led, look again then.
    """
    member = pair.members[0]
    seen: list[bool] = []
    monkeypatch.setattr(
        member.node.broker.groups, "on_image", lambda *_: seen.append(member.partition().is_leader)
    )
    with slow_cuts() as disk, Wire(member.port) as wire:
        pair.show(member)
        assert disk.waiting.wait(seconds(ANSWER))
        pair.appoint(0, isr=(0, 1))
        wire.ask(ApiVersionsRequest(), 0)  # The event loop goes on.
        assert not member.do(lambda: member.partition().is_leader)
        assert wire.produce("t", batch(b"early")).error_code != 0
        disk.free.set()
        wait_for("the new leader", lambda: member.do(lambda: member.partition().is_leader))
        assert seen == [False, False, True]
        assert wire.produce("t", batch(b"late")).error_code == 0
    until_same(pair)
    assert b"lost" not in content(member)
    assert b"late" in content(member)


def test_other_partitions_are_fetched_while_a_log_is_cut(pair: HandMade) -> None:
    """After a leader was killed there may be thousands to cut: no ISR is to shrink meanwhile."""
    member, leader = pair.members[0], pair.members[1]
    with slow_cuts() as disk:
        pair.show(member)
        assert disk.waiting.wait(seconds(ANSWER))
        topic = TopicImage("u", UUID(int=50), (replace(pair.state(), leader=1, isr=(0, 1)),))
        pair.tell(topic)
        with Wire(leader.port) as wire:
            assert wire.produce("u", batch(b"copied")).error_code == 0
        assert member.ends(TopicPartition("u", 0))[1] == 1
        assert member.partition().log.busy
        disk.free.set()
    until_same(pair)
    assert b"lost" not in content(member)


def test_a_topic_that_is_deleted_and_made_again_while_its_log_is_cut(pair: HandMade) -> None:
    """One after the other, in the order in which they were said."""
    member = pair.members[0]
    topic = pair.image.topics["t"]
    with slow_cuts() as disk, Wire(member.port) as wire:
        pair.show(member)
        assert disk.waiting.wait(seconds(ANSWER))
        old = member.partition()
        member.do(lambda: member.node.broker.replicas.stop(T0, delete=True))
        pair.tell(topic, only=(0,))
        pair.appoint(0, isr=(0,), only=(0,))
        wire.ask(ApiVersionsRequest(), 0)
        assert member.do(lambda: member.node.broker.replicas.get(T0)) is None
        disk.free.set()
        wait_for(
            "another log of that name",
            lambda: member.do(lambda: member.node.broker.replicas.get(T0)),
            until=lambda found: found is not None and found.is_leader,
        )
        assert member.partition().log is not old.log
        assert member.ends() == (0, 0)
        assert wire.produce("t", batch(b"new")).error_code == 0


def test_a_log_that_moves_to_another_directory_while_it_is_cut(
    pair: HandMade, tmp_path: Path
) -> None:
    """The copy takes its place after the cut, or what was to be cut would be there again."""
    member = pair.members[0]
    mover = member.node.broker.mover
    with slow_cuts() as disk:
        pair.show(member)
        assert disk.waiting.wait(seconds(ANSWER))
        there = member.partition().log.directory.parent
        (other,) = {tmp_path / "0", tmp_path / "0-other"} - {there}

        def switched() -> bool:
            return member.partition().log.directory.parent == other

        member.do(lambda: mover.alter(T0, str(other)))
        wait_for(
            "a copy that serves, or waits for that",
            lambda: (
                (other / "t-0").exists() and member.do(lambda: switched() or mover._nudge._waiters)
            ),
        )
        disk.free.set()
        wait_for("the other directory", lambda: member.do(switched))
    until_same(pair)
    assert b"lost" not in content(member)
