"""The short way of a Fetch request that is ordinary in everything, from frame to what is sent.

Raw throughput is a matter of few system calls and of little else between them, so that what the
general way (`server.requests.handlers.fetch`) does with objects, for sessions of thousands of
partitions and for followers, is done with tuples for the common request of a consumer: a few
partitions without a session, of which there is enough to answer with at once. Every check of the
general way is made here too. Nothing is changed before all of them have passed, so that whatever is
not ordinary, errors and waits included, simply goes the general way from its beginning.
"""

import logging
from time import perf_counter_ns
from typing import TYPE_CHECKING, Final
from uuid import UUID

from barnabas_broker.log.files import FileSlice
from barnabas_broker.replica.partition import READ_COMMITTED, Partition
from barnabas_broker.security.acls import AclOperation, ResourcePattern, ResourceType
from barnabas_broker.security.authorizer import Authorizer
from barnabas_broker.server.requests.client_quotas import ClientQuotas
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
from barnabas_kafka.settings import broker as keys

if TYPE_CHECKING:
    from barnabas_broker.server.requests.broker_services import BrokerServices
    from barnabas_broker.server.requests.dispatch import Caller

log = logging.getLogger(__name__)

HEADER_BYTES: Final = 4
FIRST_FLEXIBLE: Final = 12
"""Without the correlation id, and what stands behind it from that version on, an answer is as large
as it counts for quotas (Kafka's `FetchResponse.sizeOf`)."""

PARTITIONS_AT_ONCE: Final = 100
"""Requests for more are served in turns: these take a fraction of a millisecond."""

FRAME_BYTES_AT_ONCE: Final = 64 << 10
"""Larger requests are not ordinary, whatever they hold: they are not even copied to be read."""

# An enum's members are looked up several times slower than names of the module.
_TOPIC: Final = ResourceType.TOPIC
_READ: Final = AclOperation.READ

_Found = list[tuple[Partition, FileSlice, PlainFound]]


class PlainFetches:
    """Serves what is ordinary, and leaves the rest alone."""

    __slots__ = ("_authorizer", "_broker", "_quotas")

    def __init__(
        self, broker: "BrokerServices", authorizer: Authorizer, quotas: ClientQuotas
    ) -> None:
        self._broker = broker
        self._authorizer = authorizer
        self._quotas = quotas

    def serve(
        self, frame: memoryview, version: int, correlation_id: int, caller: "Caller", now_ms: int
    ) -> list[Item] | None:
        """What to send, or None for a request that the general way has to look at."""
        try:
            return self._serve(frame, version, correlation_id, caller, now_ms)
        except (KafkaError, UnicodeDecodeError):
            return None  # In which words to say so is known there.
        except Exception:  # The boundary between one request and the broker's life.
            log.exception("Request failed: Fetch version %d from %s", version, caller.client_host)
            return None

    def _serve(
        self, frame: memoryview, version: int, correlation_id: int, caller: "Caller", now_ms: int
    ) -> list[Item] | None:
        began_ns = perf_counter_ns() if self._quotas.active else 0
        if len(frame) > FRAME_BYTES_AT_ONCE:
            return None
        request = read(bytes(frame), version, PARTITIONS_AT_ONCE)
        if request is None or (request.names_rack and self._broker.selector is not None):
            return None  # A replica may have to be picked.
        found = self._read(request, version, caller)
        if found is None:
            return None
        parts = answer(
            version,
            correlation_id,
            0,
            request.topics,
            [each[2] for each in found],
            committed=request.isolation_level == READ_COMMITTED,
        )
        if began_ns:
            size = sum(map(len, parts)) + sum([each[1].length for each in found])
            throttle_ms = self._quotas.fetched(
                caller.principal.name,
                request.client_id,
                size - HEADER_BYTES - (version >= FIRST_FLEXIBLE),
                perf_counter_ns() - began_ns,
            )
            if throttle_ms:
                caller.throttle(throttle_ms)
                return [*answer(version, correlation_id, throttle_ms, [], [], committed=False)]
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

    def _read(self, request: PlainFetch, version: int, caller: "Caller") -> _Found | None:
        """The records of each partition, None if one is not ordinary or they are too few.

        Raises KafkaError for a partition that cannot be read, UnicodeDecodeError for a name.
        """
        limit = remaining = self._limit(request, caller)
        if limit <= 0:
            return None
        found: _Found = []
        for written, wanted in request.topics:
            name = self._name(written) if version >= FIRST_BY_ID else str(written, "utf-8")
            if not self._authorizer.authorize(
                caller.principal,
                caller.client_host,
                _READ,
                ResourcePattern(_TOPIC, name),
                log_if_denied=False,
            ):
                return None
            for each in wanted:
                partition = self._broker.replicas.led(name, each[0])
                one = _read(partition, each, request.isolation_level, remaining, limit=limit)
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

    def _limit(self, request: PlainFetch, caller: "Caller") -> int:
        """The most that is read: a larger response would only be throttled."""
        limit = min(request.max_bytes, self._broker.settings[keys.FETCH_MAX_BYTES])
        quotas = self._quotas
        if not quotas.active:
            return limit
        return min(limit, quotas.fetch_max_bytes(caller.principal.name, request.client_id))

    def _name(self, written: bytes) -> str:
        """The name of a topic given by its id; one that nobody has for ids of nothing here."""
        image = self._broker.image
        topic_id = UUID(bytes=written)
        name = image.topic_ids.get(topic_id, "")
        topic = image.topics.get(name)
        return name if topic is not None and topic.id == topic_id else ""


def _read(
    partition: Partition, wanted: PlainWanted, isolation_level: int, remaining: int, *, limit: int
) -> tuple[Partition, FileSlice, PlainFound] | None:
    """The records of one partition; None where that is not ordinary. Raises KafkaError.

    A first batch that is larger than the limits comes whole while nothing was found before.
    """
    _, leader_epoch, offset, last_epoch, max_bytes = wanted
    stored = partition.log
    if (
        last_epoch >= 0
        or stored.failure is not None
        or (leader_epoch >= 0 and leader_epoch != partition.state.leader_epoch)
    ):
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
