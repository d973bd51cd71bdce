"""Whether a producer may write to a partition in its transaction (KIP-890).

A late batch must not begin a transaction that never ends: the first batch of a
transaction is taken only if the coordinator has the partition in it. Producers of the first
protocol have asked for that before (`verify`); for those of the second the broker asks when they
write (`join`). Where the coordinator is this very broker a look costs little, and nothing can come
between the last look and the append.
"""

from asyncio import Future, ensure_future, get_running_loop, sleep
from collections.abc import Awaitable, Callable, Collection, Mapping
from functools import partial
from typing import Final

from barnabas_broker.coordinator.results import Producer
from barnabas_broker.coordinator.transaction.shard import write_error
from barnabas_broker.coordinator.transaction.transaction import EPOCH_PER_TRANSACTION
from barnabas_broker.replica.partition import Partition
from barnabas_broker.server.requests.request_context import RequestContext
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.ids import TopicPartition
from barnabas_kafka.settings import broker as keys

JOIN_TIMEOUT_S: Final = 0.1
"""How long to wait for the markers of the transaction before, until the client has to ask again.

As long as Kafka does by default (`add.partitions.to.txn.retry.backoff.max.ms`).
"""
JOIN_PAUSE_S: Final = 0.005

ASKED_AT_MOST: Final = 5
"""How often to begin with a batch whose transaction another broker coordinates."""

Wanted = Mapping[Producer, Collection[TopicPartition]]
Refused = Mapping[TopicPartition, ErrorCode]


class Unasked(Exception):  # noqa: N818
    """The coordinator is another broker, which has to be asked first: `await` what `ask` gives."""

    def __init__(self, ask: Callable[[], Awaitable[object]]) -> None:
        super().__init__("the coordinator has not been asked")
        self.ask = ask


_TRY_AGAIN = (
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)


def verify(
    call: RequestContext,
    partition: Partition,
    transactional_id: str,
    producer: Producer,
    *,
    abortable: bool,
) -> None:
    """Raise unless the partition is part of the producer's open transaction.

    Raises KafkaError: INVALID_TXN_STATE, or TRANSACTION_ABORTABLE to clients that know it;
    INVALID_PRODUCER_EPOCH; INVALID_PRODUCER_ID_MAPPING; NOT_ENOUGH_REPLICAS, which every client
    tries again after, where the coordinator cannot say. Raises Unasked where it is another broker.
    """
    if partition.log.producers.has_ongoing_transaction(*producer):
        return
    if not call.broker.settings[keys.TRANSACTION_PARTITION_VERIFICATION_ENABLE]:
        return
    code = _code(call, partition, transactional_id, producer)
    if code in (ErrorCode.INVALID_TXN_STATE, ErrorCode.TRANSACTION_ABORTABLE):
        # Another broker that coordinates speaks to brokers, not to this client.
        code = ErrorCode.TRANSACTION_ABORTABLE if abortable else ErrorCode.INVALID_TXN_STATE
    elif code in _TRY_AGAIN:
        code = ErrorCode.NOT_ENOUGH_REPLICAS
    _raise(partition.tp, code)


def verify_joined(
    call: RequestContext,
    partition: Partition,
    transactional_id: str,
    producer: Producer,
    refused: Refused,
) -> None:
    """Raise unless `join` has made the partition part of the transaction, and it still is.

    Raises KafkaError as `verify` does, and CONCURRENT_TRANSACTIONS while the transaction before is
    being ended; TRANSACTION_ABORTABLE where a transaction has ended since.
    """
    if partition.log.producers.has_ongoing_transaction(*producer):
        return
    code = refused.get(partition.tp) or _code(call, partition, transactional_id, producer)
    if code is ErrorCode.INVALID_TXN_STATE:
        code = ErrorCode.TRANSACTION_ABORTABLE
    elif code in _TRY_AGAIN and code is not ErrorCode.CONCURRENT_TRANSACTIONS:
        code = ErrorCode.NOT_ENOUGH_REPLICAS
    _raise(partition.tp, code)


def join(call: RequestContext, transactional_id: str, wanted: Wanted) -> Refused | Future[Refused]:
    """Add partitions to the transactions of their producers; return the errors of refused ones."""
    begun = {each: _added(call, transactional_id, each, wanted[each]) for each in wanted}
    refused: dict[TopicPartition, ErrorCode] = {}
    for producer, code in begun.items():
        if isinstance(code, Future) or code is ErrorCode.CONCURRENT_TRANSACTIONS:
            return ensure_future(_join(call, transactional_id, wanted, begun))
        if code:
            refused.update(dict.fromkeys(wanted[producer], code))
    return refused


async def _join(
    call: RequestContext,
    transactional_id: str,
    wanted: Wanted,
    begun: Mapping[Producer, ErrorCode | Future[ErrorCode]],
) -> Refused:
    clock = get_running_loop().time
    give_up_at = clock() + JOIN_TIMEOUT_S
    refused: dict[TopicPartition, ErrorCode] = {}
    for producer, adding in begun.items():
        code = await _awaited(adding)
        while code is ErrorCode.CONCURRENT_TRANSACTIONS and clock() < give_up_at:
            await sleep(JOIN_PAUSE_S)
            code = await _awaited(_added(call, transactional_id, producer, wanted[producer]))
        if code:
            refused.update(dict.fromkeys(wanted[producer], code))
    return refused


def _added(
    call: RequestContext,
    transactional_id: str,
    producer: Producer,
    partitions: Collection[TopicPartition],
) -> ErrorCode | Future[ErrorCode]:
    peers = call.broker.transaction_peers
    coordinator = peers.coordinator(transactional_id)
    if coordinator is not None:
        asking = _added_elsewhere(call, coordinator, transactional_id, producer, partitions)
        return ensure_future(asking)
    try:
        return call.broker.transactions.add_partitions(
            transactional_id, producer, partitions, protocol=EPOCH_PER_TRANSACTION
        )
    except KafkaError as error:
        return error.code


async def _awaited(adding: ErrorCode | Future[ErrorCode]) -> ErrorCode:
    try:
        return await adding if isinstance(adding, Future) else adding
    except KafkaError as error:
        return write_error(error.code)


async def _added_elsewhere(
    call: RequestContext,
    coordinator: int,
    transactional_id: str,
    producer: Producer,
    partitions: Collection[TopicPartition],
) -> ErrorCode:
    """Another coordinator's answer for all partitions; its first refusal decides."""
    led = [call.broker.replicas.led(*tp) for tp in partitions]
    peers = call.broker.transaction_peers
    codes = await peers.ask(coordinator, transactional_id, producer, led, verify_only=False)
    return next((code for code in codes.values() if code), ErrorCode.NONE)


def _code(
    call: RequestContext, partition: Partition, transactional_id: str, producer: Producer
) -> ErrorCode:
    tp = partition.tp
    peers = call.broker.transaction_peers
    coordinator = peers.coordinator(transactional_id)
    if coordinator is not None:
        code = peers.kept(partition, producer)
        if code is None:
            ask = partial(peers.ask, coordinator, transactional_id, producer, [partition])
            raise Unasked(partial(ask, verify_only=True))
        return code
    try:
        return call.broker.transactions.verify(transactional_id, producer, [tp])[tp]
    except KafkaError as error:
        return error.code


def _raise(tp: TopicPartition, code: ErrorCode) -> None:
    if code is ErrorCode.PRODUCER_FENCED:
        code = ErrorCode.INVALID_PRODUCER_EPOCH
    if code:
        raise KafkaError(code, f"{tp} is not part of the transaction: {code.name}")
