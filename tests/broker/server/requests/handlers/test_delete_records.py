"""DeleteRecords, as a client sees it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas_broker.cluster.image import BrokerRegistration
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from barnabas_kafka.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from barnabas_kafka.protocol.messages.find_coordinator import FindCoordinatorRequest
from barnabas_kafka.records.builder import build_batch
from tests.broker.server.peers.replication.hand_made import HandMade, hand_made
from tests.broker.server.running import Wire, port_of, running_node
from tests.waiting import wait_for

BATCH = build_batch([(1000, None, b"value", ())])


def deletion(topic: str, offset: int, *, timeout_ms: int = 60_000) -> DeleteRecordsRequest:
    """A request to delete what lies before `offset` of partition 0."""
    entry = DeleteRecordsPartition(partition_index=0, offset=offset)
    topics = [DeleteRecordsTopic(name=topic, partitions=[entry])]
    return DeleteRecordsRequest(timeout_ms=timeout_ms, topics=topics)


def delete(wire: Wire, topic: str, offset: int) -> DeleteRecordsPartitionResult:
    """Delete what lies before `offset` of partition 0."""
    answer: DeleteRecordsPartitionResult = (
        wire.ask(deletion(topic, offset), 2).topics[0].partitions[0]
    )
    return answer


@pytest.mark.parametrize(("offset", "start"), [(2, 2), (-1, 3), (3, 3)])
def test_the_log_starts_later(wire: Wire, topic: str, offset: int, start: int) -> None:
    """What lies before is out of range at once; -1 stands for everything."""
    for _ in range(3):
        wire.produce(topic, BATCH)
    answer = delete(wire, topic, offset)
    assert (answer.error_code, answer.low_watermark) == (0, start)
    assert wire.fetch(topic, start - 1).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert wire.fetch(topic, start).log_start_offset == start


@pytest.mark.parametrize("offset", [1, -2])
def test_offsets_that_do_not_exist(wire: Wire, topic: str, offset: int) -> None:
    """Nothing beyond the high watermark can be deleted."""
    assert delete(wire, topic, offset).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_a_compacted_topic_deletes_nothing(wire: Wire) -> None:
    """Only what may be deleted by age or size may be deleted by hand."""
    wire.create_topic("compacted", cleanup_policy="compact")
    assert delete(wire, "compacted", 0).error_code == ErrorCode.POLICY_VIOLATION
    wire.create_topic("both", cleanup_policy="compact,delete")
    assert delete(wire, "both", 0).error_code == 0


def test_an_unknown_topic(wire: Wire) -> None:
    """A partition that is not here has nothing to delete."""
    answer = delete(wire, "nowhere", 0)
    assert (answer.error_code, answer.low_watermark) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)


def test_internal_topics_refuse_delete_records(wire: Wire) -> None:
    """Where there is such a topic; Apache's name for the refusal."""
    answer = delete(wire, "__consumer_offsets", 0)
    assert answer.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert wire.ask(FindCoordinatorRequest(key="group"), 3).error_code == 0
    answer = delete(wire, "__consumer_offsets", 0)
    assert (answer.error_code, answer.low_watermark) == (ErrorCode.INVALID_TOPIC_EXCEPTION, -1)


@pytest.fixture
def led(tmp_path: Path) -> Iterator[HandMade]:
    """Broker 0 leads t-0, with three records; broker 1 is alive, its follower, and the test."""
    with hand_made(tmp_path, 1) as alone:
        brokers = {**alone.image.brokers, 1: BrokerRegistration(1, (), epoch=1)}
        alone.image = alone.image.with_changes(brokers=brokers)
        alone.appoint(0, replicas=(0, 1), isr=(0, 1))
        with Wire(alone.members[0].port) as client:
            assert (
                client.produce("t", build_batch([(1, None, b"v", ())] * 3), acks=1).base_offset == 0
            )
            follow(client, log_start=0)
        yield alone


def follow(wire: Wire, *, log_start: int) -> None:
    """Fetch as the follower that holds everything from there on; the leader knows it then."""
    wanted = FetchPartition(
        partition=0,
        fetch_offset=3,
        current_leader_epoch=-1,
        log_start_offset=log_start,
        partition_max_bytes=1 << 20,
    )
    topics = [FetchTopic(topic="t", partitions=[wanted])]
    answer = wire.ask(FetchRequest(replica_id=1, max_wait_ms=0, topics=topics), 12)
    assert answer.responses[0].partitions[0].error_code == 0


def answered(wire: Wire) -> tuple[int, int]:
    """Error and low watermark of the answer to a deletion."""
    _, response = wire.receive(DeleteRecordsResponse, 2)
    (answer,) = response.topics[0].partitions
    return answer.error_code, answer.low_watermark


def test_a_deletion_waits_for_followers(led: HandMade) -> None:
    """Until each that is alive says that its log begins no earlier."""
    leader = led.members[0]
    with Wire(leader.port) as client, Wire(leader.port) as follower:
        client.send(deletion("t", 2), 2)
        wait_for(
            "a deletion that waits", lambda: leader.do(lambda: leader.partition().delete_waiters)
        )
        follow(follower, log_start=1)
        assert leader.do(lambda: leader.partition().delete_waiters)
        follow(follower, log_start=3)
        assert answered(client) == (0, 2)
        assert not leader.do(lambda: leader.partition().delete_waiters)
        client.send(deletion("t", 1), 2)
        assert answered(client) == (0, 2)


def test_a_deletion_that_takes_too_long(led: HandMade) -> None:
    """It has been made here; the client hears how far the replicas were when it began."""
    with Wire(led.members[0].port) as client:
        client.send(deletion("t", 2, timeout_ms=50), 2)
        assert answered(client) == (ErrorCode.REQUEST_TIMED_OUT, 0)
    assert led.members[0].partition().log.log_start_offset == 2


def test_a_leader_change_fails_a_waiting_deletion(led: HandMade) -> None:
    """The client is to ask the next one."""
    with Wire(led.members[0].port) as client:
        client.send(deletion("t", -1), 2)
        leader = led.members[0]
        wait_for(
            "a deletion that waits", lambda: leader.do(lambda: leader.partition().delete_waiters)
        )
        led.appoint(1)
        assert answered(client) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)


def test_a_deletion_does_not_wait_for_the_dead(led: HandMade) -> None:
    """A broker that goes is counted no more, also where it goes meanwhile."""
    leader = led.members[0]
    with Wire(leader.port) as client:
        client.send(deletion("t", 2), 2)
        wait_for(
            "a deletion that waits", lambda: leader.do(lambda: leader.partition().delete_waiters)
        )
        led.image = led.image.with_changes(brokers={0: led.image.brokers[0]})
        led.show(leader)
        assert answered(client) == (0, 2)


def test_deleted_records_stay_deleted(tmp_path: Path) -> None:
    """The log start outlives the broker, though the segment file still holds the bytes."""
    with running_node(tmp_path) as node, Wire(port_of(node)) as wire:
        wire.create_topic("t")
        for _ in range(3):
            wire.produce("t", BATCH)
        delete(wire, "t", 2)
    with running_node(tmp_path) as node, Wire(port_of(node)) as wire:
        assert wire.fetch("t", 2).log_start_offset == 2
        assert wire.fetch("t", 1).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
