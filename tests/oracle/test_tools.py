"""Our tools beside Apache's: command lines as people's notes have them, and what both print.

The table has every command as it was typed: in notes, with the dashes and the brackets that a
document makes of them. Hosts, topics, groups and paths are replaced by those of the test; Apache's
tool gets the same with plain dashes. Both work on one broker, which is on Apache ZooKeeper so that
tools of 2.8.2, the last with `--zookeeper`, can take part.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, NewTopic
from kazoo.client import KazooClient

from tests.clients.brokers import Barnabas
from tests.oracle.apache import ZooKeeper, run_tool
from tests.waiting import ANSWER, RUN, START, seconds, wait_for

BIN = Path(sys.executable).parent
OLD, NEW = "2.8.2", "3.9.1"
TOOLS = "org.apache.kafka.tools"
ZK_TOPICS = ("kafka.admin.TopicCommand", OLD)
TOPICS = (f"{TOOLS}.TopicCommand", NEW)
GROUPS = (f"{TOOLS}.consumer.group.ConsumerGroupCommand", NEW)
OFFSETS = (f"{TOOLS}.GetOffsetShell", NEW)
DUMP = ("kafka.tools.DumpLogSegments", NEW)
CONSUMER = (f"{TOOLS}.consumer.ConsoleConsumer", NEW)
CONFIGS = ("kafka.admin.ConfigCommand", NEW)
MEASURING = (f"{TOOLS}.ConsumerPerformance", NEW)
PRODUCER = ("kafka.tools.ConsoleProducer", NEW)
#: As long as ZooKeeper grants, for a busy machine.
LONGEST_SESSION_S = 40.0
TIMEOUT_OPTIONS = {
    GROUPS: ("--timeout", "60000"),
    MEASURING: ("--timeout", "60000"),
    PRODUCER: ("--request-timeout-ms", "60000"),
}
"""For those that give up after seconds unless told otherwise, which a busy machine needs."""
LINES = "hello:world\nquestion:what is your name?\nanswer:jams\n"


@dataclass(frozen=True)
class Case:
    """A command as typed, Apache's class for it, and what has to be there before."""

    typed: str
    apache: tuple[str, str]
    topic: int = 3  # partitions; 0 for none
    records: int = 0
    size: int = 0
    group: bool = False
    more: tuple[str, ...] = ()
    """What a person does otherwise, such as ending it with Ctrl-C."""
    everything: bool = False
    """Whether it tells of all there is, whichever topic it names."""
    fails: bool = False


@dataclass
class Place:
    """One broker, and whose turn it is."""

    broker: Barnabas
    connect: str
    admin: AdminClient
    znodes: KazooClient
    numbers: Iterator[int] = field(default_factory=lambda: iter(range(1000, 2000)))

    def topic(self, case: Case, whose: str) -> str:
        """A topic for the case, with records and a group's offsets if it wants them."""
        name = f"{whose}-{next(self.numbers)}"
        # What a rolled segment's index has is on disk, and no more than that.
        config = {"segment.bytes": "14000"} if case.size else {}
        if case.topic:
            new = NewTopic(name, case.topic, 1, config=config)
            self.admin.create_topics([new])[name].result(seconds(ANSWER))
        if case.records:
            producer = Producer({"bootstrap.servers": self.broker.bootstrap})
            for number in range(case.records):
                value = f"value {number}".ljust(case.size)
                producer.produce(name, value, partition=number % case.topic)
                producer.flush(seconds(ANSWER))
        if case.group:
            at = [TopicPartition(name, number, 1) for number in range(case.topic)]
            asked = [ConsumerGroupTopicPartitions(f"group-of-{name}", at)]
            for future in self.admin.alter_consumer_group_offsets(asked).values():
                future.result(seconds(ANSWER))
        return name

    def clear(self) -> None:
        """Take away all topics of a case; groups stay without offsets.

        Those too of which a tool has told ZooKeeper only, and the broker has yet to hear.
        """
        wait_for("no topic of a case", self._delete_topics, until=lambda left: not left)

    def _delete_topics(self) -> list[str]:
        """Delete the topics that there are; returns them."""
        left = self._topics_left()
        for future in self.admin.delete_topics(left).values() if left else ():
            try:
                future.result(seconds(ANSWER))
            except KafkaException as refused:
                if refused.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                    raise
        return left

    def _topics_left(self) -> list[str]:
        """Every topic of a case that ZooKeeper knows, and what it knows is to be deleted."""
        there = self.znodes.get_children("/brokers/topics")
        condemned = self.znodes.get_children("/admin/delete_topics")
        return sorted({name for name in there if name[:2] != "__"}.union(condemned))

    def arguments(self, typed: str, topic: str) -> list[str]:
        """The words of the command behind the program's name, with this place's names in them."""
        text = re.sub(r"^.*?[$#] +(?=bin/|kafka)|\|.*$", "", typed)
        text = re.sub(r"\[(--.*?)\]", r"\1", text)  # what is in brackets may be given
        text = text.replace("–topicst", "–topic test")  # a page swallowed what was between
        text = re.sub(r"((?:--|–)topic) (\S+|\[.*?\])", rf"\1 {topic}", text)
        text = re.sub(r"(zookeeper) (\S+)", rf"\1 {self.connect}", text)
        text = re.sub(
            r"((?:broker-list|bootstrap-server) |bootstrap\.servers=)(\[.*?\]|\S+)",
            rf"\g<1>{self.broker.bootstrap}",
            text,
        )
        text = text.replace("group_test", f"group-of-{topic}")
        text = text.replace("replication-factor 3", "replication-factor 1")
        text = text.replace("replication-factor 2", "replication-factor 1")
        text = text.replace("--config x=y", "--config retention.ms=60000")
        text = text.replace("--delete-config x", "--delete-config retention.ms")
        data = self.broker.log_dirs[0] / f"{topic}-1"
        return text.replace("/home/data/kafka/kafkadata/test-demo-1", str(data)).split()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A broker on ZooKeeper, where groups wait for nobody."""
    with ZooKeeper(directory=tmp_path_factory.mktemp("zookeeper")) as zookeeper:
        connect = f"{zookeeper.connect}/chroot"
        settings = {
            "broker.id": "0",
            "zookeeper.connect": connect,
            "group.initial.rebalance.delay.ms": "0",
            "offsets.topic.num.partitions": "1",
            "offsets.topic.replication.factor": "1",
            # No group is forgotten between our list and theirs.
            "offsets.retention.check.interval.ms": "86400000",
            "zookeeper.session.timeout.ms": f"{LONGEST_SESSION_S * 1000:.0f}",
        }
        with Barnabas(tmp_path_factory.mktemp("broker"), settings) as broker:
            znodes = KazooClient(connect, timeout=LONGEST_SESSION_S)
            znodes.start(seconds(START))
            admin = AdminClient({"bootstrap.servers": broker.bootstrap})
            yield Place(broker, connect, admin, znodes)
            znodes.stop()
            znodes.close()


@dataclass(frozen=True)
class Printed:
    """How a program ended and what it said."""

    code: int
    out: str
    err: str


def ours(words: list[str], given: str = "") -> Printed:
    """Run the entry point of that name."""
    program = BIN / words[0].removeprefix("bin/")
    done = subprocess.run(
        [program, *words[1:]],
        input=given,
        capture_output=True,
        text=True,
        timeout=seconds(RUN),
        check=False,
    )
    return Printed(done.returncode, done.stdout, done.stderr)


def theirs(apache: tuple[str, str], words: list[str], given: str = "") -> Printed:
    """Run Apache's class with the same options."""
    words = [re.sub("^–", "--", word) for word in words[1:]]
    if words[0].startswith("kafka.tools."):
        words = words[1:]
    main_class, version = apache
    done = run_tool(
        main_class, *words, *TIMEOUT_OPTIONS.get(apache, ()), version=version, input=given
    )
    return Printed(done.returncode, done.stdout, done.stderr)


def settled(text: str, topic: str) -> list[str]:
    """Lines without what is drawn anew each time; the order is that of a hash table in Java."""
    text = text.replace(topic, "TOPIC") if topic else text
    text = re.sub(r"TopicId: \S+", "TopicId: ID", text)
    text = re.sub(r"(CreateTime|crc|size|position): \d+", r"\1: N", text)
    # Which API answers is the client library's choice, and only one of them has these.
    text = re.sub(r"\tElr:.*", "", text)
    # One release forgets the ends of lines when it tells new offsets.
    text = re.sub(r"(NEW-OFFSET|\b\d+)\s+(?=group-of-)", "\\1\n", text)
    return sorted(" ".join(line.split()) for line in text.splitlines() if line.strip())


ON_ZOOKEEPER = [
    Case("bin/kafka-topics.sh –create –zookeeper localhost:2181 –topic test –partitions 1 "
         "–replication-factor 1", ZK_TOPICS, topic=0),
    Case("bin/kafka-topics.sh –describe –zookeeper localhost:2181 –topic test", ZK_TOPICS),
    Case("bin/kafka-topics.sh –zookeeper zk1:2181,zk2:2182,zk3:2183 –create –topic test-topic "
         "–partitions 3 –replication-factor 3", ZK_TOPICS, topic=0),
    Case("bin/kafka-topics.sh –zookeeper zk1:2181,zk2:2182,zk3:2183 -list", ZK_TOPICS,
         everything=True),
    Case("bin/kafka-topics.sh –zookeeper zk1:2181,zk2:2182,zk3:2183 –describe topic test-topic",
         ZK_TOPICS, topic=1, everything=True),
    Case("bin/kafka-topics.sh –zookeeper zk1:2181,zk2:2182,zk3:2183 –delete –topic test-topic",
         ZK_TOPICS),
    Case("$ kafka-topics --create --partitions 3 --replication-factor 2  --zookeeper "
         "spark-master:2181 --topic test-demo", ZK_TOPICS, topic=0),
    Case("$ kafka-topics --delete --topic test-demo --zookeeper hadoop-cluster01:2181", ZK_TOPICS),
    Case("$ kafka-topics --zookeeper zk_host:port --alter --topic my_topic_name --partitions 3",
         ZK_TOPICS, topic=1),
    Case("$ kafka-topics --zookeeper zk_host:port/chroot --alter --topic my_topic_name "
         "--config x=y", ZK_TOPICS),
    Case("$ kafka-topics --zookeeper zk_host:port/chroot --alter --topic my_topic_name "
         "--delete-config x", ZK_TOPICS),
    Case("[root@spark-master ~]# kafka-topics --describe  --zookeeper spark-master:2181 "
         "| grep test-demo", ZK_TOPICS, everything=True),
    Case("$ kafka-topics --list --zookeeper 172.16.0.126:2181", ZK_TOPICS, everything=True),
]  # fmt: skip

ON_BROKERS = [
    Case("bin/kafka-console-consumer.sh –bootstrap-server localhost:9092 –topicst "
         "–from-beginning", CONSUMER, records=3, more=("--max-messages", "3")),
    Case("bin/kafka-console-consumer.sh –bootstrap-server "
         "localhost:9092,localhost:9093,localhost:9094 –topic test-topic –from-beginning",
         CONSUMER, records=3, more=("--max-messages", "3")),
    Case("$ kafka-console-consumer --bootstrap-server spark-slave1:9092 --topic test-demo "
         "[--consumer-property group.id=group_test] --from-beginning",
         CONSUMER, records=3, more=("--max-messages", "3")),
    Case("$ kafka-console-consumer --bootstrap-server [listeners IP:端口] --topic [话题名称] "
         "[--consumer-property group.id=group_test]", CONSUMER, records=6, group=True,
         more=("--max-messages", "3")),
    Case("$ kafka-consumer-groups  --bootstrap-server 172.16.0.200:9092 --list", GROUPS,
         group=True, everything=True),
    Case("$ kafka-consumer-groups  --bootstrap-server 172.16.0.200:9092 --group group_test  "
         "--describe", GROUPS, records=7, group=True),
    Case("$ kafka-consumer-groups --bootstrap-server spark-slave1:9092 --describe --group "
         "group_test", GROUPS, records=1, topic=1, group=True),
    Case("$ kafka-consumer-groups  --bootstrap-server 172.16.0.200:9092 --group group_test  "
         "--delete", GROUPS, group=True),
    Case("# kafka-consumer-groups --bootstrap-server spark-slave1:9092 --reset-offsets --group "
         "group_test --topic test-demo --to-offset 20 --execute", GROUPS, records=7, group=True),
    Case("$ kafka-run-class kafka.tools.GetOffsetShell --broker-list 172.16.0.200:9092 --topic "
         "test --time -1", OFFSETS, records=8, topic=1),
    Case("$ bin/kafka-run-class kafka.tools.GetOffsetShell --broker-list spark-slave1:9092 "
         "--topic test-demo --time -1", OFFSETS, records=8),
    Case("$ kafka-run-class kafka.tools.DumpLogSegments --files "
         "/home/data/kafka/kafkadata/test-demo-1/00000000000000000000.log --print-data-log",
         DUMP, records=8),
    Case("$ kafka-run-class kafka.tools.DumpLogSegments --files "
         "/home/data/kafka/kafkadata/test-demo-1/00000000000000000000.index", DUMP, records=8,
         size=6000),
]  # fmt: skip

# What the notes leave to the reader: the same with today's option, failures, settings.
BESIDE = [
    Case("kafka-topics --bootstrap-server h:9092 --create --topic t --partitions 2", TOPICS,
         topic=0),
    Case("kafka-topics --bootstrap-server h:9092 --create --topic t", TOPICS, fails=True),
    Case("kafka-topics --bootstrap-server h:9092 --describe --topic t", TOPICS),
    Case("kafka-configs --bootstrap-server h:9092 --entity-type topics --entity-name TOPIC "
         "--alter --add-config retention.ms=9000,cleanup.policy=[compact,delete]", CONFIGS),
]  # fmt: skip


@pytest.mark.jvm
@pytest.mark.parametrize("case", [*ON_ZOOKEEPER, *ON_BROKERS, *BESIDE], ids=lambda c: c.typed)
def test_a_command_prints_what_apaches_prints(place: Place, case: Case) -> None:
    """The same lines and the same exit code."""
    names = {whose: place.topic(case, whose) for whose in ("ours", "them")}
    results = []
    for whose, topic in names.items():
        words = place.arguments(case.typed.replace("TOPIC", topic), topic) + list(case.more)
        printed = ours(words) if whose == "ours" else theirs(case.apache, words)
        results.append((printed.code, settled(printed.out, "" if case.everything else topic)))
    place.clear()
    assert results[0] == results[1]
    assert results[0][0] == (1 if case.fails else 0)


@pytest.mark.jvm
@pytest.mark.parametrize(
    "typed",
    [
        "bin/kafka-console-producer.sh –broker-list localhost:9092 –topic test",
        (
            "bin/kafka-console-producer.sh –broker-list "
            "localhost:9092,localhost:9093,localhost:9094 –topic test-topic"
        ),
        (
            "[root@spark-slave0 ~]# kafka-console-producer --broker-list spark-slave1:9092 "
            "--topic test-demo"
        ),
    ],
)
def test_typed_lines_become_the_same_records(place: Place, typed: str) -> None:
    """Values as typed, without keys."""
    case = Case(typed, PRODUCER, topic=1)
    stored = []
    for whose in ("ours", "them"):
        topic = place.topic(case, whose)
        words = place.arguments(typed, topic)
        done = ours(words, LINES) if whose == "ours" else theirs(case.apache, words, LINES)
        assert done.code == 0, done.err
        consumer = Consumer({"bootstrap.servers": place.broker.bootstrap, "group.id": "reader"})
        consumer.assign([TopicPartition(topic, 0, 0)])
        found: list[Message] = []

        def consume(consumer: Consumer = consumer, found: list[Message] = found) -> int:
            found.extend(consumer.consume(3 - len(found), 0.5))
            return len(found)

        wait_for(f"three records of {topic}", consume, until=lambda count: count == 3)
        stored.append([(m.key(), m.value()) for m in found])
        consumer.close()
    place.clear()
    assert stored[0] == stored[1]
    assert b"\n".join(value or b"" for _, value in stored[0]) + b"\n" == LINES.encode()


@pytest.mark.jvm
def test_records_are_deleted_as_apaches_tool_does(place: Place, tmp_path: Path) -> None:
    """The same lines, those of a failure up to its wording."""
    typed = (
        "kafka-delete-records.sh --bootstrap-server node1:9092,node2:9092,node3:9092 "
        "--offset-json-file offset.json"
    )
    case = Case(typed, (f"{TOOLS}.DeleteRecordsCommand", NEW), topic=2, records=6)
    file = tmp_path / "offset.json"
    reported = []
    for whose in ("ours", "them"):
        topic = place.topic(case, whose)
        asked = [{"topic": topic, "partition": p, "offset": o} for p, o in ((0, 2), (1, 2000))]
        file.write_text(json.dumps({"partitions": asked, "version": 1}))
        words = place.arguments(typed.replace("offset.json", str(file)), topic)
        done = ours(words) if whose == "ours" else theirs(case.apache, words)
        reported.append((done.code, settled(re.sub("error: .*", "error", done.out), topic)))
    place.clear()
    assert reported[0] == reported[1]
    assert "partition: TOPIC-0 low_watermark: 2" in reported[0][1]


@pytest.mark.jvm
def test_measuring_prints_the_same_lines(place: Place) -> None:
    """Up to the figures; the consumer's old option is one that Apache's tool has forgotten."""
    produce = (
        "bin/kafka-producer-perf-test.sh –topic test-topic –num-records 500000 –record-size 200 "
        "–throughput -1 –producer-props "
        "bootstrap.servers=localhost:9092,localhost:9093,localhost:9094 acks=-1"
    )
    consume = (
        "bin/kafka-producer-consumer-perf-test.sh –broker-list "
        "localhost:9092,localhost:9093,localhost:9094 –message-size 200 –messages 500000 "
        "–topic test-topic"
    )
    case = Case(produce, (f"{TOOLS}.ProducerPerformance", NEW))
    topic = place.topic(case, "both")
    words = place.arguments(produce, topic)
    sent = [ours(words), theirs(case.apache, words)]
    words = place.arguments(consume, topic)
    read = [
        ours([*words, *TIMEOUT_OPTIONS[MEASURING]]),
        theirs(MEASURING, [w for w in words if w not in
               ("–message-size", "200")]),
    ]  # fmt: skip
    place.clear()
    for mine, apache in (sent, read):
        assert mine.code == apache.code == 0, mine.err
        last = [re.sub(r"[\d.]+", "N", done.out.splitlines()[-1]) for done in (mine, apache)]
        assert last[0] == last[1]
    assert sent[0].out.splitlines()[-1].startswith("500000 records sent, ")
    assert read[0].out.splitlines()[0] == read[1].out.splitlines()[0]
    assert read[0].out.splitlines()[1].split(", ")[4] == "500000"
