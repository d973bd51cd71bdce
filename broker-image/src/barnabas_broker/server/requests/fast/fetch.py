"""The fast route of Fetch, for a request that is ordinary in everything.

Raw throughput is a matter of few system calls and of little else between them, so that what the
handler does with objects, for sessions of thousands of partitions and for followers, is done with
tuples for the common request of a consumer: a few partitions without a session, of which there is
enough to answer with at once. What is checked of each partition is checked in `fetch_checks`.
Nothing changes before all partitions have passed, so that anything unusual, errors and
waits included, simply goes to the handler.
"""

from typing import Final
from uuid import UUID

from barnabas_broker.log.files import FileSlice
from barnabas_broker.replica.partition import READ_COMMITTED, Partition
from barnabas_broker.server.requests.fetch_checks import most_bytes, readable
from barnabas_broker.server.requests.request_context import RequestContext
from barnabas_broker.server.transport.outbound import Item
from barnabas_kafka.errors import KafkaError
from barnabas_kafka.protocol.plain_fetch import (
    FIRST_BY_ID,
    PlainFetch,
    PlainFound,
    PlainWanted,
    answer,
    read,
)

HEADER_BYTES: Final = 4
FIRST_FLEXIBLE: Final = 12
"""Without the correlation id, and the tagged fields after it from that version on, an answer is as
large as it counts for quotas (Kafka's `FetchResponse.sizeOf`)."""

PARTITIONS_AT_ONCE: Final = 100
"""Requests for more are served in time slices: these take a fraction of a millisecond."""

FRAME_BYTES_AT_ONCE: Final = 64 << 10
"""Larger requests are not ordinary, whatever they hold: they are not even copied to be read."""

_Found = list[tuple[Partition, FileSlice, PlainFound]]


def serve(frame: memoryview, call: RequestContext) -> list[Item] | None:
    """What to send, or None for a request that needs the handler."""
    if len(frame) > FRAME_BYTES_AT_ONCE:
        return None
    version = call.version
    request = read(bytes(frame), version, PARTITIONS_AT_ONCE)
    if request is None or (request.names_rack and call.broker.selector is not None):
        return None  # A replica may have to be picked.
    call.identify(request.client_id)
    try:
        found = _read(request, call)
    except (KafkaError, UnicodeDecodeError):
        return None  # In which words to say so is known there.
    if found is None:
        return None
    parts = answer(
        version,
        call.correlation_id,
        0,
        request.topics,
        [each[2] for each in found],
        committed=request.isolation_level == READ_COMMITTED,
    )
    usage = call.usage
    if usage is not None:
        size = sum(map(len, parts)) + sum([each[1].length for each in found])
        if not usage.fetched(size - HEADER_BYTES - (version >= FIRST_FLEXIBLE)):
            throttle_ms = usage.throttle_ms
            return [*answer(version, call.correlation_id, throttle_ms, [], [], committed=False)]
    items: list[Item] = [parts[0]]
    for (partition, records, _), behind in zip(found, parts[1:], strict=True):
        traffic = partition.traffic
        traffic.fetches += 1
        traffic.bytes_out += records.length
        if records.length:
            items.append(records)
        if behind:
            items.append(behind)
    return items


def _read(request: PlainFetch, call: RequestContext) -> _Found | None:
    """The records of each partition, None if one is not ordinary or they are too few.

    Raises KafkaError for a partition that cannot be read, UnicodeDecodeError for a name.
    """
    limit = remaining = most_bytes(request.max_bytes, call)
    if limit <= 0:
        return None
    found: _Found = []
    by_id = call.version >= FIRST_BY_ID
    for written, wanted in request.topics:
        topic_id = UUID(bytes=written) if by_id else None
        if topic_id is None:
            name = str(written, "utf-8")
        else:
            name = call.broker.image.topic_ids.get(topic_id, "")
        for each in wanted:
            partition = readable(call, name, topic_id, each[0], each[1])
            one = _read_partition(partition, each, request.isolation_level, remaining, limit=limit)
            if one is None:
                return None
            found.append(one)
            remaining -= one[1].length
            if remaining < 0:
                remaining = 0
    if not found:
        return None
    if request.max_wait_ms > 0:
        size = sum([each[1].length for each in found])
        if size < request.min_bytes and size < limit:
            return None
    return found


def _read_partition(
    partition: Partition, wanted: PlainWanted, isolation_level: int, remaining: int, *, limit: int
) -> tuple[Partition, FileSlice, PlainFound] | None:
    """The records of one partition; None where that is not ordinary. Raises KafkaError.

    A first batch that is larger than the limits comes whole while nothing was found before.
    """
    _, _, offset, last_epoch, max_bytes = wanted
    stored = partition.log
    if last_epoch >= 0:
        return None
    upper_bound = partition.readable_until(isolation_level)
    records = stored.read(
        offset,
        remaining if remaining < max_bytes else max_bytes,
        upper_bound=upper_bound,
        at_least_one=remaining == limit,
    )
    if isolation_level == READ_COMMITTED and stored.aborted_transactions(offset, upper_bound):
        return None
    offsets = stored.high_watermark, stored.last_stable_offset, stored.log_start_offset
    return partition, records, (*offsets, records.length)
