"""Real brokers whose coordinators cannot load a log: for a record in it, or for the disk."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from barnabas_broker.coordinator.group.consumer.records import ConsumerRecord, Kind
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.embedded_consumers import ConsumerGroupCurrentMemberAssignmentValue
from barnabas_kafka.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from barnabas_kafka.records.batch import headers
from barnabas_kafka.records.builder import build_batch
from tests.clients import START_MS, librdkafka
from tests.clients.brokers import Barnabas
from tests.clients.transactional import seen_in
from tests.clients.wire import Wire
from tests.faults.disk import FaultyDisk
from tests.faults.loading import (
    GROUPS_LOG,
    TRANSACTIONS_LOG,
    readiness,
    settings,
    start_unreadable,
    until_ready,
    until_retried,
)
from tests.waiting import ANSWER, seconds

TOPIC: Final = "orders"
GROUP: Final = "billing"


def member(broker: Barnabas) -> Consumer:
    """A consumer that names the group."""
    return librdkafka.consumer(broker.bootstrap, **{"group.id": GROUP})


def commit(broker: Barnabas, offset: int) -> None:
    """Commit an offset of the group."""
    alone = member(broker)
    alone.commit(offsets=[TopicPartition(TOPIC, 0, offset)], asynchronous=False)
    alone.close()


def committed(broker: Barnabas) -> int | None:
    """What the group has committed."""
    alone = member(broker)
    (found,) = alone.committed([TopicPartition(TOPIC, 0)], timeout=seconds(ANSWER))
    alone.close()
    return found.offset


def append_to(log: Path, *contents: tuple[bytes, bytes | None]) -> int:
    """Append a batch to the log of a broker that is stopped; the offset of its first record."""
    offset = max(header.next_offset for _, header in headers(log.read_bytes()))
    records = [(START_MS, key, value, ()) for key, value in contents]
    with log.open("ab") as file:
        file.write(build_batch(records, base_offset=offset, leader_epoch=0))
    (log.parents[1] / ".kafka_cleanshutdown").unlink()  # The broker looks at the log's end then.
    return offset


def current_member(state: int) -> tuple[bytes, bytes | None]:
    """A record of the consumer protocol about a member in that state."""
    value = ConsumerGroupCurrentMemberAssignmentValue(member_epoch=5, state=state)
    return ConsumerRecord("team", Kind.CURRENT, "somebody", value).encoded()


@pytest.mark.parametrize(
    "bad",
    [
        current_member(state=99),
        (b"\0\1\0\7", b"cut"),
        (b"", b""),
        (b"\0", None),
        (b"\0\2\0\4team", b"\x7f\xff\xff"),
        (b"\0\2\xff\xffteam", b"\0\3"),
    ],
    ids=["unknown state", "cut key", "no key", "half a version", "unknown version", "null name"],
)
def test_a_record_that_cannot_be_replayed_is_skipped(
    tmp_path: Path, bad: tuple[bytes, bytes | None]
) -> None:
    """The broker logs where it is, and serves the groups of the partition, those behind it too."""
    with Barnabas(tmp_path, settings()) as broker:
        librdkafka.fill(broker.bootstrap, TOPIC, 10)
        commit(broker, 3)
        broker.stop()
        offset = append_to(broker.log_dirs[0] / GROUPS_LOG, bad)
        broker.start()
        until_ready(broker)
        assert committed(broker) == 3
        commit(broker, 4)
        broker.stop()
        broker.start()
        assert committed(broker) == 4
        reported = broker.log_file.read_text()
        assert (
            f"Skipped: partition=__consumer_offsets-0 the record at offset {offset}: " in reported
        )
        assert "failed, retrying" not in reported


def test_a_group_is_loaded_when_its_log_can_be_read_again(tmp_path: Path) -> None:
    """Until then the group's coordinator is loading, and the admin port says why."""
    data = tmp_path / "kafka-logs"
    with FaultyDisk(data / GROUPS_LOG) as disk:
        broker = Barnabas(tmp_path, settings(), disk.environment)
        with broker:
            librdkafka.fill(broker.bootstrap, TOPIC, 10)
            commit(broker, 3)
            broker.stop()
            start_unreadable(broker, disk, errno.EMFILE)
            until_retried(broker, "__consumer_offsets-0", 2)
            status, reason = readiness(broker)
            assert status == 503
            assert "loading __consumer_offsets-0: the last attempt failed" in reason
            assert os.strerror(errno.EMFILE) in reason
            with Wire(broker.bootstrap) as connection:
                asked = OffsetFetchRequest(group_id=GROUP, topics=None)
                answer = connection.ask(asked, OffsetFetchResponse, 7)
            assert answer.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
            disk.heal()
            until_ready(broker)
            assert committed(broker) == 3


def test_a_transaction_is_loaded_when_its_log_can_be_read_again(tmp_path: Path) -> None:
    """The producer waits through it, and commits what it began before the restart."""
    data = tmp_path / "kafka-logs"
    with FaultyDisk(data / TRANSACTIONS_LOG) as disk:
        broker = Barnabas(tmp_path, settings(), disk.environment)
        with broker:
            librdkafka.fill(broker.bootstrap, TOPIC, 1)
            transactional = Producer(
                {
                    "bootstrap.servers": broker.bootstrap,
                    "transactional.id": "payer",
                    "metadata.recovery.strategy": "none",
                }
            )
            transactional.init_transactions(seconds(ANSWER))
            transactional.begin_transaction()
            transactional.produce(TOPIC, b"paid", partition=0)
            assert transactional.flush(seconds(ANSWER)) == 0
            broker.stop()
            start_unreadable(broker, disk, errno.ENOMEM)
            until_retried(broker, "__transaction_state-0", 2)
            assert "loading __transaction_state-0" in readiness(broker)[1]
            disk.heal()
            transactional.commit_transaction(seconds(ANSWER))
            assert "paid" in seen_in(broker, TOPIC, 1)
