"""A broker on a ZooKeeper ensemble, among the programs that share it: Apache's tools and brokers.

The tools of 2.8.2 are the last that speak to ZooKeeper themselves. They create, grow and delete
topics by writing znodes, and expect the controller to do the rest.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType
from kazoo.client import KazooClient

from tests.clients.brokers import Barnabas
from tests.oracle.apache import ApacheKafka, OwnZooKeeper, ZooKeeper, run_tool
from tests.waiting import ANSWER, ATTEMPT_S, RUN, START, seconds, wait_for

OLD = "2.8.2"
#: As long as ZooKeeper grants: a busy machine shall not end a session that a test counts on.
SESSION_MS = "40000"
#: For what is about sessions that end.
SHORT_MS = "10000"
#: The client asks again where another is the controller: for so long until it reports that.
REFUSED_S = 2.0
SHELL = "org.apache.zookeeper.ZooKeeperMainWithTlsSupportForKafka"


@pytest.fixture(scope="module", params=[ZooKeeper, OwnZooKeeper], ids=["apache", "own"])
def zookeeper(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ZooKeeper]:
    """One server for all, Apache's and then ours; each test has a chroot."""
    with request.param(directory=tmp_path_factory.mktemp("zookeeper")) as started:
        yield started


def barnabas(directory: Path, connect: str, session_ms: str = SESSION_MS) -> Barnabas:
    """A broker on that ensemble, not yet started."""
    settings = {
        "broker.id": "1",
        "zookeeper.connect": connect,
        "zookeeper.session.timeout.ms": session_ms,
    }
    return Barnabas(directory, settings)


@pytest.fixture
def connect(zookeeper: ZooKeeper, tmp_path: Path) -> str:
    """What the test's own broker has as zookeeper.connect."""
    return f"{zookeeper.connect}/{tmp_path.name}"


@pytest.fixture
def broker(connect: str, tmp_path: Path) -> Iterator[Barnabas]:
    """A running broker on a chroot of its own."""
    with barnabas(tmp_path / "broker", connect) as started:
        yield started


@contextmanager
def looking(connect: str) -> Iterator[KazooClient]:
    """Somebody else who reads and writes the znodes."""
    client = KazooClient(connect, timeout=int(SESSION_MS) / 1000)
    client.start(seconds(START))
    yield client
    client.stop()
    client.close()


@pytest.fixture
def znodes(connect: str, broker: Barnabas) -> Iterator[KazooClient]:
    """Somebody else, beside the broker."""
    with looking(connect) as client:
        yield client


def old_tool(main_class: str, *args: str) -> str:
    """Run a tool of 2.8.2 and return what it printed."""
    done = run_tool(main_class, *args, version=OLD)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def topics(connect: str, *args: str) -> str:
    """`kafka-topics --zookeeper`."""
    return old_tool("kafka.admin.TopicCommand", "--zookeeper", connect, *args)


def client(
    bootstrap: str, settings: Mapping[str, str | bool] | None = None
) -> dict[str, str | int | float | bool]:
    """librdkafka's settings; what it says of brokers that were stopped on purpose is left out."""
    return {"bootstrap.servers": bootstrap, "log_level": 0, **(settings or {})}


def until_gone(znodes: KazooClient, path: str) -> None:
    """Wait until a znode is deleted."""
    wait_for(f"the end of {path}", lambda: znodes.exists(path), until=lambda stat: stat is None)


def until_created(znodes: KazooClient, path: str) -> None:
    """Wait until there is a znode."""
    wait_for(path, lambda: znodes.exists(path), until=lambda stat: stat is not None)


def until_logged(broker: Barnabas, text: str, lines: int = 30) -> None:
    """Wait until the end of the broker's log has a text."""
    wait_for(f"{text!r} in the log", lambda: broker.tail(lines), until=lambda tail: text in tail)


def until_led(broker: Barnabas, topic: str, count: int) -> None:
    """Wait until the broker knows so many partitions of a topic that have a leader; 0 is none."""
    wait_for(
        f"{count} partitions of {topic} with a leader",
        lambda: partitions(broker),
        until=lambda found: found.get(topic, 0) == count,
        retry=(KafkaException,),
    )


def until_set(broker: Barnabas, topic: str, setting: str, value: str) -> None:
    """Wait until a topic has a setting."""
    wait_for(
        f"{setting}={value} of {topic}",
        lambda: settings_of(broker, topic)[setting],
        until=lambda found: found == value,
    )


def partitions(broker: Barnabas) -> dict[str, int]:
    """The topics that a broker knows, with the number of their partitions that have a leader."""
    found = AdminClient(client(broker.bootstrap)).list_topics(timeout=ATTEMPT_S).topics
    return {
        name: sum(each.leader >= 0 for each in topic.partitions.values())
        for name, topic in found.items()
    }


def settings_of(broker: Barnabas, topic: str) -> dict[str, str]:
    """The settings of a topic, as the broker tells them."""
    resource = ConfigResource(ResourceType.TOPIC, topic)
    admin = AdminClient(client(broker.bootstrap))
    entries = admin.describe_configs([resource])[resource].result(seconds(ANSWER))
    return {name: entry.value for name, entry in entries.items()}


def produce(bootstrap: str, topic: str, *values: str) -> None:
    """Send records to partition 0, each acknowledged, by an idempotent producer."""
    producer = Producer(client(bootstrap, {"enable.idempotence": True}))
    for value in values:
        producer.produce(topic, value, partition=0)
    assert producer.flush(seconds(ANSWER)) == 0


def consume(bootstrap: str, topic: str, count: int) -> list[str]:
    """The first records of partition 0."""
    # Its group is of no use to it, and not every broker has a coordinator.
    consumer = Consumer(client(bootstrap, {"group.id": "reader", "enable.auto.commit": False}))
    consumer.assign([TopicPartition(topic, 0, 0)])
    values: list[str] = []

    def read() -> list[str]:
        got = [each for each in consumer.consume(count - len(values), 1) if each.error() is None]
        values.extend((message.value() or b"").decode() for message in got)
        return values

    wait_for(f"{count} records of {topic}", read, until=lambda it: len(it) == count)
    consumer.close()
    return values


def test_registration_as_the_shell_shows_it(broker: Barnabas, connect: str) -> None:
    """Broker, controller, epoch and cluster id are where Apache's tools look for them."""

    def shell(*command: str) -> str:
        # At `quit` it closes its session; with a command as arguments it does not.
        typed = f"{' '.join(command)}\nquit\n"
        done = run_tool(SHELL, "-waitforconnection", "-server", connect, input=typed)
        # What it says of its session comes in between at any time.
        events = ("WATCHER::", "WatchedEvent")
        lines = done.stdout.splitlines()
        return [line for line in lines if line and not line.startswith(events)][-1]

    host, _, port = broker.bootstrap.partition(":")
    registration = json.loads(shell("get", "/brokers/ids/1"))
    assert int(registration.pop("timestamp")) > 0
    assert registration == {
        "features": {},
        "listener_security_protocol_map": {"PLAINTEXT": "PLAINTEXT"},
        "endpoints": [f"PLAINTEXT://{broker.bootstrap}"],
        "jmx_port": -1,
        "port": int(port),
        "host": host,
        "version": 5,
        "software": "barnabas",
    }
    assert json.loads(shell("get", "/controller"))["brokerid"] == 1
    assert shell("get", "/controller_epoch") == "1"
    assert json.loads(shell("get", "/cluster/id"))["version"] == "1"
    assert shell("ls", "/brokers") == "[ids, seqid, topics]"


def test_topics_by_the_old_tools(broker: Barnabas, connect: str) -> None:
    """Create, describe, grow, configure, delete: all through ZooKeeper, with the broker running."""
    topics(connect, "--create", "--topic", "t", "--partitions", "2", "--replication-factor", "1",
           "--config", "retention.ms=123456")  # fmt: skip
    until_led(broker, "t", 2)
    assert settings_of(broker, "t")["retention.ms"] == "123456"
    produce(broker.bootstrap, "t", "a", "b")
    assert "Leader: 1\tReplicas: 1\tIsr: 1" in topics(connect, "--describe", "--topic", "t")
    topics(connect, "--alter", "--topic", "t", "--partitions", "5")
    until_led(broker, "t", 5)
    old_tool("kafka.admin.ConfigCommand", "--zookeeper", connect, "--alter", "--entity-type",
             "topics", "--entity-name", "t", "--add-config", "max.message.bytes=5555")  # fmt: skip
    until_set(broker, "t", "max.message.bytes", "5555")
    assert consume(broker.bootstrap, "t", 2) == ["a", "b"]
    topics(connect, "--delete", "--topic", "t")
    wait_for(
        "metadata without the topic",
        lambda: partitions(broker),
        until=lambda found: "t" not in found,
        retry=(KafkaException,),
    )
    wait_for(
        "the end of the topic's directories",
        lambda: list(broker.log_dirs[0].glob("t-[0-9]")),
        until=lambda found: not found,
    )
    wait_for(
        "no topic in the tool's list",
        lambda: topics(connect, "--list").strip(),
        until=lambda listed: listed == "",
        within=RUN,
    )


def test_the_old_tools_see_what_clients_do(broker: Barnabas, connect: str) -> None:
    """Topics made through the protocol are topics for `--zookeeper`, too."""
    admin = AdminClient(client(broker.bootstrap))
    new = NewTopic("mine", 3, 1, config={"cleanup.policy": "compact"})
    admin.create_topics([new])["mine"].result(seconds(ANSWER))
    described = topics(connect, "--describe", "--topic", "mine")
    assert "PartitionCount: 3" in described
    assert "Configs: cleanup.policy=compact" in described
    assert described.count("Leader: 1") == 3


def test_settings_of_all_brokers(broker: Barnabas, znodes: KazooClient) -> None:
    """A notification makes the broker read its settings again, and so its topics' defaults."""
    admin = AdminClient(client(broker.bootstrap))
    admin.create_topics([NewTopic("t", 1, 1)])["t"].result(seconds(ANSWER))
    config = b'{"version":1,"config":{"log.retention.ms":"98765"}}'
    znodes.create("/config/brokers/<default>", config)
    change = b'{"version":2,"entity_path":"brokers/<default>"}'
    znodes.create("/config/changes/config_change_", change, sequence=True)
    until_set(broker, "t", "retention.ms", "98765")


def test_invalid_znodes_are_logged_and_skipped(broker: Barnabas, znodes: KazooClient) -> None:
    """What cannot be read is told in the log; everything else goes on."""
    znodes.create("/brokers/topics/broken", b"[]")
    znodes.create("/config/changes/config_change_", b"?", sequence=True)
    znodes.create("/admin/delete_topics/nothing")
    until_gone(znodes, "/admin/delete_topics/nothing")
    until_logged(broker, "/brokers/topics/broken")
    admin = AdminClient(client(broker.bootstrap))
    admin.create_topics([NewTopic("t", 1, 1)])["t"].result(seconds(ANSWER))
    produce(broker.bootstrap, "t", "a")
    assert consume(broker.bootstrap, "t", 1) == ["a"]


def test_a_session_that_expires(connect: str, tmp_path: Path) -> None:
    """A broker that was stopped for longer than its session comes back by itself, elected anew."""
    with (
        barnabas(tmp_path / "broker", connect, SHORT_MS) as broker,
        looking(connect) as znodes,
    ):
        produce(broker.bootstrap, "t", "before")
        os.kill(broker.pid, signal.SIGSTOP)
        try:
            until_gone(znodes, "/brokers/ids/1")
            until_gone(znodes, "/controller")
        finally:
            os.kill(broker.pid, signal.SIGCONT)
        until_created(znodes, "/brokers/ids/1")
        until_created(znodes, "/controller")
        assert json.loads(znodes.get("/controller")[0])["brokerid"] == 1
        assert znodes.get("/controller_epoch")[0] == b"2"
        admin = AdminClient(client(broker.bootstrap))
        admin.create_topics([NewTopic("after", 1, 1)])["after"].result(seconds(ANSWER))
        produce(broker.bootstrap, "t", "after")
        assert consume(broker.bootstrap, "t", 2) == ["before", "after"]


def test_deleting_the_controller_znode_elects_a_controller(
    broker: Barnabas, znodes: KazooClient
) -> None:
    """Deleting /controller is how operators have a controller elected."""
    znodes.delete("/controller")
    until_created(znodes, "/controller")
    assert znodes.get("/controller_epoch")[0] == b"2"


def test_another_controller(broker: Barnabas, znodes: KazooClient) -> None:
    """A broker that is not the controller any more says so, and stands again when that one goes."""
    taken = znodes.transaction()
    taken.delete("/controller")
    taken.create("/controller", b'{"version":2,"brokerid":7,"timestamp":"1"}', ephemeral=True)
    assert all(taken.commit())
    until_logged(broker, "Resigned as the controller")
    admin = AdminClient(client(broker.bootstrap))
    refused = admin.create_topics([NewTopic("t", 1, 1)], request_timeout=REFUSED_S)["t"].exception(
        seconds(ANSWER)
    )
    assert refused is not None
    znodes.delete("/controller")
    until_created(znodes, "/controller")
    assert znodes.get("/controller_epoch")[0] == b"2"
    admin.create_topics([NewTopic("t", 1, 1)])["t"].result(seconds(ANSWER))


def test_records_while_the_ensemble_is_away(tmp_path: Path) -> None:
    """Produce and fetch go on; what needs the ensemble fails in time, and works when it is back."""
    with (
        ZooKeeper(directory=tmp_path / "zookeeper") as zookeeper,
        # Requests of clients wait for the ensemble as long as a session lasts.
        barnabas(tmp_path / "broker", zookeeper.connect, SHORT_MS) as broker,
    ):
        produce(broker.bootstrap, "t", "a")
        zookeeper.kill()
        producer = Producer(client(broker.bootstrap))
        producer.produce("t", "b", partition=0)
        assert producer.flush(seconds(ANSWER)) == 0
        assert consume(broker.bootstrap, "t", 2) == ["a", "b"]
        admin = AdminClient(client(broker.bootstrap))
        failed = admin.create_topics([NewTopic("new", 1, 1)])["new"].exception(seconds(ANSWER))
        assert failed is not None
        zookeeper.start()
        until_logged(broker, "Reconnected to ZooKeeper", lines=50)
        admin.create_topics([NewTopic("new", 1, 1)])["new"].result(seconds(ANSWER))
        zookeeper.kill()
        broker.stop()  # Without an ensemble it can tell nobody, but ends in time.
        assert broker.exit_code == 0


def test_an_apache_broker_takes_over_and_gives_back(connect: str, tmp_path: Path) -> None:
    """The same znodes and the same data directory: ours, then Apache's, then ours again."""
    ours = barnabas(tmp_path / "ours", connect)
    with ours:
        admin = AdminClient(client(ours.bootstrap))
        new = NewTopic("t", 2, 1, config={"retention.ms": "-1"})
        admin.create_topics([new])["t"].result(seconds(ANSWER))
        produce(ours.bootstrap, "t", "ours 1", "ours 2")
    overrides = {"log.dirs": str(ours.log_dirs[0])}
    with ApacheKafka(
        directory=tmp_path / "apache",
        zookeeper=connect,
        overrides=overrides,
        heap="512M",
        broker_id=1,
    ) as apache:
        assert consume(apache.bootstrap, "t", 2) == ["ours 1", "ours 2"]
        produce(apache.bootstrap, "t", "apache's")
        admin = AdminClient(client(apache.bootstrap))
        admin.create_topics([NewTopic("apaches", 3, 1)])["apaches"].result(seconds(ANSWER))
        produce(apache.bootstrap, "apaches", "first")
    with ours:
        produce(ours.bootstrap, "t", "ours 3")
        assert consume(ours.bootstrap, "t", 4) == ["ours 1", "ours 2", "apache's", "ours 3"]
        assert consume(ours.bootstrap, "apaches", 1) == ["first"]
        assert {"t": 2, "apaches": 3}.items() <= partitions(ours).items()
        assert settings_of(ours, "t")["retention.ms"] == "-1"


def test_a_second_broker_of_the_same_id_is_refused(
    broker: Barnabas, connect: str, tmp_path: Path
) -> None:
    """One line, exit code 1, and the first goes on."""
    # So long it waits for the one before to go, and a little longer.
    second = barnabas(tmp_path / "second", connect, SHORT_MS)
    with pytest.raises(RuntimeError, match="did not start"):
        second.start()
    assert second.tail(1).startswith("barnabas: cannot start: broker id 1 is in use")
    assert second.exit_code == 1
    produce(broker.bootstrap, "t", "a")


def test_the_wrong_chroot_is_refused(connect: str, tmp_path: Path) -> None:
    """Data of one cluster is not taken to another, nor to none."""
    with barnabas(tmp_path / "broker", connect):
        pass
    with pytest.raises(RuntimeError, match="did not start"):
        barnabas(tmp_path / "broker", f"{connect}/wrong").start()
    log = (tmp_path / "broker" / "broker.log").read_text().splitlines()[-1]
    assert "is the chroot in zookeeper.connect the right one?" in log


def test_a_start_says_that_acls_are_not_enforced(connect: str, tmp_path: Path) -> None:
    """Who brings a broker into a cluster with an authorizer is told that this one has none."""
    directory = tmp_path / "broker"
    with barnabas(directory, connect):
        pass
    assert "no authorizer" not in (directory / "broker.log").read_text()
    store = ("--authorizer-properties", f"zookeeper.connect={connect}", "--add")
    old_tool("kafka.admin.AclCommand", *store, "--allow-principal", "User:ann", "--operation",
             "Read", "--topic", "of-ann", "--resource-pattern-type", "prefixed")  # fmt: skip
    with barnabas(directory, connect):
        said = (directory / "broker.log").read_text()
    where = "/kafka-acl-extended/prefixed/Topic/of-ann"
    assert f"ACLs of 1 resource(s) are stored, the first in {where}: this broker has" in said


def test_ids_are_given_in_sequence(connect: str, tmp_path: Path) -> None:
    """Without broker.id the ensemble counts, above what is reserved; the id stays with the data."""
    for name, broker_id in (("first", 1001), ("second", 1002), ("first", 1001)):
        settings = {"zookeeper.connect": connect, "zookeeper.session.timeout.ms": SESSION_MS}
        with Barnabas(tmp_path / name, settings):
            ready = json.loads((tmp_path / name / "ready.json").read_text())
            assert ready["broker_id"] == broker_id


def test_a_client_of_0_8_keeps_its_offsets_in_zookeeper(
    broker: Barnabas, connect: str, znodes: KazooClient
) -> None:
    """By way of the broker, or by itself: both see what the other has committed.

    The producer and the consumers are those before KIP-32: messages without times, version 0 of
    Produce, Fetch, Offsets, Metadata, OffsetCommit and OffsetFetch.
    """
    topics(connect, "--create", "--topic", "aged", "--partitions", "1", "--replication-factor", "1")
    until_led(broker, "aged", 1)  # The producer tries only for a moment.
    program = str(Path(__file__).parent / "java" / "OldClient.java")
    arguments = (broker.bootstrap, connect, "aged")
    done = run_tool(program, *arguments, version="0.8.2.2")
    assert done.returncode == 0, done.stderr
    values = [f"{number}=value {number}" for number in range(10)]
    assert done.stdout.splitlines() == [
        f"fetched by the low-level consumer: [{', '.join(values)}]",
        "offset before any commit: -1 (error 3)",
        "offset after its commit: 7 (error 0)",
        f"seen by the high-level consumer: [{', '.join(values[7:])}]",
        "offset after its commit too: 10 (error 0)",
    ]
    assert znodes.get("/consumers/old/offsets/aged/0")[0] == b"10"
