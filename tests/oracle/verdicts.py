"""The same bytes to two brokers, and what each makes of them.

A request is made from a seed alone, so that a difference is seen again by naming its seed:
`python -m tests.oracle.verdicts --seed N --count 1`. It is valid but random; or one of its fields
is; or some of its bytes are. The verdict is that the connection is closed, or every error code of
the answer by its place, or that there is no answer and the next request is served.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from barnabas_broker.server.requests.dispatch import collect_handlers
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.ids import ZERO_UUID
from barnabas_kafka.protocol import codec
from barnabas_kafka.protocol.headers import (
    RequestHeader,
    decode_request_header,
    decode_response_header,
    encode_request_header,
)
from barnabas_kafka.protocol.messages.api_versions import ApiVersionsRequest
from barnabas_kafka.protocol.messages.fetch import FetchResponse
from barnabas_kafka.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from barnabas_kafka.protocol.messages.produce import ProduceResponse
from barnabas_kafka.protocol.registry import ApiKey, VersionRange, api
from barnabas_kafka.protocol.schema import Struct
from barnabas_kafka.records import batch
from fuzz.messages import ByName, random_message
from tests.clients.brokers import Barnabas
from tests.clients.wire import Wire, fetch, sized
from tests.oracle.apache import ApacheKafka
from tests.oracle.sides import CLOSED, SILENCE, SILENT, Side
from tests.oracle.test_damaged_batches import damaged, is_as_it_should_be
from tests.waiting import ANSWER, seconds

#: What records are stamped with. A seed is the same request whenever it is asked.
SOME_TIME_MS: Final = 1_700_000_000_000
INVALID_REQUEST: Final = ErrorCode.INVALID_REQUEST
PASSED_OVER: Final = "no answer, and the next request is served"
UNREADABLE: Final = "an answer that is none"

#: Requests that leave nothing behind but what Produce appends.
KINDS: Final = (
    ApiKey.PRODUCE, ApiKey.PRODUCE, ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.LIST_OFFSETS,
    ApiKey.METADATA, ApiKey.API_VERSIONS, ApiKey.OFFSET_FOR_LEADER_EPOCH, ApiKey.DESCRIBE_CONFIGS,
    ApiKey.INIT_PRODUCER_ID, ApiKey.CREATE_TOPICS, ApiKey.CREATE_PARTITIONS,
)  # fmt: skip
TOPICS: Final[dict[str, dict[str, Any]]] = {
    "plain": {"retention_ms": "-1"},
    "compacted": {"cleanup_policy": "compact"},
    "stamped": {"message_timestamp_type": "LogAppendTime"},
}
_NAMES: Final = (*TOPICS, *TOPICS, "unknown", "..", "a/b", "", "n" * 250)
_PARTITIONS: Final = (0, 0, 0, 1, -1, 99)

_BY_NAME: Final[ByName] = {
    "acks": (-1, 1, 1, 0, 2), "allow_auto_topic_creation": (False,), "cluster_id": (None, "c"),
    "current_leader_epoch": (-1, 0, 9), "fetch_offset": (0, 1, 7, -1, 2**62),
    "index": _PARTITIONS, "isolation_level": (0, 1), "last_fetched_epoch": (-1,),
    "leader_epoch": (-1, 0, 9), "log_start_offset": (-1, 0), "max_bytes": (1 << 20, 1000, 0),
    "max_wait_ms": (0,), "min_bytes": (0,), "name": _NAMES, "partition": _PARTITIONS,
    "partition_index": _PARTITIONS, "partition_max_bytes": (1 << 20, 100, 0),
    "producer_epoch": (-1,), "producer_id": (-1,), "replica_epoch": (-1,), "replica_id": (-1,),
    "resource_name": (*_NAMES, "0"), "resource_type": (2, 2, 2, 4, 0, 99), "session_epoch": (-1,),
    "session_id": (0,), "timeout_ms": (5000,), "timestamp": (-1, -2, -3, SOME_TIME_MS),
    "topic": _NAMES, "topic_id": (ZERO_UUID,), "transaction_timeout_ms": (60_000,),
    "transactional_id": (None,), "validate_only": (True,),
}  # fmt: skip


#: What our broker serves; of it what Apache of the same release offers too.
_SERVED: Final = {handler.api_key: handler.versions for handler in collect_handlers()}
_OFFERED: Final = {**_SERVED, ApiKey.PRODUCE: VersionRange(0, 11)}


@dataclass(frozen=True)
class Asked:
    """One request as it is sent."""

    seed: int
    kind: ApiKey
    version: int
    how: str
    frame: bytes

    def __str__(self) -> str:
        name = f"{self.kind.name.lower()} {self.version}"
        return f"seed {self.seed}: {name}, {self.how}: {self.frame.hex()}"


def request(seed: int) -> Asked:
    """The request of a seed."""
    chance = random.Random(seed)
    kind = chance.choice(KINDS)
    versions = _OFFERED[kind]
    version = chance.randint(versions.min, versions.max)
    few = (None, b"", chance.randbytes(70))
    damaged_batch = damaged(chance, SOME_TIME_MS)
    by_name: dict[str, Sequence[Any]] = {
        **_BY_NAME,
        "records": (*[damaged_batch] * 12, *few),
    }
    how = chance.choice(("as it is", "as it is", "a field", "bytes"))
    if how == "a field":
        # A field that then takes anything; what makes a broker wait or act stays as it is.
        free = ("acks", "index", "name", "partition", "timestamp", "topic", "resource_type")
        by_name.pop(chance.choice(free))
    body = codec.encode(random_message(api(kind).request, version, chance, by_name), version)
    if how == "bytes":
        body = _spoiled(body, chance)
        if chance.random() < 0.1:
            version = chance.choice((-1, _SERVED[kind].max + 1, 99))
    flexible = version if version in versions else versions.max
    header = encode_request_header(
        RequestHeader(kind, version, 1, "fuzz"), api(kind).request_header_version(flexible)
    )
    return Asked(seed, kind, version, how, sized(header + body))


def _spoiled(body: bytes, chance: random.Random) -> bytes:
    spoiled = bytearray(body)
    for _ in range(chance.choice((1, 1, 2))):
        at = chance.randrange(len(spoiled) + 1)
        match chance.randrange(4):
            case 0:
                del spoiled[at:]
            case 1:
                del spoiled[at : at + 1]
            case 2:
                spoiled[at:at] = chance.randbytes(chance.choice((1, 4)))
            case _:
                spoiled[at : at + 1] = chance.choice((b"\x00", b"\x7f", b"\x80", b"\xff"))
    return bytes(spoiled)


def verdict(bootstrap: str, asked: Asked, within: float = ANSWER) -> Any:
    """What a broker makes of a request, if it answers within so many machine seconds."""
    header = encode_request_header(RequestHeader(ApiKey.API_VERSIONS, 0, 2, "fuzz"))
    after = sized(header + codec.encode(ApiVersionsRequest(), 0))
    try:
        with Wire(bootstrap, timeout_s=seconds(within)) as wire:
            wire.send(asked.frame)
            wire.send(after)
            data = wire.receive_frame()
    except (EOFError, ConnectionError):
        return CLOSED
    except TimeoutError:
        return SILENCE
    if data[:4] == b"\0\0\0\2":
        return PASSED_OVER
    kind = api(asked.kind)
    version = asked.version if asked.version in kind.versions else 0
    try:
        _, position = decode_response_header(data, kind.response_header_version(version))
        answer, _ = codec.decode_from(kind.response, data, version, position)
    except codec.DecodeError:
        return UNREADABLE
    codes = dict(_codes(answer))
    if isinstance(answer, ProduceResponse):
        codes |= _readable(bootstrap, answer)
    return codes


def _readable(bootstrap: str, answer: ProduceResponse) -> dict[str, Any]:
    """What is read at the offset that an append was told, seen from there."""
    found: dict[str, Any] = {}
    for topic in answer.responses:
        for partition in topic.partition_responses:
            base = partition.base_offset
            if partition.error_code or base < 0:
                continue
            with Wire(bootstrap) as wire:
                reported = wire.ask(fetch(topic.name, base), FetchResponse, 11)
            data = reported.responses[0].partitions[0].records
            assert isinstance(data, (bytes, memoryview))
            header = batch.parse_header(data)
            append_time = bool(header.timestamp_type)
            found[f"{topic.name} holds"] = (
                header.base_offset - base, header.attributes, header.last_offset_delta,
                header[9:], append_time or header.max_timestamp,
                [
                    (record.offset - base, append_time or record.timestamp, *record[2:])
                    for record in batch.records(data)
                ],
            )  # fmt: skip
    return found


def _codes(value: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    """Every error code of an answer by its place."""
    for name in type(value).__fields__ if isinstance(value, Struct) else ():
        content = getattr(value, name)
        if name == "error_code":
            yield f"{place}.{name}", content
        elif isinstance(content, list):
            seen: dict[str, int] = {}
            for element in content:
                own = _own_name(element)
                seen[own] = seen.get(own, 0) + 1
                yield from _codes(element, f"{place}.{name}[{own}#{seen[own]}]")


def _own_name(element: Any) -> str:
    names = ("name", "topic", "resource_name", "partition_index", "index", "partition")
    return next((str(getattr(element, name)) for name in names if hasattr(element, name)), "")


def _has_ids(answer: InitProducerIdResponse) -> bool:
    """Apache asks its controller for the first producer ids when somebody wants one."""
    return not answer.error_code


@contextmanager
def both(directory: Path) -> Iterator[tuple[str, str]]:
    """Apache's broker and ours, with the same topics."""
    with (
        ApacheKafka(directory=directory / "apache", heap="512M") as apache,
        Barnabas(directory / "barnabas", {"broker.id": "0"}) as barnabas,
    ):
        for bootstrap in (apache.bootstrap, barnabas.bootstrap):
            side = Side(bootstrap)
            for name, config in TOPICS.items():
                side.topic(name, **config)
            side.ask_until(
                "ids", InitProducerIdRequest(transaction_timeout_ms=1000, transactional_id=None), 1,
                settled=_has_ids,
            )  # fmt: skip
            side.close()
        yield apache.bootstrap, barnabas.bootstrap


def purpose(asked: Asked, theirs: Any, ours: Any) -> str | None:
    """Why the two differ, where that is on purpose."""
    if ours in (SILENCE, UNREADABLE) or -1 in _values(ours):
        return None
    if theirs == SILENCE or -1 in _values(theirs):
        return "Apache stumbles, we say what is wrong or what is there"
    if ours == CLOSED and "utf-8" in _fault(asked):
        return "Apache puts another character where text is no UTF-8, we refuse the request"
    if asked.kind is ApiKey.CREATE_TOPICS and any("#2" in p for p in theirs):
        return "Apache answers twice for a topic named twice, we once"
    if asked.kind is ApiKey.CREATE_PARTITIONS and ErrorCode.INVALID_REPLICA_ASSIGNMENT in _values(
        theirs
    ):
        return "Apache's number of new partitions overflows, we judge the number first"
    if asked.kind is ApiKey.CREATE_TOPICS and ErrorCode.POLICY_VIOLATION in _values(ours):
        return "we bound the partitions of a topic, and judge that first"
    if asked.kind is ApiKey.PRODUCE and isinstance(theirs, dict) and isinstance(ours, dict):
        return _purpose_of_produce(theirs, ours)
    if asked.kind is ApiKey.DESCRIBE_CONFIGS and all(
        code == INVALID_REQUEST for code in _values(theirs)
    ):
        return "Apache refuses all resources for one of no known type, we that one"
    return None


def _purpose_of_produce(theirs: dict[str, Any], ours: dict[str, Any]) -> str | None:
    if theirs and all(code == ErrorCode.CORRUPT_MESSAGE for code in theirs.values()):
        return "Apache refuses all partitions for bytes of one that are no batch, we that one"
    if ErrorCode.INVALID_REQUIRED_ACKS in ours.values():
        return "of several faults we judge the acks first, Apache the records"
    if any("#2" in place for place in ours):
        return "Apache answers for a partition named twice once, we each time"
    places = [place for place in ours if place.endswith("error_code")]
    if {place for place in places if "[" in place} != {p for p in theirs if p in places}:
        return None
    topic = "plain"
    for place in places:
        codes = ErrorCode(theirs[place]), ErrorCode(ours[place])
        if codes[0] is not codes[1] and not is_as_it_should_be(*codes, topic):
            return None
    return "we are stricter: what would be stored could not be read" if places else None


def _fault(asked: Asked) -> str:
    """What our codecs say to the bytes, empty where they are a request."""
    data = asked.frame[4:]
    try:
        header, position = decode_request_header(data)
        codec.decode_from(api(asked.kind).request, data, header.api_version, position)
    except (codec.DecodeError, codec.EncodeError) as error:
        return str(error)
    return ""


def _values(reported: Any) -> list[Any]:
    return list(reported.values()) if isinstance(reported, dict) else [reported]


def differing(sides: tuple[str, str], seeds: Sequence[int]) -> Iterator[tuple[Asked, Any, Any]]:
    """The requests that the two judge differently, with Apache's verdict and ours, by accident."""
    for seed in seeds:
        asked = request(seed)
        theirs, ours = verdict(sides[0], asked, SILENT), verdict(sides[1], asked)
        if theirs != ours and purpose(asked, theirs, ours) is None:
            yield asked, theirs, ours


def main() -> int:
    """Ask as often as is said; returns 1 if a difference is found."""
    parser = argparse.ArgumentParser(prog="python -m tests.oracle.verdicts", description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="of the first request")
    parser.add_argument("--count", type=int, default=1000, help="of requests")
    given = parser.parse_args()
    seeds = range(given.seed, given.seed + given.count)
    found = 0
    with tempfile.TemporaryDirectory() as directory, both(Path(directory)) as sides:
        for asked, theirs, ours in differing(sides, seeds):
            found += 1
            print(f"{asked}\n  Apache: {theirs}\n  ours:   {ours}", flush=True)
    print(f"{given.count} requests, {found} judged differently", flush=True)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
