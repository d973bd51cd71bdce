"""Broker settings that change while it runs (KIP-226) act at once, or are refused."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from barnabas_broker.server.node.broker_server import BrokerServer
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.ids import TopicPartition
from barnabas_kafka.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from barnabas_kafka.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from barnabas_kafka.records.batch import headers
from barnabas_kafka.records.builder import build_batch
from barnabas_kafka.records.compression import Codec
from barnabas_kafka.settings.broker import KEYS
from barnabas_kafka.settings.definitions import Served, UpdateMode
from barnabas_kafka.settings.dynamic import RATES
from tests.broker.server.running import Wire, fetch_request, port_of, running_node

BROKER = 4
LONG_AGO_MS = 1000
KEYLESS = build_batch([(LONG_AGO_MS, None, b"value" * 20, ())])
ALL_BROKERS, THIS_BROKER = "", "0"

#: A value for each setting that acts and may change, none of them its default.
OTHERS = {
    "message.max.bytes": "500", "log.segment.bytes": "20000", "log.roll.ms": "70000",
    "log.roll.jitter.ms": "500", "log.retention.ms": "80000", "log.retention.bytes": "90000",
    "log.cleanup.policy": "compact", "log.index.size.max.bytes": "8000",
    "log.index.interval.bytes": "77", "log.flush.interval.messages": "3",
    "log.flush.interval.ms": "4000", "log.segment.delete.delay.ms": "5",
    "log.preallocate": "true", "log.message.timestamp.type": "LogAppendTime",
    "log.message.timestamp.difference.max.ms": "6000",
    "log.message.timestamp.before.max.ms": "7000", "log.message.timestamp.after.max.ms": "8000",
    "log.message.downconversion.enable": "false", "compression.type": "gzip",
    "compression.gzip.level": "2", "compression.lz4.level": "2", "compression.zstd.level": "2",
    "min.insync.replicas": "2", "producer.id.expiration.ms": "3000",
    "log.cleaner.min.cleanable.ratio": "0.1", "log.cleaner.delete.retention.ms": "5000",
    "log.cleaner.min.compaction.lag.ms": "6000", "log.cleaner.max.compaction.lag.ms": "7000",
}  # fmt: skip
#: Shown by a test of their own below.
NOT_OF_TOPICS = {"background.threads", "listeners", "advertised.listeners"}
NOT_OF_TOPICS.add("listener.security.protocol.map")
#: Shown in test_log_cleaner.py.
NOT_OF_TOPICS |= {name for name in KEYS if name.startswith("log.cleaner.")} - OTHERS.keys()
NOT_OF_TOPICS.remove("log.cleaner.enable")
#: Acts when a broker starts, whenever it was changed.
NOT_OF_TOPICS.add("num.recovery.threads.per.data.dir")
#: Shown in test_verification.py.
NOT_OF_TOPICS.add("transaction.partition.verification.enable")
#: Shown in test_fetcher.py, and by what the controller elects.
NOT_OF_TOPICS |= {"num.replica.fetchers", "unclean.leader.election.enable"}
#: Shown in test_sasl_authenticator.py.
NOT_OF_TOPICS |= {
    name
    for name, key in KEYS.items()
    if name.startswith(("ssl.", "sasl."))
    and key.served is Served.ACTS
    and key.update is not UpdateMode.READ_ONLY
}
#: Shown in test_listener.py.
NOT_OF_TOPICS |= {name for name in KEYS if name.startswith("max.connection")}


def alter(wire: Wire, name: str, value: str | None, *, of: str = ALL_BROKERS) -> int:
    """Set or, with None, reset one broker setting; returns the error code."""
    change = AlterableConfig(name=name, config_operation=int(value is None), value=value)
    resource = AlterConfigsResource(resource_type=BROKER, resource_name=of, configs=[change])
    answer = wire.ask(IncrementalAlterConfigsRequest(resources=[resource]), 1)
    code: int = answer.responses[0].error_code
    return code


def in_effect(node: BrokerServer, topic: str) -> list[Any]:
    """Everything that a partition goes by."""
    partition = node.broker.replicas.leader(TopicPartition(topic, 0))
    rules = partition.rules
    return [
        partition.log.config,
        rules.produce_rules(9),
        (rules.min_in_sync_replicas, rules.compression_type, rules.down_conversion),
    ]


def test_none_is_left_out() -> None:
    """Every setting that acts and may change is tried here."""
    acting = {
        name
        for name, key in KEYS.items()
        if key.served is Served.ACTS and key.update is not UpdateMode.READ_ONLY
    }
    assert acting == OTHERS.keys() | NOT_OF_TOPICS


@pytest.mark.parametrize("of", [ALL_BROKERS, THIS_BROKER])
@pytest.mark.parametrize("name", OTHERS)
def test_partitions_go_by_it_at_once(
    node: BrokerServer, wire: Wire, topic: str, name: str, of: str
) -> None:
    """Set, what a partition goes by has changed; reset, it is what it was."""
    before = in_effect(node, topic)
    assert alter(wire, name, OTHERS[name], of=of) == 0
    assert in_effect(node, topic) != before
    assert alter(wire, name, None, of=of) == 0
    assert in_effect(node, topic) == before


def test_a_topics_own_setting_is_stronger(node: BrokerServer, wire: Wire) -> None:
    """What a topic was given is not touched by a change for all."""
    wire.create_topic("own", max_message_bytes="10000")
    before = in_effect(node, "own")
    assert alter(wire, "message.max.bytes", "500") == 0
    assert in_effect(node, "own") == before
    assert alter(wire, "message.max.bytes", None) == 0


def refused_as(code: ErrorCode) -> Callable[[Wire, str], None]:
    """The keyless old record is refused."""

    def check(wire: Wire, topic: str) -> None:
        assert wire.produce(topic, KEYLESS).error_code == code

    return check


def _stamped(wire: Wire, topic: str) -> None:
    assert wire.produce(topic, KEYLESS).log_append_time_ms > LONG_AGO_MS


def _compressed(wire: Wire, topic: str) -> None:
    assert wire.produce(topic, KEYLESS).error_code == 0
    data = bytes(wire.fetch(topic).records or b"")  # type: ignore[arg-type]
    assert [header.codec for _, header in headers(data)] == [Codec.GZIP]


def _unconverted(wire: Wire, topic: str) -> None:
    assert wire.produce(topic, KEYLESS).error_code == 0
    old = wire.ask(fetch_request([(topic, 0, 0)]), 3).responses[0].partitions[0]
    assert old.error_code == ErrorCode.UNSUPPORTED_VERSION


@pytest.mark.parametrize(
    ("name", "value", "check"),
    [
        ("message.max.bytes", "100", refused_as(ErrorCode.MESSAGE_TOO_LARGE)),
        ("log.cleanup.policy", "compact", refused_as(ErrorCode.INVALID_RECORD)),
        ("log.message.timestamp.before.max.ms", "5", refused_as(ErrorCode.INVALID_TIMESTAMP)),
        ("log.message.timestamp.type", "LogAppendTime", _stamped),
        ("compression.type", "gzip", _compressed),
        ("log.message.downconversion.enable", "false", _unconverted),
    ],
)
def test_clients_notice(
    wire: Wire, topic: str, name: str, value: str, check: Callable[[Wire, str], None]
) -> None:
    """On topics that were there before."""
    assert alter(wire, name, value) == 0
    try:
        check(wire, topic)
    finally:
        assert alter(wire, name, None) == 0


def test_retention_and_rolling(tmp_path: Path) -> None:
    """Segments are begun by the new size and given up by the new age."""
    settings = {"log.retention.check.interval.ms": "10", "log.segment.delete.delay.ms": "0"}
    settings["log.retention.ms"] = "-1"
    with running_node(tmp_path, settings) as node, Wire(port_of(node)) as wire:
        wire.create_topic("t")
        assert alter(wire, "log.segment.bytes", "300") == 0
        for _ in range(6):
            assert wire.produce("t", KEYLESS).error_code == 0
        assert len(list((tmp_path / "t-0").glob("*.log"))) == 6
        assert alter(wire, "log.retention.ms", "60000") == 0
        while wire.fetch("t", 6).log_start_offset < 6:  # Bounded by the test's own time limit.
            pass


def test_threads(node: BrokerServer, wire: Wire) -> None:
    """Work that begins after the change has as many threads as it says."""
    assert alter(wire, "background.threads", "20") == 0
    tasks = node._background
    assert tasks is not None
    threads: ThreadPoolExecutor = tasks.threads
    assert threads._max_workers == 20


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("listeners", "PLAINTEXT://127.0.0.1:0,OTHER://127.0.0.1:0"),
        ("advertised.listeners", "PLAINTEXT://elsewhere:9092"),
        ("listener.security.protocol.map", "PLAINTEXT:PLAINTEXT,OTHER:PLAINTEXT"),
    ],
)
def test_listeners_change_at_a_restart_only(wire: Wire, name: str, value: str) -> None:
    """Kafka opens and closes ports while it runs; we say that we do not, and change nothing."""
    assert alter(wire, name, value, of=THIS_BROKER) == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("scope", [THIS_BROKER, ALL_BROKERS])
@pytest.mark.parametrize("rate", sorted(RATES))
def test_rates_of_replication_are_shown(wire: Wire, rate: str, scope: str) -> None:
    """They exist at run time only, and are no secrets: an operator must see what throttles."""
    assert alter(wire, rate, "5000", of=scope) == ErrorCode.NONE
    asked = DescribeConfigsResource(
        resource_type=BROKER, resource_name=scope, configuration_keys=[rate]
    )
    request = DescribeConfigsRequest(resources=[asked], include_synonyms=True)
    (shown,) = wire.ask(request, 4).results[0].configs
    assert (shown.value, shown.is_sensitive) == ("5000", False)
    assert [each.value for each in shown.synonyms] == ["5000"]
    assert alter(wire, rate, None, of=scope) == ErrorCode.NONE
    assert wire.ask(request, 4).results[0].configs == []
