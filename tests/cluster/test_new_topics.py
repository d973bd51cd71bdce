"""What brokers answer about a topic in the moment in which it comes into being."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event

import pytest
from confluent_kafka.admin import NewTopic

from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.messages.metadata import MetadataResponse
from tests.clients.wire import Wire, metadata
from tests.cluster.running import Cluster


class Watch:
    """Asks one broker for a topic again and again: error and number of partitions in `seen`."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.seen: list[tuple[ErrorCode, int]] = []
        self.bootstrap, self._topic = bootstrap, topic

    def last(self) -> tuple[ErrorCode, int]:
        """The latest answer; IndexError before the first."""
        return self.seen[-1]

    def ask_until(self, done: Event) -> None:
        """Ask for as long as it is not."""
        with Wire(self.bootstrap) as wire:
            while not done.is_set():
                (found,) = wire.ask(metadata(self._topic), MetadataResponse, 9).topics
                self.seen.append((ErrorCode(found.error_code), len(found.partitions)))


@contextmanager
def watched(cluster: Cluster, topic: str) -> Iterator[list[Watch]]:
    """What all brokers answer about a topic, while the block runs."""
    watches = [Watch(broker.bootstrap, topic) for broker in cluster.brokers.values()]
    done = Event()
    with ThreadPoolExecutor(len(watches)) as threads:
        asked = [threads.submit(watch.ask_until, done) for watch in watches]
        try:
            yield watches
        finally:
            done.set()
    for each in asked:
        each.result()


@pytest.mark.parametrize(("topics", "partitions"), [(20, 12), (2, 400)])
def test_a_topic_appears_whole_or_not_at_all(
    cluster: Cluster, topic: str, topics: int, partitions: int
) -> None:
    """Clients fail records for partitions that an answer without error does not list.

    Every broker has some of the partitions, of which it hears first.
    """
    for number in range(topics):
        seen = answers_while_created(cluster, NewTopic(f"{topic}-{number}", partitions, 1))
        assert seen <= {(ErrorCode.NONE, partitions), (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0)}


def answers_while_created(cluster: Cluster, new: NewTopic) -> set[tuple[ErrorCode, int]]:
    """What any broker answers about a topic until all have all of it."""
    with watched(cluster, new.topic) as watches:
        cluster.change(lambda admin: admin.create_topics([new]))
        for watch in watches:
            cluster.wait_for(
                f"{new.topic} in the metadata of {watch.bootstrap}",
                watch.last,
                until=lambda found: found == (ErrorCode.NONE, new.num_partitions),
            )
    return {each for watch in watches for each in watch.seen}
