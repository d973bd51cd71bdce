"""The check of what a client produces, under the rules that a topic and a version can set.

Input: four bytes that choose the rules and whether length and checksum are mended, then the
records of one partition.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from barnabas_broker.log import validator
from barnabas_broker.log.validator import (
    InvalidBatch,
    ProduceRules,
    TooMuchAtOnce,
    ValidatedBatches,
    validate_produce,
)
from barnabas_kafka.records import batch, walk
from barnabas_kafka.records.batch import TimestampType
from barnabas_kafka.records.compression import Codec
from fuzz import pure_walk
from fuzz.batches import NOW_MS, mend, random_batch
from fuzz.oracle import promise

_COMPACT, _APPEND_TIME, _NARROW, _MEND, _SMALL = 1, 2, 4, 8, 16
_VERSIONS: Final = (2, 3, 6, 7, 9)
_TARGETS: Final = (None, *Codec)
_HEAD: Final = 4
_NARROW_MS: Final = 60_000
_INFLATED_MAX: Final = 1 << 20

Verdict = tuple[Any, ...]


def check(data: bytes) -> None:
    """The verdict is one of those that are told, and the same however it is come by."""
    if len(data) < _HEAD:
        return
    flags, version, codec, _ = data[:_HEAD]
    rules = _rules(flags, _VERSIONS[version % 5], _TARGETS[codec % 6])
    records = mend(data[_HEAD:]) if flags & _MEND else data[_HEAD:]
    verdict, accepted = _verdict(records, rules)
    slow = replace(rules)
    object.__setattr__(slow, "rebuilds_plain", True)
    for other, way in ((rules, pure_walk.load()), (slow, walk)):
        promise(verdict == _verdict(records, other, way)[0], "another verdict", verdict, way)
    if accepted is not None:
        _is_sound(accepted, rules)


def _rules(flags: int, version: int, codec: Codec | None) -> ProduceRules:
    bound = _NARROW_MS if flags & _NARROW else walk.LARGEST
    return ProduceRules(
        compact=bool(flags & _COMPACT),
        max_message_bytes=200 if flags & _SMALL else 1 << 20,
        timestamp_type=TimestampType.APPEND if flags & _APPEND_TIME else TimestampType.CREATE,
        timestamp_before_max_ms=bound,
        timestamp_after_max_ms=bound,
        target_codec=codec,
        request_version=version,
        decompressed_limit=_INFLATED_MAX,
    )


def _verdict(
    records: bytes, rules: ProduceRules, way: Any = walk
) -> tuple[Verdict, ValidatedBatches | None]:
    """What is answered, with everything that the log would act on."""
    here = vars(validator)
    here["walk"], here["plain_batch"] = way.walk, way.plain_batch
    try:
        accepted = validate_produce(records, rules=rules, now_ms=NOW_MS)
    except InvalidBatch as error:
        promise(len(error.record_errors) <= validator.RECORD_ERRORS_LIMIT, "too many complaints")
        return (error.code, str(error), error.record_errors), None
    except TooMuchAtOnce:
        promise(False, "told that it is too much where nothing is")
    finally:
        here["walk"], here["plain_batch"] = walk.walk, walk.plain_batch
    return (
        bytes(accepted.buffer),
        accepted.headers,
        accepted.max_timestamp,
        accepted.offset_of_max_timestamp,
        accepted.record_count,
        accepted.converted_records,
    ), accepted


def _is_sound(accepted: ValidatedBatches, rules: ProduceRules) -> None:
    """What is let in can be read again, says of itself what is so, and would be let in again."""
    buffer = bytes(accepted.buffer)
    ((position, header),) = list(batch.headers(buffer))
    promise((position, header.size) == (0, len(buffer)), "not one whole batch")
    promise(header.size <= rules.max_message_bytes, "larger than allowed", header.size)
    batch.verify_crc(buffer, 0, header)
    records = batch.records(buffer, limit=_INFLATED_MAX)
    promise([r.offset for r in records] == list(range(accepted.record_count)), "offsets")
    latest = max(walk.NO_TIMESTAMP, *(record.timestamp for record in records))
    promise(latest == accepted.max_timestamp == header.max_timestamp, "latest time", latest)
    if rules.compact:
        promise(all(record.key is not None for record in records), "a record without a key")
    if not header.timestamp_type:
        again = replace(rules, request_version=9, target_codec=None)
        kept = validate_produce(buffer, rules=again, now_ms=NOW_MS)
        promise(bytes(kept.buffer) == buffer, "changed when it is produced again")


def seeds() -> Iterator[bytes]:
    """Batches of every format and codec, under the usual rules and under random ones."""
    chance = random.Random(3)
    for magic in (0, 1, 2):
        for codec in Codec:
            usual = bytes((_MEND, 4 if magic == 2 else 0, 0, 0))
            yield usual + random_batch(chance, magic, codec)
            some = bytes((chance.randrange(32) | _MEND, 4 if magic == 2 else 0, codec, 0))
            yield some + random_batch(chance, magic, codec)
    yield bytes((_MEND, 0, 0, 0)) + b"".join(random_batch(chance, 1, Codec.NONE) for _ in "ab")
