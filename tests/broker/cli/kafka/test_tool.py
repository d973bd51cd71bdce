"""What all of Kafka's tools have in common: refusals by name, exit codes, ways to the brokers."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from barnabas_broker.cli.kafka import absent
from barnabas_broker.testing import Broker
from barnabas_broker.zk import registry

TOOLS = (
    "broker_api_versions", "cluster", "configs", "console_consumer", "console_producer",
    "consumer_groups", "consumer_perf_test", "delete_records", "dump_log", "get_offsets",
    "leader_election", "log_dirs", "producer_perf_test", "reassign_partitions", "server_start",
    "server_stop", "topics", "transactions", "verifiable_consumer", "verifiable_producer",
    "zookeeper_start", "zookeeper_stop",
)  # fmt: skip


def run(module: str, *args: str, stdin: bytes = b"", fails: bool = False) -> Result:
    """Run the tool in a module of this package."""
    tool = import_module(f"barnabas_broker.cli.kafka.{module}").main
    result = CliRunner().invoke(tool, args, input=stdin)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.output
    assert result.exit_code == (1 if fails else 0), result.output
    return result


@pytest.mark.parametrize("module", TOOLS)
def test_every_tool_explains_itself_and_refuses_what_it_does_not_know(module: str) -> None:
    """By name, and with the exit code of Kafka's tools."""
    assert "Usage:" in run(module, "--help").stdout
    assert "--bogus" in run(module, "--bogus", fails=True).stderr


@pytest.mark.parametrize(
    ("module", "args"),
    [
        ("topics", ["--list", "--topic-id", "x"]),
        ("consumer_groups", ["--list", "--validate-regex=a.*"]),
        ("console_producer", ["--topic", "t", "--line-reader", "my.Reader"]),
        ("producer_perf_test", ["--transactional-id", "x"]),
        ("dump_log", ["--files", "f", "--cluster-metadata-decoder"]),
        ("configs", ["--describe", "--group", "g"]),
        ("reassign_partitions", ["--list", "--bootstrap-controller", "h:1"]),
    ],
)
def test_unsupported_options_of_apaches_tools_are_refused(module: str, args: list[str]) -> None:
    """Is refused by name before anything is done."""
    option = next(word for word in args if word.startswith("--") and word not in
                  ("--list", "--topic", "--files", "--describe")).partition("=")[0]  # fmt: skip
    outcome = run(module, *args, fails=True)
    assert f"{option} is not supported" in outcome.stderr


@pytest.mark.parametrize(
    ("tool", "hint"),
    [
        (absent.metadata_quorum, "barnabas zk status"),
        (absent.replica_verification, "barnabas brokers caught-up"),
        (absent.zookeeper_shell, "barnabas zk ls PATH -z HOST:PORT"),
        (absent.zookeeper_security_migration, "run Apache's tool"),
    ],
)
def test_a_tool_that_is_not_here(tool: click.Command, hint: str) -> None:
    """Is refused by name with what to use instead, whatever it was asked for."""
    for args in (["--bootstrap-server", "h:9092", "describe", "--status"], []):
        outcome = CliRunner().invoke(tool, args)
        assert outcome.exit_code == 1
        assert f"{tool.name} is not supported" in outcome.stderr
        assert hint in outcome.stderr
    assert "Not supported" in CliRunner().invoke(tool, ["--help"]).stdout


def test_the_id_of_the_cluster(kafka_broker: Broker) -> None:
    """A broker on ZooKeeper has nothing to unregister; that is told, and fails."""
    where = ("-b", kafka_broker.bootstrap_servers)
    assert run("cluster", "cluster-id", *where).stdout == (
        f"Cluster ID: {kafka_broker.cluster_id}\n"
    )
    refused = run("cluster", "unregister", *where, "--id", "3", fails=True)
    assert refused.stdout == (
        "The target cluster does not support the broker unregistration API.\n"
    )
    assert "nothing to unregister once it has stopped" in refused.stderr
    assert "--id" in run("cluster", "unregister", *where, fails=True).stderr
    assert "invalid choice: 'list'" in run("cluster", "list", *where, fails=True).stderr


def events(outcome: Result) -> list[dict[str, Any]]:
    """What a verifiable client printed, without the times."""
    reported = [json.loads(line) for line in outcome.stdout.splitlines()]
    assert all(each.pop("timestamp") > 0 for each in reported)
    return reported


@pytest.mark.kafka_topic(partitions=1)
def test_verifiable_clients_report_every_record(kafka_broker: Broker, kafka_topic: str) -> None:
    """As events in JSON: what was acknowledged, what was read, what was committed."""
    where = ("--bootstrap-server", kafka_broker.bootstrap_servers, "--topic", kafka_topic)
    sent = events(run("verifiable_producer", *where, "--max-messages", "3", "--value-prefix", "4",
                      "--repeating-keys", "2", "--throughput", "1000"))  # fmt: skip
    assert [each["name"] for each in sent] == [
        "startup_complete", *["producer_send_success"] * 3, "shutdown_complete", "tool_data",
    ]  # fmt: skip
    assert sent[3] == {
        "name": "producer_send_success", "key": "0", "value": "4.2", "offset": 2,
        "topic": kafka_topic, "partition": 0,
    }  # fmt: skip
    assert (sent[-1]["sent"], sent[-1]["acked"], sent[-1]["target_throughput"]) == (3, 3, 1000)
    read = events(run("verifiable_consumer", *where, "--group-id", "g", "--verbose",
                      "--max-messages", "3"))  # fmt: skip
    place = {"topic": kafka_topic, "partition": 0}
    assert read[0] == {"name": "startup_complete"}
    assert read[1] == {"name": "partitions_assigned", "partitions": [place]}
    values = [each["value"] for each in read if each["name"] == "record_data"]
    assert values == ["4.0", "4.1", "4.2"]
    committed = [each for each in read if each["name"] == "offsets_committed"]
    assert committed[-1]["offsets"] == [{**place, "offset": 3}]
    assert committed[-1]["success"] is True
    assert [each["name"] for each in read[-2:]] == ["partitions_revoked", "shutdown_complete"]


def test_an_assignment_strategy_of_java_that_is_not_here(kafka_broker: Broker) -> None:
    """Is refused with those there are."""
    where = ("--bootstrap-server", kafka_broker.bootstrap_servers, "--topic", "t")
    refused = run("verifiable_consumer", *where, "--group-id", "g", "--assignment-strategy",
                  "org.apache.kafka.clients.consumer.StickyAssignor", fails=True)  # fmt: skip
    assert "StickyAssignor is not supported" in refused.stderr


def test_a_foreign_formatter_is_refused_by_name(kafka_broker: Broker) -> None:
    """It would be a Java class."""
    args = ("--bootstrap-server", kafka_broker.bootstrap_servers, "--topic", "t")
    outcome = run("console_consumer", *args, "--formatter", "my.Formatter", fails=True)
    assert "my.Formatter is not supported" in outcome.stderr


def test_no_broker_is_named(kafka_broker: Broker) -> None:
    """Kafka's tools have no default."""
    assert "--bootstrap-server" in run("topics", "--list", fails=True).stderr


def test_no_zookeeper_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says what to type instead."""
    monkeypatch.setattr(registry, "TIMEOUT_MS", 300)
    outcome = run("topics", "--list", "--zookeeper", "127.0.0.1:1", fails=True)
    assert "--bootstrap-server" in outcome.stderr


def test_settings_of_an_existing_topic_are_for_another_tool(kafka_broker: Broker) -> None:
    """And the error has the command."""
    outcome = run("topics", "--bootstrap-server", kafka_broker.bootstrap_servers, "--alter",
                  "--topic", "t", "--config", "a=b", fails=True)  # fmt: skip
    assert "kafka-configs" in outcome.stderr


@pytest.mark.kafka_topic(partitions=1)
def test_lines_with_keys_go_in_and_come_out(kafka_broker: Broker, kafka_topic: str) -> None:
    """In the properties of reader and formatter that Kafka has; from an offset of a partition."""
    where = ("--bootstrap-server", kafka_broker.bootstrap_servers, "--topic", kafka_topic)
    run("console_producer", *where, "--property", "parse.key=true", "--property",
        "key.separator=:", "--compression-codec", "--request-required-acks", "-1",
        stdin=b"a:1\nb:2\nc:3\n")  # fmt: skip
    found = run("console_consumer", *where, "--partition", "0", "--offset", "1",
                "--max-messages", "2", "--property", "print.key=true", "--property",
                "print.offset=true", "--property", "key.separator=|")  # fmt: skip
    assert found.stdout == "Offset:1|b|2\nOffset:2|c|3\n"
    assert "Processed a total of 2 messages" in found.stderr


def test_records_are_deleted_up_to_an_offset(
    kafka_broker: Broker, kafka_topic: str, tmp_path: Path
) -> None:
    """Each partition of the file is told of, those that failed too."""
    where = ("--bootstrap-server", kafka_broker.bootstrap_servers)
    run("console_producer", *where, "--topic", kafka_topic, stdin=b"1\n2\n3\n")
    offsets = [(0, 2), (7, 1)]
    asked = [{"topic": kafka_topic, "partition": p, "offset": o} for p, o in offsets]
    file = tmp_path / "offset.json"
    file.write_text(json.dumps({"partitions": asked, "version": 1}))
    lines = run("delete_records", *where, "--offset-json-file", str(file)).stdout.splitlines()
    assert lines[:2] == [
        "Executing records delete operation", "Records delete operation completed:",
    ]  # fmt: skip
    assert f"partition: {kafka_topic}-0\tlow_watermark: 2" in lines
    assert any(line.startswith(f"partition: {kafka_topic}-7\terror: ") for line in lines)
    early = run("get_offsets", *where, "--topic", kafka_topic, "--time", "-2").stdout
    assert early == f"{kafka_topic}:0:2\n"


def test_log_directories_are_one_line_of_json(kafka_broker: Broker, kafka_topic: str) -> None:
    """Behind two lines of talk, as scripts expect it."""
    where = ("--bootstrap-server", kafka_broker.bootstrap_servers)
    lines = run("log_dirs", *where, "--describe", "--topic-list", kafka_topic).stdout.splitlines()
    (broker,) = json.loads(lines[2])["brokers"]
    (directory,) = broker["logDirs"]
    assert directory["error"] is None
    assert directory["partitions"] == [
        {"partition": f"{kafka_topic}-0", "size": 0, "offsetLag": 0, "isFuture": False}
    ]


def test_settings_of_all_brokers(kafka_broker: Broker) -> None:
    """What librdkafka cannot ask is asked all the same."""
    where = ("--bootstrap-server", kafka_broker.bootstrap_servers, "--entity-type", "brokers",
             "--entity-default")  # fmt: skip
    run("configs", *where, "--alter", "--add-config", "log.cleaner.backoff.ms=14000")
    shown = run("configs", *where, "--describe").stdout
    assert "log.cleaner.backoff.ms=14000 sensitive=false" in shown
    run("configs", *where, "--alter", "--delete-config", "log.cleaner.backoff.ms")
    assert "14000" not in run("configs", *where, "--describe").stdout


def test_versions_of_the_broker(kafka_broker: Broker) -> None:
    """Under Kafka's names."""
    shown = run("broker_api_versions", "--bootstrap-server", kafka_broker.bootstrap_servers).stdout
    assert "\tProduce(0): " in shown
    assert "\tListOffsets(2): " in shown


def test_measuring_in_kafkas_lines(kafka_broker: Broker, kafka_topic: str) -> None:
    """One line each, in the shape that scripts take apart."""
    address = kafka_broker.bootstrap_servers
    sent = run("producer_perf_test", "--topic", kafka_topic, "--num-records", "500",
               "--record-size", "100", "--throughput", "-1", "--producer-props",
               f"bootstrap.servers={address}", "acks=-1").stdout  # fmt: skip
    assert sent.startswith("500 records sent, ")
    assert sent.endswith("ms 99.9th.\n")
    read = run("consumer_perf_test", "--broker-list", address, "--messages", "500",
               "--topic", kafka_topic, "--message-size", "100").stdout  # fmt: skip
    header, line = read.splitlines()
    assert len(line.split(", ")) == len(header.split(", ")) == 10
    assert line.split(", ")[4] == "500"
