"""What coordinators share: see also the tests of their shells, which run it in a broker."""

import asyncio
import errno
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from barnabas_broker.cluster.image import (
    OWN_SOFTWARE,
    BrokerRegistration,
    MetadataImage,
    PartitionState,
    TopicImage,
)
from barnabas_broker.coordinator import runtime
from barnabas_broker.coordinator.compatibility import may_write_newest
from barnabas_broker.coordinator.hashing import java_hash, partition_of
from barnabas_broker.coordinator.results import CoordinatorResult
from barnabas_broker.coordinator.runtime import NO_PRODUCER, Limits, Runtime, Unloaded
from barnabas_broker.log.config import LogConfig
from barnabas_broker.log.files import FileSlice
from barnabas_broker.log.partition_log import PartitionLog
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.ids import TopicPartition
from barnabas_kafka.protocol.codec import DecodeError
from barnabas_kafka.protocol.messages.heartbeat import HeartbeatResponse
from barnabas_kafka.records.batch import CorruptBatch
from barnabas_kafka.records.builder import build_batch
from barnabas_kafka.records.compression import Codec
from barnabas_kafka.settings.broker import BrokerSettings
from tests.waiting import wait_for_async

TP = TopicPartition("__consumer_offsets", 0)
LED = PartitionState(replicas=(0,), isr=(0,), leader=0, leader_epoch=0, controller_epoch=0)
IMAGE = MetadataImage(cluster_id="c").with_changes(
    put=(TopicImage(TP.topic, UUID(int=1), (LED,), {}),)
)
CONTENTS = [b"a", b"b", b"c"]

#: What says nothing about a record.
SURROUNDINGS = [
    OSError(errno.EMFILE, "Too many open files"),
    OSError(errno.EIO, "Input/output error"),
    MemoryError(),
]
#: What a bug or bad bytes raise.
OTHERS = [
    ValueError("9 is not a valid MemberState"),
    KeyError("member"),
    AssertionError("never"),
    RecursionError("too deep"),
    DecodeError("cut"),
    CorruptBatch("crooked"),
    KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "offline"),
]
EVERY = [*SURROUNDINGS, *OTHERS]


def test_records_are_non_transactional_by_default() -> None:
    """A turn without a producer is part of no transaction."""
    assert NO_PRODUCER == (-1, -1)
    assert Limits(load_buffer_bytes=1, timeout_ms=1).codec is Codec.NONE


class Faults:
    """Errors to raise: by the place where, one for each time that it comes there."""

    def __init__(self) -> None:
        self.due: dict[str, list[Exception]] = {}

    def meet(self, place: str) -> None:
        """Raise the next error of a place."""
        errors = self.due.get(place)
        if errors:
            raise errors.pop(0)


class Shard:
    """Keeps what it replays."""

    next_ms: int | None = None

    def __init__(self, faults: Faults) -> None:
        self._faults = faults
        self.values: list[bytes] = []
        self.ticks = 0

    def tick(self, now_ms: int) -> None:
        """Nothing is due, but what the faults are for."""
        self.ticks += 1
        self._faults.meet("tick")
        self.next_ms = None

    def replay(self, record: bytes, now_ms: int) -> None:
        if record == b"b":
            self._faults.meet("replay")
        self.values.append(record)

    def loaded(self, now_ms: int) -> Iterator[CoordinatorResult[bytes]]:
        self._faults.meet("loaded")
        yield from ()

    def resign(self, now_ms: int) -> CoordinatorResult[bytes]:
        return CoordinatorResult(now_ms)


class Kind:
    """Records that are their values."""

    def __init__(self, faults: Faults) -> None:
        self._faults = faults

    def decode(self, key: bytes, value: bytes | None) -> bytes | None:
        if value == b"b":
            self._faults.meet("decode")
        return value

    def encode(self, record: bytes) -> tuple[bytes, bytes | None]:
        return record, record

    def in_transaction(self, producer_id: int, record: bytes) -> bytes | None:
        return record

    def ended(self, producer_id: int, *, committed: bool) -> bytes | None:
        return None


class Led:
    """A partition of which only the log is looked at."""

    def __init__(self, log: PartitionLog) -> None:
        self.tp = TP
        self.log = log


class World:
    """A runtime whose topic has one partition, led here, with three records."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(runtime, "FIRST_RETRY_S", 0.0)
        self.faults = Faults()
        self.log = PartitionLog.open(directory, TP, LogConfig(), now_ms=0)
        batch = build_batch([(1, value, value, ()) for value in CONTENTS], leader_epoch=0)
        self.log.append_as_follower(bytearray(batch), now_ms=1)
        read = self.log.read

        def faulty_read(*args: Any, **options: Any) -> FileSlice:
            self.faults.meet("read")
            return read(*args, **options)

        monkeypatch.setattr(
            PartitionLog, "read", lambda _, *args, **opts: faulty_read(*args, **opts)
        )
        self.partition: Any = Led(self.log)
        self.made: list[Shard] = []
        self.third_shard = asyncio.Event()
        self.runtime: Runtime[Shard, bytes] = Runtime(
            TP.topic,
            Kind(self.faults),
            leader=lambda _: self.partition,
            limits=lambda: Limits(load_buffer_bytes=1 << 20, timeout_ms=1),
            new_shard=self._new_shard,
            clock_ms=lambda: 0,
        )
        self.reasons: list[str] = []

    def _new_shard(self) -> Shard:
        self.made.append(Shard(self.faults))
        if len(self.made) == 3:
            self.third_shard.set()
        return self.made[-1]

    async def load(self) -> list[bytes]:
        """Lead the partition until it is loaded; what its shard has then."""
        self.runtime.on_image(IMAGE)
        while self.runtime.loading:
            for unloaded in self.runtime.unloaded:
                assert unloaded.tp == TP
                if unloaded.reason not in self.reasons:
                    self.reasons.append(unloaded.reason)
            await asyncio.sleep(0)
        (shard,) = self.runtime.shards
        return shard.values


def run(work: Callable[[World], Any], directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a test in an event loop."""

    async def main() -> None:
        world = World(directory, monkeypatch)
        try:
            await work(world)
        finally:
            world.runtime.stop()
            world.log.close()

    asyncio.run(main())


@pytest.mark.parametrize("place", ["read", "loaded"])
@pytest.mark.parametrize("error", EVERY, ids=lambda error: type(error).__name__)
def test_a_load_that_fails_is_retried(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    place: str,
    error: Exception,
) -> None:
    """Whatever the error: each attempt starts from nothing, and the reason can be asked for."""

    async def work(world: World) -> None:
        world.faults.due[place] = [error, error]
        assert await world.load() == CONTENTS
        assert world.reasons == ["", str(error) or "MemoryError"]
        assert len(world.made) == 3
        assert world.runtime.unloaded == []

    run(work, tmp_path, monkeypatch)
    assert caplog.text.count("Failed to load: partition=__consumer_offsets-0 retry in") == 2


@pytest.mark.parametrize("error", EVERY, ids=lambda error: type(error).__name__)
def test_a_failed_timeout_is_retried(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    error: Exception,
) -> None:
    """Else no session of any member would end any more, though nothing else is wrong."""
    monkeypatch.setattr(runtime, "WAKE_RETRY_S", 0.001)

    async def work(world: World) -> None:
        await world.load()
        (shard,) = world.runtime.shards
        world.faults.due["tick"] = [error, error]
        shard.next_ms = 0
        world.runtime.sweep(lambda _, now_ms: [CoordinatorResult(now_ms)])
        await wait_for_async("the third attempt", lambda: shard.ticks, until=lambda it: it == 3)

    run(work, tmp_path, monkeypatch)
    assert caplog.text.count("Timers failed: partition=__consumer_offsets-0; retry in") == 2


@pytest.mark.parametrize("place", ["decode", "replay"])
@pytest.mark.parametrize("error", SURROUNDINGS, ids=lambda error: str(error.args[:1]))
def test_a_record_is_not_skipped_for_its_surroundings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, error: Exception
) -> None:
    """What the process lacks, or the disk answers, has the whole load retried."""

    async def work(world: World) -> None:
        world.faults.due[place] = [error]
        assert await world.load() == CONTENTS
        assert len(world.made) == 2

    run(work, tmp_path, monkeypatch)


@pytest.mark.parametrize("place", ["decode", "replay"])
@pytest.mark.parametrize("error", OTHERS, ids=lambda error: type(error).__name__)
def test_a_record_that_cannot_be_replayed_is_skipped(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    place: str,
    error: Exception,
) -> None:
    """The log names its partition and its offset; the others are replayed once."""

    async def work(world: World) -> None:
        world.faults.due[place] = [error]
        assert await world.load() == [b"a", b"c"]
        assert len(world.made) == 1

    run(work, tmp_path, monkeypatch)
    assert "Skipped: partition=__consumer_offsets-0 the record at offset 1: " in caplog.text
    assert str(error) in caplog.text


def test_an_appended_record_that_cannot_be_replayed_has_the_log_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Some of a turn would be in the log and not in the shard, until the next leader reads it."""

    async def work(world: World) -> None:
        assert await world.load() == CONTENTS

        def append(batch: bytearray, *, now_ms: int) -> Any:
            batch[:8] = world.log.log_end_offset.to_bytes(8, "big")
            world.log.append_as_follower(batch, now_ms=now_ms)
            return SimpleNamespace(last_offset=world.log.log_end_offset - 1)

        world.partition.append_own = append
        world.partition.check_leader = world.partition.check_in_sync = lambda: None
        world.faults.due["replay"] = [ValueError("a defect")]

        def step(_: Shard, _waiter: object, now_ms: int) -> CoordinatorResult[bytes]:
            return CoordinatorResult(now_ms, records=[b"d", b"b", b"e"])

        with pytest.raises(ValueError, match="a defect"):
            world.runtime.ask("key", step)
        with pytest.raises(KafkaError) as loading:
            world.runtime.held("key")
        assert loading.value.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        await wait_for_async("the load", lambda: world.runtime.loading, until=lambda it: not it)
        (shard,) = world.runtime.shards
        assert shard.values == [*CONTENTS, b"d", b"b", b"e"]

    run(work, tmp_path, monkeypatch)
    assert "Failed to replay an appended record" in caplog.text


def test_a_former_leader_does_not_retry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The attempts end with the leadership."""

    async def work(world: World) -> None:
        world.faults.due["read"] = [OSError(errno.EIO, "Input/output error")] * 1000
        world.runtime.on_image(IMAGE)
        await world.third_shard.wait()
        assert world.runtime.unloaded == [Unloaded(TP, "[Errno 5] Input/output error")]
        world.runtime.on_image(MetadataImage(cluster_id="c"))
        assert not world.runtime.loading
        attempts = len(world.made)
        for _ in range(10):
            await asyncio.sleep(0)
        assert len(world.made) == attempts

    run(work, tmp_path, monkeypatch)


def test_retries_back_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twice as long each time, up to a limit; waiting is left out."""
    delays: list[float] = []
    pause = asyncio.sleep

    async def no_wait(delay_s: float) -> None:
        if delay_s:
            delays.append(delay_s)
        await pause(0)

    async def work(world: World) -> None:
        monkeypatch.setattr(runtime, "FIRST_RETRY_S", 0.1)
        monkeypatch.setattr(asyncio, "sleep", no_wait)
        world.faults.due["read"] = [OSError(errno.EMFILE, "Too many open files")] * 12
        assert await world.load() == CONTENTS

    run(work, tmp_path, monkeypatch)
    assert delays[:4] == [0.1, 0.2, 0.4, 0.8]
    assert delays[-2:] == [30.0, 30.0]


class Several(World):
    """A runtime of three partitions, of which the first fails at one place."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(directory, monkeypatch)
        monkeypatch.setattr(runtime, "WAKE_RETRY_S", 0.0)
        self.log.truncate_fully_at(0, now_ms=0)  # Nothing is to be loaded.
        parts = [Led(self.log) for _ in range(3)]

        def leader(tp: TopicPartition) -> Any:
            self.faults.meet("leader")
            return parts[tp.partition]

        self.runtime._leader = leader
        states = (LED, LED, LED)
        self.image = IMAGE.with_changes(put=(TopicImage(TP.topic, UUID(int=1), states, {}),))

    def _new_shard(self) -> Shard:
        self.faults.meet("new_shard")
        return super()._new_shard()


@pytest.mark.parametrize("place", ["leader", "new_shard"])
@pytest.mark.parametrize("error", [ValueError("a defect"), OSError(errno.EMFILE, "files")], ids=str)
def test_one_partition_that_fails_holds_back_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, error: Exception
) -> None:
    """The others are coordinated here at once; the one that failed is tried again."""

    async def main() -> None:
        world = Several(tmp_path, monkeypatch)
        world.faults.due[place] = [error]
        world.runtime.on_image(world.image)
        assert len(world.runtime.shards) == 2
        await wait_for_async(
            "all shards", lambda: len(world.runtime.shards), until=lambda it: it == 3
        )
        world.runtime.stop()
        world.log.close()

    asyncio.run(main())


def test_one_shard_that_cannot_resign_holds_back_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else clients would be served by a coordinator that is one no longer."""

    async def main() -> None:
        world = Several(tmp_path, monkeypatch)
        world.runtime.on_image(world.image)
        resigned = []

        def resign(shard: Shard, now_ms: int) -> CoordinatorResult[bytes]:
            resigned.append(shard)
            if len(resigned) == 1:
                raise ValueError("a defect")
            return CoordinatorResult(now_ms)

        monkeypatch.setattr(Shard, "resign", resign)
        world.runtime.on_image(MetadataImage(cluster_id="c"))
        assert len(resigned) == 3
        assert world.runtime.shards == []
        world.runtime.stop()
        world.log.close()

    asyncio.run(main())


def test_periodic_work_that_fails_in_one_shard_is_done_in_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Offsets expire and transactions time out in all other partitions."""

    async def main() -> None:
        world = Several(tmp_path, monkeypatch)
        world.runtime.on_image(world.image)
        swept = []

        def work(shard: Shard, now_ms: int) -> Iterator[CoordinatorResult[bytes]]:
            swept.append(shard)
            if len(swept) == 1:
                raise ValueError("a defect")
            yield CoordinatorResult(now_ms)

        world.runtime.sweep(work)
        assert len(swept) == 3
        world.runtime.stop()
        world.log.close()

    asyncio.run(main())


def test_an_independent_response_survives_a_failed_append() -> None:
    """Without a refusal of its own, a failed append changes no answer."""
    result: CoordinatorResult[str] = CoordinatorResult(5)
    result.answer("w", HeartbeatResponse())
    assert result.refused(ErrorCode.NOT_COORDINATOR).answers == [("w", HeartbeatResponse())]


def test_a_refusal_makes_other_answers() -> None:
    """From the error of the append."""
    result: CoordinatorResult[str] = CoordinatorResult(5)
    result.refuse = lambda code, instead: instead.answer("w", HeartbeatResponse(error_code=code))
    (answer,) = result.refused(ErrorCode.NOT_COORDINATOR).answers
    assert answer == ("w", HeartbeatResponse(error_code=ErrorCode.NOT_COORDINATOR))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", 0),
        ("a", 97),
        ("hello", 99162322),
        ("polygenelubricants", -(2**31)),
        ("\U0001f600", 1772899),
    ],
)
def test_strings_hash_as_in_java(text: str, value: int) -> None:
    """Over UTF-16 units, with the overflow of 32 bits."""
    assert java_hash(text) == value


def test_the_smallest_integer_belongs_to_partition_0() -> None:
    """It has no absolute value; Kafka's `Utils.abs` gives 0."""
    assert partition_of("polygenelubricants", 50) == 0
    assert partition_of("hello", 50) == 22


@pytest.mark.parametrize(
    ("settings", "software", "may"),
    [
        ({}, (), True),
        ({}, (OWN_SOFTWARE,), True),
        ({}, (OWN_SOFTWARE, OWN_SOFTWARE), True),
        ({}, (OWN_SOFTWARE, None), False),
        ({}, (OWN_SOFTWARE, "other"), False),
        ({"inter.broker.protocol.version": "3.9"}, (OWN_SOFTWARE,), False),
    ],
)
def test_only_where_all_brokers_are_ours(
    settings: dict[str, str], software: tuple[str | None, ...], may: bool
) -> None:
    """One broker that is not, or an older version asked for, is enough."""
    brokers = {id_: BrokerRegistration(id_, (), software=by) for id_, by in enumerate(software)}
    image = MetadataImage(cluster_id="c", brokers=brokers)
    assert may_write_newest(BrokerSettings(settings), image) is may
