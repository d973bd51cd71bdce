"""Runs of small Produce requests that came together, appended with one write.

A client that pipelines sends several requests in one packet, most often for one partition. Where
requests that follow each other in what one read brought are all of the kind that
`server.requests.fast.produce` serves, of one batch without producer id each, for the same
partition, their batches are written at once. Each is judged by itself, and answered by itself and
in order once the write has returned; offsets, files and answers are what they would be one by one.

While there are quotas each request is served by itself: the one behind it may have to wait.

Nothing is changed before the write. The first request that differs in anything ends the run, and
is served behind it as if it had come alone. Where the log does not take the run as a whole (a new
segment is due, the disk has no room for all), nothing has happened, and all go one by one.
"""

import logging
from struct import Struct
from time import perf_counter_ns
from typing import TYPE_CHECKING, Final

from barnabas_broker.log.partition_log import PlainBatch
from barnabas_broker.log.validator import ProduceRules
from barnabas_broker.replica.partition import Partition
from barnabas_broker.security.acls import AclOperation, ResourcePattern, ResourceType
from barnabas_broker.security.authorizer import Authorizer
from barnabas_broker.server.requests.api_metrics import ApiMetrics
from barnabas_broker.server.requests.client_quotas import ClientQuotas
from barnabas_broker.server.requests.handler import UnanswerableError
from barnabas_kafka.errors import KafkaError
from barnabas_kafka.protocol.plain_produce import PlainRequest, answer, read
from barnabas_kafka.protocol.registry import ApiKey, VersionRange
from barnabas_kafka.records.batch import ATTRIBUTES_POSITION
from barnabas_kafka.records.crc import crc32c
from barnabas_kafka.records.walk import LARGEST, plain_batch
from barnabas_kafka.settings import broker as keys

if TYPE_CHECKING:
    from barnabas_broker.server.requests.broker_services import BrokerServices
    from barnabas_broker.server.requests.dispatch import Caller

log = logging.getLogger(__name__)

REQUESTS_MAX: Final = 16
"""Requests of one run: a tenth of a millisecond at most, a third of a session's turn."""

REQUEST_BYTES_MAX: Final = 4 << 10
"""Larger requests go one by one: to copy their batches together costs what a write does."""

#: What a request begins with: its size, API key and version, correlation id.
HEAD: Final = Struct(">ihhi")
_LEAST: Final = HEAD.size
_SIZE_BYTES: Final = 4
_HEAD_BYTES: Final = HEAD.size - _SIZE_BYTES
#: Where in a batch its checksum and its producer id are.
_CRC_AND_PRODUCER: Final = Struct(">17xI22xq")

_ANSWERED: Final = (-1, 1)
"""The values of `acks` with which there is an answer."""

_NO_APPEND_TIME: Final = -1

# An enum's members are looked up several times slower than names of the module.
_API_KEY: Final = int(ApiKey.PRODUCE)
_TOPIC: Final = ResourceType.TOPIC
_WRITE: Final = AclOperation.WRITE


class Run:
    """Requests that were found sound, in their order, for one partition; nothing is changed yet."""

    __slots__ = (
        "_acks",
        "_index",
        "_name",
        "_newest",
        "_oldest",
        "_rules",
        "batches",
        "partition",
        "pieces",
        "requests",
    )

    def __init__(
        self, partition: Partition, rules: ProduceRules, first: PlainRequest, now_ms: int
    ) -> None:
        _, self._acks, ((_, self._name, ((self._index, _, _),)),) = first
        self._rules = rules
        self._oldest = now_ms - rules.timestamp_before_max_ms
        self._newest = min(now_ms + rules.timestamp_after_max_ms, LARGEST)
        self.partition = partition
        self.requests: list[tuple[int, PlainRequest]] = []  # With their correlation ids.
        self.batches: list[PlainBatch] = []
        self.pieces: list[bytes] = []

    def takes(self, data: bytes, correlation_id: int, request: PlainRequest) -> bool:
        """Add a request, of one partition, whose content is `data`; false where that cannot be."""
        _, acks, ((_, name, ((index, start, end),)),) = request
        if name != self._name or index != self._index or acks != self._acks:
            return False
        rules = self._rules
        count, latest, _ = plain_batch(
            data,
            start,
            end,
            largest=rules.max_message_bytes,
            oldest=self._oldest,
            newest=self._newest,
            key_required=rules.compact,
        )
        if not count:
            return False
        batch = data[start:end]
        crc, producer_id = _CRC_AND_PRODUCER.unpack_from(batch)
        if producer_id >= 0 or crc32c(batch[ATTRIBUTES_POSITION:]) != crc:
            return False
        self.requests.append((correlation_id, request))
        self.batches.append((end - start, count, latest))
        self.pieces.append(batch)
        return True

    def append(self, now_ms: int) -> int | None:
        """Append all batches; the first offset, or None where nothing was appended."""
        data = bytearray().join(self.pieces)
        return self.partition.append_run(data, self.batches, now_ms=now_ms)


class ProduceRuns:
    """Serves what can be served together, and says where the rest begins."""

    __slots__ = ("_authorizer", "_largest", "_metrics", "_quotas", "_replicas", "_versions")

    def __init__(
        self,
        broker: "BrokerServices",
        authorizer: Authorizer,
        quotas: ClientQuotas,
        *,
        versions: VersionRange,
        metrics: ApiMetrics,
    ) -> None:
        self._authorizer = authorizer
        self._largest = min(REQUEST_BYTES_MAX, broker.settings[keys.SOCKET_REQUEST_MAX_BYTES])
        self._metrics = metrics
        self._quotas = quotas
        self._replicas = broker.replicas
        self._versions = versions

    def serve(
        self, received: memoryview, position: int, caller: "Caller", now_ms: int
    ) -> tuple[bytes, int] | None:
        """Serve the requests, sizes included, that make a run from the whole one at `position` on.

        Returns the responses and where the request behind them begins; None where there is no
        run, nothing being changed then. Raises UnanswerableError for any bug: what was appended
        is not known then, so that nothing may be tried again.
        """
        if len(received) - position < _LEAST:
            return None
        _, api_key, version, _ = HEAD.unpack_from(received, position)
        if api_key != _API_KEY or self._quotas.active:
            return None
        try:
            return self._serve(received, position, version, caller, now_ms=now_ms)
        except Exception as error:  # The boundary between requests and the broker's life.
            log.exception("Request failed: Produce version %d from %s", version, caller.client_host)
            raise UnanswerableError("Produce failed and cannot say so") from error

    def _serve(
        self, received: memoryview, position: int, version: int, caller: "Caller", *, now_ms: int
    ) -> tuple[bytes, int] | None:
        began_ns = perf_counter_ns()
        run: Run | None = None
        for _ in range(REQUESTS_MAX):
            correlation_id, data = self._frame(received, position, version)
            request = read(data, version, 1)
            if request is None or len(request[2][0][2]) != 1:
                break
            if run is None:
                run = self._begin(request, version, caller, now_ms)
            if run is None or not run.takes(data, correlation_id, request):
                break
            position += _SIZE_BYTES + len(data)
        if run is None or not run.requests:
            return None
        offset = run.append(now_ms)
        if offset is None:
            return None
        answers = self._answers(run, version, offset)
        self._metrics.served(version, perf_counter_ns() - began_ns, requests=len(answers))
        return b"".join(answers), position

    def _frame(self, received: memoryview, position: int, version: int) -> tuple[int, bytes]:
        """Number and content of the request at `position`; none unless it is of that version."""
        if len(received) - position < _LEAST:
            return 0, b""
        size, api_key, its_version, correlation_id = HEAD.unpack_from(received, position)
        start = position + _SIZE_BYTES
        if (
            api_key != _API_KEY
            or its_version != version
            or not _HEAD_BYTES <= size <= self._largest
            or size > len(received) - start
        ):
            return 0, b""
        return correlation_id, bytes(received[start : start + size])

    def _begin(
        self, request: PlainRequest, version: int, caller: "Caller", now_ms: int
    ) -> Run | None:
        """A run for the partition of `request`, if the caller may write and records count there."""
        _, acks, ((topic, _, ((index, _, _),)),) = request
        if acks not in _ANSWERED or not self._versions.min <= version <= self._versions.max:
            return None
        resource = ResourcePattern(_TOPIC, topic)
        if not self._authorizer.authorize(
            caller.principal, caller.client_host, _WRITE, resource, log_if_denied=False
        ):
            return None
        try:
            partition = self._replicas.led(topic, index)
            rules = partition.rules.produce_rules(version)
        except KafkaError:
            return None
        if rules.rebuilds_plain or not partition.counts_at_once(acks):
            return None
        return Run(partition, rules, request, now_ms)

    def _answers(self, run: Run, version: int, offset: int) -> list[bytes]:
        """The response to each request, the first of whose records got `offset`."""
        log_start = run.partition.log.log_start_offset
        answers = []
        for (correlation_id, request), (_, count, _) in zip(run.requests, run.batches, strict=True):
            topics = request[2]
            done = [(topics[0][2][0][0], offset, _NO_APPEND_TIME, log_start)]
            answers.append(answer(version, correlation_id, topics, done, 0))
            offset += count
        return answers
