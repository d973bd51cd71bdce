"""KafkaUsers on a real broker, with clients that are given their Secrets and nothing else.

The broker has the settings that the operator renders for the KafkaCluster.
"""

from __future__ import annotations

import io
from base64 import b64decode
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, Producer

from barnabas_broker.testing import Broker
from barnabas_kafka.settings.properties import parse_properties
from barnabas_operator.api.clusters import KafkaCluster
from barnabas_operator.api.reading import Resource, read_cluster, read_user
from barnabas_operator.brokers import AdminBrokers
from barnabas_operator.kube import USERS, Document
from barnabas_operator.plan.user_acls import acls_of
from barnabas_operator.plan.user_ledger import PresentUsers
from barnabas_operator.plan.users import AclChange, CredentialChange, QuotaChange, UserView
from barnabas_operator.reconcile.kafka_users import reconcile_users_of
from barnabas_operator.reconcile.orphans import DeletionGuard
from barnabas_operator.resources.config import server_properties
from tests.operator import examples
from tests.operator.memory_kube import MemoryKube
from tests.operator.ports import context_on
from tests.waiting import ANSWER, seconds, wait_for

WRITER = {"roles": [{"type": "producer", "topic": "orders"}]}
READER = {"roles": [{"type": "consumer", "topic": "orders", "group": "billing"}]}


class Users:
    """An API server in memory and a broker process: what the operator does for users."""

    def __init__(self, broker: Broker, cluster: Document) -> None:
        status = {
            "initialized": True,
            "answering": True,
            "listeners": [
                {
                    "name": "scram",
                    "type": "internal",
                    "bootstrapServers": broker.listeners["SCRAM"],
                }
            ],
        }
        self.kube = MemoryKube(cluster)
        self.brokers = AdminBrokers(broker.listeners["PLAIN"])
        self.cluster: Resource[KafkaCluster] = read_cluster({**cluster, "status": status})

    def apply(self, *users: Document) -> None:
        """Create or change KafkaUsers, and make passes until one has nothing to do."""
        for user in users:
            self.kube.put(user)
        self.run_pass()
        wait_for("a pass without changes", self.run_pass)

    def run_pass(self) -> bool:
        """One pass; whether it had nothing to do."""
        documents = self.kube.list(USERS, "default")
        guard = DeletionGuard(present=PresentUsers.of(documents, "quickstart"))
        context = context_on(self.kube, self.brokers)
        found = [read_user(each) for each in documents]
        return reconcile_users_of(self.cluster, found, guard, context).settled

    def settings(self, name: str) -> dict[str, Any]:
        """The settings of librdkafka that a Secret has."""
        data = self.kube.find("Secret", name)["data"]
        text = b64decode(data["librdkafka.properties"]).decode()
        lines = (line.rstrip("\n").split("=", 1) for line in io.StringIO(text))
        return {**dict(lines), "log_level": 0}

    def view(self, name: str) -> UserView:
        """The user as the broker has it."""
        return self.brokers.users([name])[name]


@pytest.fixture(scope="module")
def users() -> Iterator[Users]:
    """A broker with the listeners and the authorizer of a KafkaCluster."""
    document = examples.secured()
    spec = read_cluster(document).body.spec
    text = server_properties(
        "quickstart", listeners=spec.listeners, config=spec.broker_config, zookeeper_connect=None
    )
    rendered = parse_properties(text.encode(), origin="server.properties")
    here = {
        "listeners": "PLAIN://127.0.0.1:0,SCRAM://127.0.0.1:0",
        "barnabas.admin.listener": "127.0.0.1:0",
    }
    kept = {name: value for name, value in rendered.items() if name != "log.dirs"}
    with Broker({**kept, **here}) as broker:
        broker.create_topic("orders", partitions=1)
        running = Users(broker, document)
        with running.brokers:
            yield running


def produce(settings: dict[str, Any], value: bytes) -> KafkaError | None:
    """Send one record; the error if it is not acknowledged."""
    failures: list[KafkaError] = []
    reported: list[KafkaError | None] = []
    producer = Producer(
        {**settings, "message.timeout.ms": int(seconds(ANSWER) * 1000), "retries": 0},
        error_cb=failures.append,
    )
    producer.produce("orders", value, on_delivery=lambda error, _: reported.append(error))

    def outcome() -> list[KafkaError | None]:
        producer.poll(0.05)
        return reported or [*_refusals(failures)]

    return wait_for("an acknowledgement or an error", outcome)[0]


def _refusals(failures: list[KafkaError]) -> list[KafkaError]:
    return [each for each in failures if each.code() == KafkaError._AUTHENTICATION]


def consume(settings: dict[str, Any], group: str = "billing") -> list[bytes | KafkaError]:
    """The first values of the topic, or the error that the group or the topic gives."""
    consumer = Consumer({**settings, "group.id": group, "auto.offset.reset": "earliest"})

    def poll() -> list[bytes | KafkaError]:
        messages = consumer.consume(1, 0.1)
        return [each.error() or each.value() or b"" for each in messages]

    try:
        consumer.subscribe(["orders"])
        return wait_for("a record, or an error", poll)
    finally:
        consumer.close()


def test_life_of_two_users_through_their_secrets(users: Users) -> None:
    """One writes, the other reads; each is denied what the other may do."""
    users.apply(examples.user("writer", authorization=WRITER), examples.user(authorization=READER))
    writer, reader = users.settings("writer"), users.settings("billing")
    assert produce(writer, b"one") is None
    assert consume(reader) == [b"one"]
    denied = produce(reader, b"two")
    assert denied is not None
    assert denied.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    (refused,) = consume(writer)
    assert isinstance(refused, KafkaError)
    assert refused.code() == KafkaError.GROUP_AUTHORIZATION_FAILED


def test_a_rotated_password_is_the_only_one(users: Users) -> None:
    """The Secret has the new one; the old one is refused."""
    users.apply(examples.user("writer", authorization=WRITER))
    before = users.settings("writer")
    rotated = examples.user("writer", authorization=WRITER)
    rotated["metadata"]["annotations"] = {"barnabas.io/rotate": "1"}
    users.apply(rotated)
    assert produce(users.settings("writer"), b"three") is None
    refused = produce(before, b"four")
    assert refused is not None
    assert refused.code() == KafkaError._AUTHENTICATION


def test_drift_is_reverted_on_a_real_broker(users: Users) -> None:
    """Another client replaces the password and deletes the ACLs."""
    users.apply(examples.user("drifter", authorization=WRITER))
    acls = acls_of(read_user(examples.user(authorization=WRITER)).body.spec.authorization)
    theirs = CredentialChange(mechanism="SCRAM-SHA-512", iterations=4095 + 9000, password="x")
    assert users.brokers.alter_credentials({"drifter": theirs}) == {}
    assert users.brokers.alter_acls({"drifter": AclChange(delete=acls)}) == {}
    assert users.view("drifter").acls == frozenset()
    assert not users.run_pass()
    assert produce(users.settings("drifter"), b"five") is None


def test_a_deleted_user_is_gone_and_others_are_not(users: Users) -> None:
    """Credentials and ACLs; a user that no resource names has both still."""
    theirs = CredentialChange(mechanism="SCRAM-SHA-256", iterations=4096, password="theirs")
    acls = acls_of(read_user(examples.user(authorization=READER)).body.spec.authorization)
    assert users.brokers.alter_credentials({"legacy": theirs}) == {}
    assert users.brokers.alter_acls({"legacy": AclChange(create=acls)}) == {}
    users.apply(examples.user("passing", authorization=WRITER))
    settings = users.settings("passing")
    users.kube.remove("KafkaUser", "passing")
    users.run_pass()
    assert users.view("passing") == UserView(acls=frozenset(), quotas={})
    legacy = UserView(credentials={"SCRAM-SHA-256": 4096}, acls=acls, quotas={})
    assert users.view("legacy") == legacy
    refused = produce(settings, b"six")
    assert refused is not None
    assert refused.code() == KafkaError._AUTHENTICATION


def test_quotas_are_set_changed_and_removed(users: Users) -> None:
    """With the resource; one that another client has set stays."""
    users.apply(examples.user("limited", quotas={"producerByteRate": 1000, "requestPercentage": 5}))
    quotas = {"producer_byte_rate": 1000.0, "request_percentage": 5.0}
    wait_for("the quotas", lambda: users.view("limited").quotas, until=lambda it: it == quotas)
    theirs = QuotaChange(put={"consumer_byte_rate": 7.0})
    assert users.brokers.alter_quotas({"limited": theirs}) == {}
    users.apply(examples.user("limited", quotas={"producerByteRate": 2000}))
    quotas = {"producer_byte_rate": 2000.0, "consumer_byte_rate": 7.0}
    wait_for("the quotas", lambda: users.view("limited").quotas, until=lambda it: it == quotas)
    users.kube.remove("KafkaUser", "limited")
    users.run_pass()
    left = {"consumer_byte_rate": 7.0}
    wait_for("what is left", lambda: users.view("limited").quotas, until=lambda it: it == left)


def test_one_mechanism_after_another(users: Users) -> None:
    """Set and removed in one request."""
    first = CredentialChange(mechanism="SCRAM-SHA-256", iterations=4096, password="a")
    assert users.brokers.alter_credentials({"both": first}) == {}
    second = CredentialChange(
        mechanism="SCRAM-SHA-512",
        iterations=5000,
        password="b",
        remove=frozenset({"SCRAM-SHA-256"}),
    )
    assert users.brokers.alter_credentials({"both": second}) == {}
    assert users.view("both").credentials == {"SCRAM-SHA-512": 5000}
    errors = users.brokers.alter_credentials(
        {"both": CredentialChange(remove=frozenset({"SCRAM-SHA-256"}))}
    )
    assert errors["both"].code == "RESOURCE_NOT_FOUND"


def test_a_cluster_without_an_authorizer_says_so(kafka_broker: Broker) -> None:
    """Credentials are described all the same."""
    with AdminBrokers(kafka_broker.bootstrap_servers) as brokers:
        assert brokers.users(["nobody"]) == {"nobody": UserView(quotas={})}
        assert brokers.users([]) == {}


def test_acls_on_delegation_tokens_are_those_of_the_broker(users: Users) -> None:
    """They are read back as they were asked for: the next pass has nothing to do."""
    rules = [
        {"resource": {"type": "delegationToken", "name": "id-1"}, "operations": ["Describe"]},
        {
            "resource": {"type": "user", "name": "User:other"},
            "operations": ["CreateTokens", "DescribeTokens"],
        },
    ]
    document = examples.user("tokens", authorization={"acls": rules})
    users.apply(document)
    assert users.view("tokens").acls == acls_of(read_user(document).body.spec.authorization)
    assert users.run_pass()
