"""A coordinator that leads on in a new epoch, with decisions that did not count before."""

import asyncio
from errno import EIO
from pathlib import Path
from uuid import UUID

import pytest

from barnabas_broker.cluster.image import BrokerRegistration, MetadataImage, PartitionState
from barnabas_broker.cluster.image import TopicImage as Topic
from barnabas_broker.coordinator.transaction.markers import MarkerWriter
from barnabas_broker.coordinator.transaction.shard import Initialisation
from barnabas_broker.coordinator.transaction.states import TransactionState
from barnabas_broker.coordinator.transaction.transaction_coordinator import (
    TRANSACTIONS_TOPIC,
    TransactionCoordinator,
)
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.ids import TopicPartition
from barnabas_kafka.settings.broker import BrokerSettings
from tests.broker.replica.test_manager import NOTHING, NOW_MS, Bench, led_by

T0 = TopicPartition("t", 0)
TURNS = 20
"""More turns of the event loop than anything here takes, once it may be done."""


async def new_producer_id() -> int:
    """The only one."""
    return 7


async def go_on() -> None:
    """Let everything be done that waits for nothing else."""
    for _ in range(TURNS):
        await asyncio.sleep(0)


def seen(epoch: int, isr: tuple[int, ...], *, leader: int = 1) -> MetadataImage:
    """Topic t on broker 1 alone; the transactions on brokers 1 and 2."""
    state = PartitionState(
        replicas=(1, 2), isr=isr, leader=leader, leader_epoch=epoch, controller_epoch=1
    )
    return NOTHING.with_changes(
        put=(
            Topic("t", UUID(int=1), (led_by(1),)),
            Topic(TRANSACTIONS_TOPIC, UUID(int=2), (state,)),
        ),
        brokers={number: BrokerRegistration(number, ()) for number in (1, 2)},
    )


class Coordinating:
    """The coordinator on broker 1, and what its replicas are told."""

    def __init__(self, directory: Path) -> None:
        self.bench = Bench(directory)
        settings = BrokerSettings({})
        leader = self.bench.manager.leader
        self.coordinator = TransactionCoordinator(
            leader=leader,
            exists=lambda _tp: True,
            settings=lambda: settings,
            new_producer_id=new_producer_id,
            markers=MarkerWriter(
                leader=leader, ended=lambda *_, **__: None, clock_ms=lambda: NOW_MS
            ),
            clock_ms=lambda: NOW_MS,
        )

    def see(self, image: MetadataImage) -> None:
        """The next image, as the broker takes it."""
        self.bench.see(image)
        self.coordinator.on_image(image)

    def state(self) -> TransactionState:
        """What the transaction is doing."""
        found = self.coordinator.transaction("tx")
        assert found is not None
        return found.state

    async def decided(self) -> "asyncio.Future[ErrorCode]":
        """A commit whose record broker 2, which is in sync, does not have."""
        self.see(seen(0, (1,)))
        granted = await self.coordinator.initialise(
            Initialisation(transactional_id="tx", timeout_ms=1000)
        )
        added = self.coordinator.add_partitions("tx", granted.producer, [T0])
        assert added is ErrorCode.NONE
        self.see(seen(1, (1, 2)))
        answer = self.coordinator.end("tx", granted.producer, commit=True)
        assert isinstance(answer, asyncio.Future)
        assert self.state() is TransactionState.PREPARE_COMMIT
        return answer


def test_a_prepared_transaction_completes_in_the_next_leader_epoch(tmp_path: Path) -> None:
    """A follower goes, and its leader leads on in a new epoch, with all that is in its log."""

    async def scenario() -> None:
        here = Coordinating(tmp_path)
        answer = await here.decided()
        here.see(seen(2, (1,)))
        with pytest.raises(KafkaError) as caught:
            await answer
        assert caught.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
        await go_on()
        assert here.state() is TransactionState.COMPLETE_COMMIT
        here.coordinator.stop()

    asyncio.run(scenario())


def test_a_prepared_transaction_waits_for_its_commit_in_the_next_epoch(tmp_path: Path) -> None:
    """Until it counts no partition is told."""

    async def scenario() -> None:
        here = Coordinating(tmp_path)
        answer = await here.decided()
        here.see(seen(2, (1, 2)))
        with pytest.raises(KafkaError):
            await answer
        await go_on()
        assert here.state() is TransactionState.PREPARE_COMMIT
        here.see(seen(3, (1,)))
        await go_on()
        assert here.state() is TransactionState.COMPLETE_COMMIT
        here.coordinator.stop()

    asyncio.run(scenario())


def test_a_former_leader_completes_no_transaction(tmp_path: Path) -> None:
    """Who leads no more carries out nothing."""

    async def scenario() -> None:
        here = Coordinating(tmp_path)
        answer = await here.decided()
        here.see(seen(2, (1, 2), leader=2))
        with pytest.raises(KafkaError):
            await answer
        await go_on()
        assert here.bench.manager.leader(T0).log.log_end_offset == 0
        here.coordinator.stop()

    asyncio.run(scenario())


def test_a_failed_log_directory_leaves_completion_to_the_next_leader(tmp_path: Path) -> None:
    """A directory that fails meanwhile leaves it to who leads next; this broker tells nobody."""

    async def scenario() -> None:
        here = Coordinating(tmp_path)
        answer = await here.decided()
        partition = here.bench.manager.leader(TopicPartition(TRANSACTIONS_TOPIC, 0))
        partition.log.health.failed(OSError(EIO, "the disk is gone"))
        partition.commit_ended()
        with pytest.raises(KafkaError) as caught:
            await answer
        assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR
        await go_on()
        assert here.state() is TransactionState.PREPARE_COMMIT
        assert not partition.produce_waiters
        here.coordinator.stop()

    asyncio.run(scenario())
