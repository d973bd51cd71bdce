"""KafkaUsers of a secured cluster: clients are given the Secret of a user, and nothing else."""

from __future__ import annotations

import json
import ssl
from collections.abc import Iterator
from typing import Final

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer

from e2e import java, kafka, users
from e2e.cluster import Cluster
from e2e.leaks import leaks, secret_values
from e2e.load import Load
from e2e.quickstart import BRIEF, FIXTURES, MAIN
from e2e.wait import wait_for
from tests.waiting import ANSWER, RUN, SETTLE, seconds

FILE: Final = str(FIXTURES / "users.yaml")
VISITOR: Final = str(FIXTURES / "visitor.yaml")
RESOURCES: Final = (
    "kafkacluster/secured", "kafkatopic/invoices",
    "kafkauser/shop", "kafkauser/billing", "kafkauser/till",
)  # fmt: skip
INSTANCE: Final = "app.kubernetes.io/instance=secured"


@pytest.fixture(scope="module")
def secured(operator: Cluster) -> Iterator[Cluster]:
    """The cluster and its users, applied and ready; gone after these scenarios."""
    operator.kubectl("apply", "-n", MAIN, "-f", FILE)
    for resource in RESOURCES:
        operator.wait_ready(resource, namespace=MAIN, within=RUN)
    yield operator
    operator.delete_objects("-n", BRIEF, "-f", VISITOR, "--ignore-not-found")
    operator.delete_objects("-n", MAIN, "-f", FILE, "--ignore-not-found")
    operator.wait_gone("pods", namespace=MAIN, selector=INSTANCE)
    operator.kubectl("delete", "pvc", "-n", MAIN, "-l", "barnabas.io/cluster=secured")


def client(cluster: Cluster, user: str, *, namespace: str = MAIN) -> kafka.Client:
    """What the Secret of a user says; librdkafka's own log is not wanted."""
    return {**users.client(cluster, user, namespace=namespace), "log_level": 0}


def produce(given: kafka.Client, value: bytes) -> KafkaError | None:
    """Send one record; why it was not acknowledged, None if it was."""
    reported: list[KafkaError | None] = []
    failures: list[KafkaError] = []
    producer = Producer({**given, "retries": 0}, error_cb=failures.append)
    producer.produce("invoices", value, on_delivery=lambda error, _: reported.append(error))

    def outcome() -> list[KafkaError | None]:
        producer.poll(0.1)
        # A refused password is tried again and again.
        return reported or [each for each in failures if each.code() == KafkaError._AUTHENTICATION]

    return wait_for("an acknowledgement or an error", outcome, within=SETTLE)[0]


def consume(given: kafka.Client) -> bytes:
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


def read(cluster: Cluster) -> dict[kafka.Place, kafka.Record]:
    """What the topic has, by place."""
    given = {**client(cluster, "billing"), "group.id": "billing"}
    return kafka.read(given, "invoices", limit_s=seconds(SETTLE))


def processes(cluster: Cluster, selector: str = INSTANCE) -> dict[str, tuple[str, int]]:
    """The cluster's pods with how often a container of each was restarted."""
    return {
        pod["metadata"]["name"]: (
            pod["metadata"]["uid"],
            sum(each["restartCount"] for each in pod["status"]["containerStatuses"]),
        )
        for pod in cluster.list("pod", namespace=MAIN, selector=selector)
    }


def shown_certificate(given: kafka.Client) -> str:
    """The certificate that the broker shows, PEM."""
    host, _, port = given["bootstrap.servers"].rpartition(":")
    return ssl.get_server_certificate((host, int(port)), timeout=seconds(ANSWER))


def test_users_do_what_their_acls_allow_through_their_secrets(secured: Cluster) -> None:
    """Two write, with a password and a certificate, one reads; each is denied the other's part."""
    shop, billing, till = (client(secured, name) for name in ("shop", "billing", "till"))
    assert [given["security.protocol"].lower() for given in (shop, till)] == ["sasl_ssl", "ssl"]
    assert produce(shop, b"an invoice") is None
    assert consume(billing) == b"an invoice"
    assert produce(till, b"another") is None
    denied = produce(billing, b"a third")
    assert denied is not None
    assert denied.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    with pytest.raises(KafkaException) as refused:
        consume(shop)
    assert refused.value.args[0].code() == KafkaError.GROUP_AUTHORIZATION_FAILED


def test_credentials_rotate_under_load_without_restarts(secured: Cluster) -> None:
    """Password and certificate of users, the brokers' certificate, and a second authority.

    Producers go on; a replaced password is refused, and no value of before or after is elsewhere.
    """
    before, running = read(secured), processes(secured)
    shop, till = client(secured, "shop"), client(secured, "till")
    values = secret_values(secured, MAIN)
    shown = shown_certificate(shop)
    with Load(shop, "invoices") as one, Load(till, "invoices") as other:
        more(secured, one, other)
        for user in ("shop", "till"):
            secured.kubectl("annotate", f"kafkauser/{user}", "-n", MAIN, "barnabas.io/rotate=1")
        secured.kubectl("delete", "secret/secured-broker-tls", "-n", MAIN)
        asked = "barnabas.io/rotate-cluster-ca=1"
        secured.kubectl("annotate", "kafkacluster/secured", "-n", MAIN, asked)
        new_shop = changed(secured, "shop", "sasl.password", shop)
        new_till = changed(secured, "till", "ssl.certificate.pem", till)
        one.use_password(new_shop["sasl.username"], new_shop["sasl.password"])
        # The Secret comes first: until the brokers have it the new password is refused.
        secured.wait_for(
            "records with what is in the Secrets now",
            lambda: [produce(given, b"rotated") for given in (new_shop, new_till)],
            until=lambda errors: errors == [None, None],
            namespaces=(MAIN,),
        )
        refused = produce(shop, b"a replaced password")
        assert refused is not None
        assert refused.code() == KafkaError._AUTHENTICATION
        trusted = changed(secured, "shop", "ssl.ca.pem", shop)["ssl.ca.pem"]
        assert trusted.count("BEGIN CERTIFICATE") == 2
        # The kubelet brings the Secret into the running pod within about a minute.
        secured.wait_for(
            "another certificate of the broker",
            lambda: shown_certificate(shop),
            until=lambda found: found != shown,
            namespaces=(MAIN,),
            within=RUN,
        )
        more(secured, one, other)
        assert produce({**new_shop, "ssl.ca.pem": shop["ssl.ca.pem"]}, b"renewed") is None
    assert one.failures + other.failures == []
    acknowledged = {**before, **one.acknowledged, **other.acknowledged}
    found = read(secured)
    assert {place: found.get(place) for place in acknowledged} == acknowledged
    assert one.somewhere + other.somewhere == []
    assert processes(secured) == running
    values |= secret_values(secured, MAIN)
    assert leaks(secured, values, (MAIN,)) == []


def test_java_clients_do_what_their_acls_allow_through_their_secrets(secured: Cluster) -> None:
    """Given `client.properties` and nothing else; a replaced password is refused."""
    shop, till, billing = (java.properties(secured, name) for name in ("shop", "till", "billing"))
    with java.client_pod(secured), java.JavaClient(secured) as client:
        for writer in (shop, till):
            _, _, _, value = client.produce(writer, "invoices", "from Java")
            assert value == "from Java"
        values = {value.decode() for _, value in read(secured).values()}
        assert client.consume(billing, "invoices", "billing") in values
        # Java's producers are idempotent, which takes a right to write some topic.
        denied = client.produce(billing, "invoices", "denied")
        assert denied == "ClusterAuthorizationException"
        denied = client.consume(shop, "invoices", "billing")
        assert denied == "GroupAuthorizationException"
        note = ("annotate", "kafkauser/shop", "-n", MAIN, "barnabas.io/rotate=java", "--overwrite")
        secured.kubectl(*note)
        new = secured.wait_for(
            "another password of shop",
            lambda: java.properties(secured, "shop"),
            until=lambda found: found != shop,
            namespaces=(MAIN,),
        )
        # The Secret comes first: until the brokers have it the new password is refused.
        secured.wait_for(
            "a record with what is in the Secret now",
            lambda: client.produce(new, "invoices", "rotated"),
            until=lambda outcome: outcome[-1] == "rotated",
            namespaces=(MAIN,),
        )
        refused = client.produce(shop, "invoices", "a replaced password")
        assert refused == "SaslAuthenticationException"


def more(cluster: Cluster, *loads: Load | java.JavaLoad) -> None:
    """Until each producer was acknowledged another hundred records."""
    wanted = [len(load.acknowledged) + 100 for load in loads]
    cluster.wait_for(
        "another hundred acknowledged records of each producer",
        lambda: [len(load.acknowledged) for load in loads],
        until=lambda counts: all(has >= needs for has, needs in zip(counts, wanted, strict=True)),
        namespaces=(MAIN,),
    )


def changed(cluster: Cluster, user: str, name: str, before: kafka.Client) -> kafka.Client:
    """The settings in a user's Secret, once one of them is another than before."""
    return cluster.wait_for(
        f"another {name} of {user}",
        lambda: client(cluster, user),
        until=lambda found: found[name] != before[name],
        namespaces=(MAIN,),
    )


def test_a_user_of_another_namespace_needs_the_permission_of_the_cluster(secured: Cluster) -> None:
    """Refused until the cluster names the namespace; then its Secret is there, and lets it in."""
    secured.kubectl("apply", "-n", BRIEF, "-f", VISITOR)

    def verdict() -> str:
        found = secured.get("kafkauser", "visitor", namespace=BRIEF) or {}
        conditions = found.get("status", {}).get("conditions", ())
        return next((each["reason"] for each in conditions if each["type"] == "Ready"), "")

    spaces = (MAIN, BRIEF)
    refused = secured.wait_for("the condition Ready", verdict, namespaces=spaces)
    assert refused == "NamespaceNotAllowed"
    assert secured.get("secret", "visitor", namespace=BRIEF) is None
    running = processes(secured)
    allow(secured, [BRIEF])
    secured.wait_ready("kafkauser/visitor", namespace=BRIEF)
    visitor = client(secured, "visitor", namespace=BRIEF)
    assert produce(visitor, b"from another namespace") is None
    assert processes(secured) == running
    assert leaks(secured, secret_values(secured, BRIEF), spaces) == []


def allow(cluster: Cluster, namespaces: list[str]) -> None:
    """Have the cluster name the namespaces whose users it allows."""
    patch = json.dumps({"spec": {"allowedNamespaces": namespaces}})
    cluster.kubectl("patch", "kafkacluster/secured", "-n", MAIN, "--type=merge", "-p", patch)


def test_a_deleted_user_cannot_log_in(secured: Cluster) -> None:
    """Its Secret goes too, and no finalizer waits for that."""
    given = client(secured, "billing")
    found = secured.get("kafkauser", "billing", namespace=MAIN)
    assert found is not None
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
        lambda: secured.get("secret", "billing", namespace=MAIN),
        until=lambda found: found is None,
        namespaces=(MAIN,),
    )
    assert produce(client(secured, "shop"), b"a sixth") is None
