"""KafkaUsers: clients are given the Secret of a user, and nothing else."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Iterator
from typing import Any, Final

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer

from e2e.cluster import Cluster
from e2e.commands import CommandError
from e2e.quickstart import FIXTURES, MAIN, RELEASE
from e2e.wait import wait_for
from tests.waiting import ANSWER, RUN

FILE: Final = str(FIXTURES / "users.yaml")
RESOURCES: Final = (
    "kafkacluster/secured", "kafkatopic/invoices", "kafkauser/shop", "kafkauser/billing",
)  # fmt: skip
INSTANCE: Final = "app.kubernetes.io/instance=secured"


@pytest.fixture(scope="module")
def secured(operator: Cluster) -> Iterator[Cluster]:
    """The example, applied and ready; gone after these scenarios."""
    operator.kubectl("apply", "-n", MAIN, "-f", FILE)
    for resource in RESOURCES:
        operator.wait_ready(resource, namespace=MAIN, within=RUN)
    yield operator
    operator.delete_objects("-n", MAIN, "-f", FILE, "--ignore-not-found")
    operator.wait_gone("pods", namespace=MAIN, selector=INSTANCE)
    operator.kubectl("delete", "pvc", "-n", MAIN, "-l", "barnabas.io/cluster=secured")


def settings(cluster: Cluster, user: str) -> dict[str, Any]:
    """The settings of librdkafka in a user's Secret."""
    text = cluster.kubectl("get", "secret", user, "-n", MAIN, "-o", "json")
    lines = b64decode(json.loads(text)["data"]["librdkafka.properties"]).decode().splitlines()
    return {**dict(line.split("=", 1) for line in lines), "log_level": 0}


def produce(given: dict[str, Any], value: bytes) -> KafkaError | None:
    """Send one record; why it was not acknowledged, None if it was."""
    told: list[KafkaError | None] = []
    failures: list[KafkaError] = []
    producer = Producer({**given, "retries": 0}, error_cb=failures.append)
    producer.produce("invoices", value, on_delivery=lambda error, _: told.append(error))

    def outcome() -> list[KafkaError | None]:
        producer.poll(0.1)
        return told or [each for each in failures if each.code() == KafkaError._AUTHENTICATION]

    return wait_for("an acknowledgement or an error", outcome, within=ANSWER)[0]


def consume(given: dict[str, Any]) -> bytes:
    """The first record of the topic, in the group billing; raises KafkaException."""
    consumer = Consumer({**given, "group.id": "billing", "auto.offset.reset": "earliest"})

    def record() -> list[bytes]:
        found = consumer.consume(1, 0.2)
        for error in filter(None, (each.error() for each in found)):
            raise KafkaException(error)
        return [each.value() or b"" for each in found]

    try:
        consumer.subscribe(["invoices"])
        return wait_for("a record", record, within=ANSWER)[0]
    finally:
        consumer.close()


def test_users_do_what_their_acls_allow_through_their_secrets(secured: Cluster) -> None:
    """One writes, the other reads; each is denied what the other may do."""
    shop, billing = settings(secured, "shop"), settings(secured, "billing")
    assert produce(shop, b"an invoice") is None
    assert consume(billing) == b"an invoice"
    denied = produce(billing, b"another")
    assert denied is not None
    assert denied.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    with pytest.raises(KafkaException) as refused:
        consume(shop)
    assert refused.value.args[0].code() == KafkaError.GROUP_AUTHORIZATION_FAILED


def test_a_rotated_password_is_the_only_one(secured: Cluster) -> None:
    """An annotation generates another; the old one is refused, and nothing logs either."""
    before = settings(secured, "shop")
    secured.kubectl("annotate", "kafkauser/shop", "-n", MAIN, "barnabas.io/rotate=1")
    after = secured.wait_for(
        "another password",
        lambda: settings(secured, "shop"),
        until=lambda found: found["sasl.password"] != before["sasl.password"],
        namespaces=(MAIN,),
    )
    # The Secret comes first: until the brokers have it the new password is refused.
    secured.wait_for(
        "a record with the new password",
        lambda: produce(after, b"a third") is None,
        namespaces=(MAIN,),
    )
    refused = produce(before, b"a fourth")
    assert refused is not None
    assert refused.code() == KafkaError._AUTHENTICATION
    told = secured.kubectl("logs", "-n", MAIN, f"deploy/{RELEASE}")
    told += secured.kubectl("get", "events,kafkausers,configmaps", "-n", MAIN, "-o", "json")
    for password in (before["sasl.password"], after["sasl.password"]):
        assert password not in told


def test_a_deleted_user_cannot_log_in(secured: Cluster) -> None:
    """Its Secret goes too, and no finalizer waits for that."""
    given = settings(secured, "billing")
    found = json.loads(secured.kubectl("get", "kafkauser/billing", "-n", MAIN, "-o", "json"))
    assert "finalizers" not in found["metadata"]
    secured.delete_objects("kafkauser/billing", "-n", MAIN)
    secured.wait_for(
        "the end of the credential",
        lambda: produce(given, b"a fifth"),
        until=lambda error: error is not None and error.code() == KafkaError._AUTHENTICATION,
        namespaces=(MAIN,),
    )
    secured.wait_for(
        "the end of the Secret",
        lambda: secured.kubectl("get", "secret", "-n", MAIN, "-o", "name"),
        until=lambda names: "secret/billing" not in names.split(),
        namespaces=(MAIN,),
    )
    assert produce(settings(secured, "shop"), b"a sixth") is None


@pytest.mark.parametrize(
    ("resource", "spec", "words"),
    [
        ("kafkauser/shop", {"username": "other"}, "username may not change"),
        ("kafkauser/shop", {"cluster": "other"}, "cluster may not change"),
        ("kafkauser/shop", {"authentication": {"type": "kerberos"}}, "supported values"),
        (
            "kafkauser/shop",
            {"authorization": {"roles": [{"type": "producer"}]}},
            "producer and consumer need a topic",
        ),
        (
            "kafkauser/shop",
            {"authorization": {"acls": [{"resource": {"type": "topic"}, "operations": ["Read"]}]}},
            "name is for all types but cluster",
        ),
        (
            "kafkacluster/secured",
            {"listeners": [{"name": "a", "port": 9092}, {"name": "b", "port": 9093}]},
            "every listener but one needs authentication",
        ),
        ("kafkacluster/secured", {"config": {"super.users": "User:a"}}, "spec.authorization"),
    ],
)
def test_what_cannot_be_is_refused_with_a_reason(
    secured: Cluster, resource: str, spec: dict[str, Any], words: str
) -> None:
    """By the API server, before anything is stored."""
    patch = json.dumps({"spec": spec})
    with pytest.raises(CommandError) as refused:
        secured.kubectl("patch", resource, "-n", MAIN, "--type=merge", "-p", patch)
    assert words.lower() in refused.value.said.lower()
