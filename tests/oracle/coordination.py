"""Telling a ZooKeeper about topics whose logs an Apache broker is to be started on.

A broker in ZooKeeper mode loads every log it finds, and serves those that ZooKeeper knows.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

from tests.oracle.apache import ZooKeeper, run_tool


def properties(file: Path) -> dict[str, str]:
    """The pairs of a small properties file."""
    lines = [line for line in file.read_text().splitlines() if not line.startswith("#")]
    return dict(line.split("=" if "=" in line else ": ", 1) for line in lines if line)


def partitions(log_directory: Path) -> dict[str, list[int]]:
    """Topics found in a log directory with their partitions."""
    found: dict[str, list[int]] = defaultdict(list)
    for directory in sorted(log_directory.glob("*-[0-9]*")):
        topic, _, number = directory.name.rpartition("-")
        found[topic].append(int(number))
    return dict(found)


def _last_leader_epoch(directory: Path) -> int:
    checkpoint = directory / "leader-epoch-checkpoint"
    lines = checkpoint.read_text().splitlines()[2:] if checkpoint.exists() else []
    return int(lines[-1].split()[0]) if lines else 0


def _producer_ids_below(end: int) -> dict[str, object]:
    return {"version": 1, "broker": 0, "block_start": "0", "block_end": str(end - 1)}


def register(
    zookeeper: ZooKeeper,
    log_directory: Path,
    configs: Mapping[str, Mapping[str, str]] | None = None,
) -> None:
    """Write the cluster's id and every topic of the directory, led by its only broker.

    `configs` are settings of topics.
    """
    identity = properties(log_directory / "meta.properties")
    broker = int(identity["broker.id"])
    nodes: list[tuple[str, object]] = [
        ("/cluster", None),
        ("/cluster/id", {"version": "1", "id": identity["cluster.id"]}),
        # No producer id of the logs may be given away again.
        ("/latest_producer_id_block", _producer_ids_below(100_000)),
        ("/brokers", None),
        ("/brokers/topics", None),
        ("/config", None),
        ("/config/topics", None),
    ]
    for topic, config in (configs or {}).items():
        nodes += [(f"/config/topics/{topic}", {"version": 1, "config": dict(config)})]
    for topic, numbers in partitions(log_directory).items():
        metadata = properties(log_directory / f"{topic}-{numbers[0]}" / "partition.metadata")
        assignment = {
            "version": 3,
            "topic_id": metadata["topic_id"],
            "partitions": {str(number): [broker] for number in numbers},
            "adding_replicas": {},
            "removing_replicas": {},
        }
        path = f"/brokers/topics/{topic}"
        nodes += [(path, assignment), (f"{path}/partitions", None)]
        for number in numbers:
            state = {
                "controller_epoch": 0,
                "leader": broker,
                "version": 1,
                "leader_epoch": _last_leader_epoch(log_directory / f"{topic}-{number}"),
                "isr": [broker],
            }
            nodes += [(f"{path}/partitions/{number}", None)]
            nodes += [(f"{path}/partitions/{number}/state", state)]
    commands = [
        f"create {path} '{'' if value is None else json.dumps(value, separators=(',', ':'))}'"
        for path, value in nodes
    ]
    shell = "org.apache.zookeeper.ZooKeeperMain"
    given = "\n".join([*commands, "ls -R /brokers/topics", "quit"]) + "\n"
    # ZooKeeper says that it is well some moments before it takes sessions.
    done = run_tool(shell, "-waitforconnection", "-server", zookeeper.connect, input=given)
    for path, _ in nodes:
        assert f"Created {path}\n" in done.stdout + done.stderr, done.stdout + done.stderr
