"""Stopping, with and without the data."""

from __future__ import annotations

from confluent_kafka import Producer

from tests.operator.local.laptop import Laptop, cluster, topic
from tests.waiting import ANSWER, seconds


def test_the_data_stay(laptop: Laptop) -> None:
    """The broker closes its logs, and the next one goes on with them on the same port."""
    before = laptop.up(cluster(), topic())
    producer = Producer({"bootstrap.servers": before.status.listeners[0].bootstrap_servers})
    producer.produce("packages", b"kept", partition=0)
    assert producer.flush(seconds(ANSWER)) == 0
    broker = laptop.broker
    laptop.down()
    assert laptop.said == ["the broker is stopped", f"the data stay in {laptop.state.path}"]
    assert not broker.running
    assert (laptop.state.broker(0) / "data" / ".kafka_cleanshutdown").exists()
    assert laptop.look().status.conditions[0].reason == "Stopped"
    after = laptop.up()
    assert after.status.listeners == before.status.listeners
    assert after.topics["packages"].topic_id == before.topics["packages"].topic_id


def test_twice_is_as_good_as_once(laptop: Laptop) -> None:
    """What was asked for is so already."""
    laptop.up(cluster())
    laptop.down()
    laptop.down()
    assert laptop.said[0] == "nothing was running"


def test_data_are_deleted_when_asked(laptop: Laptop) -> None:
    """Nothing is left, not even the directory."""
    laptop.up(cluster())
    laptop.down(delete_data=True)
    assert not laptop.state.path.exists()
