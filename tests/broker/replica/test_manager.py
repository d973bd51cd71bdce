"""The replica manager and its partitions, on real logs, driven by metadata images."""

from collections.abc import Mapping
from pathlib import Path
from uuid import UUID

import pytest

from barnabas_broker.cluster.image import NO_LEADER, MetadataImage, PartitionState, TopicImage
from barnabas_broker.log.directories import LogDirectories
from barnabas_broker.log.partition_log import PartitionLog
from barnabas_broker.log.validator import validate_produce
from barnabas_broker.replica.manager import ReplicaManager
from barnabas_broker.replica.partition import READ_COMMITTED
from barnabas_broker.replica.topic_rules import TopicRules
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.ids import TopicPartition
from barnabas_kafka.records.builder import build_batch
from barnabas_kafka.settings.broker import BrokerSettings
from barnabas_kafka.settings.topic import TopicSettings

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

    def __init__(self, directory: Path) -> None:
        self.logs = LogDirectories.take([directory])
        self.logs.claim(broker_id=1, cluster_id="c")
        self.flushed: list[PartitionLog] = []
        settings = BrokerSettings({})
        self.manager = ReplicaManager(
            1,
            self.logs,
            rules_for=lambda topic: TopicRules(
                TopicSettings.resolve(settings, topic.config), producer_id_expiration_ms=1000
            ),
            clock_ms=lambda: NOW_MS,
            flush_soon=self.flushed.append,
        )
        self.image = NOTHING

    def see(self, new: MetadataImage) -> None:
        """Publish the next image."""
        self.manager.on_image(self.image, new)
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


def refusal(bench: Bench, tp: TopicPartition = T0, epoch: int = -1) -> ErrorCode:
    """The error a client meets there."""
    with pytest.raises(KafkaError) as caught:
        bench.manager.leader(tp, epoch)
    return caught.value.code


def test_a_new_topic_is_created_and_led(bench: Bench) -> None:
    """The image says so; the log lies on disk with the topic's id."""
    bench.see(image(led_by(1), led_by(1)))
    assert len(bench.manager) == 2
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


def test_too_few_in_sync_replicas(bench: Bench) -> None:
    """The message names both numbers."""
    bench.see(image(led_by(1), min_insync_replicas="2"))
    with pytest.raises(KafkaError, match=r"1 in-sync.*min\.insync\.replicas is 2"):
        bench.manager.leader(T0).check_in_sync()
