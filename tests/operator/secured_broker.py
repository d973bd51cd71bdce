"""A secured broker that runs by what the operator renders, and users as the operator creates them.

The Secrets of the users have the addresses of the broker that runs here.
"""

from __future__ import annotations

from base64 import b64decode
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from barnabas_broker.testing import Broker
from barnabas_kafka.settings.properties import parse_properties
from barnabas_operator.api.reading import read_cluster, read_user
from barnabas_operator.brokers import AdminBrokers
from barnabas_operator.kube import USERS
from barnabas_operator.plan.certificates import format_time
from barnabas_operator.plan.topics import CreateTopic
from barnabas_operator.plan.user_ledger import PresentUsers
from barnabas_operator.reconcile.context import Context
from barnabas_operator.reconcile.kafka_users import reconcile_users_of
from barnabas_operator.reconcile.orphans import DeletionGuard
from barnabas_operator.reconcile.reconciler import Key, reconcile
from barnabas_operator.reconcile.security import credentials_of
from barnabas_operator.resources.brokers import broker_config
from barnabas_operator.resources.certificates import BROKER_PATH
from tests.operator import examples
from tests.operator.kubelet import mount
from tests.operator.memory_kube import MemoryKube
from tests.operator.ports import MemoryBrokers, context_on
from tests.waiting import wait_for

KEY: Final = Key("default", "quickstart")
SCRAM: Final = {
    "name": "secure",
    "port": 9093,
    "tls": {},
    "authentication": {"type": "scram-sha-512"},
}
CERTS: Final = {"name": "certs", "port": 9094, "tls": {}, "authentication": {"type": "tls"}}


class SecuredBroker:
    """`with SecuredBroker(directory) as secured:` the broker reads its certificates there."""

    def __init__(self, directory: Path) -> None:
        self.kube = MemoryKube(examples.cluster(listeners=[SCRAM, CERTS], insecure=False))
        self._now = datetime.now(tz=UTC).replace(microsecond=0)
        self._reconcile(MemoryBrokers())
        mount(self.kube.find("Secret", "quickstart-broker-tls")["data"], directory)
        self._stack = ExitStack()
        self.broker = Broker(self._settings(directory))
        self.brokers: AdminBrokers

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            stack.enter_context(self.broker)
            cluster = read_cluster(self.kube.find("KafkaCluster", KEY.cluster))
            tls = credentials_of(cluster, context_on(self.kube)).tls
            self.brokers = stack.enter_context(AdminBrokers(self._address("replication"), tls))
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()

    def create_topic(self, name: str, partitions: int = 1) -> None:
        """Create a topic."""
        topic = CreateTopic(partitions=partitions, replicas=1, config={})
        assert not self.brokers.create_topics({name: topic})

    def apply(self, *users: examples.Document) -> None:
        """Create or change KafkaUsers."""
        for user in users:
            self.kube.put(user)
        self.run()

    def remove(self, user: str) -> None:
        """Delete a KafkaUser."""
        self.kube.remove("KafkaUser", user)
        self.run()

    def run(self) -> None:
        """Passes over the users until one has nothing to do."""
        wait_for("a pass without changes", self._run_pass)

    def secret(self, user: str) -> dict[str, str]:
        """What the Secret of a user has."""
        data: dict[str, str] = self.kube.find("Secret", user)["data"]
        return {key: b64decode(text).decode("latin-1") for key, text in data.items()}

    def mount(self, user: str, directory: Path) -> None:
        """Have the Secret of a user as the files that a pod sees."""
        mount(self.kube.find("Secret", user)["data"], directory)

    def _context(self, brokers: Any) -> Context:
        return replace(context_on(self.kube, brokers), now=format_time(self._now))

    def _reconcile(self, brokers: MemoryBrokers) -> None:
        reconcile(KEY, self._context(brokers))

    def _settings(self, directory: Path) -> dict[str, str]:
        """Those that the operator renders, but for where things are."""
        cluster = read_cluster(self.kube.find("KafkaCluster", KEY.cluster))
        text = broker_config(cluster).replace(BROKER_PATH, str(directory))
        rendered = parse_properties(text.encode(), origin="server.properties")
        names = [each.kafka_name for each in cluster.body.spec.all_listeners]
        kept = {
            name: value
            for name, value in rendered.items()
            if name != "log.dirs" and not name.startswith("zookeeper.")
        }
        return {
            **kept,
            "listeners": ",".join(f"{name}://localhost:0" for name in names),
            "barnabas.admin.listener": "localhost:0",
        }

    def _address(self, listener: str) -> str:
        """By the name in the broker's certificate."""
        return self.broker.listeners[listener.upper()].replace("127.0.0.1", "localhost")

    def _run_pass(self) -> bool:
        document = self.kube.find("KafkaCluster", KEY.cluster)
        listeners = [
            {"name": name, "type": "internal", "bootstrapServers": self._address(name)}
            for name in ("secure", "certs")
        ]
        status = {
            **document["status"], "initialized": True, "answering": True, "listeners": listeners,
        }  # fmt: skip
        users = self.kube.list(USERS, KEY.namespace)
        guard = DeletionGuard(present=PresentUsers.of(users, KEY.cluster))
        context = self._context(self.brokers)
        cluster = read_cluster({**document, "status": status})
        return reconcile_users_of(
            cluster, [read_user(each) for each in users], guard, context
        ).settled
