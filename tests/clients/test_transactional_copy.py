"""Thousands of records copied in transactions while the broker is killed at every step of them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka import Producer

from tests.clients.brokers import Broker, broker_under_test
from tests.clients.copier import MOMENTS, RECORDS, copying
from tests.clients.transactional import SETTINGS, new_topic, seen
from tests.waiting import ANSWER, seconds

#: How many copiers may have locked themselves up, see `client_process`; the next one goes on.
MAY_HANG: Final = 2


def _all_copied(broker: Broker, source: str, target: str, moments: list[str]) -> bool:
    """Whether a copier came to its end, its broker killed at those moments; others are left."""
    with copying(broker.bootstrap, source, target, moments) as copier:
        while moment := copier.moment():
            assert moment == moments.pop(0)
            broker.kill()
            broker.start()
            copier.go_on()
        return moment is not None


@pytest.mark.timeout(900)
def test_every_record_arrives_once_whatever_the_broker_does(tmp_path: Path) -> None:
    """Killed while records are written, when they are, with offsets, and in the commit."""
    with broker_under_test(tmp_path, SETTINGS) as broker:
        source, target = new_topic(broker, "source"), new_topic(broker, "target")
        filling = Producer({"bootstrap.servers": broker.bootstrap, "enable.idempotence": True})
        values = [f"{number:05}" for number in range(RECORDS)]
        for number, value in enumerate(values):
            filling.produce(source, value, partition=number % 3)
        assert filling.flush(seconds(ANSWER)) == 0
        moments, hung = list(MOMENTS), 0
        while not _all_copied(broker, source, target, moments):
            hung += 1
            assert hung <= MAY_HANG, broker.tail()
        assert moments == []
        found = Counter(seen(broker, target))
        assert found == Counter(values), found - Counter(values)
