"""Real consumers with group.protocol=consumer: librdkafka's and Java's, of both lines.

The broker of these scenarios is their own: it has the protocol on, and heartbeats are quick.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import Consumer, KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions, NewTopic

from tests.clients import consumers
from tests.clients.brokers import Broker, broker_under_test
from tests.clients.consumers import PARTITIONS, RECORDS, committed, filled_topic, poll_until
from tests.clients.java_team import Has, Team
from tests.clients.test_assignors import RANGE, TABLES
from tests.oracle.apache import run_tool
from tests.waiting import ANSWER, ATTEMPT_S, seconds

SETTINGS = {
    "broker.id": "0",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "3",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "200",
    "group.consumer.min.session.timeout.ms": "3000",
    "group.consumer.session.timeout.ms": "30000",
    "group.initial.rebalance.delay.ms": "0",
}
CONSOLE_CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
CONSUMER_GROUPS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A broker for the scenarios of this module."""
    with broker_under_test(tmp_path_factory.mktemp("consumers"), SETTINGS) as started:
        yield started


@pytest.fixture
def admin(broker: Broker) -> AdminClient:
    """A librdkafka admin client."""
    return AdminClient({"bootstrap.servers": broker.bootstrap})


@pytest.fixture
def topic(broker: Broker, request: pytest.FixtureRequest) -> str:
    """A topic of several partitions, with ten records in each."""
    return filled_topic(broker, request.node.name)


def consumer(broker: Broker, group: str, topic: str, **settings: object) -> Consumer:
    """A consumer of the new protocol; underscores stand for dots."""
    return consumers.consumer(broker, group, topic, group_protocol="consumer", **settings)


def shares(*team: Consumer) -> list[int]:
    """How many partitions each reads."""
    return [len(each.assignment()) for each in team]


def test_two_share_and_one_goes_on_alone(broker: Broker, topic: str) -> None:
    """Each gets half; what one commits and leaves behind the other goes on with."""
    one, two = (consumer(broker, "pair", topic) for _ in range(2))
    poll_until([one, two], lambda: shares(one, two) == [3, 3])
    owned = {(each.topic, each.partition) for each in one.assignment() + two.assignment()}
    assert len(owned) == PARTITIONS
    one.close()
    poll_until([two], lambda: shares(two) == [PARTITIONS])
    two.close()


def test_commits_survive_a_restart_of_the_broker(broker: Broker, topic: str) -> None:
    """The member goes on after the restart, and what it committed stays."""
    one = consumer(broker, "kept", topic)
    read = 0

    def all_is_read() -> bool:
        nonlocal read
        read += sum(each.error() is None for each in one.consume(RECORDS, 0.2))
        return read >= RECORDS

    poll_until([], all_is_read)
    one.commit(asynchronous=False)
    broker.stop()
    broker.start()
    poll_until([one], lambda: _position_is_committed(one))
    one.close()
    again = consumer(broker, "kept", topic)
    assert poll_until([again], lambda: shares(again) == [PARTITIONS]) == 0
    again.close()


def _position_is_committed(one: Consumer) -> bool:
    try:
        one.commit(offsets=one.position(one.assignment()), asynchronous=False)
        committed = one.committed(one.assignment(), timeout=ATTEMPT_S)
    except KafkaException:
        return False  # The connection is just coming back.
    return sum(each.offset for each in committed) == RECORDS


def test_more_partitions_and_matching_topics_are_found(
    broker: Broker, topic: str, admin: AdminClient
) -> None:
    """The broker evaluates the expression; nobody has to rebalance by hand."""
    one = consumer(broker, "finder", f"^{topic}.*")
    poll_until([one], lambda: shares(one) == [PARTITIONS])
    admin.create_partitions([NewPartitions(topic, PARTITIONS + 1)])[topic].result(seconds(ANSWER))
    poll_until([one], lambda: shares(one) == [PARTITIONS + 1])
    other = f"{topic}-other"
    admin.create_topics([NewTopic(other, num_partitions=2)])[other].result(seconds(ANSWER))
    poll_until([one], lambda: shares(one) == [PARTITIONS + 3])
    one.close()


def test_a_static_member_comes_back_to_its_partitions(broker: Broker, topic: str) -> None:
    """What it read nobody else gets meanwhile."""
    one = consumer(broker, "static", topic, group_instance_id="one")
    two = consumer(broker, "static", topic, group_instance_id="two")
    poll_until([one, two], lambda: shares(one, two) == [3, 3])
    had = {each.partition for each in one.assignment()}
    one.close()
    one = consumer(broker, "static", topic, group_instance_id="one")
    poll_until([one, two], lambda: shares(one, two) == [3, 3])
    assert {each.partition for each in one.assignment()} == had
    one.close()
    two.close()


@pytest.mark.jvm
@pytest.mark.parametrize("release", ["3.9.1", "4.1.0"])
def test_java_consumers_read_everything(broker: Broker, topic: str, release: str) -> None:
    """With the assignor of the broker that they ask for; Apache's tool then shows the group."""
    group = f"java-{release}"
    done = run_tool(
        CONSOLE_CONSUMER,
        *("--bootstrap-server", broker.bootstrap, "--topic", topic, "--group", group),
        *("--from-beginning", "--max-messages", str(RECORDS), "--timeout-ms", "100000"),
        *("--consumer-property", "group.protocol=consumer"),
        *("--consumer-property", "group.remote.assignor=range"),
        version=release,
    )
    assert sorted(map(int, done.stdout.split())) == list(range(RECORDS)), done.stderr
    shown = run_tool(
        CONSUMER_GROUPS,
        *("--bootstrap-server", broker.bootstrap, "--describe", "--group", group),
        *("--timeout", "60000"),  # Five seconds unless told, which a busy machine needs.
        version=release,
    )
    lines = [line.split() for line in shown.stdout.splitlines() if line.startswith(group)]
    assert sum(int(line[5]) for line in lines) == 0, shown.stdout + shown.stderr
    assert len(lines) == PARTITIONS, shown.stdout + shown.stderr


@pytest.mark.jvm
@pytest.mark.parametrize("name", [name for name, row in TABLES.items() if row[0] == RANGE])
def test_tables_of_the_brokers_range(broker: Broker, admin: AdminClient, name: str) -> None:
    """The worked tables, except for who has which row: ids that consumers draw fix the order."""
    _, partitions, expected = TABLES[name]
    group = name.replace(" ", "-").replace(",", "")
    topics = {f"T{i}": f"{group}.T{i}" for i in range(1, len(partitions) + 1)}
    wanted = [
        NewTopic(name, count, 1) for name, count in zip(topics.values(), partitions, strict=True)
    ]
    for future in admin.create_topics(wanted).values():
        future.result(seconds(ANSWER))
    rows = sorted(sorted(f"{group}.{each}" for each in row) for row in expected.values())
    with Team(broker.bootstrap, "4.4.0") as team:
        for member in expected:
            team.start(member, group, "consumer:range", *topics.values())
        team.until(lambda found: sorted(map(sorted, found.values())) == rows)


@pytest.mark.jvm
def test_the_brokers_uniform_shares_and_keeps(broker: Broker, admin: AdminClient) -> None:
    """Three topics of seven over three, then over two: even, and nobody loses what it had."""
    group = "uniform"
    topics = [f"{group}.T{number}" for number in (1, 2, 3)]
    for future in admin.create_topics([NewTopic(name, 7, 1) for name in topics]).values():
        future.result(seconds(ANSWER))
    everything = {f"{name}-{number}" for name in topics for number in range(7)}

    def even(members: int) -> Callable[[Has], bool]:
        def settled(found: Has) -> bool:
            sizes = [len(has) for has in found.values()]
            whole = set().union(*found.values()) == everything and sum(sizes) == len(everything)
            return len(found) == members and whole and max(sizes) - min(sizes) <= 1

        return settled

    with Team(broker.bootstrap, "4.4.0") as team:
        for name in ("C1", "C2", "C3"):
            team.start(name, group, "consumer:uniform", *topics)
        before = team.until(even(3))
        team.stop("C3")
        after = team.until(even(2))
    assert all(before[name] < after[name] for name in ("C1", "C2"))


@pytest.mark.jvm
@pytest.mark.parametrize("release", ["4.4.0"])
def test_java_consumers_roll_to_the_new_protocol_and_back(
    broker: Broker, topic: str, release: str
) -> None:
    """One after the other is replaced, all share evenly each time, and the offsets stay."""
    group, old, new = "rolling", "CooperativeStickyAssignor", "consumer"

    def even(*names: str) -> Callable[[Has], bool]:
        return lambda has: (
            has.keys() == set(names)
            and all(len(some) == PARTITIONS // len(names) for some in has.values())
            and len(set().union(*has.values())) == PARTITIONS
        )

    with Team(broker.bootstrap, release) as team:
        for name in ("a", "b"):
            team.start(name, group, old, topic)
        team.until(even("a", "b"))
        for before, after, protocol in [
            *(("a", "c", new), ("b", "d", new)),
            *(("c", "e", old), ("d", "f", old)),
        ]:
            team.start(after, group, protocol, topic)
            others = set(team.show()) - {before}
            team.until(lambda has: all(len(some) == PARTITIONS // 3 for some in has.values()))
            team.stop(before)
            team.until(even(*others))
    assert committed(broker, group, topic) == [RECORDS // PARTITIONS] * PARTITIONS
    with Team(broker.bootstrap, release) as team:
        team.start("g", group, new, topic)
        team.until(even("g"))
        assert team.seen == 0


@pytest.mark.jvm
def test_apache_reads_the_records(broker: Broker, topic: str) -> None:
    """Kafka 4.1's own dump of the log decodes each kind, and finds what the member was told."""
    one = consumer(broker, "dumped", f"^{topic}", client_id="reader")
    poll_until([one], lambda: shares(one) == [PARTITIONS])
    one.close()
    (log_dir,) = broker.log_dirs
    logs = sorted(str(each) for each in log_dir.glob("__consumer_offsets-*/*.log"))
    dumped = run_tool(
        *("kafka.tools.DumpLogSegments", "--offsets-decoder", "--files", ",".join(logs)),
        version="4.1.0",
    )
    ours = [line for line in dumped.stdout.splitlines() if '"groupId":"dumped"' in line]
    for kind in (3, 4, 5, 6, 7, 8, 16):
        assert any(f'key: {{"type":"{kind}"' in line for line in ours), dumped.stdout[-3000:]
    reported = next(line for line in ours if 'key: {"type":"5"' in line)
    assert '"clientId":"reader"' in reported
    assert topic in reported
    assert '"partitions":[0,1,2,3,4,5]' in "".join(ours)
