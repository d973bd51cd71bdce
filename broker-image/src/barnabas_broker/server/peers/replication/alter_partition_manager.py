"""Asking the controller to change in-sync replicas (AlterPartition, KIP-497).

What several leaders want changed travels in one request, and one request is under way at a time,
as from Apache's brokers (`DefaultAlterPartitionManager`). The controller may be this very broker:
the request takes the same way.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final, NamedTuple
from uuid import UUID

from barnabas_broker.cluster.image import NO_CONTROLLER, PartitionState
from barnabas_broker.server.peers.peers import Peers, UnreachableError
from barnabas_broker.server.peers.replication.isr_changes import NO_BROKER_EPOCHS, BrokerEpochs
from barnabas_broker.server.peers.replication.leader_end_point import error_code
from barnabas_broker.server.process.supervised_tasks import background
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.ids import NO_EPOCH, ZERO_UUID, TopicPartition
from barnabas_kafka.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionRequestPartitionData,
    AlterPartitionRequestTopicData,
    AlterPartitionResponse,
    BrokerState,
)
from barnabas_kafka.protocol.registry import ApiKey

FIRST_WITH_TOPIC_IDS: Final = 2

FIRST_WITH_BROKER_EPOCHS: Final = 3

TIMEOUT_S: Final = 30.0
"""Whether it was done is not known then; it is asked for again."""


class Wanted(NamedTuple):
    """A change that waits for its turn, or for its answer."""

    topic_id: UUID
    state: PartitionState
    answered: "asyncio.Future[PartitionState]"
    broker_epochs: BrokerEpochs


class AlterPartitionManager:
    """Sends changes to the active controller; `alter` is a `isr_changes.AlterPartition`."""

    def __init__(
        self,
        broker_id: int,
        peers: Peers,
        *,
        controller_id: Callable[[], int],
        broker_epoch: Callable[[], int],
    ) -> None:
        self._broker_id = broker_id
        self._peers = peers
        self._controller_id = controller_id
        self._broker_epoch = broker_epoch
        self._waiting: dict[TopicPartition, Wanted] = {}
        self._sending: asyncio.Task[None] | None = None
        self._asked: tuple[int, asyncio.Task[Any]] | None = None  # The controller, and the request.

    def look_at_controller(self) -> None:
        """Stop waiting for a response of a broker that is no longer the controller.

        A controller that hangs is replaced long before a request to it has timed out.
        """
        if self._asked is not None and self._asked[0] != self._controller_id():
            self._asked[1].cancel()

    async def alter(
        self,
        tp: TopicPartition,
        topic_id: UUID,
        wanted: PartitionState,
        broker_epochs: BrokerEpochs = NO_BROKER_EPOCHS,
    ) -> PartitionState:
        """The state as it is once the change is made. Raises KafkaError and PeerError."""
        answered: asyncio.Future[PartitionState] = asyncio.get_running_loop().create_future()
        earlier = self._waiting.get(tp)
        if earlier is not None and not earlier.answered.done():  # Its leadership is over.
            earlier.answered.set_exception(UnreachableError("another change is wanted instead"))
        self._waiting[tp] = Wanted(topic_id, wanted, answered, broker_epochs)
        if self._sending is None:
            self._sending = background().once("AlterPartition sender", self._send_all())
            self._sending.add_done_callback(self._sent)
        return await answered

    async def stop(self) -> None:
        """Send nothing any more."""
        if self._sending is not None:
            self._sending.cancel()
            await asyncio.wait({self._sending})
        self._peers.close()

    async def _send_all(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting, {}
            try:
                states = await self._send(batch)
            except Exception as error:  # Every waiting caller gets the error.
                _refuse(batch, error)
                continue
            except asyncio.CancelledError:
                _refuse(batch, UnreachableError("the request was cancelled"))
                raise
            for tp, wanted in batch.items():
                if wanted.answered.done():
                    continue
                found = states.get(tp, ErrorCode.UNKNOWN_SERVER_ERROR)
                if isinstance(found, PartitionState):
                    wanted.answered.set_result(found)
                else:
                    wanted.answered.set_exception(KafkaError(found))
        # In the step that found nothing waiting: what comes from now on is sent by another task.
        self._sending = None

    def _sent(self, task: asyncio.Task[None]) -> None:
        """However the sender ended, another one may send what comes, or has come, after it."""
        if self._sending is task:
            self._sending = None
            waiting, self._waiting = self._waiting, {}
            _refuse(waiting, UnreachableError("the sender has ended"))

    async def _send(
        self, batch: Mapping[TopicPartition, Wanted]
    ) -> dict[TopicPartition, PartitionState | ErrorCode]:
        controller = self._controller_id()
        if controller == NO_CONTROLLER:
            raise UnreachableError("no controller is known")
        task = asyncio.get_running_loop().create_task(self._ask(controller, batch))
        self._asked = controller, task
        try:
            await asyncio.wait({task})
        finally:
            self._asked = None
            task.cancel()
        if task.cancelled():
            raise UnreachableError(f"broker {controller} is not the controller any more")
        return task.result()

    async def _ask(
        self, controller: int, batch: Mapping[TopicPartition, Wanted]
    ) -> dict[TopicPartition, PartitionState | ErrorCode]:
        version = await self._peers.version(controller, ApiKey.ALTER_PARTITION, timeout_s=TIMEOUT_S)
        if any(wanted.topic_id == ZERO_UUID for wanted in batch.values()):
            version = min(version, FIRST_WITH_TOPIC_IDS - 1)
        answer = await self._peers.send(
            controller,
            self._request(batch, version),
            AlterPartitionResponse,
            timeout_s=TIMEOUT_S,
            version_max=version,
        )
        if answer.error_code:
            raise KafkaError(error_code(answer.error_code))
        names = {wanted.topic_id: tp.topic for tp, wanted in batch.items()}
        found: dict[TopicPartition, PartitionState | ErrorCode] = {}
        for topic in answer.topics:
            name = topic.topic_name or names.get(topic.topic_id, "")
            for each in topic.partitions:
                tp = TopicPartition(name, each.partition_index)
                if each.error_code or tp not in batch:
                    found[tp] = error_code(each.error_code)
                    continue
                found[tp] = replace(
                    batch[tp].state,
                    isr=tuple(each.isr),
                    leader_epoch=each.leader_epoch,
                    partition_epoch=each.partition_epoch,
                )
        return found

    def _request(
        self, batch: Mapping[TopicPartition, Wanted], version: int
    ) -> AlterPartitionRequest:
        topics: dict[str, AlterPartitionRequestTopicData] = {}
        for tp, (topic_id, state, _, epochs) in batch.items():
            known = {**epochs, self._broker_id: self._broker_epoch()}
            by_epoch = version >= FIRST_WITH_BROKER_EPOCHS
            topic = topics.setdefault(
                tp.topic, AlterPartitionRequestTopicData(topic_name=tp.topic, topic_id=topic_id)
            )
            topic.partitions.append(
                AlterPartitionRequestPartitionData(
                    partition_index=tp.partition,
                    leader_epoch=state.leader_epoch,
                    new_isr=[] if by_epoch else list(state.isr),
                    new_isr_with_epochs=(
                        [
                            BrokerState(broker_id=broker, broker_epoch=known.get(broker, NO_EPOCH))
                            for broker in state.isr
                        ]
                        if by_epoch
                        else []
                    ),
                    partition_epoch=state.partition_epoch,
                )
            )
        return AlterPartitionRequest(
            broker_id=self._broker_id,
            broker_epoch=self._broker_epoch(),
            topics=list(topics.values()),
        )


def _refuse(batch: Mapping[TopicPartition, Wanted], error: Exception) -> None:
    for wanted in batch.values():
        if not wanted.answered.done():
            wanted.answered.set_exception(error)
