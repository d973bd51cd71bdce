"""Clients in trouble with a broker that serves: rows of docs/operations/troubleshooting.md.

Each test provokes what its row quotes, and ends with the remedy at work.
"""

from __future__ import annotations

import os
import resource
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka import (
    DeserializingConsumer,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    ResourceType,
)
from confluent_kafka.error import ValueDeserializationError
from confluent_kafka.serialization import IntegerDeserializer

from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from barnabas_kafka.protocol.messages.produce import ProduceResponse
from tests.clients import (
    test_troubleshooting_coordinators,
    test_troubleshooting_start,
    wire,
)
from tests.clients.brokers import Barnabas
from tests.clients.librdkafka import fill, read_all
from tests.clients.troubles import (
    admin,
    consumer,
    create,
    dotted,
    first_error,
    has_all,
    members,
    one_record,
    outcome,
    poll_until,
    send,
    until_logged,
)
from tests.clients.troubleshooting import Row, pattern, rows
from tests.clients.wire import Wire
from tests.oracle.apache import OwnZooKeeper, run_tool
from tests.waiting import ANSWER, ATTEMPT_S, seconds, wait_for

CONSOLE_PRODUCER: Final = "kafka.tools.ConsoleProducer"
PATIENT: Final = ("--request-timeout-ms", "60000")
"""By itself that tool waits for 1.5 s, and gives up after three more tries."""
CONSOLE_CONSUMER: Final = "org.apache.kafka.tools.consumer.ConsoleConsumer"
QUICKLY_MISSED: Final = {"session_timeout_ms": 2000, "max_poll_interval_ms": 2000}
MANY: Final = 500
"""Partitions, each of which takes a descriptor."""
SETTINGS: Final = {
    "broker.id": "0",
    "auto.create.topics.enable": "false",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "offsets.topic.num.partitions": "1",
}


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Barnabas]:
    """A broker that nobody stops or breaks for good."""
    with Barnabas(tmp_path_factory.mktemp("trouble"), SETTINGS) as started:
        yield started


@pytest.fixture
def row(request: pytest.FixtureRequest) -> Iterator[Row]:
    """The row that the test is named after; all it quotes must be seen."""
    found = next(each for each in rows() if each.id == name_of(request.node.name))
    yield found
    assert not found.unseen


def name_of(test: str) -> str:
    """The id of the row that a test is about."""
    return test.removeprefix("test_").replace("_", "-")


@pytest.fixture
def topic(broker: Barnabas, request: pytest.FixtureRequest) -> str:
    """A topic named after the test."""
    name = name_of(request.node.name)
    assert create(broker, name) is None
    return name


def alter(broker: Barnabas, kind: ResourceType, name: str, **settings: str) -> None:
    """Change settings while the broker runs."""
    resource = ConfigResource(kind, name)
    for setting, value in dotted(settings).items():
        entry = ConfigEntry(setting, value, incremental_operation=AlterConfigOpType.SET)
        resource.add_incremental_config(entry)
    client = admin(broker)
    (future,) = client.incremental_alter_configs([resource]).values()
    assert outcome(future) is None


def send_until_heard(broker: Barnabas, row: Row) -> str:
    """What a client hears that sends to no avail, until it has heard what the row quotes of it.

    That takes as long as a name is looked for, or as the machine is busy.
    """
    heard: list[str] = []

    def sent() -> str:
        assert send(broker, "t", logger=heard.append, message_timeout_ms=1000) is not None
        return " ".join(heard)

    return wait_for(
        f"what a client hears, to be one of {row.unseen}",
        sent,
        until=lambda words: any(pattern(quote).search(words) for quote in row.unseen),
    )


def test_every_row_has_its_test() -> None:
    """The page and the tests name the same troubles, each once."""
    here = [name for name in globals() if name.startswith("test_") and callable(globals()[name])]
    others = (test_troubleshooting_coordinators, test_troubleshooting_start)
    there = [name for other in others for name in vars(other) if name.startswith("test_")]
    tests = sorted(name_of(name) for name in here + there)
    tests.remove("every-row-has-its-test")
    assert sorted(row.id for row in rows()) == tests


# --- reaching a broker


def test_connection_refused(tmp_path: Path, row: Row) -> None:
    """A broker that is down is noticed, and found again when it is up."""
    with Barnabas(tmp_path, SETTINGS) as broker:
        create(broker, "t")
        broker.stop()
        row.seen(send_until_heard(broker, row))
        broker.start()
        assert send(broker, "t") is None


def test_advertised_listeners(tmp_path: Path, row: Row) -> None:
    """Bootstrapping works, then the client follows the advertised name into nowhere."""
    broker = Barnabas(tmp_path, SETTINGS)
    with broker:
        create(broker, "t")
    address = broker.bootstrap
    broker.settings["advertised.listeners"] = "PLAINTEXT://no-such-host.invalid:9092"
    broker.start()
    broker._address = address
    row.seen(send_until_heard(broker, row))
    broker.stop()
    del broker.settings["advertised.listeners"]
    with broker:
        assert send(broker, "t") is None


def test_not_a_kafka_client(broker: Barnabas, topic: str, row: Row) -> None:
    """A browser is hung up on, and the broker says so; clients are served as ever."""
    host, _, port = broker.bootstrap.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=seconds(ANSWER)) as browser:
        browser.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert browser.recv(1000) == b""
    row.seen(broker.log_file.read_text())
    assert send(broker, topic) is None


def test_too_many_connections(tmp_path: Path, row: Row) -> None:
    """The one connection too many is closed, until the limit is raised."""
    settings = {**SETTINGS, "max.connections.per.ip": "3"}
    with Barnabas(tmp_path, settings) as broker:
        with ExitStack() as others:
            for _ in range(3):
                others.enter_context(Wire(broker.bootstrap))
            row.seen(send_until_heard(broker, row) + broker.log_file.read_text())
        alter(broker, ResourceType.BROKER, "0", max_connections_per_ip="100")
        assert create(broker, "t") is None
        assert send(broker, "t") is None


def test_too_many_open_files(tmp_path: Path, row: Row) -> None:
    """The broker process has no descriptor left; those who wait come in when it may have more."""
    with Barnabas(tmp_path, SETTINGS) as broker:
        assert create(broker, "t") is None
        _, most = resource.prlimit(broker.pid, resource.RLIMIT_NOFILE)
        held = max(int(each.name) for each in Path(f"/proc/{broker.pid}/fd").iterdir())
        resource.prlimit(broker.pid, resource.RLIMIT_NOFILE, (held + 3, most))
        host, port = broker.bootstrap.split(":")
        with ExitStack() as others:
            for _ in range(10):  # More than it can take, fewer than wait to be taken.
                others.enter_context(
                    socket.create_connection((host, int(port)), timeout=seconds(ANSWER))
                )
            log = wait_for(
                "the broker's log, to contain 'Too many open files'",
                broker.log_file.read_text,
                until=lambda log: "Too many open files" in log,
            )
            row.seen(log)
            resource.prlimit(broker.pid, resource.RLIMIT_NOFILE, (most, most))
            assert send(broker, "t") is None
        assert create(broker, "many", partitions=MANY) is None
        broker.stop()
        with fewer_descriptors_than(MANY), pytest.raises(RuntimeError, match="did not start"):
            broker.start()
        row.seen(broker.log_file.read_text())


@contextmanager
def fewer_descriptors_than(count: int) -> Iterator[None]:
    """What this process starts may not open so many files; it takes some itself to start it."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = max(int(each.name) for each in Path("/proc/self/fd").iterdir()) + 50
    assert limit < count
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def test_not_back(tmp_path: Path, row: Row) -> None:
    """The only broker is restarted under a producer, which goes on."""
    heard: list[str] = []
    reports: list[object] = []
    with Barnabas(tmp_path, SETTINGS) as broker:
        assert create(broker, "t") is None
        producer = Producer(
            {
                "bootstrap.servers": broker.bootstrap,
                "metadata.recovery.strategy": "none",
                "error_cb": lambda error: heard.append(str(error)),
            }
        )
        producer.produce("t", b"before", on_delivery=lambda error, _: reports.append(error))
        assert producer.flush(seconds(ANSWER)) == 0
        broker.stop()

        def polled() -> str:
            producer.poll(0.1)
            return " ".join(heard)

        row.seen(wait_for("what it hears", polled, until=lambda it: "brokers are down" in it))
        broker.start()
        producer.produce("t", b"after", on_delivery=lambda error, _: reports.append(error))
        assert producer.flush(seconds(ANSWER)) == 0
    assert reports == [None, None]


# --- topics


def test_unknown_topic(broker: Barnabas, row: Row) -> None:
    """Nothing is created by itself here; then somebody creates it."""
    reader = consumer(broker, "unknown-topic")
    reader.subscribe(["unknown-topic"])
    row.seen(first_error(reader))
    reader.close()
    assert create(broker, "unknown-topic") is None
    assert send(broker, "unknown-topic") is None


def test_topic_exists(broker: Barnabas, topic: str, row: Row) -> None:
    """The second creation."""
    row.seen(create(broker, topic))
    assert create(broker, topic + "-2") is None


def test_invalid_topic_name(broker: Barnabas, row: Row) -> None:
    """A slash."""
    row.seen(create(broker, "a/b"))
    assert create(broker, "a.b") is None


def test_replication_factor(broker: Barnabas, row: Row) -> None:
    """Three replicas on one broker."""
    row.seen(create(broker, "three", 1, 3))
    assert create(broker, "three", 1, 1) is None


def test_fewer_partitions(broker: Barnabas, row: Row) -> None:
    """No partition is taken away."""
    create(broker, "two", 2)
    client = admin(broker)
    for count in (2, 1):
        row.seen(outcome(client.create_partitions([NewPartitions("two", count)])["two"]))
    assert outcome(client.create_partitions([NewPartitions("two", 3)])["two"]) is None


def test_deletion_disabled(tmp_path: Path, row: Row) -> None:
    """The broker refuses, until its setting lets it."""
    broker = Barnabas(tmp_path, {**SETTINGS, "delete.topic.enable": "false"})

    def delete() -> str | None:
        client = admin(broker)
        return outcome(client.delete_topics(["t"])["t"])

    with broker:
        create(broker, "t")
        row.seen(delete())
    broker.settings["delete.topic.enable"] = "true"
    with broker:
        assert delete() is None


def test_invalid_topic_setting(broker: Barnabas, row: Row) -> None:
    """A word where a number belongs."""
    row.seen(create(broker, "settings", retention_ms="x"))
    assert create(broker, "settings", retention_ms="1000") is None


# --- producing


def test_too_large(tmp_path: Path, row: Row) -> None:
    """Two megabytes pass when all five limits are raised, and not before."""
    value = b"x" * 2_000_000
    broker = Barnabas(tmp_path, SETTINGS)
    with broker:
        create(broker, "t")
        java = [*PATIENT, "--bootstrap-server", broker.bootstrap, "--topic", "t", "--sync"]
        row.seen(run_tool(CONSOLE_PRODUCER, *java, input=value.decode() + "\n").stderr)
        row.seen(send(broker, "t", value, message_max_bytes=3_000_000))
    broker.settings["replica.fetch.max.bytes"] = "3000000"
    broker.settings["message.max.bytes"] = "3000000"
    with broker:
        alter(broker, ResourceType.TOPIC, "t", max_message_bytes="3000000")
        size = ["--producer-property", "max.request.size=3000000"]
        java = [*PATIENT, "--bootstrap-server", broker.bootstrap, "--topic", "t", "--sync"]
        ran = run_tool(CONSOLE_PRODUCER, *java, *size, input=value.decode() + "\n")
        assert "ERROR" not in ran.stderr
        assert send(broker, "t", value, message_max_bytes=3_000_000) is None
        limits = {"max.partition.fetch.bytes": 3_000_000, "message.max.bytes": 3_000_000}
        found = read_all(broker.bootstrap, "t", **limits)
        assert [record.value() for record in found] == [value, value]


def test_not_enough_replicas(tmp_path: Path, row: Row) -> None:
    """One replica is left of two that must be in sync."""
    with ExitStack() as running:
        zookeeper = running.enter_context(OwnZooKeeper(directory=tmp_path / "zookeeper"))
        broker, other = (
            running.enter_context(
                Barnabas(
                    tmp_path / str(number),
                    {
                        **SETTINGS,
                        "broker.id": str(number),
                        "zookeeper.connect": zookeeper.connect,
                        "controlled.shutdown.max.retries": "1",
                    },
                )
            )
            for number in range(2)
        )
        until_brokers(broker, 2)
        assert create(broker, "in-sync", replicas=2, min_insync_replicas="2") is None
        assert send(broker, "in-sync") is None
        other.stop()
        until_in_sync(broker, "in-sync", 1)
        with Wire(broker.bootstrap) as client:
            request = wire.produce("in-sync", wire.some_batch(b"x"), acks=-1)
            answer = client.ask(request, ProduceResponse, 9).responses[0].partition_responses[0]
        row.seen(ErrorCode(answer.error_code).name)
        row.seen(send(broker, "in-sync", message_timeout_ms=1000))
        other.start()
        until_in_sync(broker, "in-sync", 2)
        assert send(broker, "in-sync") is None


def until_brokers(broker: Barnabas, count: int) -> None:
    """Once the cluster, as this broker knows it, has so many."""
    wait_for(
        f"the brokers in the metadata, to be {count}",
        lambda: admin(broker).list_topics(timeout=ATTEMPT_S).brokers,
        until=lambda found: len(found) == count,
        retry=(KafkaException,),
    )


def until_in_sync(broker: Barnabas, topic: str, count: int) -> None:
    """Once so many replicas of a topic's partition are in sync, as this broker knows it."""

    def isr() -> list[int]:
        found = admin(broker).list_topics(topic, timeout=ATTEMPT_S).topics[topic]
        return found.partitions[0].isrs if found.partitions else []

    wait_for(
        f"the ISR of {topic}-0, to have {count} replicas",
        isr,
        until=lambda found: len(found) == count,
        retry=(KafkaException,),
    )


def test_broker_does_not_answer(broker: Barnabas, topic: str, row: Row) -> None:
    """A process that hangs, and goes on."""
    os.kill(broker.pid, signal.SIGSTOP)
    try:
        row.seen(send(broker, topic, message_timeout_ms=1000))
    finally:
        os.kill(broker.pid, signal.SIGCONT)
    assert send(broker, topic) is None


def overflow(producer: Producer, topic: str) -> None:
    """More records than fit, without serving delivery reports."""
    for _ in range(100):
        producer.produce(topic, b"x")


def test_queue_full(broker: Barnabas, topic: str, row: Row) -> None:
    """Faster than the broker; with more room, and delivery reports served, all arrive."""
    producer = Producer({"bootstrap.servers": broker.bootstrap, "queue.buffering.max.messages": 10})
    with pytest.raises(BufferError) as full:
        overflow(producer, topic)
    row.seen(full.value)
    producer.flush(seconds(ANSWER))
    fill(broker.bootstrap, topic, 1000)


def test_invalid_timestamp(broker: Barnabas, row: Row) -> None:
    """A record of 1970."""
    create(broker, "times", message_timestamp_difference_max_ms="60000")
    row.seen(send(broker, "times", timestamp_ms=1000))
    assert send(broker, "times", timestamp_ms=int(time.time() * 1000)) is None


def test_no_key(broker: Barnabas, row: Row) -> None:
    """Compaction keeps the latest of each key, so there must be one."""
    create(broker, "compacted", cleanup_policy="compact")
    row.seen(send(broker, "compacted"))
    assert send(broker, "compacted", key=b"k") is None


def test_lost_without_acks(broker: Barnabas, row: Row) -> None:
    """The producer believes that all is well; only the broker's log knows."""
    create(broker, "acks", max_message_bytes="1000")
    assert send(broker, "acks", b"x" * 2000, acks=0) is None
    log = until_logged(broker, "acks=0 failed")
    row.seen(log)
    assert read_all(broker.bootstrap, "acks") == []
    assert send(broker, "acks", b"x" * 2000, acks=-1) is not None


def test_corrupt_message(broker: Barnabas, topic: str, row: Row) -> None:
    """One bit changed on the way; the same bytes unharmed are taken."""
    data = wire.some_batch(b"precious")
    harmed = data[:-1] + bytes([data[-1] ^ 1])

    def append(sent: bytes) -> str:
        with Wire(broker.bootstrap) as client:
            answer = client.ask(wire.produce(topic, sent), ProduceResponse, 9)
        return ErrorCode(answer.responses[0].partition_responses[0].error_code).name

    row.seen(append(harmed))
    assert read_all(broker.bootstrap, topic) == []
    assert append(data) == "NONE"


# --- consuming


@pytest.mark.usefixtures("row")
def test_nothing_read(broker: Barnabas, topic: str) -> None:
    """A group that begins at the end, and one that begins at the start."""
    fill(broker.bootstrap, topic, 3)
    late = consumer(broker, "late", auto_offset_reset="latest")
    late.subscribe([topic])
    # Where the end was when it joined nobody can say, only that nothing before comes.
    arrived = None
    while arrived is None:
        fill(broker.bootstrap, topic, 1)
        arrived = late.poll(0.3)
    assert (arrived.offset() or 0) >= 3
    late.close()
    early = consumer(broker, "early")
    early.subscribe([topic])
    assert one_record(early) == b"0"
    early.close()


def test_offset_out_of_range(broker: Barnabas, topic: str, row: Row) -> None:
    """The offset is gone; going on from the earliest is the application's decision."""
    fill(broker.bootstrap, topic, 10)
    client = admin(broker)
    (gone,) = client.delete_records([TopicPartition(topic, 0, 5)]).values()
    assert outcome(gone) is None
    strict = consumer(broker, "strict", auto_offset_reset="error")
    strict.assign([TopicPartition(topic, 0, 2)])
    row.seen(first_error(strict))
    strict.close()
    lenient = consumer(broker, "strict", auto_offset_reset="earliest")
    lenient.assign([TopicPartition(topic, 0, 2)])
    assert one_record(lenient) == b"5"
    lenient.close()


def test_poll_too_late(broker: Barnabas, topic: str, row: Row) -> None:
    """Longer than max.poll.interval.ms between two polls."""
    slow = consumer(broker, "slow", **QUICKLY_MISSED)
    slow.subscribe([topic])
    while not has_all(slow, topic)():
        poll_until(has_all(slow, topic), slow)
    wait_for("the members of the group", lambda: members(broker, "slow"), until=lambda it: it == 0)
    assert slow.assignment(), "not yet told"
    row.seen(first_error(slow))
    fill(broker.bootstrap, topic, 1)
    assert one_record(slow) == b"0"
    slow.close()


def test_rebalance_storm(broker: Barnabas, topic: str, row: Row) -> None:
    """One slow member has the whole group share out anew, time and again, until it is in time."""
    revoked: list[int] = []
    reported: list[str] = []
    steady = consumer(broker, "storm")
    steady.subscribe([topic], on_revoke=lambda _, partitions: revoked.append(len(partitions)))
    poll_until(has_all(steady, topic), steady)
    slow = consumer(broker, "storm", **QUICKLY_MISSED)
    slow.subscribe([topic])

    def shared_out(count: int) -> bool:
        return members(broker, "storm") == count and len(revoked) > 0

    for _ in range(2):
        while not shared_out(2):  # On a busy machine it may be late already now, and joins again.
            reported.append(poll_until(lambda: shared_out(2), steady, slow))
        revoked.clear()
        # At work on a record, it does not poll until the others have gone on without it.
        poll_until(lambda: shared_out(1), steady)
        revoked.clear()
        reported.append(first_error(slow))
    row.seen(" ".join(reported))
    slow.close()
    mended = consumer(broker, "storm", max_poll_interval_ms=60000)
    mended.subscribe([topic])
    poll_until(lambda: members(broker, "storm") == 2 and len(revoked) > 0, steady, mended)
    steady.close()
    poll_until(has_all(mended, topic), mended)
    mended.close()


def test_not_deserialized(broker: Barnabas, topic: str, row: Row) -> None:
    """A record that the reader's deserializer does not understand is passed over."""
    for value in (b"no whole number", b"\x00\x00\x00\x07"):
        assert send(broker, topic, value) is None

    reader = DeserializingConsumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "integers",
            "auto.offset.reset": "earliest",
            "value.deserializer": IntegerDeserializer(),
        }
    )
    reader.subscribe([topic])
    with pytest.raises(ValueDeserializationError) as failed:
        reader.poll(seconds(ANSWER))
    message = reader.poll(seconds(ANSWER))
    assert message is not None
    number: object = message.value()
    assert number == 7
    reader.close()

    common = ("--bootstrap-server", broker.bootstrap, "--topic", topic, "--max-messages", "1")
    integers = "org.apache.kafka.common.serialization.IntegerDeserializer"

    def read(offset: str) -> tuple[str, str]:
        place = ("--partition", "0", "--offset", offset, "--timeout-ms", "60000")
        done = run_tool(CONSOLE_CONSUMER, *common, *place, "--value-deserializer", integers)
        return done.stdout, done.stderr

    row.seen(f"{failed.value} {read('0')[1]}")
    assert read("1")[0] == "7\n"


def test_commit_failed(broker: Barnabas, topic: str, row: Row) -> None:
    """Somebody else removed the member from its group; it joins again and commits."""
    fill(broker.bootstrap, topic, 1)
    # Heartbeats so rare that the member learns of its end by committing.
    member = consumer(broker, "removed", session_timeout_ms=20000, heartbeat_interval_ms=15000)
    member.subscribe([topic])
    assert one_record(member) == b"0"
    with Wire(broker.bootstrap) as client:
        leave = LeaveGroupRequest(group_id="removed", member_id=member.memberid())
        assert client.ask(leave, LeaveGroupResponse, 0).error_code == 0
    with pytest.raises(KafkaException) as failed:
        member.commit(offsets=[TopicPartition(topic, 0, 1)], asynchronous=False)
    row.seen(failed.value)
    member.close()
    again = consumer(broker, "removed")
    again.subscribe([topic])
    assert one_record(again) == b"0"
    again.commit(offsets=[TopicPartition(topic, 0, 1)], asynchronous=False)
    again.close()


def test_session_timeout(broker: Barnabas, topic: str, row: Row) -> None:
    """Too short for this broker."""
    hasty = consumer(broker, "hasty", session_timeout_ms=500)
    hasty.subscribe([topic])
    row.seen(first_error(hasty))
    hasty.close()
    calm = consumer(broker, "hasty")
    calm.subscribe([topic])
    poll_until(has_all(calm, topic), calm)
    calm.close()


def test_inconsistent_protocol(broker: Barnabas, topic: str, row: Row) -> None:
    """Two members that cannot agree how to share."""
    first = consumer(broker, "divided", partition_assignment_strategy="range")
    first.subscribe([topic])
    poll_until(has_all(first, topic), first)
    second = consumer(broker, "divided", partition_assignment_strategy="roundrobin")
    second.subscribe([topic])
    row.seen(first_error(second))
    second.close()
    third = consumer(broker, "divided", partition_assignment_strategy="range")
    third.subscribe([topic])
    first.close()
    poll_until(has_all(third, topic), third)
    third.close()


@pytest.mark.usefixtures("row")
def test_idle_consumer(broker: Barnabas, topic: str) -> None:
    """Two consumers, one partition; with a second partition both work."""
    two = [consumer(broker, "two", topic_metadata_refresh_interval_ms=500) for _ in range(2)]
    for each in two:
        each.subscribe([topic])
    poll_until(lambda: members(broker, "two") == 2, *two)
    poll_until(lambda: sorted(len(each.assignment()) for each in two) == [0, 1], *two)
    client = admin(broker)
    assert outcome(client.create_partitions([NewPartitions(topic, 2)])[topic]) is None
    poll_until(lambda: all(len(each.assignment()) == 1 for each in two), *two)
    for each in two:
        each.close()


@pytest.mark.usefixtures("row")
def test_read_twice(broker: Barnabas, topic: str) -> None:
    """Read and not committed is read again; read and committed is not."""
    fill(broker.bootstrap, topic, 2)
    for expected, commits in ((b"0", False), (b"0", True), (b"1", False)):
        reader = consumer(broker, "twice")
        reader.subscribe([topic])
        assert one_record(reader) == expected
        if commits:
            reader.commit(offsets=[TopicPartition(topic, 0, 1)], asynchronous=False)
        reader.close()


def test_group_in_use(broker: Barnabas, topic: str, row: Row) -> None:
    """A group is deleted when its members are gone."""
    member = consumer(broker, "in-use")
    member.subscribe([topic])
    poll_until(has_all(member, topic), member)
    client: AdminClient = admin(broker)
    row.seen(outcome(client.delete_consumer_groups(["in-use"])["in-use"]))
    member.close()  # It does not wait for a coordinator that takes more than 5 s.
    wait_for("its members", lambda: members(broker, "in-use"), until=lambda count: count == 0)
    assert outcome(client.delete_consumer_groups(["in-use"])["in-use"]) is None
