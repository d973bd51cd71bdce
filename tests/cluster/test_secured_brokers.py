"""Three brokers that know each other by SCRAM over TLS, with ACLs, and nothing in plain text."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AclOperation, ResourceType

from tests.cluster.load import meet
from tests.cluster.running import Cluster
from tests.cluster.secured import LISTENER, Stores, allow, broker_settings, client, create_users
from tests.oracle.certificates import Certificate
from tests.waiting import ANSWER, SETTLE, seconds, wait_for

RECORDS = 200


class Secured(Cluster):
    """Brokers 0 to 2; records that alice sends to `t` are counted."""

    def __init__(self, directory: Path) -> None:
        self.stores = Stores(directory / "stores")
        self.authority = Certificate("first authority")
        self.stores.write(self.authority)
        settings = {**broker_settings(self.stores), "transaction.state.log.num.partitions": "1"}
        admin = client("admin", self.stores)
        super().__init__(directory, settings=settings, listeners=(LISTENER,), client=admin)
        self._sent = 0

    def prepare(self) -> None:
        """Create the users; brokers could not connect to each other without theirs."""
        create_users(self.zookeeper.connect)

    def producer(self, **more: str) -> Producer:
        """A producer of alice, whose records are acknowledged by all in sync."""
        common = {"bootstrap.servers": self.bootstrap, "acks": "all", "log_level": 0}
        return Producer({**common, "enable.idempotence": True, **self._alice, **more})

    @property
    def _alice(self) -> dict[str, str]:
        return client("alice", self.stores)

    def send(self) -> None:
        """Records on a new connection."""
        producer = self.producer()
        for number in range(self._sent, self._sent + RECORDS):
            producer.produce("t", str(number), partition=0)
            if number == self._sent:
                meet(producer)
        assert producer.flush(seconds(SETTLE)) == 0
        self._sent += RECORDS

    def all_read(self) -> bool:
        """Whether every record that was acknowledged is there, in order and once."""
        common = {"bootstrap.servers": self.bootstrap, "group.id": "reader", "log_level": 0}
        consumer = Consumer({**common, "enable.auto.commit": False, **self._alice})
        found: list[int] = []

        def consume() -> int:
            consumed = consumer.consume(RECORDS, 0.1)
            found.extend(int(each.value() or b"") for each in consumed if each.error() is None)
            return len(found)

        try:
            consumer.assign([TopicPartition("t", 0, 0)])
            wait_for(f"{self._sent} records", consume, until=lambda count: count >= self._sent)
        finally:
            consumer.close()
        return found == list(range(self._sent))

    def renew(self, *authorities: Certificate) -> None:
        """Replace certificates and trust while all brokers run, and wait until they use them."""
        said = "Reloaded the key files of listener"
        before = {it: it.log_file.read_text().count(said) for it in self.brokers.values()}
        self.stores.write(*authorities)
        wait_for(
            "new certificates on all brokers",
            lambda: [it.log_file.read_text().count(said) - before[it] for it in before],
            until=all,
        )


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Secured]:
    """With a topic to which alice may write, and which she may read."""
    with Secured(tmp_path) as started:
        allow(started, ResourceType.TOPIC, "t", AclOperation.ALL)
        allow(started, ResourceType.GROUP, "reader", AclOperation.READ)
        allow(started, ResourceType.TRANSACTIONAL_ID, "tx", AclOperation.ALL)
        started.create("t")
        yield started


def test_secured_brokers(cluster: Secured) -> None:
    """They replicate, elect, hand over and end transactions, across renewals of everything."""
    cluster.send()
    first = cluster.known_controller()
    cluster.brokers[first].stop()
    assert "Controlled shutdown succeeded" in cluster.brokers[first].tail(60)
    cluster.send()
    cluster.start(first)
    cluster.until_in_sync("t", 0, 1, 2)

    second = Certificate("second authority")
    for authorities in ((cluster.authority, second), (second, cluster.authority), (second,)):
        cluster.renew(*authorities)
        cluster.send()
    # Whoever connects now is trusted by the new authority alone.
    killed = cluster.leader("t")
    cluster.brokers[killed].kill()
    cluster.send()
    cluster.start(killed)
    cluster.until_in_sync("t", 0, 1, 2)
    assert cluster.all_read()
    cluster.until_same_logs("t")


def test_transactions_among_secured_brokers(cluster: Secured) -> None:
    """Markers reach the leaders, and only who may write begins one."""
    producer = cluster.producer(**{"transactional.id": "tx"})
    producer.init_transactions(seconds(SETTLE))
    for commit in (True, False):
        producer.begin_transaction()
        producer.produce("t", b"0", partition=0)
        if commit:
            producer.commit_transaction(seconds(SETTLE))
        else:
            producer.abort_transaction(seconds(SETTLE))
    other = cluster.producer(**{"transactional.id": "other"})
    with pytest.raises(KafkaException) as caught:
        other.init_transactions(seconds(ANSWER))
    refused = KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert caught.value.args[0].code() == refused
