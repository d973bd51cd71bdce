"""Three brokers that know each other by tokens of an identity provider, whose keys are replaced."""

from __future__ import annotations

import json
import ssl
import threading
import time
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AclOperation, ResourceType

from barnabas_broker.security.sasl_settings import OAUTHBEARER_MODULE
from barnabas_kafka.client import (
    Admin,
    AuthenticationError,
    ClientConfig,
    OAuthBearer,
    describe_cluster,
)
from tests.broker.server.network.http_server import Answering, HttpServer
from tests.cluster.running import Cluster
from tests.cluster.secured import LISTENER, Stores, allow, protected
from tests.oracle.certificates import Certificate
from tests.oracle.tokens import Signer, key_set
from tests.waiting import SETTLE, seconds, wait_for

TOKEN_LIFE_S: Final = 20
"""Brokers fetch another one after 16 s, so that each does while the test runs."""
REFRESH_MS: Final = 1000
"""How often brokers fetch the provider's keys."""
ADMIN, CLIENTS = range(2)
"""The listeners: one of loopback for who sets the test up, and the one that it is about."""


class Provider:
    """An identity provider: publishes keys, signs tokens, and remembers for whom and with what."""

    def __init__(self, signer: Signer) -> None:
        self.published = [signer]
        self.signer = signer
        self.issued: set[tuple[str, str]] = set()
        provider = self

        class Handler(Answering):
            def get(self) -> None:
                self.answer(200, key_set(*provider.published))

            def post(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                kind, _, credentials = self.headers["Authorization"].partition(" ")
                client, _, secret = b64decode(credentials).decode().partition(":")
                if (kind, secret) != ("Basic", f"{client}-secret"):
                    self.answer(401, b"{}")
                    return
                self.answer(200, json.dumps({"access_token": provider.token(client)}).encode())

        self._server = HttpServer(Handler, "/")
        self.url = self._server.url

    def token(self, client: str) -> str:
        """A token of a client; that of a broker is known as the user `broker`."""
        signer = self.signer
        self.issued.add((client, str(signer.key_id)))
        user = client.partition("-")[0]
        return signer.token(user, exp=int(time.time()) + TOKEN_LIFE_S)

    def close(self) -> None:
        """Stop."""
        self._server.close()


class Bearing(Cluster):
    """Brokers 0 to 2, of which each has credentials of its own at the provider."""

    def __init__(self, directory: Path, provider: Provider) -> None:
        self.provider = provider
        self.stores = Stores(directory / "stores")
        self.stores.write(Certificate("authority"))
        prefix = f"listener.name.{LISTENER.lower()}.oauthbearer"
        settings = {
            **protected(self.stores, "OAUTHBEARER"),
            f"{prefix}.sasl.oauthbearer.token.endpoint.url": provider.url,
            "sasl.oauthbearer.jwks.endpoint.url": provider.url,
            "sasl.oauthbearer.jwks.endpoint.refresh.ms": str(REFRESH_MS),
            "super.users": "User:broker;User:ANONYMOUS",
        }
        super().__init__(directory, settings=settings, listeners=("PLAINTEXT", LISTENER))
        for number, broker in self.brokers.items():
            login = f'clientId="broker-{number}" clientSecret="broker-{number}-secret"'
            module = f"{OAUTHBEARER_MODULE} required {login};"
            broker.settings[f"{prefix}.sasl.jaas.config"] = module

    @property
    def alice(self) -> dict[str, Any]:
        """The properties of a client that logs in with tokens."""
        return {
            "bootstrap.servers": ",".join(self.address(it, CLIENTS) for it in self.brokers),
            "security.protocol": LISTENER,
            "sasl.mechanism": "OAUTHBEARER",
            "ssl.ca.location": str(self.stores.trust),
            "oauth_cb": lambda _: (
                self.provider.token("alice"), time.time() + TOKEN_LIFE_S, "alice", {}
            ),
            "log_level": 0,
        }  # fmt: skip

    def publish(self, *signers: Signer) -> None:
        """Have the provider publish these keys alone, and wait until all brokers have them."""
        self.provider.published = list(signers)
        fetched = f"Fetched {len(signers)} keys of {self.provider.url}"
        before = {it: it.log_file.stat().st_size for it in self.brokers.values()}
        # A fetch that was under way when they were published may have the ones before.
        wait_for(
            f"{len(signers)} published keys on all brokers",
            lambda: [
                it.log_file.read_bytes()[before[it] :].decode().count(fetched) for it in before
            ],
            until=lambda counts: min(counts) >= 2,
        )

    def sign_with(self, signer: Signer) -> None:
        """Have the provider sign with another key, and wait until no token is of the one before."""
        self.provider.signer = signer
        clients = ("alice", *(f"broker-{number}" for number in self.brokers))
        wait_for(
            f"tokens of key {signer.key_id} for {', '.join(clients)}",
            lambda: [(client, signer.key_id) in self.provider.issued for client in clients],
            until=all,
        )

    def refused(self) -> list[str]:
        """What brokers have said of clients, or of brokers, that they have not authenticated."""
        return [
            line
            for broker in self.brokers.values()
            for line in broker.log_file.read_text().splitlines()
            if "Failed authentication" in line or "ession has expired" in line
        ]

    def is_accepted(self, token: str) -> bool:
        """Whether one who connects with this token gets in."""
        tls = ssl.create_default_context(cafile=str(self.stores.trust))
        sasl = OAuthBearer(lambda: token)
        config = ClientConfig(bootstrap_servers=self.address(0, CLIENTS), tls=tls, sasl=sasl)
        try:
            with Admin(config) as admin:
                admin.call(describe_cluster())
        except AuthenticationError:
            return False
        return True


class Load:
    """A producer of alice: each record is acknowledged by all in sync, and no error is told."""

    def __init__(self, cluster: Bearing) -> None:
        self.failures: list[KafkaError] = []
        self.delivered: list[KafkaError | None] = []
        self.sent = 0
        self._cluster = cluster
        self._over = threading.Event()
        settings = {"acks": "all", "enable.idempotence": True, "error_cb": self.failures.append}
        self._producer = Producer({**cluster.alice, **settings})
        self._thread = threading.Thread(target=self._send)

    def _send(self) -> None:
        while not self._over.is_set():
            self._producer.produce("t", str(self.sent), partition=0, on_delivery=self._reported)
            self.sent += 1
            self._producer.poll(0.01)

    def _reported(self, error: KafkaError | None, _: Message) -> None:
        self.delivered.append(error)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Sends all the time."""
        self._thread.start()
        try:
            wait_for("the first record", lambda: self.delivered)
            yield
            count = len(self.delivered)
            wait_for("a record behind the change", lambda: len(self.delivered) > count)
        finally:
            self._over.set()
            self._thread.join()
            left = self._producer.flush(seconds(SETTLE))
        assert left == 0
        assert set(self.delivered) == {None}
        assert not self.failures

    def all_read(self) -> bool:
        """Whether every record is there, in order and once."""
        settings = {"group.id": "reader", "enable.auto.commit": False}
        consumer = Consumer({**self._cluster.alice, **settings})
        found: list[int] = []

        def consume() -> int:
            consumed = consumer.consume(1000, 0.1)
            found.extend(int(each.value() or b"") for each in consumed if each.error() is None)
            return len(found)

        try:
            consumer.assign([TopicPartition("t", 0, 0)])
            wait_for(f"{self.sent} records", consume, until=lambda count: count >= self.sent)
        finally:
            consumer.close()
        return found == list(range(self.sent))


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Bearing]:
    """With a topic to which alice may write, and which she may read."""
    provider = Provider(Signer("first", "ES256"))
    try:
        with Bearing(tmp_path, provider) as started:
            allow(started, ResourceType.TOPIC, "t", AclOperation.ALL)
            allow(started, ResourceType.GROUP, "reader", AclOperation.READ)
            started.create("t")
            # Each broker leads a partition that the others follow: all have connections in use.
            started.create("led-by-each", len(started.brokers))
            yield started
    finally:
        provider.close()


def test_the_key_that_signs_tokens_is_replaced_under_load(cluster: Bearing) -> None:
    """No request fails, between brokers neither; then the key before is worth nothing."""
    first, second = cluster.provider.signer, Signer("second", "ES256")
    load = Load(cluster)
    # Brokers that start have no keys for a moment.
    before = cluster.refused()
    with load.running():
        cluster.publish(first, second)
        cluster.sign_with(second)
        cluster.publish(second)
    assert cluster.refused() == before
    assert cluster.is_accepted(second.token("alice"))
    assert not cluster.is_accepted(first.token("alice"))

    killed = cluster.leader("t")
    cluster.brokers[killed].kill()
    cluster.start(killed)
    cluster.until_in_sync("t", 0, 1, 2)
    assert load.all_read()
    cluster.until_same_logs("t")
