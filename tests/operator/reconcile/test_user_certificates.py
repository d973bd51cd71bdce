"""Client certificates of users on a broker: what one may do while, and after, its user is there."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer

from barnabas_broker.testing import Broker
from barnabas_kafka.settings.properties import parse_properties
from barnabas_operator.api.reading import read_cluster
from barnabas_operator.brokers import AdminBrokers
from barnabas_operator.plan.certificates import format_time
from barnabas_operator.plan.topics import CreateTopic
from barnabas_operator.plan.users import UserView
from barnabas_operator.reconcile.reconciler import reconcile
from barnabas_operator.reconcile.security import credentials_of
from barnabas_operator.resources.brokers import broker_config
from barnabas_operator.resources.certificates import BROKER_PATH
from tests.operator import examples
from tests.operator.ports import context_on
from tests.operator.reconcile.test_certificates import KEY, Passes, write
from tests.waiting import ANSWER, seconds, wait_for

CERTS = {"name": "certs", "port": 9094, "tls": {}, "authentication": {"type": "tls"}}
ROLES = [
    {"type": "producer", "topic": "orders"},
    {"type": "consumer", "topic": "orders", "group": "billing"},
]


@dataclass(frozen=True, slots=True)
class Secured:
    """A secured broker, and passes of the operator that reach it by their certificate."""

    passes: Passes
    broker: Broker
    brokers: AdminBrokers

    def run(self) -> None:
        """Passes until nothing is left to do for users."""
        for _ in range(3):
            self.passes.kube.settle()
            now = format_time(self.passes.now)
            reconcile(KEY, replace(context_on(self.passes.kube, self.brokers), now=now))

    def settings(self) -> dict[str, Any]:
        """What librdkafka is given of the user's Secret, for the broker that runs here."""
        data = self.passes.kube.find("Secret", "billing")["data"]
        found: dict[str, Any] = json.loads(b64decode(data["librdkafka.json"]))
        where = self.broker.listeners["CERTS"].replace("127.0.0.1", "localhost")
        return {**found, "bootstrap.servers": where, "log_level": 0}


@pytest.fixture
def secured(tmp_path: Path) -> Iterator[Secured]:
    """With a topic that only its users may reach."""
    passes = Passes(examples.cluster(listeners=[CERTS], insecure=False))
    passes.now = datetime.now(tz=UTC).replace(microsecond=0)
    passes.run()
    cluster = read_cluster(passes.kube.find("KafkaCluster", "quickstart"))
    text = broker_config(cluster).replace(BROKER_PATH, str(tmp_path))
    rendered = parse_properties(text.encode(), origin="server.properties")
    write(passes, tmp_path)
    names = [each.kafka_name for each in cluster.body.spec.all_listeners]
    here = {
        "listeners": ",".join(f"{name}://localhost:0" for name in names),
        "barnabas.admin.listener": "localhost:0",
    }
    kept = {
        name: value
        for name, value in rendered.items()
        if name != "log.dirs" and not name.startswith("zookeeper.")
    }
    tls = credentials_of(cluster, context_on(passes.kube)).tls
    with Broker({**kept, **here}) as broker:
        where = broker.listeners["REPLICATION"].replace("127.0.0.1", "localhost")
        with AdminBrokers(where, tls) as brokers:
            topic = CreateTopic(partitions=1, replicas=1, config={})
            assert not brokers.create_topics({"orders": topic})
            yield Secured(passes, broker, brokers)


def produce(settings: dict[str, Any]) -> int | None:
    """Send one record; the code of the error if it is not acknowledged."""
    told: list[KafkaError | None] = []
    limit_ms = int(seconds(ANSWER) * 1000)
    producer = Producer({**settings, "retries": 0, "message.timeout.ms": limit_ms})
    producer.produce("orders", b"an order", on_delivery=lambda error, _: told.append(error))
    assert producer.flush(seconds(ANSWER)) == 0
    return told[0].code() if told[0] else None


def consume(settings: dict[str, Any]) -> int:
    """What a read of the topic, in its group, comes to: the code of the first error, or 0."""
    consumer = Consumer({**settings, "group.id": "billing", "auto.offset.reset": "earliest"})

    def poll() -> list[int]:
        try:
            messages = consumer.consume(1, 0.1)
        except KafkaException as error:
            return [error.args[0].code()]
        return [found.code() if (found := each.error()) else 0 for each in messages]

    try:
        consumer.subscribe(["orders"])
        return wait_for("a record, or an error", poll)[0]
    finally:
        consumer.close()


def test_the_certificate_of_a_deleted_user_allows_nothing(secured: Secured) -> None:
    """It is good until it expires, and its ACLs are gone: as it comes, also on open connections."""
    secured.passes.kube.put(
        examples.user(authentication={"type": "tls"}, authorization={"roles": ROLES})
    )
    secured.run()
    settings = secured.settings()
    assert produce(settings) is None
    assert consume(settings) == 0
    secured.passes.kube.remove("KafkaUser", "billing")
    secured.run()
    assert secured.brokers.users(["billing"])["billing"] == UserView(acls=frozenset(), quotas={})
    assert produce(settings) == KafkaError.TOPIC_AUTHORIZATION_FAILED
    assert consume(settings) in (
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
    )
