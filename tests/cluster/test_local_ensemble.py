"""`barnabas local` on an ensemble of Apache ZooKeeper: three members on this machine."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from barnabas_broker.cli.main import main
from barnabas_operator.api.conditions import is_ready
from barnabas_operator.local import coordination
from barnabas_operator.local.zookeeper import ZooKeeperFiles
from tests.operator.local.laptop import Laptop, cluster, topic
from tests.oracle.apache import classpath, free_port
from tests.waiting import ANSWER, ATTEMPT_S, START, seconds, wait_for

pytestmark = [pytest.mark.jvm, pytest.mark.timeout(720)]


@pytest.fixture
def laptop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Laptop]:
    """A machine with Apache ZooKeeper on it; what was started is stopped."""
    jars = tmp_path / "zookeeper" / "lib"
    jars.mkdir(parents=True)
    for jar in map(Path, classpath().split(":")):
        (jars / jar.name).symlink_to(jar)
    monkeypatch.setenv("ZOOKEEPER_HOME", str(jars.parent))
    laptop = Laptop(tmp_path)
    yield laptop
    laptop.down()


def test_three_members_and_the_loss_of_their_leader(laptop: Laptop) -> None:
    """Each says what it is; the others go on without one, and the next `up` starts it again."""
    spec = {"type": "apache", "replicas": 3, "storage": {"size": "1Gi"}}
    listeners = [{"name": "plain", "type": "internal", "port": free_port()}]
    wanted = cluster(zookeeper=spec, listeners=listeners), topic()
    seen = laptop.up(*wanted, timeout_s=seconds(START))
    leader = await_whole(laptop)
    entry = ZooKeeperFiles(laptop.state.member(leader)).entry()
    assert entry is not None
    os.kill(entry.pid, signal.SIGKILL)
    wait_for("the end of the member", lambda: not entry.running)
    wait_for(
        "the modes of the other two members",
        lambda: sorted(members(laptop)),
        until=lambda modes: modes == ["None", "follower", "leader"],
    )
    servers = seen.status.listeners[0].bootstrap_servers
    admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
    wait_for(
        "the creation of a topic, once the broker's session has found another member",
        lambda: created(admin, "meanwhile"),
        retry=(KafkaException,),
    )
    condition = laptop.look().status.conditions[0]
    assert condition.reason == "ZooKeeperEnded"
    assert condition.message.startswith(f"ZooKeeper member {leader} ended by itself; its last")

    laptop.up(timeout_s=seconds(START))
    ended = f"ZooKeeper member {leader} had ended without a request to stop"
    assert laptop.said[0].startswith(ended)
    await_whole(laptop)
    assert {"meanwhile", "packages"} <= set(admin.list_topics(timeout=seconds(ANSWER)).topics)


def await_whole(laptop: Laptop) -> int:
    """Wait until all serve, and say who leads: a busy machine may make them elect at any time."""

    def modes_and_readiness() -> tuple[list[str], bool]:
        seen = laptop.look()
        modes = [str(each.mode) for each in seen.zookeeper]
        return modes, is_ready(seen.status.conditions)

    modes, _ = wait_for(
        "a leader, two followers and a cluster that is Ready",
        modes_and_readiness,
        until=lambda it: it[1] and sorted(it[0]) == ["follower", "follower", "leader"],
    )
    return modes.index("leader") + 1


def members(laptop: Laptop) -> list[str]:
    """What `barnabas zk status` says each member is, in order."""
    record = laptop.state.load()
    assert record is not None
    where = coordination.connect(record) or ""
    reported = CliRunner().invoke(main, ["zk", "status", "--output", "json", "-z", where])
    modes = [str(each["mode"]) for each in json.loads(reported.stdout)]
    assert reported.exit_code == ("None" in modes)
    return modes


def created(admin: AdminClient, name: str) -> bool:
    """Whether a topic was created, by this attempt or the one before."""
    admin.list_topics(timeout=ATTEMPT_S)
    try:
        admin.create_topics([NewTopic(name, 1, 1)])[name].result(seconds(ANSWER))
    except KafkaException as error:
        if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise
    return True
