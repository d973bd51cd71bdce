"""Clusters, plain and secured, under every kind of client and every kind of fault at random.

Producers that are idempotent and that are transactional, a consumer that has every partition,
groups of both protocols, and an operator who changes topics, while `campaign` hurts brokers,
ZooKeeper, network and disks. `SEED=7 ROUNDS=40 pytest -m soak tests/cluster/test_campaign.py`
draws other ones.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from typing import Final
from urllib.error import HTTPError
from urllib.request import urlopen
from zlib import crc32

import pytest
from confluent_kafka.admin import AclOperation, ResourceType

from barnabas_kafka.client import (
    Admin,
    alter_partition_reassignments,
    describe_configs,
    list_partition_reassignments,
    topic_resource,
)
from barnabas_kafka.client.errors import ClientError
from barnabas_kafka.ids import TopicPartition
from tests.clients import under_load as clients
from tests.clients.brokers import Barnabas
from tests.clients.client_process import ClientProcess, reported
from tests.clients.notes import Notes, check_values, commit_first_offsets, committed
from tests.clients.under_load import (
    PARTITIONS,
    TOPIC,
    Acknowledged,
    retried,
    transactional_producer,
)
from tests.cluster import topic_work
from tests.cluster.campaign import SESSION_MS, Campaign
from tests.cluster.ensemble import member_host
from tests.cluster.history import Outcome, anomalies
from tests.cluster.load import read_all, under_load
from tests.cluster.network import Network
from tests.cluster.running import Cluster, broker_host
from tests.cluster.secured import (
    LISTENER,
    Stores,
    allow,
    broker_settings,
    client,
    create_users,
)
from tests.cluster.topic_work import BROKERS, SETTING, admin_config, known_topics
from tests.faults.disk import FaultyDisk
from tests.oracle.certificates import Certificate
from tests.waiting import ANSWER, ATTEMPT_S, RUN, seconds, wait_for

SEED, ROUNDS = "1", "40"
PLAIN: Final = "plain-load"
PLAIN_PARTITIONS: Final = 6
PRODUCERS: Final = 2
MEMBERS: Final = 3
REBOOTSTRAP: Final = {"metadata.recovery.strategy": "rebootstrap"}
"""Where there are several brokers, librdkafka's default: without it a client may never connect
again that has lost the connections to all of them."""
TEAMS: Final[Mapping[str, Mapping[str, str]]] = {
    "classic": {},
    "consumer": {"group.protocol": "consumer"},
}
SETTINGS: Final = {
    "zookeeper.session.timeout.ms": str(SESSION_MS),
    "replica.lag.time.max.ms": "10000",
    "replica.fetch.backoff.ms": "1000",
    "leader.imbalance.check.interval.seconds": "10",
    "barnabas.log.dirs.min.free.bytes": "0",
    "auto.create.topics.enable": "false",
}
HOSTS: Final = (*map(broker_host, BROKERS), *map(member_host, (1, 2, 3)))


class Secured(Cluster):
    """Brokers and clients that authenticate over TLS; alice may do what clients do."""

    def prepare(self) -> None:
        """Create the users; brokers could not connect to each other without theirs."""
        create_users(self.zookeeper.connect)


@dataclass(frozen=True)
class Scene:
    """A cluster, what it stands on, and what its clients and its operator connect with."""

    cluster: Cluster
    network: Network
    disks: Mapping[int, FaultyDisk]
    properties: Mapping[str, str]
    operator: Mapping[str, str]


@contextmanager
def scene(directory: Path, *, secured: bool) -> Iterator[Scene]:
    """Three brokers with two disks each and three members of ZooKeeper, each a host."""
    with ExitStack() as running:
        network = running.enter_context(Network(HOSTS))
        disks = {}
        for broker in BROKERS:
            prefix = directory / f"disk-{broker}"
            prefix.mkdir()
            disks[broker] = running.enter_context(FaultyDisk(prefix))
        stores = Stores(directory / "stores", [*map(network.address, HOSTS)])
        stores.write(Certificate("authority"))
        alice, operator = ({}, {})
        kind, listeners, settings = Cluster, ("PLAINTEXT",), dict(SETTINGS)
        if secured:
            kind, listeners = Secured, (LISTENER,)
            settings |= broker_settings(stores) | {"connections.max.reauth.ms": "20000"}
            alice, operator = client("alice", stores), client("admin", stores)
        cluster = kind(
            directory,
            settings=settings,
            disks=[*disks.values()],
            listeners=listeners,
            members=3,
            client=operator,
            network=network,
        )
        for broker, process in cluster.brokers.items():
            address = network.address(broker_host(broker))
            process.settings["barnabas.admin.listener"] = f"{address}:9644"
        running.enter_context(cluster)
        if secured:
            for resource in (
                ResourceType.TOPIC, ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID,
            ):  # fmt: skip
                allow(cluster, resource, "*", AclOperation.ALL)
        yield Scene(cluster, network, disks, alice, operator)


class Crowd:
    """Transactional producers, the members of both teams, and the operator."""

    def __init__(self, directory: Path, scene: Scene, random: Random) -> None:
        self._directory, self._scene, self._random = directory, scene, random
        self._bootstrap = scene.cluster.bootstrap
        self._clients: list[ClientProcess] = []
        self.hung = 0
        self._names = [f"writer-{it}" for it in range(PRODUCERS)]
        for part in ("writers", *TEAMS):
            (directory / part).mkdir()
        self._work = directory / "operator.jsonl"

    def __enter__(self) -> Crowd:
        common = {**REBOOTSTRAP, **self._scene.properties}
        properties = json.dumps(common)
        for name in self._names:
            self._start("writers", "writer", name, "", properties)
        for team, protocol in TEAMS.items():
            commit_first_offsets(self._bootstrap, team, self._scene.properties)
            more = json.dumps({**common, **protocol})
            Acknowledged(self._directory / team / team)
            for number in range(MEMBERS):
                self._start(team, "member", str(number), team, more)
        moved = json.dumps({PLAIN: PLAIN_PARTITIONS, TOPIC: PARTITIONS})
        operator = json.dumps(dict(self._scene.operator))
        arguments = self._bootstrap, str(self._seed()), moved, operator
        self._clients.append(ClientProcess(self._work, topic_work.__name__, *arguments))
        return self

    def __exit__(self, *_: object) -> None:
        for each in self._clients:
            each.kill()

    def _seed(self) -> int:
        return self._random.randrange(2**32)

    def _start(self, part: str, role: str, name: str, team: str, properties: str) -> None:
        directory = self._directory / part
        where = self._bootstrap, str(self._seed()), str(directory), team, properties
        scenario = directory / f"{role}-{name}.jsonl"
        self._clients.append(ClientProcess(scenario, clients.__name__, role, name, *where))

    def end_writers(self) -> None:
        """End producers and operator, and abort what they have left open."""
        staying = []
        for each in self._clients:
            if each.name.startswith("member-"):
                staying.append(each)
            else:
                self.hung += not each.end(seconds(ANSWER))
        self._clients = staying
        for name in self._names:
            successor = transactional_producer(self._bootstrap, name, self._scene.properties)
            retried(partial(successor.init_transactions, ATTEMPT_S))

    def end_members(self) -> None:
        """They close, or hang as librdkafka's clients may."""
        while self._clients:
            self.hung += not self._clients.pop().end(seconds(ANSWER))

    def notes(self, part: str) -> Notes:
        """What the producers or a team have written down."""
        return Notes.of(self._directory / part)

    def work(self) -> dict[str, topic_work.KnownTopic]:
        """What must be true of the operator's topics."""
        lines = [line for line in reported(self._work) if line["change"] != "move"]
        return known_topics(lines)

    def check_offsets(self) -> None:
        """No offset whose commit was acknowledged is forgotten."""
        for team in TEAMS:
            marks = Acknowledged(self._directory / team / team)
            offsets = committed(self._bootstrap, team, self._scene.properties)
            for partition, offset in offsets.items():
                assert offset >= marks[partition], f"{team}: {partition} went back to {offset}"


def files_of(process: Barnabas, topics: Collection[str]) -> list[str]:
    """The partitions of these topics that a broker has on its disks."""
    return [
        path.name
        for directory in process.log_dirs
        for path in directory.glob("work-*")
        if path.name.rpartition("-")[0] in topics
    ]


def check_work(scene: Scene, work: Mapping[str, topic_work.KnownTopic]) -> None:
    """Topics are as the operator was told, on every broker, and none that is gone leaves files."""
    cluster = scene.cluster
    gone = {topic for topic, known in work.items() if known.exists is False}
    for broker, process in cluster.brokers.items():
        found = cluster.wait_for(
            f"broker {broker} without {sorted(gone)}",
            partial(cluster.metadata, bootstrap=process.bootstrap),
            until=lambda it: not gone & it.topics.keys(),
        ).topics
        for topic, known in work.items():
            if known.exists:
                assert len(found[topic].partitions) >= known.partitions, topic
        cluster.wait_for(
            f"no files of deleted topics on broker {broker}",
            partial(files_of, process, gone),
            until=lambda it: not it,
            within=RUN,
        )
    set_to = {
        topic_resource(topic): known.setting
        for topic, known in work.items()
        if known.exists and known.setting is not None
    }
    with Admin(admin_config(cluster.bootstrap, scene.operator)) as admin:
        described = admin.call(describe_configs([*set_to], names=[SETTING])).all()
    assert {each: described[each][SETTING].value for each in set_to} == set_to


def place_everywhere(scene: Scene, campaign: Campaign) -> None:
    """Give every partition a replica on each broker, and wait until all are in sync."""
    with Admin(admin_config(scene.cluster.bootstrap, scene.operator)) as admin:

        def moved() -> object:
            topics = scene.cluster.metadata().topics
            small = {
                TopicPartition(name, number): BROKERS
                for name, topic in topics.items()
                for number, each in topic.partitions.items()
                if {*each.replicas} != {*BROKERS}
            }
            if small:
                admin.call(alter_partition_reassignments(small))
            under_way = admin.call(list_partition_reassignments())
            return {*small, *under_way}

        wait_for(
            "partitions that have no replica on some broker, or are being moved",
            moved,
            until=lambda it: not it,
            retry=(ClientError,),
            within=RUN,
        )
    campaign.until_whole()


EXPLAINED: Final = re.compile(
    r"ZooKeeper at |the connection to ZooKeeper at |/controller_epoch: BadVersionError"
    r"|Failed to read .*ZooKeeper"
    r"|Failed to append: .* NOT_ENOUGH_REPLICAS|Failed to append: .* KAFKA_STORAGE_ERROR"
    r"|Log directory (failed|full): |.*(Input/output error|No space left on device)"
)
"""Errors in the logs of brokers that say what was done to them."""


def unexplained(cluster: Cluster) -> list[str]:
    """What brokers have logged as errors that no fault explains."""
    found = []
    for process in cluster.brokers.values():
        lines = process.log_file.read_text(errors="replace").splitlines()
        reported = (line.partition("] ERROR ")[2] for line in lines)
        found += [each for each in reported if each and not EXPLAINED.match(each)]
    return found


def until_same_logs(cluster: Cluster, topic: str, partition: int) -> None:
    """Wait until all brokers have the same bytes of a partition, in whichever directory."""

    def contents() -> set[int]:
        found = set()
        for process in cluster.brokers.values():
            files = [
                path
                for directory in process.log_dirs
                for path in sorted((directory / f"{topic}-{partition}").glob("*.log"))
            ]
            found.add(crc32(b"".join(path.read_bytes() for path in files)))
        return found

    wait_for(f"one content of {topic}-{partition}", contents, until=lambda it: len(it) == 1)


def unready(cluster: Cluster) -> list[str]:
    """What brokers answer to /ready that do not say that they are."""
    found = []
    for process in cluster.brokers.values():
        ready = json.loads((process.directory / "ready.json").read_text())
        try:
            urlopen(f"{ready['admin']}/ready", timeout=ATTEMPT_S).close()
        except HTTPError as error:
            found.append(error.read().decode())
        except OSError as error:
            found.append(repr(error))
    return found


def unread(crowd: Crowd, team: str, values: Collection[str]) -> int:
    """How many of these values no member of a team has read."""
    return len({*values} - crowd.notes(team).read.keys())


def play(directory: Path, *, secured: bool, seed: int, rounds: int) -> None:
    """One campaign, and all that must be true after it."""
    print(f"seed {seed}")
    scenarios = directory / "clients"
    scenarios.mkdir()
    random = Random(seed)
    with scene(directory, secured=secured) as it:
        cluster = it.cluster
        cluster.create(PLAIN, PLAIN_PARTITIONS)
        cluster.create(TOPIC, PARTITIONS)
        campaign = Campaign(cluster, it.network, it.disks, random, partial(print, flush=True))
        loaded = under_load(cluster.bootstrap, PLAIN, PLAIN_PARTITIONS, it.properties)
        with loaded as load, Crowd(scenarios, it, random) as crowd:
            campaign.run(rounds)
            crowd.end_writers()
            place_everywhere(it, campaign)
            finals = read_all(cluster.bootstrap, TOPIC, PARTITIONS, expected=0, **it.properties)
            visible = Counter(value for poll in finals for _, value in poll.records)
            check_values(crowd.notes("writers").attempts, visible)
            for team in TEAMS:
                wait_for(
                    f"how many committed records no member of {team} has read",
                    partial(unread, crowd, team, visible),
                    until=lambda missing: missing == 0,
                    within=RUN,
                )
            crowd.end_members()
        for team in TEAMS:
            notes = crowd.notes(team)
            assert notes.read.keys() == visible.keys(), f"{team} has read what was aborted"
            assert not notes.faults, notes.faults
            print(team, dict(notes.met))
        print(Counter(each.outcome for each in crowd.notes("writers").attempts))
        crowd.check_offsets()
        check_work(it, crowd.work())
        wait_for("brokers that are not ready", partial(unready, cluster), until=lambda n: not n)
        print(dict(campaign.done), [f"{each:.1f}" for each in campaign.recoveries_s])
        print("hung clients:", crowd.hung, "records:", len(load.history.sends))
        assert unexplained(cluster) == []
        assert anomalies(load.history) == []
        assert {send.outcome for send in load.history.sends} == {Outcome.OK}
        for partition in range(PLAIN_PARTITIONS):
            until_same_logs(cluster, PLAIN, partition)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("secured", [False, True], ids=["plain", "secured"])
def test_campaign(tmp_path: Path, secured: bool) -> None:
    """Nothing acknowledged is lost or doubled, and everything is well again after it."""
    seed, rounds = (
        int(os.environ.get(it, default)) for it, default in (("SEED", SEED), ("ROUNDS", ROUNDS))
    )
    play(tmp_path, secured=secured, seed=seed, rounds=rounds)
