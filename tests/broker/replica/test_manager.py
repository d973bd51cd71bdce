"""The replica manager and its partitions, on real logs, driven by metadata images."""

import asyncio
import errno
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future as ThreadFuture
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from barnabas_broker.cluster.image import (
    NO_LEADER,
    BrokerRegistration,
    MetadataImage,
    PartitionState,
    TopicImage,
)
from barnabas_broker.log.directories import LogDirectories
from barnabas_broker.log.health import Finding
from barnabas_broker.log.partition_log import PartitionLog
from barnabas_broker.log.validator import validate_produce
from barnabas_broker.replica.context import ReplicationContext
from barnabas_broker.replica.delayed_delete_records import DelayedDeleteRecords, Undeleted
from barnabas_broker.replica.delayed_produce import DelayedProduce, Uncounted
from barnabas_broker.replica.manager import ReplicaManager
from barnabas_broker.replica.partition import READ_COMMITTED, Partition
from barnabas_broker.replica.topic_rules import TopicRules
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.ids import TopicPartition
from barnabas_kafka.records.builder import build_batch
from barnabas_kafka.settings.broker import BrokerSettings
from barnabas_kafka.settings.topic import TopicSettings
from tests.broker.log.disk import Disk, using
from tests.broker.replica.leading import finished

NOW_MS = 1_700_000_000_000
T0 = TopicPartition("t", 0)
NOTHING = MetadataImage(cluster_id="c")


def led_by(leader: int, *, epoch: int = 0, isr: tuple[int, ...] = (1,)) -> PartitionState:
    """A partition of brokers 1 and perhaps others."""
    return PartitionState(
        replicas=(1,), isr=isr, leader=leader, leader_epoch=epoch, controller_epoch=1
    )


def image(*states: PartitionState, topic_id: int = 1, **config: str) -> MetadataImage:
    """An image with topic t of those partitions; config names have underscores for dots."""
    settings: Mapping[str, str] = {name.replace("_", "."): value for name, value in config.items()}
    return NOTHING.with_changes(put=(TopicImage("t", UUID(int=topic_id), states, settings),))


class Bench:
    """A manager of broker 1 in a directory, and the images it has seen."""

    def __init__(self, *directories: Path, among_others: bool = False) -> None:
        self.logs = LogDirectories.take(directories)
        self.logs.claim(broker_id=1, cluster_id="c")
        self.flushed: list[PartitionLog] = []
        self.monotonic_ms = NOW_MS
        settings = BrokerSettings({})
        self.manager = ReplicaManager(
            1,
            self.logs,
            rules_for=lambda topic: TopicRules(
                TopicSettings.resolve(settings, topic.config),
                topic=topic.name,
                internal=False,
                producer_id_expiration_ms=1000,
            ),
            clock_ms=lambda: NOW_MS,
            flush_soon=self.flushed.append,
            context=ReplicationContext(lambda: self.monotonic_ms),
            among_others=among_others,
        )
        self.image = NOTHING

    def see(self, new: MetadataImage) -> None:
        """Publish the next image."""
        finished(self.manager.on_image(self.image, new))
        self.image = new

    def append(self, *values: bytes) -> int:
        """Append a batch to t-0 and return its first offset."""
        partition = self.manager.leader(T0)
        batch = bytearray(build_batch([(NOW_MS, None, value, ()) for value in values]))
        batches = validate_produce(
            memoryview(batch), rules=partition.rules.produce_rules(9), now_ms=NOW_MS
        )
        return partition.append(batches, now_ms=NOW_MS).first_offset


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """A manager that has seen nothing yet."""
    return Bench(tmp_path)


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    """An event loop that does not run: what waits has its time."""
    made = asyncio.new_event_loop()
    yield made
    made.close()


def refusal(bench: Bench, tp: TopicPartition = T0, epoch: int = -1) -> ErrorCode:
    """The error a client meets there."""
    with pytest.raises(KafkaError) as caught:
        bench.manager.leader(tp, epoch)
    if epoch == -1:
        with pytest.raises(KafkaError) as again:
            bench.manager.led(tp.topic, tp.partition)
        assert again.value.code == caught.value.code
    return caught.value.code


def test_a_new_topic_is_created_and_led(bench: Bench) -> None:
    """The image says so; the log lies on disk with the topic's id."""
    bench.see(image(led_by(1), led_by(1)))
    assert len(bench.manager) == 2
    assert bench.manager.led(*T0) is bench.manager.leader(T0)
    log = bench.manager.leader(T0).log
    assert (log.topic_id, log.directory.name) == (UUID(int=1), "t-0")


def test_an_append_is_readable_at_once(bench: Bench) -> None:
    """With one replica the high watermark is the end of the log."""
    bench.see(image(led_by(1)))
    bench.append(b"a", b"b")
    partition = bench.manager.leader(T0)
    assert partition.readable_until(0) == partition.readable_until(READ_COMMITTED) == 2


def test_leadership_elsewhere_is_not_served(bench: Bench) -> None:
    """A partition led by nobody, or by another, sends the client to look again."""
    bench.see(image(led_by(NO_LEADER)))
    assert refusal(bench) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert refusal(bench, TopicPartition("t", 5)) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_new_epoch_begins_at_the_end_of_the_log(bench: Bench) -> None:
    """Epochs mark where leadership changed, and fence who has not heard."""
    bench.see(image(led_by(1, epoch=3)))
    bench.append(b"a")
    bench.see(image(led_by(1, epoch=4)))
    bench.append(b"b")
    log = bench.manager.leader(T0, 4).log
    assert log.end_offset_for_epoch(3) == (3, 1)
    assert refusal(bench, epoch=3) == ErrorCode.FENCED_LEADER_EPOCH
    assert refusal(bench, epoch=5) == ErrorCode.UNKNOWN_LEADER_EPOCH


def test_a_deleted_topic_leaves_the_disk(bench: Bench, tmp_path: Path) -> None:
    """The directory is renamed at once, so that a topic of the same name can come."""
    bench.see(image(led_by(1)))
    bench.append(b"a")
    bench.see(NOTHING)
    assert refusal(bench) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert not (tmp_path / "t-0").exists()
    assert list(tmp_path.glob("t-0.*-delete"))


def test_a_recreated_topic_is_empty(bench: Bench) -> None:
    """Another id is another topic, even where both images have the name."""
    bench.see(image(led_by(1)))
    bench.append(b"a")
    bench.see(image(led_by(1), topic_id=2))
    log = bench.manager.leader(T0).log
    assert (log.topic_id, log.log_end_offset) == (UUID(int=2), 0)


def test_a_topic_without_an_id_is_given_one(bench: Bench) -> None:
    """By a later controller; it is the same topic, also for a controller that tells no ids."""
    bench.see(image(led_by(1), topic_id=0))
    bench.append(b"a")
    assert bench.manager.leader(T0).log.topic_id is None
    for topic_id in (7, 0):
        bench.see(image(led_by(1), topic_id=topic_id))
        log = bench.manager.leader(T0).log
        assert (log.topic_id, log.log_end_offset) == (UUID(int=7), 1)


def test_a_log_with_an_id_serves_a_topic_without(bench: Bench) -> None:
    """After a restart under a controller of before 2.8."""
    bench.see(image(led_by(1), topic_id=7))
    bench.append(b"a")
    bench.manager._partitions.clear()
    bench.image = NOTHING
    bench.see(image(led_by(1), topic_id=0))
    log = bench.manager.leader(T0).log
    assert (log.topic_id, log.log_end_offset) == (UUID(int=7), 1)


def test_among_others_an_image_alone_deletes_nothing(tmp_path: Path) -> None:
    """A controller that finds no znodes of a topic knows nothing of it; StopReplica deletes."""
    bench = Bench(tmp_path, among_others=True)
    bench.see(image(led_by(1)))
    bench.append(b"a")
    bench.see(NOTHING)
    assert refusal(bench) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    bench.see(image(led_by(1)))
    assert bench.manager.leader(T0).log.log_end_offset == 1
    bench.see(NOTHING)
    bench.manager.stop(T0, delete=True)
    bench.see(image(led_by(1)))
    assert bench.manager.leader(T0).log.log_end_offset == 0


def test_a_log_of_an_earlier_topic_is_set_aside(
    bench: Bench, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Its records are nobody's to read and not ours to delete; the topic begins empty."""
    bench.see(image(led_by(1), topic_id=7))
    bench.append(b"a")
    bench.manager._partitions.clear()
    bench.image = NOTHING
    bench.see(image(led_by(1), topic_id=8))
    log = bench.manager.leader(T0).log
    assert (log.topic_id, log.log_end_offset) == (UUID(int=8), 0)
    (stray,) = tmp_path.glob("t-0.*-stray")
    assert (stray / "00000000000000000000.log").stat().st_size > 0
    assert str(stray) in caplog.text
    bench.logs.close()
    again = LogDirectories.take([tmp_path])
    again.load(lambda _: log.config, now_ms=NOW_MS)
    assert again.logs.keys() == {T0}
    again.remove_due(NOW_MS * 2)
    assert stray.exists()
    again.close()


def test_partitions_grow(bench: Bench) -> None:
    """New ones are created, old ones keep what they have."""
    bench.see(image(led_by(1)))
    bench.append(b"a")
    bench.see(image(led_by(1), led_by(1)))
    assert bench.manager.leader(T0).log.log_end_offset == 1
    assert bench.manager.leader(TopicPartition("t", 1)).log.log_end_offset == 0


def test_changed_settings_apply_at_once(bench: Bench) -> None:
    """The next append goes by the new limit, without a restart."""
    bench.see(image(led_by(1)))
    bench.append(b"x" * 1000)
    bench.see(image(led_by(1), max_message_bytes="100"))
    with pytest.raises(KafkaError) as caught:
        bench.append(b"x" * 1000)
    assert caught.value.code == ErrorCode.MESSAGE_TOO_LARGE


def test_flush_messages_asks_for_a_flush(bench: Bench) -> None:
    """After so many records the log is flushed soon; before, it is not."""
    bench.see(image(led_by(1), flush_messages="3"))
    bench.append(b"a", b"b")
    assert bench.flushed == []
    bench.append(b"c")
    assert bench.flushed == [bench.manager.leader(T0).log]


def shared(*isr: int, partition_epoch: int = 0) -> PartitionState:
    """A partition of brokers 1 and 2 that 1 leads."""
    return PartitionState(
        (1, 2), isr, leader=1, leader_epoch=0, controller_epoch=1, partition_epoch=partition_epoch
    )


def test_too_few_in_sync_replicas(bench: Bench) -> None:
    """The message names both numbers; of a single replica no other is asked for."""
    bench.see(image(shared(1), min_insync_replicas="2"))
    with pytest.raises(KafkaError, match=r"1 in-sync.*min\.insync\.replicas is 2"):
        bench.manager.leader(T0).check_in_sync()
    bench.see(image(led_by(1, epoch=1), min_insync_replicas="2"))
    bench.manager.leader(T0).check_in_sync()


def test_too_few_in_sync_replicas_after_the_append(bench: Bench) -> None:
    """Both held the record, and one of them left before the producer was answered."""
    bench.see(image(shared(1, 2), min_insync_replicas="2"))
    bench.append(b"a")
    partition = bench.manager.leader(T0)
    assert partition.verdict(1, acks=-1, leader_epoch=0) is None
    partition.follower_fetched(2, offset=1, log_start=0, leader_end=1, broker_epoch=-1)
    assert partition.verdict(1, acks=-1, leader_epoch=0) is ErrorCode.NONE
    bench.see(image(shared(1, partition_epoch=1), min_insync_replicas="2"))
    after = partition.verdict(1, acks=-1, leader_epoch=0)
    assert after is ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
    assert partition.verdict(1, acks=1, leader_epoch=0) is ErrorCode.NONE


def waiting(bench: Bench) -> Partition:
    """A partition with a record, to whose ISR broker 3 was not let in: alive, and not heard again.

    It may be in the ISR all the same, by a change of which this leader has not heard yet.
    """
    state = PartitionState((1, 2, 3), (1, 2), leader=1, leader_epoch=0, controller_epoch=1)
    brokers = {it: BrokerRegistration(it, ()) for it in (1, 2, 3)}
    bench.see(replace(image(state), brokers=brokers))
    partition = bench.manager.leader(T0)
    for broker in (2, 3):
        partition.follower_fetched(broker, offset=0, log_start=0, leader_end=0, broker_epoch=-1)
    wanted = partition.in_sync.pending
    assert wanted is not None
    assert wanted.added == {3}
    partition.isr_change_refused(wanted)
    bench.append(b"a")
    partition.follower_fetched(2, offset=1, log_start=0, leader_end=1, broker_epoch=-1)
    return partition


def test_a_stopped_broker_is_not_waited_for(bench: Bench) -> None:
    """A broker that was about to join is unregistered."""
    partition = waiting(bench)
    assert partition.verdict(1, acks=-1, leader_epoch=0) is None
    left = {it: bench.image.brokers[it] for it in (1, 2)}
    bench.see(replace(bench.image, brokers=left))
    assert partition.log.high_watermark == 1
    assert partition.verdict(1, acks=-1, leader_epoch=0) is ErrorCode.NONE


class Written:
    """A producer that waits for the record it wrote (see `DelayedProduce`)."""

    def __init__(self, loop: asyncio.AbstractEventLoop, partition: Partition) -> None:
        self.reported: list[ErrorCode] = []
        end = partition.log.log_end_offset
        waits = Uncounted(partition, end, partition.leader_epoch, self.reported.append)
        self._waiting = DelayedProduce(loop, [waits], acks=-1, timeout_ms=10**9, response=None)


LAG_MS = ReplicationContext(lambda: 0).lag_max_ms


def silent(bench: Bench) -> Partition:
    """A partition whose mark waits for broker 3, outside the ISR: alive, and not heard of again."""
    partition = waiting(bench)
    assert partition.log.high_watermark == 0
    return partition


@pytest.mark.parametrize("check", [ReplicaManager.recheck_held, ReplicaManager.shrink_isrs])
def test_one_that_goes_silent_holds_the_mark_no_longer_than_the_lag_allows(
    bench: Bench, loop: asyncio.AbstractEventLoop, check: Callable[[ReplicaManager], None]
) -> None:
    """Nobody has anything to send any more: the time alone lets the producer go on."""
    partition = silent(bench)
    producer = Written(loop, partition)
    bench.monotonic_ms += LAG_MS
    check(bench.manager)
    assert (partition.log.high_watermark, producer.reported) == (0, [])
    bench.monotonic_ms += 1
    partition.follower_fetched(2, offset=1, log_start=0, leader_end=1, broker_epoch=-1)
    check(bench.manager)
    assert (partition.log.high_watermark, producer.reported) == (1, [ErrorCode.NONE])


def test_a_held_mark_is_looked_at_for_as_long_as_it_is_held(bench: Bench) -> None:
    """Again and again, and of a partition given up meanwhile never more."""
    partition = silent(bench)
    held = bench.manager._context
    for _ in range(3):
        bench.manager.recheck_held()
        assert held.held == {partition}
    bench.monotonic_ms += LAG_MS + 1
    bench.manager.recheck_held()
    assert held.held == set()
    bench.append(b"b")
    bench.manager.stop(T0, delete=False)
    bench.manager.recheck_held()
    assert held.held == set()


def test_a_write_that_is_sent_again_moves_the_mark(bench: Bench) -> None:
    """As in Kafka, where an append looks at the mark whatever it appends."""
    partition = silent(bench)
    batch = build_batch(
        [(NOW_MS, None, b"b", ())], producer_id=7, producer_epoch=0, base_sequence=0
    )

    def send() -> bool:
        batches = validate_produce(
            memoryview(bytearray(batch)), rules=partition.rules.produce_rules(9), now_ms=NOW_MS
        )
        return partition.append(batches, now_ms=NOW_MS).duplicate

    assert not send()
    partition.follower_fetched(2, offset=2, log_start=0, leader_end=2, broker_epoch=-1)
    bench.monotonic_ms += LAG_MS + 1
    assert send()
    assert partition.log.high_watermark == 2


def test_a_smaller_minimum_moves_the_mark(bench: Bench, loop: asyncio.AbstractEventLoop) -> None:
    """It was held for want of in-sync replicas; nobody has to write or fetch for it to move."""
    bench.see(image(shared(1), min_insync_replicas="2"))
    bench.append(b"a")
    partition = bench.manager.leader(T0)
    bench.monotonic_ms += LAG_MS + 1
    producer = Written(loop, partition)
    bench.see(image(shared(1), min_insync_replicas="1"))
    assert (partition.log.high_watermark, producer.reported) == (1, [ErrorCode.NONE])


def test_a_replica_that_leaves_the_assignment_is_not_waited_for(
    bench: Bench, loop: asyncio.AbstractEventLoop
) -> None:
    """Neither by who writes nor by who deletes, also where the leader epoch stays."""
    bench.see(image(shared(1, 2)))
    brokers = {it: BrokerRegistration(it, ()) for it in (1, 2)}
    bench.see(replace(bench.image, brokers=brokers))
    bench.append(b"a")
    partition = bench.manager.leader(T0)
    partition.follower_fetched(2, offset=1, log_start=0, leader_end=1, broker_epoch=-1)
    partition.delete_records_before(1)
    bench.append(b"b")
    producer = Written(loop, partition)
    deleted: list[ErrorCode] = []
    deletion = DelayedDeleteRecords(
        loop,
        [Undeleted(partition, 1, deleted.append)],
        timeout_ms=10**9,
        response=None,
    )
    assert (producer.reported, deleted) == ([], [])
    bench.see(replace(bench.image, topics=image(replace(led_by(1), partition_epoch=1)).topics))
    assert (producer.reported, deleted) == ([ErrorCode.NONE], [ErrorCode.NONE])
    assert deletion.future.done()


def test_replicas_demoted_in_a_full_directory(bench: Bench) -> None:
    """A leader that others can replace, and a follower; not what only this broker has."""
    shared = PartitionState((1, 2), (1, 2), leader=1, leader_epoch=0, controller_epoch=1)
    bench.see(image(led_by(1), shared, replace(shared, leader=2)))
    assert bench.manager.all_usable
    assert bench.manager.counted_out_leaders() == frozenset()
    health = bench.manager.leader(T0).log.health
    health.found(Finding.NO_ROOM, "no room")
    bench.manager.on_health(health, bench.image)
    assert not bench.manager.all_usable
    assert bench.manager.counted_out_leaders() == {TopicPartition("t", 1)}
    found = [bench.manager.is_counted_out(TopicPartition("t", each)) for each in range(4)]
    assert found == [False, True, True, False]
    health.found(Finding.BROKEN, "I/O error")
    found = [bench.manager.is_counted_out(TopicPartition("t", each)) for each in range(4)]
    assert found == [True, True, True, False]


def test_one_partition_that_cannot_be_made_is_no_reason_for_the_others(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The topic is told as failed, and what can be served is."""
    create = bench.logs.create

    def failing(tp: TopicPartition, *more: Any) -> PartitionLog:
        if tp == T0:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)
        return create(tp, *more)

    monkeypatch.setattr(bench.logs, "create", failing)
    new = image(led_by(1), led_by(1))
    assert set(finished(bench.manager.on_image(NOTHING, new))) == {"t"}
    assert refusal(bench) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert bench.manager.leader(TopicPartition("t", 1)).is_leader


def test_an_expected_partition_is_not_unknown(bench: Bench) -> None:
    """For as long as one request announces it."""
    assert refusal(bench) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    bench.manager.expect([T0])
    bench.manager.expect([T0])
    bench.manager.expect_no_more([T0])
    assert refusal(bench) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    bench.manager.expect_no_more([T0])
    assert refusal(bench) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


class Copies:
    """Remembers what is copied from other brokers."""

    def __init__(self) -> None:
        self.copied: set[TopicPartition] = set()

    def copy(self, partition: Partition, topic_id: UUID) -> None:
        self.copied.add(partition.tp)

    def leave(self, tp: TopicPartition) -> None:
        self.copied.discard(tp)


def test_a_broker_that_stops_copies_only_what_it_is_in_sync_with(bench: Bench) -> None:
    """It hands over what it led, and fetches none of it: it could not come back into the ISR."""
    copies = bench.manager._copying = Copies()

    def both(first: PartitionState, second: PartitionState) -> None:
        bench.see(image(*(replace(it, replicas=(1, 2)) for it in (first, second))))

    both(led_by(1, isr=(1, 2)), led_by(2, isr=(1, 2)))
    assert copies.copied == {TopicPartition("t", 1)}
    bench.manager.stopping = True
    both(led_by(2, epoch=1, isr=(2, 1)), led_by(2, epoch=1, isr=(2, 1)))
    assert copies.copied == {TopicPartition("t", 0), TopicPartition("t", 1)}
    both(led_by(2, epoch=2, isr=(2,)), led_by(2, epoch=2, isr=(2,)))
    assert copies.copied == set()


class Fails:
    """Raises for one partition, as a defect would, until it is mended."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, method: str) -> None:
        self.mended = False
        real = getattr(Partition, method)

        def faulty(partition: Partition, *args: Any) -> Any:
            if partition.tp == T0 and not self.mended:
                raise ValueError("a defect")
            return real(partition, *args)

        monkeypatch.setattr(Partition, method, faulty)


@pytest.mark.parametrize("method", ["become", "trust", "_advance_high_watermark"])
def test_a_partition_that_fails_unexpectedly_holds_back_no_other(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    """Its metadata is applied again until it succeeds, for no later change names it."""
    bench.see(image(led_by(NO_LEADER), led_by(NO_LEADER)))
    fails = Fails(monkeypatch, method)
    both = image(led_by(1, epoch=1), led_by(1, epoch=1))
    both = both.with_changes(put=(TopicImage("u", UUID(int=2), (led_by(1),), {}),))
    failures = finished(bench.manager.on_image(bench.image, both))
    assert {name: it.code.name for name, it in failures.items()} == {"t": "UNKNOWN_SERVER_ERROR"}
    assert bench.manager.led("t", 1).leader_epoch == 1
    assert bench.manager.led("u", 0).leader_epoch == 0
    assert refusal(bench) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    with pytest.raises(KafkaError, match="Metadata of topic t is not applied"):
        finished(bench.manager.retry_failed())
    fails.mended = True
    finished(bench.manager.retry_failed())
    assert bench.manager.led("t", 0).log.latest_epoch == 1
    assert bench.manager.led("t", 0).in_sync.leader_epoch == 1
    bench.append(b"a")


def test_a_leader_that_lacked_file_descriptors_leads_once_it_has_them(
    bench: Bench, tmp_path: Path
) -> None:
    """Its directory has not failed, so that no other broker leads instead, and no news comes."""
    bench.see(image(led_by(NO_LEADER), led_by(NO_LEADER)))
    with using(Disk(tmp_path)) as disk:
        disk.fail("open", errno.EMFILE, path="t-0/leader-epoch-checkpoint.tmp", times=1)
        both = image(led_by(1, epoch=1), led_by(1, epoch=1))
        failures = finished(bench.manager.on_image(bench.image, both))
        assert {name: it.code.name for name, it in failures.items()} == {"t": "KAFKA_STORAGE_ERROR"}
        assert bench.manager.led("t", 1).leader_epoch == 1
        assert refusal(bench) == ErrorCode.NOT_LEADER_OR_FOLLOWER
        finished(bench.manager.retry_failed())
    assert bench.manager.led("t", 0).in_sync.leader_epoch == 1
    bench.append(b"a")
    assert bench.manager.led("t", 0).log.high_watermark == 1


def test_a_leader_that_lacked_room_and_file_descriptors_leads_afterwards(
    bench: Bench, tmp_path: Path
) -> None:
    """A full log directory may be left with its leaders: it has room again some time."""
    bench.see(image(led_by(NO_LEADER)))
    home = bench.logs.logs[T0].health
    with using(Disk(tmp_path)) as disk:
        disk.fail("open", errno.EMFILE, path="leader-epoch-checkpoint.tmp", times=1)
        home.found(Finding.NO_ROOM, "full")
        bench.see(image(led_by(1, epoch=1)))
        finished(bench.manager.retry_failed())
    home.found(Finding.ROOM, "")
    bench.manager.on_health(home, bench.image)
    assert bench.manager.led("t", 0).in_sync.leader_epoch == 1
    bench.append(b"a")
    assert bench.manager.led("t", 0).log.high_watermark == 1


def test_a_log_is_created_once_there_are_file_descriptors(tmp_path: Path) -> None:
    """Though another log directory is offline: it was not for that one."""
    bench = Bench(tmp_path / "a", tmp_path / "b")
    bench.see(NOTHING)
    other = bench.logs.find(str(tmp_path / "b"))
    assert other is not None
    other.health.found(Finding.BROKEN, "gone")
    with using(Disk(tmp_path)) as disk:
        disk.fail("open", errno.EMFILE, path=".log", times=1)
        bench.see(image(led_by(1)))
        assert bench.manager.get(T0) is None
        finished(bench.manager.retry_failed())
    bench.append(b"a")


def test_retries_take_turns_with_newer_images(bench: Bench, tmp_path: Path) -> None:
    """Those of thousands of partitions take seconds: other work, and metadata, come between."""
    with using(Disk(tmp_path)) as disk:
        disk.fail("open", errno.EMFILE, path=".log")
        bench.see(image(led_by(1), led_by(1)))
    retrying = bench.manager.retry_failed()
    next(retrying)
    assert len(bench.manager) == 1
    bench.see(NOTHING)
    finished(retrying)
    assert len(bench.manager) == 0


def test_a_failed_deletion_holds_back_no_other(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The log of the partition that failed is deleted when that is retried."""
    bench.see(image(led_by(1), led_by(1)))
    fails = Fails(monkeypatch, "become")
    bench.see(NOTHING)
    assert len(bench.manager) == 0
    assert [each.name for each in tmp_path.glob("t-?")] == ["t-0"]
    fails.mended = True
    finished(bench.manager.retry_failed())
    assert list(tmp_path.glob("t-?")) == []


def test_a_log_that_cannot_be_deleted_concerns_no_later_topic(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was being cut when its topic was deleted; the next one of that name has less partitions.

    What becomes of those is done all the same.
    """
    bench = Bench(tmp_path, among_others=True)
    bench.see(image(led_by(2), led_by(2)))
    last = TopicPartition("t", 1)
    partition = bench.manager.get(last)
    assert partition is not None
    cut: ThreadFuture[object] = ThreadFuture()
    partition.begin_cut(cut)
    bench.see(bench.image.with_changes(remove=frozenset({"t"})))
    bench.manager.stop(T0, delete=True)
    bench.manager.stop(last, delete=True)
    with monkeypatch.context() as patch:
        patch.setattr(bench.logs, "delete", lambda *_: fail(ErrorCode.KAFKA_STORAGE_ERROR))
        cut.set_result(None)
        partition.end_cut(cut)
    again = image(led_by(2), topic_id=2).topics["t"]
    bench.see(bench.image.with_changes(put=(again,)))
    bench.see(bench.image.with_partitions({T0: led_by(1, epoch=1)}))
    assert bench.manager.leader(T0).leader_epoch == 1
    finished(bench.manager.retry_failed())


def fail(code: ErrorCode) -> None:
    """Refuse."""
    raise KafkaError(code)


def test_a_retry_ends_with_the_metadata_it_was_for(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A topic deleted meanwhile does not come back, and its successor keeps its log."""
    fails = Fails(monkeypatch, "become")
    bench.see(image(led_by(1)))
    bench.see(NOTHING)
    fails.mended = True
    finished(bench.manager.retry_failed())
    assert len(bench.manager) == 0
    bench.see(image(led_by(1), topic_id=2))
    assert bench.manager.led("t", 0).log.topic_id == UUID(int=2)


def test_an_isr_check_that_fails_holds_back_no_other(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Followers that lag leave the ISR of the other partitions."""
    bench.see(image(led_by(1), led_by(1)))
    checked = []
    monkeypatch.setattr(Partition, "shrink_isr", lambda self: checked.append(self.tp))
    fails = Fails(monkeypatch, "shrink_isr")
    assert not fails.mended
    bench.manager.shrink_isrs()
    assert checked == [TopicPartition("t", 1)]


def test_a_stopped_replica_is_not_brought_back_by_a_retry(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Metadata that failed to apply is older than the StopReplica."""
    fails = Fails(monkeypatch, "become")
    bench.see(image(led_by(1)))
    bench.manager.stop(T0, delete=True)
    fails.mended = True
    finished(bench.manager.retry_failed())
    assert bench.manager.get(T0) is None
