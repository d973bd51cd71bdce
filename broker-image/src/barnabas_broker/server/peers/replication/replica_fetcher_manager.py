"""All fetchers of a broker: which of them copies what.

There are up to `num.replica.fetchers` for each leader, each with a connection of its own; a
partition is always with the same one, by its name, so that its rounds do not overlap. A partition
whose requests fail shares a fetcher with others until the controller sends its leader again.
"""

import asyncio
import logging
from dataclasses import dataclass
from typing import Final
from uuid import UUID
from zlib import crc32

from barnabas_broker.cluster.failures import each_isolated
from barnabas_broker.cluster.inter_broker import newest_versions, spoken
from barnabas_broker.replica.partition import Partition
from barnabas_broker.server.peers.peers import EndpointOf, Peers, SecurityOf
from barnabas_broker.server.peers.replication.leader_end_point import LeaderEndPoint
from barnabas_broker.server.peers.replication.replica_fetcher import (
    Copied,
    FetcherContext,
    ReplicaFetcher,
)
from barnabas_broker.server.process.supervised_tasks import background
from barnabas_kafka.host_resolver import HostResolver
from barnabas_kafka.ids import TopicPartition
from barnabas_kafka.settings import broker as keys

log = logging.getLogger(__name__)

ANSWER_BYTES_MAX: Final = (1 << 31) - 1
"""All that a frame can say, as with Kafka's followers: a batch that is in the leader's
log is sent however large it is (KIP-74), and its topic may have allowed larger ones before."""

APART: Final = 1 << 20
"""Above any number of fetchers: from here on count those of partitions that are set apart."""

APART_MAX: Final = 8
"""For each leader; further partitions with failing requests share these fetchers."""

Place = tuple[int, int]
"""A leader, and which of the fetchers for it."""


@dataclass(slots=True)
class _Running:
    fetcher: ReplicaFetcher
    peers: Peers


class ReplicaFetcherManager:
    """Copies partitions from their leaders (`replica.manager.Copying`). Lives on the event loop."""

    def __init__(
        self,
        endpoint_of: EndpointOf,
        context: FetcherContext,
        *,
        resolver: HostResolver,
        security: SecurityOf,
    ) -> None:
        self._endpoint_of = endpoint_of
        self._context = context
        self._resolver = resolver
        self._security = security
        #: the fetchers at work, by the leader they copy from and their number
        self.running: dict[Place, _Running] = {}
        self._place: dict[TopicPartition, Place] = {}
        #: partitions that are set apart, with the leader epoch in which they are
        self._apart: dict[TopicPartition, int] = {}
        self._stopping: set[asyncio.Task[None]] = set()
        self._stopped = False

    def copy(self, partition: Partition, topic_id: UUID) -> None:
        """Copy from the leader that the partition's state names, in its epoch, and no other."""
        if self._stopped:
            return
        tp, state = partition.tp, partition.state
        if self._apart.get(tp, state.leader_epoch) != state.leader_epoch:
            del self._apart[tp]
        place = state.leader, self._slot(tp)
        if self._place.get(tp, place) != place:
            self._give_up(tp)
        self._place[tp] = place
        running = self.running.get(place)
        if running is None:
            running = self.running[place] = self._start(*place)
        running.fetcher.copy(partition, topic_id, state.leader_epoch)

    def disconnect_unregistered(self) -> None:
        """Disconnect from leaders that are no longer registered."""
        each_isolated(
            list(self.running.values()),
            lambda running: running.peers.disconnect_unregistered(),
            "Disconnecting",
            name=lambda running: running.fetcher.name,
        )

    def leave(self, tp: TopicPartition) -> None:
        """Copy a partition no more; nothing is done to its log from now on."""
        self._apart.pop(tp, None)
        self._give_up(tp)

    def _give_up(self, tp: TopicPartition) -> None:
        place = self._place.pop(tp, None)
        if place is None:
            return
        running = self.running[place]
        running.fetcher.leave(tp)
        if not running.fetcher.copied:
            del self.running[place]
            self._stop(running)

    def _set_apart(self, tp: TopicPartition) -> None:
        """Copy a partition that has requests fail with a fetcher of its own, in this epoch."""
        place = self._place.get(tp)
        if place is None or place[1] >= APART:
            return
        each = self.running[place].fetcher.copied[tp]
        self._apart[tp] = each.leader_epoch
        self.copy(each.partition, each.topic_id)

    def rearrange(self) -> None:
        """Go by a number of fetchers that has changed."""
        copied = [
            (place[1], each)
            for place, running in self.running.items()
            for each in running.fetcher.copied.values()
        ]

        def move(of: tuple[int, Copied]) -> None:
            slot, each = of
            if self._slot(each.partition.tp) != slot:
                self.copy(each.partition, each.topic_id)

        each_isolated(copied, move, "Move to another fetcher", name=lambda of: of[1].partition.tp)

    async def stop(self) -> None:
        """Copy nothing any more, and wait until nothing is done to any log."""
        self._stopped = True
        for running in self.running.values():
            self._stop(running)
        self.running, self._place = {}, {}
        if self._stopping:
            await asyncio.wait(self._stopping)
        await asyncio.to_thread(self._context.truncation.close)

    def _slot(self, tp: TopicPartition) -> int:
        number = crc32(tp.topic.encode()) + tp.partition
        if tp in self._apart:
            return APART + number % APART_MAX
        return number % self._context.settings()[keys.NUM_REPLICA_FETCHERS]

    def _start(self, leader: int, slot: int) -> _Running:
        context = self._context
        name = f"fetcher {slot} of broker {leader}"
        peers = Peers(
            self._endpoint_of,
            client_id=f"broker-{context.broker_id}-fetcher-{slot}",
            answer_bytes_max=ANSWER_BYTES_MAX,
            newest=newest_versions(spoken(context.settings())),
            resolver=self._resolver,
            security=self._security,
        )
        fetcher = ReplicaFetcher(
            name,
            LeaderEndPoint(peers, leader, broker_id=context.broker_id),
            context,
            set_apart=self._set_apart,
        )
        fetcher.start()
        return _Running(fetcher, peers)

    def _stop(self, running: _Running) -> None:
        async def end() -> None:
            await running.fetcher.stop()
            running.peers.close()

        task = background().once("stopping a fetcher", end())
        self._stopping.add(task)
        task.add_done_callback(self._stopping.discard)
