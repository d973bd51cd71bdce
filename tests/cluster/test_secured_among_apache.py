"""An Apache Kafka broker among ours where all connections between brokers are protected."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import NewTopic
from kazoo.client import KazooClient

from tests.cluster.running import move_controller, on_record
from tests.cluster.secured import LISTENER, Stores, broker_settings, client, create_users
from tests.cluster.test_among_apache import APACHE, Mixed, running
from tests.oracle.apache import DEFAULT_VERSION, free_port
from tests.oracle.certificates import Certificate
from tests.waiting import SETTLE, seconds

PROBE = "PROBE"
"""The listener on which the test looks whether Apache's broker serves; ours have it as well, for
Apache's complains of listeners that others do not have."""


class SecuredMixed(Mixed):
    """Brokers 0 and 1 are ours, broker 2 is Apache's; all connect by SCRAM over TLS."""

    def __init__(self, directory: Path) -> None:
        self.stores = Stores(directory / "stores")
        self.stores.write(Certificate("authority"))
        settings = {
            **broker_settings(self.stores),
            "listener.security.protocol.map": f"{LISTENER}:{LISTENER},{PROBE}:PLAINTEXT",
        }
        admin = client("admin", self.stores)
        both = (LISTENER, PROBE)
        super().__init__(directory, DEFAULT_VERSION, settings, listeners=both, client=admin)
        self._address = f"127.0.0.1:{free_port()}"
        probe = f"{PROBE}://127.0.0.1:{self.apache.port}"
        self.apache.settings["listeners"] = f"{LISTENER}://{self._address},{probe}"

    @property
    def everybody(self) -> str:
        """The addresses of all three."""
        return f"{self.bootstrap},{self._address}"

    def prepare(self) -> None:
        """Create the users of brokers and clients."""
        create_users(self.zookeeper.connect)

    def transact(self) -> None:
        """A transaction over partitions that each kind of broker leads."""
        common = {"bootstrap.servers": self.everybody, "log_level": 0, **self.client}
        producer = Producer({**common, "transactional.id": "tx"})
        producer.init_transactions(seconds(SETTLE))
        producer.begin_transaction()
        for partition in range(3):
            producer.produce("transacted", b"0", partition=partition)
        producer.commit_transaction(seconds(SETTLE))


@pytest.fixture
def mixed(tmp_path: Path) -> Iterator[SecuredMixed]:
    """All three."""
    cluster = SecuredMixed(tmp_path)
    with running(cluster):
        yield cluster


@pytest.fixture
def znodes(mixed: SecuredMixed) -> Iterator[KazooClient]:
    """What is on record."""
    with on_record(mixed) as found:
        yield found


def test_a_secured_apache_broker_among_ours(mixed: SecuredMixed, znodes: KazooClient) -> None:
    """Each is the controller once, leads and follows; nothing acknowledged is lost or doubled."""
    everybody = (*mixed.brokers, APACHE)
    replicas = [[number, *(it for it in everybody if it != number)] for number in everybody]
    new = NewTopic("transacted", 3, replica_assignment=replicas)
    mixed.change(lambda admin: admin.create_topics([new]))
    mixed.until_all_in_sync("transacted")
    for controller in (APACHE, *mixed.brokers):
        move_controller(mixed, znodes, controller)
        mixed.until_controlled_by(controller)
        topic = f"of-{controller}"
        created = NewTopic(topic, 3, replica_assignment=replicas)
        mixed.change(lambda admin, created=created: admin.create_topics([created]))  # type: ignore[misc]
        mixed.until_all_in_sync(topic)
        other = 1 if controller == 0 else 0
        mixed.brokers[other].stop()
        assert "Controlled shutdown succeeded" in mixed.brokers[other].tail(60)
        mixed.send()
        mixed.start(other)
        mixed.until_all_in_sync()
        mixed.until_all_in_sync(topic)
        mixed.transact()
    mixed.apache.stop()
    mixed.send()
    mixed.apache.start()
    mixed.until_all_in_sync()
    assert mixed.all_read()
