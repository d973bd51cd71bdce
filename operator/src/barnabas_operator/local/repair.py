"""A record rebuilt from the files beside it, where the written one cannot be read.

The brokers are those that have a directory, with the ports that their server.properties names, so
that clients find them where they were. What is not in any file is lost: which topics and users a
resource with `deletionPolicy: Delete` had that is gone from the manifest by now.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from barnabas_kafka.settings.definitions import SettingError
from barnabas_kafka.settings.properties import parse_properties
from barnabas_operator.api.clusters import KafkaCluster, Security
from barnabas_operator.api.listeners import REPLICATION
from barnabas_operator.api.reading import Resource
from barnabas_operator.local.broker import BrokerFiles, asked_port
from barnabas_operator.local.state import (
    BrokerRecord,
    DamagedError,
    MemberPorts,
    Port,
    Record,
    StateDirectory,
)
from barnabas_operator.local.zookeeper import ZooKeeperFiles

_LISTENER: Final = re.compile(r"(\w+)://[^,]*:(\d+)")
_MEMBER: Final = re.compile(r"^server\.(\d+)=[^:]*:(\d+):(\d+)", re.MULTILINE)
_CLIENT_PORT: Final = re.compile(r"^clientPort=(\d+)", re.MULTILINE)
_CONNECT: Final = re.compile(r"[^,/]*:(\d+)/")


def remade(state: StateDirectory, cluster: Resource[KafkaCluster], file: Path) -> Record:
    """The record of a cluster, from its files."""
    record = bare(state)
    record.cluster, record.file = cluster.meta.name, str(file)
    record.security = security_of(state)
    for broker_id, broker in record.brokers.items():
        found = _settings(BrokerFiles(state.broker(broker_id)))
        ports = {name: int(port) for name, port in _LISTENER.findall(found.get("listeners", ""))}
        for each in cluster.body.spec.all_listeners:
            if each.kafka_name in ports:
                asked = asked_port(each, broker_id)
                broker.ports[each.name] = Port(asked, ports[each.kafka_name])
        connect = _CONNECT.match(found.get("zookeeper.connect", ""))
        if connect is not None and not record.ensemble:
            record.zookeeper = int(connect[1])
        record.cluster_id = record.cluster_id or _cluster_id(BrokerFiles(state.broker(broker_id)))
    return record


def recorded_security(state: StateDirectory) -> Security | None:
    """What a cluster was created as; None where there is none. Raises LocalError."""
    try:
        record = state.load()
    except DamagedError:
        record = None
    return security_of(state) if record is None else record.security


def security_of(state: StateDirectory) -> Security | None:
    """What a cluster was created as, from the settings of its brokers."""
    for path in state.path.glob("broker-*"):
        found = _settings(BrokerFiles(path))
        if protocols := found.get("listener.security.protocol.map"):
            secured = f"{REPLICATION.kafka_name}:{REPLICATION.security_protocol}"
            is_secured = secured in protocols.split(",")
            return Security.SECURED if is_secured else Security.INSECURE
    return None


def bare(state: StateDirectory) -> Record:
    """What of a record is needed to stop everything: which processes there are."""
    numbers = [_number(path) for path in state.path.glob("broker-*")]
    record = Record(cluster="", file="")
    record.brokers = {number: BrokerRecord() for number in range(max(numbers, default=-1) + 1)}
    members = [_number(path.parent) for path in state.members()]
    for number in sorted(each for each in members if each > 0):
        record.ensemble[number] = _member_ports(ZooKeeperFiles(state.member(number)), number)
    return record


def _number(directory: Path) -> int:
    text = directory.name.rpartition("-")[2]
    return int(text) if text.isdecimal() else -1


def _settings(files: BrokerFiles) -> dict[str, str]:
    try:
        return dict(parse_properties(files.settings.read_bytes(), origin=str(files.settings)))
    except (OSError, SettingError):
        return {}


def _cluster_id(files: BrokerFiles) -> str:
    path = files.data / "meta.properties"
    try:
        return dict(parse_properties(path.read_bytes(), origin=str(path))).get("cluster.id", "")
    except (OSError, SettingError):
        return ""


def _member_ports(files: ZooKeeperFiles, number: int) -> MemberPorts:
    try:
        text = files.settings.read_text(errors="replace")
    except OSError:
        return MemberPorts()
    client = _CLIENT_PORT.search(text)
    others = {int(found[1]): found for found in _MEMBER.finditer(text)}
    peers = others.get(number)
    return MemberPorts(
        client=int(client[1]) if client else 0,
        peer=int(peers[2]) if peers else 0,
        election=int(peers[3]) if peers else 0,
    )
