"""Replication that is throttled: what a leader sends no more, and a follower asks for no more."""

from pathlib import Path
from typing import Any

import pytest

from barnabas_broker.replica.follower import Phase
from tests.broker.server.peers.replication.hand_made import T0, HandMade, hand_made
from tests.broker.server.peers.replication.test_replica_fetcher import batch, until_same
from tests.broker.server.requests.test_follower_fetches import fetch, reported
from tests.broker.server.running import Wire
from tests.waiting import wait_for

#: Windows enough that nothing is forgotten while a test runs, however slowly.
LONG = {"replication_quota_window_num": 3600}
LEADER = "leader.replication.throttled.rate"
FOLLOWER = "follower.replication.throttled.rate"


def limit(cluster: HandMade, broker: int, name: str, rate: int | None) -> None:
    """Set a rate of a broker, or remove it."""
    configs = {} if rate is None else {str(broker): {name: str(rate)}}
    cluster.image = cluster.image.with_changes(broker_configs=configs)
    cluster.show(cluster.members[broker])


@pytest.mark.parametrize("replicas", ["*", "1:0,0:0"])
def test_a_leader_withholds_records(tmp_path: Path, replicas: str) -> None:
    """From a follower that is not in sync, which is told all else; and no longer than it must."""
    with hand_made(tmp_path, 1, **LONG) as cluster, Wire(cluster.members[0].port) as wire:
        cluster.appoint(
            0, replicas=(0, 1), isr=(0,), leader_replication_throttled_replicas=replicas
        )
        limit(cluster, 0, LEADER, 1)
        for value in (b"a" * 50_000, b"b"):
            assert wire.produce("t", batch(value), acks=1).error_code == 0
        first = reported(wire, fetch(0, partition_max_bytes=1))
        assert first.records, "nothing had gone through"
        second = reported(wire, fetch(1, wait_ms=1))
        assert (second.error_code, second.records, second.high_watermark) == (0, b"", 2)
        quota = cluster.members[0].node.replication.quotas.leader
        now_ms = cluster.members[0].node.broker.monotonic_ms
        assert cluster.members[0].do(lambda: quota.rate(now_ms())) > 1
        limit(cluster, 0, LEADER, None)
        assert reported(wire, fetch(1)).records


def test_in_sync_replicas_get_all(tmp_path: Path) -> None:
    """They are counted, and would leave the in-sync replicas if they had to wait."""
    with hand_made(tmp_path, 1, **LONG) as cluster, Wire(cluster.members[0].port) as wire:
        cluster.appoint(0, replicas=(0, 1), isr=(0, 1), leader_replication_throttled_replicas="*")
        limit(cluster, 0, LEADER, 1)
        for offset, value in enumerate((b"a" * 50_000, b"b")):
            assert wire.produce("t", batch(value), acks=1).error_code == 0
            assert reported(wire, fetch(offset)).records


@pytest.mark.parametrize("name", ["leader", "follower"])
def test_other_replicas_get_all(tmp_path: Path, name: str) -> None:
    """The list for leaders names the leader's own replica, and that for followers is not for it."""
    replicas = {"leader": "0:1,1:0", "follower": "*"}[name]
    with hand_made(tmp_path, 1, **LONG) as cluster, Wire(cluster.members[0].port) as wire:
        named: Any = {f"{name}_replication_throttled_replicas": replicas}
        cluster.appoint(0, replicas=(0, 1), isr=(0,), **named)
        limit(cluster, 0, LEADER, 1)
        for offset, value in enumerate((b"a" * 50_000, b"b")):
            assert wire.produce("t", batch(value), acks=1).error_code == 0
            assert reported(wire, fetch(offset)).records


def test_a_follower_asks_for_nothing(tmp_path: Path) -> None:
    """While too much has come and it is behind; then it copies on."""
    with hand_made(tmp_path, **LONG) as cluster, Wire(cluster.members[0].port) as wire:
        follower = cluster.members[1]
        limit(cluster, 1, FOLLOWER, 1)
        quotas, now_ms = follower.node.replication.quotas, follower.node.broker.monotonic_ms
        follower.do(lambda: quotas.follower.record(1_000_000, now_ms()))
        cluster.appoint(0, isr=(0,), follower_replication_throttled_replicas="0:1")
        assert wire.produce("t", batch(b"a"), acks=1).error_code == 0

        def fetches() -> bool:
            (running,) = follower.node.replication.fetchers.running.values()
            state = running.fetcher.copied[T0].state
            return state is not None and state.phase is Phase.FETCHING

        wait_for("a follower that may fetch", lambda: follower.do(fetches))
        assert follower.ends() == (0, 0)
        limit(cluster, 1, FOLLOWER, None)
        until_same(cluster)
