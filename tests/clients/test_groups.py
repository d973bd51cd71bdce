"""Groups of real consumers: sharing, static members, restarts, and Apache's tools.

The broker of these scenarios is their own, so that it can be restarted and killed; joins do not
wait for more members.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer
from confluent_kafka import Consumer, TopicPartition
from kafka import KafkaConsumer

from tests.clients import consumers
from tests.clients.brokers import Broker, broker_under_test
from tests.clients.consumers import PARTITIONS, committed, filled_topic, poll_until
from tests.oracle.apache import run_tool
from tests.waiting import ANSWER, seconds

SETTINGS = {
    "broker.id": "0",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "5",
}
CONSUMER_GROUPS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
DUMP_LOG = "kafka.tools.DumpLogSegments"


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A broker for the scenarios of this module."""
    with broker_under_test(tmp_path_factory.mktemp("groups"), SETTINGS) as started:
        yield started


@pytest.fixture
def topic(broker: Broker, request: pytest.FixtureRequest) -> str:
    """A topic of several partitions, with ten records in each."""
    return filled_topic(broker, request.node.name)


def consumer(broker: Broker, group: str, **settings: object) -> Consumer:
    """A consumer of the classic protocol; underscores stand for dots.

    It hears of a rebalance soon, and is missed late: the machine may be busy, and a restart long.
    """
    usual = {"session_timeout_ms": 240_000, "heartbeat_interval_ms": 200}
    return consumers.consumer(broker, group, **{**usual, **settings})


def partitions(each: Consumer) -> set[int]:
    """What a consumer is assigned."""
    return {assigned.partition for assigned in each.assignment()}


def shared(team: Sequence[Consumer]) -> bool:
    """Whether every partition is somebody's, and everybody has as many."""
    all_of_them = [number for each in team for number in partitions(each)]
    fair = all(len(partitions(each)) == PARTITIONS // len(team) for each in team)
    return fair and sorted(all_of_them) == list(range(PARTITIONS))


def commit_all(broker: Broker, group: str, topic: str, offset: int) -> None:
    """Commit one offset for all partitions, without being a member."""
    offsets = [TopicPartition(topic, number, offset) for number in range(PARTITIONS)]
    alone = consumer(broker, group)
    alone.commit(offsets=offsets, asynchronous=False)
    alone.close()


@pytest.mark.parametrize("strategy", ["range", "roundrobin", "cooperative-sticky"])
def test_consumers_share_and_take_over(broker: Broker, topic: str, strategy: str) -> None:
    """Three share six partitions; when one leaves, the other two do."""
    three = [consumer(broker, topic, partition_assignment_strategy=strategy) for _ in range(3)]
    for each in three:
        each.subscribe([topic])
    poll_until(three, lambda: shared(three))
    gone, *two = three
    gone.close()
    poll_until(two, lambda: shared(two))
    for each in two:
        each.close()


def test_a_consumer_that_falls_silent_is_replaced(broker: Broker, topic: str) -> None:
    """It does not poll any more, so it leaves; the other takes its partitions over."""
    quick = {"max_poll_interval_ms": 2000, "session_timeout_ms": 2000}
    two = [consumer(broker, topic, **quick) for _ in range(2)]
    for each in two:
        each.subscribe([topic])
    poll_until(two, lambda: shared(two))
    poll_until(two[1:], lambda: shared(two[1:]))
    for each in two:
        each.close()


def test_a_static_member_keeps_its_partitions(broker: Broker, topic: str) -> None:
    """Closed and started again within its session, it comes back without a rebalance."""

    def member(number: int) -> Consumer:
        made = consumer(broker, topic, group_instance_id=f"s{number}")
        made.subscribe([topic])
        return made

    two = [member(0), member(1)]
    poll_until(two, lambda: shared(two))
    before = partitions(two[0])
    two[0].close()
    assert poll_until(two[1:], lambda: True) == 0
    two[0] = member(0)
    poll_until(two, lambda: shared(two))
    assert partitions(two[0]) == before
    for each in two:
        each.close()


def test_kafka_python(broker: Broker, topic: str) -> None:
    """Subscribes, reads everything and commits."""
    reader = KafkaConsumer(
        topic,
        bootstrap_servers=broker.bootstrap,
        group_id=topic,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        consumer_timeout_ms=int(seconds(ANSWER) * 1000),
        session_timeout_ms=60_000,
    )
    values = {next(reader).value for _ in range(PARTITIONS * 10)}
    reader.commit()
    reader.close()
    assert len(values) == PARTITIONS * 10
    assert committed(broker, topic, topic) == [10] * PARTITIONS


def test_aiokafka(broker: Broker, topic: str) -> None:
    """Two members of one group read everything once."""

    async def read() -> int:
        settings = {
            "bootstrap_servers": broker.bootstrap,
            "group_id": topic,
            "auto_offset_reset": "earliest",
            "enable_auto_commit": False,
            "session_timeout_ms": 60_000,
        }
        async with (
            AIOKafkaConsumer(topic, **settings) as first,
            AIOKafkaConsumer(topic, **settings) as second,
        ):
            seen: set[bytes] = set()
            while len(seen) < PARTITIONS * 10:
                for each in (first, second):
                    for batch in (await each.getmany(timeout_ms=100)).values():
                        seen |= {record.value for record in batch}
            await first.commit()
            await second.commit()
        return len(seen)

    assert asyncio.run(asyncio.wait_for(read(), seconds(ANSWER))) == PARTITIONS * 10
    assert committed(broker, topic, topic) == [10] * PARTITIONS


@pytest.mark.jvm
@pytest.mark.parametrize(
    ("release", "console"),
    [
        ("2.8.2", "kafka.tools.ConsoleConsumer"),
        ("3.9.1", "org.apache.kafka.tools.consumer.ConsoleConsumer"),
    ],
)
def test_java_consumers(broker: Broker, topic: str, release: str, console: str) -> None:
    """Subscribe, read everything, commit and leave."""
    done = run_tool(
        console,
        *("--bootstrap-server", broker.bootstrap, "--topic", topic, "--group", topic),
        *("--from-beginning", "--max-messages", str(PARTITIONS * 10)),
        *("--consumer-property", "session.timeout.ms=60000"),  # Ten seconds in 2.8 unless told.
        version=release,
    )
    assert len(set(done.stdout.split())) == PARTITIONS * 10, done.stderr
    assert committed(broker, topic, topic) == [10] * PARTITIONS


@pytest.mark.jvm
def test_apaches_tools(broker: Broker, topic: str) -> None:
    """kafka-consumer-groups lists, describes, resets and deletes; its formatters read our log."""

    def tool(*arguments: str) -> str:
        server = ("--bootstrap-server", broker.bootstrap)
        done = run_tool(CONSUMER_GROUPS, *server, *arguments, "--timeout", "60000")
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    member = consumer(broker, topic, client_id="reader")
    member.subscribe([topic])
    poll_until([member], lambda: shared([member]))
    member.commit(offsets=[TopicPartition(topic, 0, 4)], asynchronous=False)
    described = tool("--describe", "--group", topic)
    row = next(line for line in described.splitlines() if f" {topic} " in line and " 0 " in line)
    assert row.split()[2:6] == ["0", "4", "10", "6"]
    assert "reader" in row
    assert "Stable" in tool("--list", "--state")
    member.close()
    reset = ("--reset-offsets", "--to-earliest", "--topic", topic, "--execute")
    assert topic in tool(*reset, "--group", topic)
    assert committed(broker, topic, topic) == [0] * PARTITIONS
    logs = sorted(Path(broker.log_dirs[0]).glob("__consumer_offsets-*/*.log"))
    dump = run_tool(DUMP_LOG, "--offsets-decoder", "--files", ",".join(map(str, logs)))
    assert f'"group":"{topic}"' in dump.stdout
    assert '"protocolType":"consumer"' in dump.stdout
    assert '"clientId":"reader"' in dump.stdout
    assert "was successful" in tool("--delete", "--group", topic)
    assert topic not in tool("--list")


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_offsets_survive(broker: Broker, topic: str, end: str) -> None:
    """A stop and a SIGKILL; a member that was there goes on from where it was."""
    member = consumer(broker, topic)
    member.subscribe([topic])
    poll_until([member], lambda: shared([member]))
    commit_all(broker, f"{topic}-alone", topic, 7)
    member.commit(offsets=[TopicPartition(topic, 0, 5)], asynchronous=False)
    if end == "stop":
        broker.stop()
    else:
        broker.kill()
    broker.start()
    assert committed(broker, f"{topic}-alone", topic) == [7] * PARTITIONS
    assert committed(broker, topic, topic)[0] == 5
    poll_until([member], lambda: shared([member]))
    member.commit(offsets=[TopicPartition(topic, 0, 6)], asynchronous=False)
    member.close()
    assert committed(broker, topic, topic)[0] == 6
