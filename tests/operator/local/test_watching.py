"""Processes by what became of them, without any that is ours."""

from __future__ import annotations

import sys
from pathlib import Path

from barnabas_operator.local import processes
from barnabas_operator.local.broker import BrokerFiles
from barnabas_operator.local.state import BrokerRecord, Record, StateDirectory
from barnabas_operator.local.watching import watched
from barnabas_operator.local.zookeeper import ZooKeeperFiles
from tests.waiting import ANSWER, seconds


def launch(files: BrokerFiles | ZooKeeperFiles, code: str) -> processes.Entry:
    """A process in the place of a broker or of the ZooKeeper."""
    files.directory.mkdir(parents=True)
    command = [sys.executable, "-c", code]
    return processes.launch(
        command, directory=files.directory, log=files.log, pid_file=files.pid, fingerprint=""
    )


def test_ended_processes_are_reported_with_their_last_output(tmp_path: Path) -> None:
    """One that runs and one that was never started are not."""
    state = StateDirectory(tmp_path)
    record = Record(cluster="c", file="f", zookeeper=2181)
    record.brokers = {0: BrokerRecord(), 1: BrokerRecord()}
    ended = launch(ZooKeeperFiles(state.zookeeper), "print('out of disk')")
    while ended.running:
        pass
    runs = launch(BrokerFiles(state.broker(1)), "import time; time.sleep(100)")
    try:
        found = watched(record, state)
        assert [each.name for each in found] == ["broker 0", "broker 1", "the ZooKeeper"]
        assert [each.stopped for each in found] == [True, False, False]
        words = "the ZooKeeper ended by itself; its last words: out of disk"
        said = f"{words} (log: {found[2].files.log})"
        assert [each.end() for each in found] == [None, None, said]
    finally:
        processes.abandon(runs, timeout_s=seconds(ANSWER))


def test_a_broker_that_keeps_its_own_data_has_no_zookeeper(tmp_path: Path) -> None:
    """Then there is nothing else to watch."""
    record = Record(cluster="c", file="f", brokers={0: BrokerRecord()})
    assert [each.name for each in watched(record, StateDirectory(tmp_path))] == ["the broker"]
