"""Produce: validate each partition's batches and append them, and wait until they count.

The buffer of the request goes to the log as it came: validation reads it, the log stamps offsets
and leader epoch in place, and one write puts it into the segment. The response waits only where
records do not count yet (`replica.delayed_produce`). With `acks=0` there is no response; a failure
then can only be shown by ending the connection, as Apache's broker does.

Batches that take long to validate are validated in threads (`server.process.offload_pool`), and a
request of very many partitions is worked on in turns. A connection has one request in work, so that
the order of what one producer sends stays.
"""

import time
from asyncio import Future, get_running_loop, sleep, wait
from collections import defaultdict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, NoReturn

from barnabas_broker.cluster.failures import refusal
from barnabas_broker.coordinator.results import Producer
from barnabas_broker.log.predicted import most_inflated
from barnabas_broker.log.validator import (
    AT_ONCE_BYTES,
    InvalidBatch,
    ProduceRules,
    TooMuchAtOnce,
    ValidatedBatches,
    validate_produce,
)
from barnabas_broker.replica.delayed_produce import DelayedProduce, Uncounted
from barnabas_broker.replica.partition import Partition
from barnabas_broker.security.acls import AclOperation, ResourceType
from barnabas_broker.server.process.fair_queue import Flow, flow_of
from barnabas_broker.server.requests import current_leaders
from barnabas_broker.server.requests.add_partitions_to_txn_manager import (
    ASKED_AT_MOST,
    Refused,
    Unasked,
    Wanted,
    join,
    verify,
    verify_joined,
)
from barnabas_broker.server.requests.fast.produce import serve as serve_fast
from barnabas_broker.server.requests.fast.produce_runs import serve_run
from barnabas_broker.server.requests.handler import Handler, UnanswerableError
from barnabas_broker.server.requests.produce_checks import (
    PARTITIONS_PER_CLOCK_READ,
    TIME_SLICE_S,
    may_write,
    writable,
)
from barnabas_broker.server.requests.request_context import RequestContext
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.ids import NO_OFFSET, TopicPartition
from barnabas_kafka.protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    NodeEndpoint,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from barnabas_kafka.protocol.registry import ApiKey, VersionRange
from barnabas_kafka.records.batch import (
    ATTRIBUTES_POSITION,
    HEADER,
    HEADER_SIZE,
    MAGIC_POSITION,
    TRANSACTIONAL_FLAG,
    BatchHeader,
)

ABORTABLE_SINCE: Final = 11
"""From this version on a producer learns that its transaction can be aborted (KIP-890)."""

JOINS_SINCE: Final = 12
"""From then on partitions join the transaction by being written to (KIP-890)."""


@dataclass(slots=True)
class _ProduceProgress:
    """The partition responses of one request so far, and what the rest of it needs."""

    call: RequestContext
    answers: list[PartitionProduceResponse]
    uncounted: list[Uncounted] = field(default_factory=list)
    unjoined: Refused = field(default_factory=dict)
    allowed: dict[str, bool] = field(default_factory=dict)
    endpoints: list[NodeEndpoint] = field(default_factory=list)

    def allows(self, topic: str) -> bool:
        """Whether the caller may write to a topic; asked, and audited, once."""
        found = self.allowed.get(topic)
        if found is None:
            found = self.allowed[topic] = may_write(self.call, topic)
        return found

    def name_leader(self, tp: TopicPartition, answer: PartitionProduceResponse) -> None:
        """Return the leader of a partition that this broker does not lead."""
        current_leaders.IN_PRODUCE.name(self.call, tp, answer, self.endpoints)


def handle(request: ProduceRequest, call: RequestContext) -> ProduceResponse | Future[Any] | None:
    """Append the batches of every partition; one partition's error does not touch another's.

    But for a transaction that the caller may not write in, or for records of several producers'
    transactions: nothing is appended then.
    """
    error = _refusal(request, call) if _has_transactional_records(request) else None
    if error is not None:
        partitions = [data for topic in request.topic_data for data in topic.partition_data]
        progress = _ProduceProgress(call, [_refused(data, error) for data in partitions])
        return _response(request, call, progress)
    progress = _ProduceProgress(  # The first partitions may be done already.
        call,
        [
            PartitionProduceResponse(
                index=index,
                base_offset=base,
                log_append_time_ms=append_time,
                log_start_offset=start,
            )
            for index, base, append_time, start in call.served
        ],
    )
    if call.refused is not None:
        partitions = [data for topic in request.topic_data for data in topic.partition_data]
        progress.answers.append(_refused(partitions[len(progress.answers)], call.refused))
    return _append_rest(request, call, progress)


def _append_rest(
    request: ProduceRequest, call: RequestContext, progress: _ProduceProgress
) -> ProduceResponse | Future[Any] | None:
    """Append the batches of the partitions that have no response yet."""
    if request.transactional_id is not None and call.version >= JOINS_SINCE:
        joining = join(call, request.transactional_id, _wanted(request, call))
        if isinstance(joining, Future):
            return _rest_later(request, call, progress, joining)
        progress.unjoined = joining
    answers = progress.answers
    done = len(answers)
    began = 0.0
    for topic in request.topic_data:
        allowed = progress.allows(topic.name)
        for data in topic.partition_data:
            if done:
                done -= 1
                continue
            try:
                answer = _append(
                    request, call, topic.name, data, allowed=allowed, progress=progress
                )
            except TooMuchAtOnce:
                return _rest_later(request, call, progress, begins_heavy=True)
            except Unasked as unasked:
                return _rest_later(request, call, progress, ask=unasked.ask)
            answers.append(answer)
            if not len(answers) % PARTITIONS_PER_CLOCK_READ:
                began = began or time.monotonic()
                if time.monotonic() - began > TIME_SLICE_S:
                    return _rest_later(request, call, progress)
    return _response(request, call, progress)


def _response(
    request: ProduceRequest, call: RequestContext, progress: _ProduceProgress
) -> ProduceResponse | Future[ProduceResponse] | None:
    """The response that carries the answers, one per partition in the order of the request."""
    responses = []
    answers, uncounted = progress.answers, progress.uncounted
    failed = position = 0
    for topic in request.topic_data:
        of_topic = answers[position : position + len(topic.partition_data)]
        position += len(of_topic)
        for data, answer in zip(topic.partition_data, of_topic, strict=True):
            if answer.error_code:
                failed = answer.error_code
                progress.name_leader(TopicPartition(topic.name, data.index), answer)
                _note_refusal(call, topic.name, data, ErrorCode(failed))
        responses.append(TopicProduceResponse(name=topic.name, partition_responses=of_topic))
    if request.acks == 0:
        if failed:
            reason = ErrorCode(failed).name
            raise UnanswerableError(f"a produce request with acks=0 failed with {reason}")
        return None
    response = ProduceResponse(responses=responses, node_endpoints=progress.endpoints)
    if not uncounted:
        return response
    call.request = None  # Its records are views of a buffer that is needed for the next.
    return DelayedProduce(
        get_running_loop(),
        uncounted,
        acks=request.acks,
        timeout_ms=request.timeout_ms,
        response=response,
    ).future


# Requests that take long.


def _rest_later(
    request: ProduceRequest,
    call: RequestContext,
    progress: _ProduceProgress,
    joining: Future[Refused] | None = None,
    ask: Callable[[], Awaitable[object]] | None = None,
    *,
    begins_heavy: bool = False,
) -> Future[Any] | ProduceResponse | None:
    """Go on with the partitions that have no answer yet while others are served.

    And not before they are part of their transaction, where that takes time, and the coordinator
    has confirmed it, where it is another broker. `begins_heavy`: the first one is known to be too
    expensive to validate here.
    """
    answers = progress.answers
    rest = [(topic.name, data) for topic in request.topic_data for data in topic.partition_data][
        len(answers) :
    ]
    size = sum(len(data.records) for _, data in rest if data.records is not None)
    try:
        release = call.broker.heavy.reserve(size, _flow(call, size))
    except KafkaError as error:
        answers += [_refused(data, error) for _, data in rest]
        return _response(request, call, progress)
    for _, data in rest:
        if data.records is not None:
            data.records = bytearray(data.records)  # The request's buffer is needed for the next.

    async def work() -> ProduceResponse | None:
        if joining is not None:
            progress.unjoined = await joining
        if ask is not None:
            await ask()
        heavy_first = begins_heavy
        for topic, data in rest:
            found = await _looked_at(call, topic, data) if heavy_first else None
            answers.append(
                await _append_slowly(request, call, topic, data, progress=progress, found=found)
            )
            heavy_first = False
            await sleep(0)
        response = _response(request, call, progress)
        return await response if isinstance(response, Future) else response

    task = get_running_loop().create_task(work())
    task.add_done_callback(release)
    return task


async def _append_slowly(
    request: ProduceRequest,
    call: RequestContext,
    topic: str,
    data: PartitionProduceData,
    *,
    progress: _ProduceProgress,
    found: Callable[[], ValidatedBatches] | None,
) -> PartitionProduceResponse:
    allowed = progress.allows(topic)
    append = partial(_append, request, call, topic, data, allowed=allowed, progress=progress)
    for _ in range(ASKED_AT_MOST):
        try:
            with call.working():
                return append(found=found)
        except TooMuchAtOnce:
            found = await _looked_at(call, topic, data)
        except Unasked as unasked:
            await unasked.ask()
    reason = "transactions end here faster than their coordinator can be asked"
    return _refused(data, KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS, reason))


async def _looked_at(
    call: RequestContext, topic: str, data: PartitionProduceData
) -> Callable[[], ValidatedBatches]:
    """The result of a validation in a thread; raises its error."""
    records = data.records or b""
    try:
        rules = call.broker.replicas.led(topic, data.index).rules.produce_rules(call.version)
        looking = call.broker.heavy.run(
            partial(_validate, call, records, rules),
            flow=_flow(call, len(records)),
            cost=most_inflated(records, limit=rules.inflated_limit),
        )
    except KafkaError as error:
        return partial(_raise, error)
    looking.add_done_callback(_heed)
    await wait({looking})
    return looking.result


def _validate(call: RequestContext, records: Any, rules: ProduceRules) -> ValidatedBatches:
    with call.working():
        return validate_produce(records, rules=rules, now_ms=call.now_ms)


def _flow(call: RequestContext, size: int) -> Flow:
    return flow_of(call.principal, call.client_host, size)


def _raise(error: KafkaError) -> NoReturn:
    raise error


def _heed(looking: Future[Any]) -> None:
    """Retrieve an error that has no waiter any more, so that asyncio does not log it."""
    if not looking.cancelled():
        looking.exception()


# One partition.


def _append(
    request: ProduceRequest,
    call: RequestContext,
    topic: str,
    data: PartitionProduceData,
    *,
    allowed: bool,
    progress: _ProduceProgress,
    found: Callable[[], ValidatedBatches] | None = None,
) -> PartitionProduceResponse:
    """Validate and append; `found` is the result of an earlier validation.

    Raises TooMuchAtOnce where it has to be done elsewhere.
    """
    try:
        partition, rules = writable(call, request.acks, topic, data.index, allowed=allowed)
        if found is not None:
            batches = found()
        else:
            batches = validate_produce(
                data.records if data.records is not None else b"",
                rules=rules,
                now_ms=call.now_ms,
                at_once=AT_ONCE_BYTES,
            )
        if batches.is_transactional:
            _check_transaction(request, call, partition, batches, progress)
        info = partition.append(batches, now_ms=call.now_ms)
    except InvalidBatch as error:
        return PartitionProduceResponse(
            index=data.index,
            error_code=error.code,
            base_offset=NO_OFFSET,
            error_message=error.message,
            record_errors=[
                BatchIndexAndErrorMessage(batch_index=index, batch_index_error_message=message)
                for index, message in error.record_errors
            ],
        )
    except (TooMuchAtOnce, Unasked):
        raise
    except Exception as error:
        return _refused(data, refusal(error, "Produce", (topic, data.index)))
    answer = PartitionProduceResponse(
        index=data.index,
        base_offset=info.first_offset,
        log_append_time_ms=info.log_append_time,
        log_start_offset=info.log_start_offset,
    )
    if info.last_offset >= partition.log.high_watermark and request.acks:
        _await(partition, info.last_offset + 1, request.acks, answer, progress)
    return answer


def _wanted(request: ProduceRequest, call: RequestContext) -> Wanted:
    """The partitions that have to be added to a transaction, by transaction.

    Invalid and unauthorized ones are left out here, and refused with their reason later.
    """
    wanted: defaultdict[Producer, list[TopicPartition]] = defaultdict(list)
    for topic in request.topic_data:
        if not call.allowed(AclOperation.WRITE, ResourceType.TOPIC, topic.name, audited=False):
            continue
        for data in topic.partition_data:
            if data.records is None or len(data.records) < HEADER.size:
                continue
            header = BatchHeader._make(HEADER.unpack_from(data.records))
            if header.magic != 2 or not header.is_transactional:
                continue
            try:
                partition = call.broker.replicas.led(topic.name, data.index)
                partition.rules.produce_rules(call.version)
            except KafkaError:
                continue
            producer = Producer(header.producer_id, header.producer_epoch)
            if not partition.log.producers.has_ongoing_transaction(*producer):
                wanted[producer].append(partition.tp)
    return wanted


def _has_transactional_records(request: ProduceRequest) -> bool:
    """Whether the first batch of any partition is one of a transaction (`RequestUtils`)."""
    return any(
        _is_transactional(data) for topic in request.topic_data for data in topic.partition_data
    )


def _is_transactional(data: PartitionProduceData) -> bool:
    records = data.records
    return (
        records is not None
        and len(records) >= HEADER_SIZE
        and records[MAGIC_POSITION] == 2
        and bool(records[ATTRIBUTES_POSITION + 1] & TRANSACTIONAL_FLAG)
    )


def _refusal(request: ProduceRequest, call: RequestContext) -> KafkaError | None:
    """Why a request with transactional records is refused as a whole, if it is.

    Two producers in one request are so by `ReplicaManager.handleProduceAppend`.
    """
    if not _may_write(request, call):
        return KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    producers: set[Producer] = set()
    for topic in request.topic_data:
        known = call.broker.image.topics.get(topic.name)
        if known is None or not may_write(call, topic.name):
            continue
        for data in topic.partition_data:
            if _is_transactional(data) and known.partition(data.index) is not None:
                header = BatchHeader._make(HEADER.unpack_from(data.records or b""))
                producers.add(Producer(header.producer_id, header.producer_epoch))
    if len(producers) > 1:
        reason = "the request has transactional records of more than one producer"
        return KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING, reason)
    return None


def _may_write(request: ProduceRequest, call: RequestContext) -> bool:
    transactional_id = request.transactional_id
    return transactional_id is not None and call.allowed(
        AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id
    )


def _check_transaction(
    request: ProduceRequest,
    call: RequestContext,
    partition: Partition,
    batches: ValidatedBatches,
    progress: _ProduceProgress,
) -> None:
    """Raise unless the caller may write in the transaction, and the partition is part of it."""
    transactional_id = request.transactional_id
    if transactional_id is None or not _may_write(request, call):
        raise KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    for _, header in batches.headers:
        producer = Producer(header.producer_id, header.producer_epoch)
        if call.version < JOINS_SINCE:
            abortable = call.version >= ABORTABLE_SINCE
            verify(call, partition, transactional_id, producer, abortable=abortable)
            continue
        verify_joined(call, partition, transactional_id, producer, progress.unjoined)
        if header.base_sequence and producer.id not in partition.log.producers.producers:
            # Each transaction has an epoch of its own, and each epoch begins at 0.
            raise KafkaError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"producer {producer.id} is not known, and begins with {header.base_sequence}",
            )


def _note_refusal(
    call: RequestContext, topic: str, data: PartitionProduceData, code: ErrorCode
) -> None:
    call.broker.requests.of("Produce").failed(code)
    traffic = call.broker.replicas.traffic.get(topic)
    if traffic is not None:  # Only topics that exist are counted: names are the client's to invent.
        traffic.produces += 1
        traffic.produces_failed += 1
        traffic.bytes_rejected += len(data.records or b"")


def _await(
    partition: Partition,
    end: int,
    acks: int,
    answer: PartitionProduceResponse,
    progress: _ProduceProgress,
) -> None:
    """Make a response wait until its records are committed, unless `acks` does not ask for it."""
    epoch = partition.leader_epoch
    code = partition.verdict(end, acks=acks, leader_epoch=epoch)
    if code is None:
        complete = partial(_complete, progress, partition.tp, answer)
        progress.uncounted.append(Uncounted(partition, end, epoch, complete))
    else:
        _complete(progress, partition.tp, answer, code)


def _complete(
    progress: _ProduceProgress,
    tp: TopicPartition,
    answer: PartitionProduceResponse,
    code: ErrorCode,
) -> None:
    if code:
        answer.error_code = code
        answer.base_offset = NO_OFFSET
        progress.name_leader(tp, answer)


def _refused(data: PartitionProduceData, error: KafkaError) -> PartitionProduceResponse:
    return PartitionProduceResponse(
        index=data.index,
        error_code=error.code,
        base_offset=NO_OFFSET,
        error_message=error.message,
    )


HANDLER = Handler(
    ApiKey.PRODUCE,
    VersionRange(0, 12),
    handle,
    large=True,
    fast=serve_fast,
    fast_run=serve_run,
)
