"""The fast route of Produce, for a request that is ordinary in everything.

A busy broker spends its life here, so that what the handler does with objects, for whatever a
request may hold, is done with numbers for what nearly all requests hold: plain batches
(`records.walk.plain_batch`), or compressed ones that the validator takes, in which records count as
soon as they are appended. What is checked of each partition is checked in `produce_checks`. The
first partition that is refused, or is not ordinary, ends the fast route: the handler goes on from
that partition, untouched, and gives every error its words.
"""

import time
from struct import Struct
from typing import Final

from barnabas_broker.cluster.failures import refusal
from barnabas_broker.log.producer_state import Sequences
from barnabas_broker.log.validator import (
    AT_ONCE_BYTES,
    InvalidBatch,
    ProduceRules,
    TooMuchAtOnce,
    ValidatedBatches,
    validate_produce,
)
from barnabas_broker.replica.partition import Partition
from barnabas_broker.server.requests.produce_checks import (
    ACKS,
    PARTITIONS_PER_CLOCK_READ,
    TIME_SLICE_S,
    may_write,
    writable,
)
from barnabas_broker.server.requests.request_context import RequestContext
from barnabas_broker.server.transport.outbound import Item
from barnabas_kafka.errors import KafkaError
from barnabas_kafka.protocol.plain_produce import (
    PlainAnswer,
    PlainPartition,
    PlainTopic,
    answer,
    read,
)
from barnabas_kafka.records.batch import (
    ATTRIBUTES_POSITION,
    CODEC_MASK,
    HEADER,
    HEADER_SIZE,
    MAGIC_POSITION,
    BatchHeader,
)
from barnabas_kafka.records.crc import crc32c
from barnabas_kafka.records.walk import LARGEST, plain_batch

PARTITIONS_AT_ONCE: Final = 10_000
"""Requests that name more topics or partitions are not ordinary: to read them takes long."""

FRAME_BYTES_AT_ONCE: Final = 4 << 20
"""Larger requests are not ordinary: a hundred megabytes would take tens of milliseconds to copy."""

PACKED_BYTES_MAX: Final = 128 << 10
"""Larger compressed batches are not ordinary: many turn out to hold more than may be inflated at
once, and the handler has to find that out once more."""

#: Where in a batch its checksum, its producer's id and epoch and its first sequence are.
_CRC_AND_PRODUCER: Final = Struct(">17xI22xqhi")
_BASE_OFFSET: Final = Struct(">q")

_NO_APPEND_TIME: Final = -1


def serve(frame: memoryview, call: RequestContext) -> list[Item] | None:
    """The response to a request that was served in all, [] where acks=0 asks for none.

    Otherwise `call.served` has the answers of the partitions before the first that is not
    ordinary; the handler goes on from there. Of one whose append failed in an unforeseen way,
    `call.refused` has the error: part of it may be done, and it is not tried again.
    """
    if len(frame) > FRAME_BYTES_AT_ONCE:
        return None
    data = bytes(frame)
    request = read(data, call.version, PARTITIONS_AT_ONCE)
    if request is None or request[1] not in ACKS:
        return None
    client_id, acks, topics = request
    answers: list[PlainAnswer] = []
    if not _append_all(topics, answers, frame, data, acks=acks, call=call):
        call.served = answers
        return None
    throttle_ms = 0
    if call.usage is not None:
        call.identify(client_id)
        call.usage.produced(answered=acks != 0)
        throttle_ms = call.usage.throttle_ms
    if not acks:
        return []
    return [answer(call.version, call.correlation_id, topics, answers, throttle_ms)]


def _append_all(
    topics: list[PlainTopic],
    answers: list[PlainAnswer],
    frame: memoryview,
    data: bytes,
    *,
    acks: int,
    call: RequestContext,
) -> bool:
    """Append partition by partition; True if all were appended."""
    time_slice_end = 0.0
    now_ms = call.now_ms
    for name, _, partitions in topics:
        allowed = may_write(call, name)
        for place in partitions:
            found = _find(call, acks, name, place[0], allowed)
            if found is None:
                return False
            partition, rules = found
            if rules.rebuilds_plain or not partition.counts_at_once(acks):
                return False
            try:
                done = _append(partition, place, frame, data, rules=rules, now_ms=now_ms)
            except KafkaError:
                return False
            except Exception as error:  # One partition's error does not touch another's.
                call.refused = refusal(error, "Produce", partition.tp)
                return False
            if done is None:
                return False
            answers.append(done)
            if not len(answers) % PARTITIONS_PER_CLOCK_READ:
                time_slice_end = time_slice_end or time.monotonic() + TIME_SLICE_S
                if time.monotonic() > time_slice_end:
                    return False
    return True


def _find(
    call: RequestContext, acks: int, name: str, index: int, allowed: bool
) -> tuple[Partition, ProduceRules] | None:
    try:
        return writable(call, acks, name, index, allowed=allowed)
    except Exception:  # Whatever it is, the handler meets it too, and answers with it.
        return None


def _append(
    partition: Partition,
    place: PlainPartition,
    frame: memoryview,
    data: bytes,
    *,
    rules: ProduceRules,
    now_ms: int,
) -> PlainAnswer | None:
    """Validate and append the batch of one partition; None if it is not plain and sound.

    `data` is the content of `frame`; that is stamped and written. Raises what `Partition.append`
    does, the batch being as it came then.
    """
    index, start, end = place
    newest = now_ms + rules.timestamp_after_max_ms
    count, latest, latest_index = plain_batch(
        data,
        start,
        end,
        largest=rules.max_message_bytes,
        oldest=now_ms - rules.timestamp_before_max_ms,
        newest=newest if newest < LARGEST else LARGEST,
        key_required=rules.compact,
    )
    if not count:
        return _append_packed(partition, index, frame[start:end], rules=rules, now_ms=now_ms)
    crc, producer_id, epoch, first = _CRC_AND_PRODUCER.unpack_from(data, start)
    batch = frame[start:end]
    if crc32c(batch[ATTRIBUTES_POSITION:]) != crc:
        return None
    sequences = None
    if producer_id >= 0:
        sequences = Sequences(producer_id, epoch, first, first + count - 1)
        if not partition.log.producers.follows(sequences):
            header = BatchHeader._make(HEADER.unpack_from(data, start))
            batches = ValidatedBatches(batch, [(0, header)], latest, latest_index, count)
            return _append_validated(partition, index, batch, batches, now_ms)
    try:
        base = partition.append_plain(
            batch, records=count, max_timestamp=latest, now_ms=now_ms, sequences=sequences
        )
    except KafkaError:
        _BASE_OFFSET.pack_into(batch, 0, 0)  # A batch with an offset is not what a client sends.
        raise
    return index, base, _NO_APPEND_TIME, partition.log.log_start_offset


def _append_packed(
    partition: Partition, index: int, batch: memoryview, *, rules: ProduceRules, now_ms: int
) -> PlainAnswer | None:
    """Validate and append a compressed batch outside transactions; None if it is not sound."""
    if (
        not HEADER_SIZE <= len(batch) <= PACKED_BYTES_MAX
        or batch[MAGIC_POSITION] != 2
        or batch[ATTRIBUTES_POSITION]
        or not 0 < batch[ATTRIBUTES_POSITION + 1] <= CODEC_MASK
    ):
        return None
    try:
        batches = validate_produce(batch, rules=rules, now_ms=now_ms, at_once=AT_ONCE_BYTES)
    except (InvalidBatch, TooMuchAtOnce):
        return None
    return _append_validated(partition, index, batch, batches, now_ms)


def _append_validated(
    partition: Partition, index: int, batch: memoryview, batches: ValidatedBatches, now_ms: int
) -> PlainAnswer:
    """Append what was found sound in `batch`; raises as `_append`."""
    try:
        info = partition.append(batches, now_ms=now_ms)
    except KafkaError:
        _BASE_OFFSET.pack_into(batch, 0, 0)
        raise
    return index, info.first_offset, info.log_append_time, info.log_start_offset
