"""Apache's own command-line tools of 3.9.1 against the broker.

Each tool is a JVM of its own, so one test walks through as much as belongs together.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.clients import START_MS
from tests.clients.brokers import Broker
from tests.clients.conftest import MakeTopic
from tests.clients.librdkafka import await_end, fill, read_all
from tests.clients.transactional import seen_in
from tests.oracle.apache import run_tool

pytestmark = pytest.mark.jvm

TOPICS = "org.apache.kafka.tools.TopicCommand"
CONFIGS = "kafka.admin.ConfigCommand"
CONSOLE_PRODUCER = "kafka.tools.ConsoleProducer"
CONSOLE_CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
PRODUCER_PERFORMANCE = "org.apache.kafka.tools.ProducerPerformance"
GET_OFFSETS = "org.apache.kafka.tools.GetOffsetShell"
DELETE_RECORDS = "org.apache.kafka.tools.DeleteRecordsCommand"
LOG_DIRS = "org.apache.kafka.tools.LogDirsCommand"
VERIFIABLE_PRODUCER = "org.apache.kafka.tools.VerifiableProducer"
VERIFIABLE_CONSUMER = "org.apache.kafka.tools.VerifiableConsumer"
MESSAGE_COPIER = "org.apache.kafka.tools.TransactionalMessageCopier"
BROKER_API_VERSIONS = "kafka.admin.BrokerApiVersionsCommand"


def tool(main_class: str, broker: Broker, *arguments: str, given: str | None = None) -> str:
    """Run a tool that must succeed and return what it printed."""
    done = run_tool(main_class, "--bootstrap-server", broker.bootstrap, *arguments, input=given)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_topics(broker: Broker) -> None:
    """kafka-topics creates, lists, describes, grows and deletes; an existing name is refused."""
    name = "tool-topics"
    create = ["--create", "--topic", name, "--partitions", "2", "--config", "retention.ms=60000"]
    assert f"Created topic {name}" in tool(TOPICS, broker, *create)
    again = run_tool(TOPICS, "--bootstrap-server", broker.bootstrap, *create)
    assert again.returncode == 1
    assert "already exists" in again.stdout
    tool(TOPICS, broker, "--alter", "--topic", name, "--partitions", "3")
    assert name in tool(TOPICS, broker, "--list").split()
    described = tool(TOPICS, broker, "--describe", "--topic", name)
    heading, *partitions = described.strip().splitlines()
    assert "PartitionCount: 3\tReplicationFactor: 1\tConfigs: retention.ms=60000" in heading
    assert len(partitions) == 3
    assert "Partition: 2\tLeader: 0\tReplicas: 0\tIsr: 0" in partitions[2]
    tool(TOPICS, broker, "--delete", "--topic", name)
    assert name not in tool(TOPICS, broker, "--list").split()


def test_configs_of_a_topic(broker: Broker, topic: str) -> None:
    """kafka-configs adds, describes with synonyms, and deletes."""
    entity = ["--entity-type", "topics", "--entity-name", topic]
    tool(CONFIGS, broker, *entity, "--alter", "--add-config", "retention.ms=777,segment.ms=888")
    described = tool(CONFIGS, broker, *entity, "--describe")
    assert (
        "retention.ms=777 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:retention.ms=777}"
        in described
    )
    assert "segment.ms=888" in described
    tool(CONFIGS, broker, *entity, "--alter", "--delete-config", "retention.ms")
    described = tool(CONFIGS, broker, *entity, "--describe")
    assert "retention.ms=777" not in described
    assert "segment.ms=888" in described


def test_configs_of_the_broker(broker: Broker) -> None:
    """Dynamic settings of one broker over the default of all."""
    key = "log.cleaner.backoff.ms"
    everyone = ["--entity-type", "brokers", "--entity-default"]
    one = ["--entity-type", "brokers", "--entity-name", "0"]
    tool(CONFIGS, broker, *everyone, "--alter", "--add-config", f"{key}=14000")
    tool(CONFIGS, broker, *one, "--alter", "--add-config", f"{key}=13000")
    described = tool(CONFIGS, broker, *one, "--describe")
    assert f"{key}=13000 sensitive=false" in described
    assert f"DYNAMIC_BROKER_CONFIG:{key}=13000" in described
    assert f"DYNAMIC_DEFAULT_BROKER_CONFIG:{key}=14000" in described
    assert f"DEFAULT_CONFIG:{key}=15000" in described
    tool(CONFIGS, broker, *one, "--alter", "--delete-config", key)
    tool(CONFIGS, broker, *everyone, "--alter", "--delete-config", key)
    refused = run_tool(
        CONFIGS,
        *("--bootstrap-server", broker.bootstrap, *one, "--alter"),
        *("--add-config", "log.cleaner.threads=999999999"),
    )
    assert refused.returncode == 1


def test_console_producer_and_consumer(broker: Broker, topic: str) -> None:
    """Lines with keys and headers go in, and come out from an offset of a partition."""
    lines = [f"h:{i}\tkey{i}\tvalue {i}" for i in range(20)]
    tool(
        CONSOLE_PRODUCER,
        broker,
        # Without it, what a busy machine does not answer in six seconds is given up.
        *("--topic", topic, "--compression-codec", "lz4", "--request-timeout-ms", "60000"),
        *("--property", "parse.key=true", "--property", "parse.headers=true"),
        given="\n".join(lines) + "\n",
    )
    read = tool(
        CONSOLE_CONSUMER,
        broker,
        *("--topic", topic, "--partition", "0", "--offset", "5", "--max-messages", "15"),
        *("--property", "print.key=true", "--property", "print.headers=true"),
        *("--property", "print.offset=true", "--timeout-ms", "80000"),
    )
    expected = [f"Offset:{i}\t{lines[i]}" for i in range(5, 20)]
    assert read.splitlines() == expected


@pytest.mark.parametrize(
    "settings",
    ["acks=all", "acks=1 linger.ms=5 compression.type=zstd", "acks=0"],
    ids=["all", "zstd", "acks0"],
)
def test_producer_performance(broker: Broker, topic: str, settings: str) -> None:
    """kafka-producer-perf-test sends what it was told to and everything arrives."""
    done = run_tool(
        PRODUCER_PERFORMANCE,
        *("--topic", topic, "--num-records", "20000", "--record-size", "200"),
        *("--throughput", "-1", "--producer-props", f"bootstrap.servers={broker.bootstrap}"),
        *settings.split(),
    )
    assert done.returncode == 0, done.stderr
    assert "20000 records sent" in done.stdout
    await_end(broker.bootstrap, topic, 20_000)
    assert len(read_all(broker.bootstrap, topic)) == 20_000


def test_get_offsets(broker: Broker, make_topic: MakeTopic) -> None:
    """Latest, earliest, of the largest timestamp, and of a time."""
    topic = make_topic(partitions=2)
    fill(broker.bootstrap, topic, 10, partition=1)
    expected: dict[str, list[int | None]] = {
        "-1": [0, 10],
        "-2": [0, 0],
        "-3": [None, 9],
        str(START_MS + 3500): [None, 4],
    }
    for time, offsets in expected.items():
        printed = tool(GET_OFFSETS, broker, "--topic", topic, "--time", time).splitlines()
        assert printed == [
            f"{topic}:{partition}:{offset}"
            for partition, offset in enumerate(offsets)
            if offset is not None
        ], time


def test_delete_records(broker: Broker, topic: str, tmp_path: Path) -> None:
    """kafka-delete-records moves the beginning of a partition."""
    fill(broker.bootstrap, topic, 10)
    wanted = {"version": 1, "partitions": [{"topic": topic, "partition": 0, "offset": 6}]}
    file = tmp_path / "offsets.json"
    file.write_text(json.dumps(wanted))
    printed = tool(DELETE_RECORDS, broker, "--offset-json-file", str(file))
    assert f"partition: {topic}-0\tlow_watermark: 6" in printed
    assert [record.offset() for record in read_all(broker.bootstrap, topic)] == [6, 7, 8, 9]


def test_log_dirs(broker: Broker, make_topic: MakeTopic) -> None:
    """kafka-log-dirs tells how large each partition is and where it lies."""
    topic = make_topic(partitions=2)
    fill(broker.bootstrap, topic, 10)
    printed = tool(LOG_DIRS, broker, "--describe", "--topic-list", topic)
    described = json.loads(printed.strip().splitlines()[-1])
    ((directory,),) = ([*entry["logDirs"]] for entry in described["brokers"])
    assert directory["error"] is None
    assert directory["logDir"] == str(broker.log_dirs[0])
    sizes = {entry["partition"]: entry["size"] for entry in directory["partitions"]}
    assert sizes[f"{topic}-0"] > 60
    assert sizes[f"{topic}-1"] == 0


def test_verifiable_producer(broker: Broker, topic: str) -> None:
    """Apache's system tests' producer counts as many acknowledgements as it sent records."""
    printed = tool(
        VERIFIABLE_PRODUCER, broker, "--topic", topic, "--max-messages", "200", "--acks", "-1"
    )
    events = [json.loads(line) for line in printed.splitlines() if line.startswith("{")]
    assert {event["name"] for event in events} >= {"startup_complete", "producer_send_success"}
    (totals,) = (event for event in events if event["name"] == "tool_data")
    assert (totals["sent"], totals["acked"]) == (200, 200)


@pytest.mark.parametrize("protocol", ["CLASSIC", "CONSUMER"])
def test_verifiable_consumer(broker: Broker, make_topic: MakeTopic, protocol: str) -> None:
    """Apache's system tests' consumer gets every record once and commits how far it has come."""
    topic = make_topic(partitions=3)
    for partition in range(3):
        fill(broker.bootstrap, topic, 50, partition=partition)
    printed = tool(
        *(VERIFIABLE_CONSUMER, broker, "--topic", topic, "--group-id", topic),
        *("--group-protocol", protocol, "--max-messages", "150", "--verbose"),
    )
    events = [json.loads(line) for line in printed.splitlines() if line.startswith("{")]
    names = {event["name"] for event in events}
    assert names >= {"startup_complete", "partitions_assigned", "records_consumed"}
    assert events[-1]["name"] == "shutdown_complete"
    read = [
        (event["partition"], event["offset"]) for event in events if event["name"] == "record_data"
    ]
    assert sorted(read) == [(partition, offset) for partition in range(3) for offset in range(50)]
    committed = {
        place["partition"]: place["offset"]
        for event in events
        if event["name"] == "offsets_committed" and event["success"]
        for place in event["offsets"]
    }
    assert committed == dict.fromkeys(range(3), 50)


@pytest.mark.parametrize("version", ["3.9.1", "4.1.0"])
def test_message_copier(broker: Broker, make_topic: MakeTopic, version: str) -> None:
    """Apache's system tests' copier aborts at random and copies everything once all the same."""
    source, target = make_topic(), make_topic()
    fill(broker.bootstrap, source, 300)
    done = run_tool(
        *(MESSAGE_COPIER, "--broker-list", broker.bootstrap, "--input-topic", source),
        *("--input-partition", "0", "--output-topic", target, "--transactional-id", target),
        *("--consumer-group", target, "--transaction-size", "20", "--enable-random-aborts"),
        *("--group-mode", "--use-group-metadata"),
        version=version,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert seen_in(broker, target, 1) == [str(it) for it in range(300)]


def test_broker_api_versions(broker: Broker, tmp_path: Path) -> None:
    """Every API the 3.9.1 client needs here is usable."""
    # Five seconds unless told, which a busy machine needs.
    timeout = tmp_path / "command.properties"
    timeout.write_text("request.timeout.ms=60000\n")
    printed = tool(BROKER_API_VERSIONS, broker, "--command-config", str(timeout))
    lines = [line.strip().rstrip(",") for line in printed.splitlines()]
    usable = {line.split("(")[0] for line in lines if "[usable:" in line}
    assert usable >= {
        "Produce",
        "Fetch",
        "ListOffsets",
        "Metadata",
        "ApiVersions",
        "CreateTopics",
        "DeleteTopics",
        "DeleteRecords",
        "InitProducerId",
        "OffsetForLeaderEpoch",
        "DescribeConfigs",
        "AlterConfigs",
        "DescribeLogDirs",
        "CreatePartitions",
        "IncrementalAlterConfigs",
        "DescribeCluster",
    }
