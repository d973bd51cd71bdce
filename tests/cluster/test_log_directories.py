"""One of a broker's two log directories fills up or fails: others lead what it led in there."""

from __future__ import annotations

import errno
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from operator import eq
from pathlib import Path
from typing import Final

import pytest

from tests.cluster.history import Outcome, anomalies
from tests.cluster.load import PER_SECOND, Writer, read_all, under_load
from tests.cluster.running import Cluster
from tests.faults.disk import FaultyDisk
from tests.oracle.apache import run_tool
from tests.waiting import RUN

PARTITIONS: Final = 6
"""Two for each broker to lead, one in each of its directories."""

REASSIGN: Final = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"


@dataclass(frozen=True)
class Stricken:
    """Three brokers with two directories each, and the disks under the second ones."""

    cluster: Cluster
    disks: Mapping[int, FaultyDisk]

    def inside(self, broker: int, topic: str) -> list[int]:
        """The partitions in a broker's second directory."""
        found = self.cluster.brokers[broker].log_dirs[1].glob(f"{topic}-*")
        return sorted(int(path.name.rpartition("-")[2]) for path in found)

    def until_yielded(self, broker: int, topic: str, inside: list[int]) -> None:
        """Wait until others lead, and are in sync without it, in those partitions."""
        self.cluster.wait_for_leadership(
            f"leaders and in-sync replicas other than broker {broker} of partitions {inside}",
            topic,
            lambda found: all(
                found[it][0] not in (broker, -1) and broker not in found[it][1] for it in inside
            ),
        )


@pytest.fixture(scope="module")
def stricken(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stricken]:
    """For the module; each test heals what it breaks."""
    directory = tmp_path_factory.mktemp("stricken")
    with ExitStack() as running:
        disks = []
        for broker in range(3):
            prefix = directory / f"disk-{broker}"
            prefix.mkdir()
            disks.append(running.enter_context(FaultyDisk(prefix)))
        settings = {"barnabas.log.dirs.min.free.bytes": "0"}
        cluster = running.enter_context(Cluster(directory, settings=settings, disks=disks))
        yield Stricken(cluster, dict(enumerate(disks)))


@pytest.mark.parametrize("who", ["controller", "member"])
def test_a_full_directory_gives_its_leaders_to_others(
    stricken: Stricken, topic: str, who: str
) -> None:
    """Producers go on, nothing is lost, and when there is room it is in sync again."""
    cluster = stricken.cluster
    cluster.create(topic, PARTITIONS)
    controller = cluster.known_controller()
    victim = controller if who == "controller" else (controller + 1) % 3
    inside = stricken.inside(victim, topic)
    leaders = [leader for leader, _ in cluster.leadership(topic)]
    assert victim in [leaders[it] for it in inside]
    with under_load(cluster.bootstrap, topic, PARTITIONS) as load:
        stricken.disks[victim].fill()
        stricken.until_yielded(victim, topic, inside)
        with Writer(cluster.bootstrap, f"{topic}-meanwhile", topic, PARTITIONS) as meanwhile:
            meanwhile.wait_for_more(PER_SECOND)
        stricken.disks[victim].heal()
        cluster.until_whole(topic)
    load.history.sends += meanwhile.finish()
    assert anomalies(load.history) == []
    assert {send.outcome for send in load.history.sends} == {Outcome.OK}


def test_a_directory_that_failed_gives_its_leaders_to_others(
    stricken: Stricken, topic: str
) -> None:
    """They leave the in-sync replicas until the broker has been started on a disk that works."""
    cluster = stricken.cluster
    cluster.create(topic, PARTITIONS)
    victim = (cluster.known_controller() + 1) % 3
    inside = stricken.inside(victim, topic)
    with under_load(cluster.bootstrap, topic, PARTITIONS) as load:
        stricken.disks[victim].faults.write_errno = errno.EIO
        stricken.until_yielded(victim, topic, inside)
        with Writer(cluster.bootstrap, f"{topic}-meanwhile", topic, PARTITIONS) as meanwhile:
            meanwhile.wait_for_more(PER_SECOND)
        cluster.brokers[victim].stop()
        stricken.disks[victim].heal()
        cluster.start(victim)
        cluster.until_whole(topic)
    load.history.sends += meanwhile.finish()
    assert anomalies(load.history) == []
    assert {send.outcome for send in load.history.sends} == {Outcome.OK}


def test_a_full_directory_demotes_its_leaders_once_a_follower_is_in_sync(
    stricken: Stricken, topic: str
) -> None:
    """Until then it lets everything be read and refuses records."""
    cluster = stricken.cluster
    cluster.create(topic, PARTITIONS, min_insync_replicas="1")
    victim = cluster.known_controller()
    leaders = [leader for leader, _ in cluster.leadership(topic)]
    mine = next(it for it in stricken.inside(victim, topic) if leaders[it] == victim)
    with Writer(cluster.bootstrap, topic, topic, PARTITIONS) as writer:
        writer.wait_for_more(PER_SECOND)
        others = [broker for broker in cluster.brokers if broker != victim]
        for broker in others:
            cluster.brokers[broker].kill()
        cluster.wait_for_leadership(
            f"broker {victim} alone in sync",
            topic,
            lambda found: all(it == (victim, (victim,)) for it in found),
        )
        log = cluster.brokers[victim].log_file
        said = log.read_text().count("Log directory full: ")
        stricken.disks[victim].fill()
        cluster.wait_for(
            f"more than {said} lines of the log on a full directory",
            lambda: log.read_text().count("Log directory full: "),
            until=lambda count: count > said,
        )
        reported = read_all(
            cluster.brokers[victim].bootstrap, topic, PARTITIONS, expected=PER_SECOND
        )
        assert sum(len(poll.records) for poll in reported) >= PER_SECOND
        cluster.start(*others)
        cluster.wait_for_leadership(
            f"one of the brokers {others} as the leader of partition {mine}",
            topic,
            lambda found: found[mine][0] in others,
        )
        stricken.disks[victim].heal()
        cluster.until_whole(topic)
    sends = writer.finish()
    polls = read_all(cluster.bootstrap, topic, PARTITIONS, expected=len(sends))
    values = {value for poll in polls for _, value in poll.records}
    assert {send.outcome for send in sends} == {Outcome.OK}
    assert {send.value for send in sends} <= values


def homes(cluster: Cluster, topic: str) -> list[list[str]]:
    """For each broker, the directories that hold a copy of partition 0, or are to hold one."""
    return [
        [
            str(path)
            for path in broker.log_dirs
            for copy in path.glob(f"{topic}-0*")
            if not copy.name.endswith("-delete")
        ]
        for _, broker in sorted(cluster.brokers.items())
    ]


def test_kafkas_tool_chooses_the_directory(stricken: Stricken, topic: str, tmp_path: Path) -> None:
    """Of a replica that a broker is to have, and of those that it has already."""
    cluster = stricken.cluster
    cluster.create(topic, replicas=2)
    replicas = sorted(cluster.brokers)
    for number in (1, 0):
        wanted = [str(cluster.brokers[broker].log_dirs[number]) for broker in replicas]
        plan = tmp_path / f"plan-{number}.json"
        entry = {"topic": topic, "partition": 0, "replicas": replicas, "log_dirs": wanted}
        plan.write_text(json.dumps({"version": 1, "partitions": [entry]}))
        reported = ("--bootstrap-server", cluster.bootstrap, "--reassignment-json-file", str(plan))
        done = run_tool(REASSIGN, *reported, "--execute")
        assert "Successfully started" in done.stdout, done.stdout + done.stderr
        # Complete for the partition and for each replica. The tool is slow to start: what it
        # will see is waited for first.
        cluster.wait_for(
            f"the replicas in {wanted}",
            partial(homes, cluster, topic),
            until=partial(eq, [[path] for path in wanted]),
        )
        cluster.wait_for(
            "completed moves in the output of Kafka's tool",
            partial(_verified, reported),
            until=lambda output: output.count("completed") == 1 + len(replicas),
            within=RUN,
        )


def _verified(reported: Sequence[str]) -> str:
    """What Kafka's tool prints about the moves of a plan."""
    seen = run_tool(REASSIGN, *reported, "--verify")
    assert "Status of partition reassignment:" in seen.stdout, seen.stdout + seen.stderr
    return seen.stdout
