"""Quotas in a cluster of an Apache broker and ours: each goes by what was set at the other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from barnabas_kafka.client import Admin, ClientConfig, QuotaEntity, alter_quotas, describe_quotas
from barnabas_kafka.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from barnabas_kafka.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from barnabas_kafka.records.builder import build_batch
from tests.clients.brokers import Barnabas
from tests.clients.wire import Wire
from tests.oracle.apache import ApacheKafka, ZooKeeper
from tests.waiting import wait_for

pytestmark = pytest.mark.jvm

TOPIC: Final = "limited"
#: No client of the test has such a user: whom it is of does not matter.
STRANGE: Final[QuotaEntity] = frozenset({("user", "CN=a b,O=x/y~*"), ("client-id", "<default>")})
ENTITIES: Final[tuple[QuotaEntity, ...]] = (
    STRANGE,
    frozenset({("user", "<default>")}),
    frozenset({("user", "alice"), ("client-id", None)}),
    frozenset({("client-id", "app")}),
    frozenset({("ip", "127.0.0.9")}),
)


@dataclass(frozen=True)
class Both:
    """Where the two are asked."""

    apache: str
    ours: str


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    """Apache's broker 1, the controller, and ours, 2; the topic has a partition on each."""
    directory: Path = tmp_path_factory.mktemp("cluster")
    with (
        ZooKeeper(directory=directory / "zookeeper") as zookeeper,
        ApacheKafka(
            directory=directory / "apache", heap="384M", zookeeper=zookeeper.connect, broker_id=1
        ) as apache,
        Barnabas(
            directory / "ours", {"broker.id": "2", "zookeeper.connect": zookeeper.connect}
        ) as ours,
    ):
        _create(apache.bootstrap)
        yield Both(apache.bootstrap, ours.bootstrap)


def _create(bootstrap: str) -> None:
    topic = CreatableTopic(
        name=TOPIC,
        num_partitions=-1,
        replication_factor=-1,
        assignments=[
            CreatableReplicaAssignment(partition_index=index, broker_ids=[broker])
            for index, broker in enumerate((1, 2))
        ],
    )
    request = CreateTopicsRequest(topics=[topic], timeout_ms=60_000)

    def created() -> int:
        with Wire(bootstrap) as wire:
            answer: CreateTopicsResponse = wire.ask(request, CreateTopicsResponse, 5)
            return int(answer.topics[0].error_code)

    wait_for("the topic", created, until=lambda code: code in (0, 36))


def _set(bootstrap: str, quotas: Mapping[QuotaEntity, Mapping[str, float | None]]) -> None:
    """At this broker alone: either may be asked, and the controller is Apache's."""
    from barnabas_kafka.protocol.messages import alter_client_quotas as messages

    entries = [
        messages.AlterClientQuotasRequestEntryData(
            entity=[messages.EntityData(entity_type=k, entity_name=n) for k, n in entity],
            ops=[
                messages.OpData(key=key, value=value or 0.0, remove=value is None)
                for key, value in values.items()
            ],
        )
        for entity, values in quotas.items()
    ]
    with Wire(bootstrap) as wire:
        answer = wire.ask(
            messages.AlterClientQuotasRequest(entries=entries),
            messages.AlterClientQuotasResponse,
            1,
        )
    assert {each.error_code for each in answer.entries} == {0}, answer


def _rate(entity: QuotaEntity) -> str:
    return "connection_creation_rate" if dict(entity).keys() == {"ip"} else "producer_byte_rate"


def _shown(bootstrap: str) -> dict[QuotaEntity, dict[str, float]]:
    from barnabas_kafka.protocol.messages import describe_client_quotas as messages

    with Wire(bootstrap) as wire:
        answer = wire.ask(
            messages.DescribeClientQuotasRequest(), messages.DescribeClientQuotasResponse, 1
        )
    return {
        frozenset((part.entity_type, part.entity_name) for part in entry.entity): {
            each.key: each.value for each in entry.values
        }
        for entry in answer.entries or ()
    }


def _throttle_ms(bootstrap: str, partition: int) -> int:
    """Of one request to the partition that this broker leads."""
    batch = build_batch([(1, None, b"x" * 50_000, ())])
    data = PartitionProduceData(index=partition, records=batch)
    request = ProduceRequest(
        acks=1,
        timeout_ms=30_000,
        topic_data=[TopicProduceData(name=TOPIC, partition_data=[data])],
    )
    with Wire(bootstrap) as wire:
        answer: ProduceResponse = wire.ask(request, ProduceResponse, 9)
    assert answer.responses[0].partition_responses[0].error_code == 0, answer
    return answer.throttle_time_ms


@pytest.mark.parametrize("at", ["ours", "apache"])
def test_both_show_and_enforce_what_was_set_at_one(both: Both, at: str) -> None:
    """Names of every kind, defaults, and the quota of the user that asks; and its removal."""
    quotas = {entity: {_rate(entity): 1e6} for entity in ENTITIES}
    quotas[frozenset({("user", "ANONYMOUS")})] = {"producer_byte_rate": 1000.0}
    where = both.ours if at == "ours" else both.apache
    _set(where, quotas)
    for bootstrap in (both.ours, both.apache):
        wait_for("the quotas", partial(_shown, bootstrap), until=lambda it: it == quotas)
    for bootstrap, partition in ((both.apache, 0), (both.ours, 1)):
        wait_for(
            "a throttled request",
            partial(_throttle_ms, bootstrap, partition),
            until=lambda throttle_ms: throttle_ms > 0,
        )
    _set(where, {entity: dict.fromkeys(values) for entity, values in quotas.items()})
    for bootstrap in (both.ours, both.apache):
        wait_for("no quotas", partial(_shown, bootstrap), until=lambda it: not it)


def test_our_client_reads_what_apache_has(both: Both) -> None:
    """Through the controller, which is Apache's."""
    entity: QuotaEntity = frozenset({("client-id", "app")})
    with Admin(ClientConfig(bootstrap_servers=both.ours)) as admin:
        admin.call(alter_quotas({entity: {"request_percentage": 12.5}})).all()
        wait_for(
            "the quota",
            lambda: admin.call(describe_quotas({"client-id": "app"})),
            until=lambda found: found == {entity: {"request_percentage": 12.5}},
        )
        admin.call(alter_quotas({entity: {"request_percentage": None}})).all()
