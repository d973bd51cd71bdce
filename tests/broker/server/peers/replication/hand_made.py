"""Brokers that replicate what a test says, image by image: the test is their controller.

Each broker is a Node in a thread, with coordination data of its own that says nothing about the
others; who is alive, who leads and who is in sync comes in images made by hand. Changes of the
ISR that leaders ask for are compared with the state as it is and written into the next image.
"""

import asyncio
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID

from barnabas_broker.cluster.image import (
    BrokerRegistration,
    Endpoint,
    MetadataImage,
    PartitionState,
    TopicImage,
)
from barnabas_broker.replica.partition import Partition
from barnabas_broker.server.node.broker_server import BrokerServer
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.ids import TopicPartition
from barnabas_kafka.settings.broker import BrokerSettings
from tests.broker.replica.leading import finished
from tests.broker.server.moved_clock import MovedLoop
from tests.broker.server.running import port_of
from tests.waiting import ANSWER, START, seconds, watch_loop

T0 = TopicPartition("t", 0)
T_ID = UUID(int=7)
Result = TypeVar("Result")


class Member:
    """One broker in a thread."""

    def __init__(self, broker: int, directory: Path, settings: Mapping[str, str]) -> None:
        self.id = broker
        self.loop = MovedLoop()
        self.node = BrokerServer(
            BrokerSettings.from_mapping(
                {
                    "listeners": "PLAINTEXT://127.0.0.1:0",
                    "log.dirs": str(directory),
                    "broker.id": str(broker),
                    "replica.fetch.backoff.ms": "50",
                    **settings,
                }
            )
        )
        self._thread = threading.Thread(target=self.loop.run_forever, name=f"broker {broker}")

    def start(self) -> None:
        """Come up."""
        self._thread.start()
        watch_loop(f"broker {self.id}", self.loop)
        asyncio.run_coroutine_threadsafe(self.node.start(), self.loop).result(seconds(START))

    def stop(self) -> None:
        """Go down cleanly."""
        try:
            asyncio.run_coroutine_threadsafe(self.node.stop(), self.loop).result(seconds(START))
        finally:
            self.loop.call_soon_threadsafe(self.loop.stop)
            self._thread.join(seconds(ANSWER))
            self.loop.close()

    def do(self, work: Callable[[], Result]) -> Result:
        """What `work` returns on the broker's event loop."""

        async def on_loop() -> Result:
            return work()

        return asyncio.run_coroutine_threadsafe(on_loop(), self.loop).result(seconds(ANSWER))

    @property
    def port(self) -> int:
        """Where it serves."""
        return port_of(self.node)

    def partition(self, tp: TopicPartition = T0) -> Partition:
        """Its replica."""
        found = self.node.broker.replicas.get(tp)
        assert found is not None
        return found

    def ends(self, tp: TopicPartition = T0) -> tuple[int, int]:
        """High watermark and log end of its replica."""
        log = self.partition(tp).log
        return log.high_watermark, log.log_end_offset


class HandMade:
    """The brokers and the image they were last given."""

    def __init__(self) -> None:
        self.members: dict[int, Member] = {}
        self.image = MetadataImage(cluster_id="hand-made", controller_id=0)
        #: what leaders asked for
        self.asked: list[tuple[int, ...]] = []
        #: what they are told instead of having it done
        self.refusal: ErrorCode | None = None
        self._lock = threading.Lock()

    def add(self, member: Member) -> None:
        """A broker that has started; it is alive in the next image."""
        self.members[member.id] = member
        endpoint = Endpoint("PLAINTEXT", "127.0.0.1", member.port)
        registration = BrokerRegistration(member.id, (endpoint,), f"rack-{member.id}", epoch=1)
        member.node.replication.alter_partition = self._alter
        brokers = {**self.image.brokers, member.id: registration}
        self.image = self.image.with_changes(brokers=brokers)

    def ends(self, tp: TopicPartition = T0) -> list[tuple[int, int]]:
        """High watermark and log end of each replica."""
        return [member.ends(tp) for member in self.members.values()]

    def state(self, tp: TopicPartition = T0) -> PartitionState:
        """What the controller knows of a partition."""
        found = self.image.partition(tp)
        assert found is not None
        return found

    def appoint(
        self,
        leader: int,
        *,
        isr: tuple[int, ...] | None = None,
        replicas: tuple[int, ...] | None = None,
        only: tuple[int, ...] | None = None,
        **config: str,
    ) -> None:
        """Name the leader of t-0, in a new leader epoch, and tell the brokers, or `only` some."""
        topic = self.image.topic("t")
        before = None if topic is None else topic.partitions[0]
        replicas = replicas or (before.replicas if before else tuple(self.members))
        state = PartitionState(
            replicas=replicas,
            isr=isr if isr is not None else (before.isr if before else replicas),
            leader=leader,
            leader_epoch=before.leader_epoch + 1 if before else 0,
            controller_epoch=1,
            partition_epoch=before.partition_epoch + 1 if before else 0,
        )
        settings = {name.replace("_", "."): value for name, value in config.items()}
        if topic is not None:
            settings = {**topic.config, **settings}
        self.tell(TopicImage("t", T_ID, (state,), settings), only=only)

    def tell(self, topic: TopicImage, only: tuple[int, ...] | None = None) -> None:
        """Publish a topic."""
        self.image = self.image.with_changes(put=(topic,))
        for member in list(self.members.values()):
            if only is None or member.id in only:
                self.show(member)

    def show(self, member: Member) -> None:
        """Give a broker the image as it is now."""
        image = self.image

        def take() -> None:
            node = member.node
            old = node.broker.controller.image
            node.broker.controller.image = image
            assert not finished(node._apply_metadata(old, image))

        member.do(take)

    async def _alter(
        self,
        tp: TopicPartition,
        _topic_id: UUID,
        wanted: PartitionState,
        _broker_epochs: Mapping[int, int],
    ) -> PartitionState:
        with self._lock:
            self.asked.append(wanted.isr)
            if self.refusal is not None:
                raise KafkaError(self.refusal)
            now = self.state(tp)
            if (now.leader_epoch, now.partition_epoch) != (
                wanted.leader_epoch,
                wanted.partition_epoch,
            ):
                raise KafkaError(ErrorCode.INVALID_UPDATE_VERSION)
            after = replace(now, isr=wanted.isr, partition_epoch=now.partition_epoch + 1)
            topic = self.image.topics[tp.topic]
            self.image = self.image.with_changes(put=(replace(topic, partitions=(after,)),))
            return after


@contextmanager
def hand_made(directory: Path, brokers: int = 2, **settings: Any) -> Iterator[HandMade]:
    """Brokers 0, 1, ... that know of each other; settings have underscores for dots."""
    given = {name.replace("_", "."): str(value) for name, value in settings.items()}
    with ExitStack() as stack:
        cluster = HandMade()
        for broker in range(brokers):
            member = Member(broker, directory / str(broker), given)
            member.start()
            stack.callback(member.stop)
            cluster.add(member)
        yield cluster
