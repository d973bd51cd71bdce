"""Brokers that are told to stop after the ensemble has gone."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from tests.cluster.running import Cluster
from tests.waiting import wait_for

GIVEN_UP = "Controlled shutdown given up: ZooKeeper has not been reachable"


def test_they_do_not_try_to_move_their_leaders(tmp_path: Path) -> None:
    """Nobody can elect others: they end in order, without all retries of a controlled shutdown."""
    with Cluster(tmp_path) as cluster:
        cluster.create("t", partitions=6)
        cluster.until_whole("t")
        cluster.zookeeper.kill()
        for broker in cluster.brokers.values():
            wait_for(
                "the loss of the connection",
                broker.log_file.read_text,
                until=lambda text: "ZooKeeper connection lost" in text,
            )
        for broker in cluster.brokers.values():
            os.kill(broker.pid, signal.SIGTERM)
        for broker in cluster.brokers.values():
            broker.stop()
            reported = broker.log_file.read_text()
            assert GIVEN_UP in reported
            assert "0 retries left" not in reported
            assert "Shut down cleanly" in reported
            assert broker.exit_code == 0
