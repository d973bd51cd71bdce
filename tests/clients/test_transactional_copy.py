"""Thousands of records copied in transactions while the broker is killed at every step of them."""

from __future__ import annotations

import threading
from collections import Counter
from pathlib import Path

from confluent_kafka import Consumer, KafkaException, Message, Producer

from tests.clients.brokers import Broker, broker_under_test
from tests.clients.transactional import PATIENCE_S, SETTINGS, new_topic, seen

RECORDS = 5000
AT_ONCE = 400
#: After which transaction the broker is killed in the next one, and where in it.
KILLS = {2: "writing", 4: "written", 6: "offsets sent", 8: "committing"}


class Copier:
    """Reads committed records of one topic, and writes them and its offsets as one."""

    def __init__(self, broker: Broker, source: str, target: str) -> None:
        self.broker, self.source, self.target = broker, source, target
        self.copied = 0
        self._producer = Producer(
            {
                "bootstrap.servers": broker.bootstrap,
                "transactional.id": "copier",
                "linger.ms": 0,
                # Otherwise librdkafka 2.16 forgets the only broker, and then waits for it
                # in vain to send offsets (its issue 5511).
                "metadata.recovery.strategy": "none",
            }
        )
        self._producer.init_transactions(PATIENCE_S)

    def run(self, kills: dict[int, str]) -> None:
        """Copy all, killing the broker where `kills` says."""
        number = 0
        while self.copied < RECORDS:
            # What an aborted transaction read is read again by a consumer that starts anew.
            consumer = self._consumer()
            try:
                while self.copied < RECORDS:
                    number += 1
                    self.copied += self._round(consumer, kills.get(number, ""))
            except KafkaException as error:
                if not error.args[0].txn_requires_abort():
                    raise
                self._producer.abort_transaction(PATIENCE_S)
            finally:
                consumer.close()

    def _round(self, consumer: Consumer, kill_when: str) -> int:
        taken = [it for it in consumer.consume(AT_ONCE, timeout=1.0) if it.error() is None]
        if not taken:
            return 0
        self._producer.begin_transaction()
        for position, message in enumerate(taken):
            self._copy(message)
            if kill_when == "writing" and position == len(taken) // 2:
                self._bounce()
        assert self._producer.flush(PATIENCE_S) == 0
        if kill_when == "written":
            self._bounce()
        at = consumer.position(consumer.assignment())
        self._producer.send_offsets_to_transaction(
            at, consumer.consumer_group_metadata(), PATIENCE_S
        )
        if kill_when == "offsets sent":
            self._bounce()
        bouncing = threading.Thread(target=self._bounce)
        if kill_when == "committing":
            bouncing.start()
        self._producer.commit_transaction(PATIENCE_S)
        if kill_when == "committing":
            bouncing.join()
        return len(taken)

    def _copy(self, message: Message) -> None:
        self._producer.produce(self.target, message.value(), partition=message.partition() or 0)
        self._producer.poll(0)

    def _bounce(self) -> None:
        self.broker.kill()
        self.broker.start()

    def _consumer(self) -> Consumer:
        consumer = Consumer(
            {
                "bootstrap.servers": self.broker.bootstrap,
                "group.id": "copiers",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
                "metadata.recovery.strategy": "none",
            }
        )
        consumer.subscribe([self.source])
        return consumer


def test_every_record_arrives_once_whatever_the_broker_does(tmp_path: Path) -> None:
    """Killed while records are written, when they are, with offsets, and in the commit."""
    with broker_under_test(tmp_path, SETTINGS) as broker:
        source, target = new_topic(broker, "source"), new_topic(broker, "target")
        filling = Producer({"bootstrap.servers": broker.bootstrap, "enable.idempotence": True})
        values = [f"{number:05}" for number in range(RECORDS)]
        for number, value in enumerate(values):
            filling.produce(source, value, partition=number % 3)
        assert filling.flush(PATIENCE_S) == 0
        Copier(broker, source, target).run(KILLS)
        found = Counter(seen(broker, target))
        assert found == Counter(values), found - Counter(values)
