"""Offsets kept in ZooKeeper, where consumers of old kept them and their tools still look.

They lie in `/consumers/<group>/offsets/<topic>/<partition>`, as digits. Each write goes through a
quorum: save every few seconds or thousand records, not each of them. A save names the version that
it replaces, so a worker that lost its partition and does not know it cannot set an offset back.
"""

import os

from confluent_kafka import Consumer, TopicPartition
from kazoo.client import KazooClient
from kazoo.exceptions import BadVersionError
from kitchen import BROKER, filled_topic, next_of, number_in

topic = filled_topic(10)


class Place:
    """Where to go on in the one partition, for one worker."""

    def __init__(self, zookeeper: KazooClient, group: str) -> None:
        self.zookeeper = zookeeper
        self.path = f"/consumers/{group}/offsets/{topic}/0"
        zookeeper.ensure_path(self.path)
        data, state = zookeeper.get(self.path)
        self.offset = int(data or b"0")
        self._version = state.version

    def save(self, offset: int) -> None:
        """Keep it; raises BadVersionError where another has saved since."""
        state = self.zookeeper.set(self.path, str(offset).encode(), version=self._version)
        self.offset, self._version = offset, state.version


def run(place: Place, records: int, *, save_last: bool = True) -> list[int]:
    """Work on so many records, saving after each; a crash comes before the last save."""
    consumer = Consumer(BROKER | {"group.id": "unused", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, 0, place.offset)])
    done = []
    for number in range(records):
        message = next_of(consumer)
        done.append(number_in(message))
        if save_last or number < records - 1:
            place.save((message.offset() or 0) + 1)
    consumer.close()
    return done


zookeeper = KazooClient(os.environ.get("ZOOKEEPER", "localhost:2181"))
zookeeper.start(30)
stale = Place(zookeeper, topic)
print(f"first: {run(Place(zookeeper, topic), 5, save_last=False)}")
print(f"after a crash: {run(Place(zookeeper, topic), 6)}")
print(f"in ZooKeeper: {zookeeper.get(stale.path)[0].decode()}")
try:
    stale.save(1)
except BadVersionError:
    print("one who had not noticed: refused")
zookeeper.stop()
zookeeper.close()
