"""Where a cluster's coordination data are: kept by its broker, the small ZooKeeper, or Apache's.

They are nowhere else, so what keeps them stays the same for good; it follows from the files on
disk.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from barnabas_operator.api.clusters import KafkaCluster, ZooKeeperType
from barnabas_operator.api.reading import Resource
from barnabas_operator.local import ensemble, processes, zookeeper
from barnabas_operator.local.broker import BrokerFiles
from barnabas_operator.local.state import LocalError, MemberPorts, Record, StateDirectory
from barnabas_operator.local.zookeeper import ZooKeeperFiles

Say = Callable[[str], None]


class Keeper(StrEnum):
    """What keeps coordination data, as shown to the user."""

    BROKER = "the only broker"
    DEVELOPMENT = "the ZooKeeper for development"
    APACHE = "Apache ZooKeeper"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerView:
    """A ZooKeeper server: `pid` and `memory_bytes` are None when it does not run.

    `mode` is leader, follower or standalone, None where it does not serve.
    """

    id: int
    pid: int | None
    memory_bytes: int | None
    address: str
    mode: str | None
    log: Path


def choose(cluster: Resource[KafkaCluster], record: Record, state: StateDirectory) -> Keeper:
    """What is to keep the data; remembers the members of an ensemble.

    Raises LocalError where something else has them, or another number of members.
    """
    spec, found = cluster.body.spec, _found(state)
    keeper = Keeper.BROKER
    if spec.zookeeper.type is ZooKeeperType.APACHE:
        keeper = Keeper.APACHE
    elif spec.brokers.replicas > 1 or found is Keeper.DEVELOPMENT:
        keeper = Keeper.DEVELOPMENT
    elsewhere = "name another directory with --dir"
    if found not in (None, keeper):
        text = f"{found} keeps the coordination data in {state.path}; {keeper} does not take over"
        say_so = "say spec.zookeeper.type: apache, or " if found is Keeper.APACHE else ""
        raise LocalError(f"{text}: {say_so}{elsewhere}")
    members = spec.zookeeper.replicas if keeper is Keeper.APACHE else 0
    there = len(record.ensemble) or len(state.members())
    if found is Keeper.APACHE and members != there:
        text = f"spec.zookeeper.replicas is {members}, and there are {there} in {state.path}"
        raise LocalError(f"{text}: it may not change; {elsewhere}")
    if members != len(record.ensemble):
        record.ensemble = {number + 1: MemberPorts() for number in range(members)}
    return keeper


def ensure(
    keeper: Keeper, record: Record, state: StateDirectory, *, say: Say, deadline: float
) -> None:
    """Have the processes run that keep the data; raises LocalError."""
    if keeper is Keeper.APACHE:
        ensemble.ensure(record, state, say=say, deadline=deadline)
    elif keeper is Keeper.DEVELOPMENT:
        zookeeper.ensure(record, state, say=say, deadline=deadline)


def connect(record: Record) -> str | None:
    """The brokers' zookeeper.connect; the chroot is the cluster's name, as on Kubernetes."""
    if record.ensemble:
        return f"{ensemble.addresses(record)}/{record.cluster}"
    if record.zookeeper is not None:
        return f"{zookeeper.HOST}:{record.zookeeper}/{record.cluster}"
    return None


def files_of(record: Record, state: StateDirectory) -> dict[str, ZooKeeperFiles]:
    """The files of every process that keeps the data, by what it is called."""
    if record.ensemble:
        return {each.name: each.files for each in ensemble.members(record, state)}
    single = ZooKeeperFiles(state.zookeeper)
    # An `up` that was killed may have started it and not remembered.
    if record.zookeeper is not None or single.pid.exists():
        return {zookeeper.NAME: single}
    return {}


def servers(record: Record, state: StateDirectory) -> list[ServerView]:
    """Every process that keeps the data, as it is now; one that runs is asked."""
    if record.ensemble:
        return [
            _view(each.number, each.files, each.ports.client)
            for each in ensemble.members(record, state)
        ]
    if record.zookeeper is not None:
        return [_view(1, ZooKeeperFiles(state.zookeeper), record.zookeeper)]
    return []


def _view(number: int, files: ZooKeeperFiles, port: int) -> ServerView:
    pid = processes.pid_of(files.entry())
    return ServerView(
        id=number,
        pid=pid,
        memory_bytes=processes.resident_bytes(pid) if pid else None,
        address=f"{zookeeper.HOST}:{port}",
        mode=zookeeper.mode_at(port) if pid else None,
        log=files.log,
    )


def _found(state: StateDirectory) -> Keeper | None:
    if state.members():
        return Keeper.APACHE
    if ZooKeeperFiles(state.zookeeper).data.exists():
        return Keeper.DEVELOPMENT
    return Keeper.BROKER if BrokerFiles(state.broker(0)).data.exists() else None
