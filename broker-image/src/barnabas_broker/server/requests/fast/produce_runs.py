"""Runs of small Produce requests that came together, appended with one write.

A client that pipelines sends several requests in one packet, most often for one partition. Where
requests that follow each other in what one read brought are all of the kind that
`server.requests.fast.produce` serves, of one batch without producer id each, for the same
partition, their batches are written at once. Each is judged by itself, and answered by itself and
in order once the write has returned; offsets, files and answers are what they would be one by one.

Nothing is changed before the write. The first request that differs in anything ends the run, and
is served behind it as if it had come alone. Where the log does not take the run as a whole (a new
segment is due, the disk has no room for all), nothing has happened, and all go one by one.
"""

from struct import Struct
from typing import Final

from barnabas_broker.cluster.failures import refusal
from barnabas_broker.log.partition_log import PlainBatch
from barnabas_broker.log.validator import ProduceRules
from barnabas_broker.replica.partition import Partition
from barnabas_broker.server.requests.fast.declared import response_frame
from barnabas_broker.server.requests.produce_checks import may_write, writable
from barnabas_broker.server.requests.request_context import RequestContext
from barnabas_kafka.errors import KafkaError
from barnabas_kafka.ids import NO_OFFSET
from barnabas_kafka.protocol import registry
from barnabas_kafka.protocol.messages.produce import (
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from barnabas_kafka.protocol.plain_produce import PlainRequest, answer, read
from barnabas_kafka.protocol.registry import ApiKey
from barnabas_kafka.records.batch import ATTRIBUTES_POSITION
from barnabas_kafka.records.crc import crc32c
from barnabas_kafka.records.walk import LARGEST, plain_batch

REQUESTS_MAX: Final = 16
"""Requests of one run: a tenth of a millisecond at most, a third of a session's turn."""

REQUEST_BYTES_MAX: Final = 4 << 10
"""Larger requests go one by one: to copy their batches together costs what a write does."""

#: What a request begins with: its size, API key and version, correlation id.
HEAD: Final = Struct(">ihhi")
_SIZE_BYTES: Final = 4
_HEAD_BYTES: Final = HEAD.size - _SIZE_BYTES
#: Where in a batch its checksum and its producer id are.
_CRC_AND_PRODUCER: Final = Struct(">17xI22xq")

_ANSWERED: Final = (-1, 1)
"""The values of `acks` with which there is an answer."""

_NO_APPEND_TIME: Final = -1

_API_KEY: Final = int(ApiKey.PRODUCE)


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


def serve_run(
    received: memoryview, position: int, largest: int, call: RequestContext
) -> tuple[list[bytes], int] | None:
    """Serve the requests, sizes included, that make a run from the whole one at `position` on.

    Returns the responses and where the request behind them begins; None where there is no run,
    nothing being changed then.
    """
    try:
        run, position = _gathered(received, position, min(largest, REQUEST_BYTES_MAX), call)
    except KafkaError:  # Met again one by one, and answered.
        return None
    except Exception as error:  # A defect of runs alone must not end them in silence.
        refusal(error, "Gathering requests", "a Produce run")
        return None
    if run is None or not run.requests:
        return None
    try:
        offset = run.append(call.now_ms)
        if offset is None:
            return None
        return _answers(run, call.version, offset), position
    except Exception as error:  # What was appended is not known: it is not tried again.
        refused = refusal(error, "Produce", run.partition.tp)
        return _refusals(run, call, refused), position


def _gathered(
    received: memoryview, position: int, largest: int, call: RequestContext
) -> tuple[Run | None, int]:
    """The requests of a run, and where the one behind them begins."""
    version = call.version
    run: Run | None = None
    for _ in range(REQUESTS_MAX):
        correlation_id, data = _frame(received, position, version, largest)
        request = read(data, version, 1)
        if request is None or len(request[2][0][2]) != 1:
            break
        if run is None:
            run = _begin(request, call)
        if run is None or not run.takes(data, correlation_id, request):
            break
        position += _SIZE_BYTES + len(data)
    return run, position


def _frame(received: memoryview, position: int, version: int, largest: int) -> tuple[int, bytes]:
    """Number and content of the request at `position`; none unless it is of that version."""
    if len(received) - position < HEAD.size:
        return 0, b""
    size, api_key, its_version, correlation_id = HEAD.unpack_from(received, position)
    start = position + _SIZE_BYTES
    if (
        api_key != _API_KEY
        or its_version != version
        or not _HEAD_BYTES <= size <= largest
        or size > len(received) - start
    ):
        return 0, b""
    return correlation_id, bytes(received[start : start + size])


def _begin(request: PlainRequest, call: RequestContext) -> Run | None:
    """A run for the partition of `request`, if the caller may write and records count there."""
    _, acks, ((topic, _, ((index, _, _),)),) = request
    if acks not in _ANSWERED:
        return None
    partition, rules = writable(call, acks, topic, index, allowed=may_write(call, topic))
    if rules.rebuilds_plain or not partition.counts_at_once(acks):
        return None
    return Run(partition, rules, request, call.now_ms)


def _answers(run: Run, version: int, offset: int) -> list[bytes]:
    """The response to each request, the first of whose records got `offset`."""
    log_start = run.partition.log.log_start_offset
    answers = []
    for (correlation_id, request), (_, count, _) in zip(run.requests, run.batches, strict=True):
        topics = request[2]
        done = [(topics[0][2][0][0], offset, _NO_APPEND_TIME, log_start)]
        answers.append(answer(version, correlation_id, topics, done, 0))
        offset += count
    return answers


def _refusals(run: Run, call: RequestContext, error: KafkaError) -> list[bytes]:
    """The response to each request of a run whose append failed; counted as the handler does."""
    tp, traffic = run.partition.tp, run.partition.traffic
    partition = PartitionProduceResponse(
        index=tp.partition,
        error_code=error.code,
        base_offset=NO_OFFSET,
        error_message=error.message,
    )
    topic = TopicProduceResponse(name=tp.topic, partition_responses=[partition])
    response = ProduceResponse(responses=[topic])
    api = registry.api(ApiKey.PRODUCE)
    counts = call.broker.requests.of(api.name)
    answers = []
    for (number, _), batch in zip(run.requests, run.pieces, strict=True):
        counts.failed(error.code)
        traffic.produces += 1
        traffic.produces_failed += 1
        traffic.bytes_rejected += len(batch)
        answers.append(response_frame(api, call.version, number, response))
    return answers
