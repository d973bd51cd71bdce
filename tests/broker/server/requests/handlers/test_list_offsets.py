"""ListOffsets, as a client sees it."""

from pathlib import Path

import pytest

from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.ids import (
    DEBUGGING_REPLICA_ID,
    EARLIEST_LOCAL_TIMESTAMP,
    EARLIEST_TIMESTAMP,
    LATEST_TIERED_TIMESTAMP,
    LATEST_TIMESTAMP,
    MAX_TIMESTAMP,
)
from barnabas_kafka.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from barnabas_kafka.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from barnabas_kafka.records.builder import build_batch
from tests.broker.server.peers.replication.hand_made import hand_made
from tests.broker.server.running import Wire, produce_request
from tests.waiting import wait_for


def ask(
    wire: Wire, topic: str, timestamp: int, version: int = 9, *, epoch: int = -1, replica: int = -1
) -> ListOffsetsPartitionResponse:
    """The answer for partition 0."""
    entry = ListOffsetsPartition(
        partition_index=0, timestamp=timestamp, current_leader_epoch=epoch, max_num_offsets=1
    )
    request = ListOffsetsRequest(
        replica_id=replica, topics=[ListOffsetsTopic(name=topic, partitions=[entry])]
    )
    response: ListOffsetsResponse = wire.ask(request, version)
    return response.topics[0].partitions[0]


@pytest.fixture
def filled(wire: Wire, topic: str) -> str:
    """A topic with records at times 100, 300, 200 and 400, of which offset 0 is deleted."""
    for times in ([100, 300], [200, 400]):
        wire.produce(topic, build_batch([(time, None, b"v", ()) for time in times]))
    entry = DeleteRecordsPartition(partition_index=0, offset=1)
    wire.ask(
        DeleteRecordsRequest(
            timeout_ms=1000, topics=[DeleteRecordsTopic(name=topic, partitions=[entry])]
        ),
        2,
    )
    return topic


@pytest.mark.parametrize(
    ("timestamp", "offset", "found_at"),
    [
        (LATEST_TIMESTAMP, 4, -1),
        (EARLIEST_TIMESTAMP, 1, -1),
        (EARLIEST_LOCAL_TIMESTAMP, 1, -1),
        (LATEST_TIERED_TIMESTAMP, -1, -1),
        (MAX_TIMESTAMP, 3, 400),
        (0, 1, 300),
        (300, 1, 300),
        (301, 3, 400),
        (400, 3, 400),
        (401, -1, -1),
    ],
)
def test_lookups(wire: Wire, filled: str, timestamp: int, offset: int, found_at: int) -> None:
    """The first offset whose record is at or after a time; records need not be in order of time."""
    answer = ask(wire, filled, timestamp)
    assert (answer.error_code, answer.offset, answer.timestamp) == (0, offset, found_at)


@pytest.mark.parametrize("version", range(1, 10))
def test_every_version(wire: Wire, filled: str, version: int) -> None:
    """First and last are what consumers of every age ask for."""
    assert ask(wire, filled, EARLIEST_TIMESTAMP, version).offset == 1
    assert ask(wire, filled, LATEST_TIMESTAMP, version).offset == 4


def test_version_0_lists_segments(wire: Wire, filled: str) -> None:
    """Clients before 0.10.1 get a list of offsets."""
    assert ask(wire, filled, LATEST_TIMESTAMP, 0).old_style_offsets == [4]
    assert ask(wire, filled, EARLIEST_TIMESTAMP, 0).old_style_offsets == [1]


def test_special_times_need_their_version(wire: Wire, filled: str) -> None:
    """-3 means nothing before version 7."""
    for version in (0, 6):
        code = ask(wire, filled, MAX_TIMESTAMP, version).error_code
        assert code == ErrorCode.UNSUPPORTED_VERSION


def test_leader_epochs(wire: Wire, filled: str) -> None:
    """A client with a newer epoch must not be answered; the epoch of the answer is told."""
    assert ask(wire, filled, EARLIEST_TIMESTAMP, epoch=3).error_code == (
        ErrorCode.UNKNOWN_LEADER_EPOCH
    )
    assert ask(wire, filled, EARLIEST_TIMESTAMP).leader_epoch == 0


def test_version_0_counts_the_end_as_a_start(wire: Wire, filled: str) -> None:
    """As new as can be: whoever asks for a time to come is told it, in Kafka's order."""
    entry = ListOffsetsPartition(partition_index=0, timestamp=2**62, max_num_offsets=5)
    request = ListOffsetsRequest(
        replica_id=-1, topics=[ListOffsetsTopic(name=filled, partitions=[entry])]
    )
    assert wire.ask(request, 0).topics[0].partitions[0].old_style_offsets == [4, 1]


def test_unknown_partitions(wire: Wire) -> None:
    """Each partition has its own error."""
    assert ask(wire, "nowhere", LATEST_TIMESTAMP).error_code == (
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    )


def test_a_partition_asked_for_twice(wire: Wire, filled: str) -> None:
    """Kafka refuses duplicates: two answers for one partition could not be told apart."""
    entry = ListOffsetsPartition(partition_index=0, timestamp=LATEST_TIMESTAMP)
    request = ListOffsetsRequest(
        replica_id=-1, topics=[ListOffsetsTopic(name=filled, partitions=[entry, entry])]
    )
    answers = wire.ask(request, 9).topics[0].partitions
    assert [answer.error_code for answer in answers] == [ErrorCode.INVALID_REQUEST] * 2
    lists = wire.ask(request, 0).topics[0].partitions
    assert [answer.old_style_offsets for answer in lists] == [[4], [4]]


@pytest.mark.parametrize("version", [0, 1, 4, 9])
def test_a_debugging_replica_gets_the_log_end_offset(wire: Wire, filled: str, version: int) -> None:
    """Of the leader in its epoch."""
    answer = ask(wire, filled, LATEST_TIMESTAMP, version, replica=DEBUGGING_REPLICA_ID)
    assert answer.error_code == ErrorCode.NONE
    if version == 0:
        assert answer.old_style_offsets == [4]
    else:
        assert (answer.offset, answer.leader_epoch) == (4, 0 if version >= 4 else -1)


def test_any_replica_returns_its_log_end_to_a_debugging_replica(tmp_path: Path) -> None:
    """Without a leader with the latest epoch in it; nothing in an epoch it has not heard of."""
    with hand_made(tmp_path) as pair:
        pair.appoint(0)
        with Wire(pair.members[0].port) as wire:
            wire.produce("t", build_batch([(100, None, b"v", ())]))
        with Wire(pair.members[1].port) as wire:
            wait_for(
                "the record on the follower", pair.members[1].ends, until=lambda it: it == (1, 1)
            )

            def end(epoch: int) -> tuple[int, int, int]:
                answer = ask(wire, "t", LATEST_TIMESTAMP, epoch=epoch, replica=DEBUGGING_REPLICA_ID)
                return answer.error_code, answer.leader_epoch, answer.offset

            assert end(0) == (ErrorCode.NONE, 0, 1)
            assert end(1) == (ErrorCode.UNKNOWN_LEADER_EPOCH, -1, -1)
            pair.appoint(-1)
            assert end(0) == (ErrorCode.FENCED_LEADER_EPOCH, -1, -1)
            assert end(1) == (ErrorCode.NONE, 0, 1)
            refused = ask(wire, "t", LATEST_TIMESTAMP, epoch=1)
            assert refused.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


@pytest.mark.parametrize("version", [0, 1, 9])
def test_any_replica_answers_a_debugging_one_about_any_time(tmp_path: Path, version: int) -> None:
    """Others must ask the leader (`fetchOnlyFromLeader` in Kafka)."""
    with hand_made(tmp_path) as pair:
        pair.appoint(0)
        with Wire(pair.members[0].port) as wire:
            wire.produce("t", build_batch([(100, None, b"v", ())]))
        with Wire(pair.members[1].port) as wire:
            wait_for(
                "the record on the follower", pair.members[1].ends, until=lambda it: it == (1, 1)
            )
            since = {MAX_TIMESTAMP: 7, EARLIEST_LOCAL_TIMESTAMP: 8, 50: 1}
            for timestamp in (EARLIEST_TIMESTAMP, *(t for t in since if since[t] <= version)):
                answer = ask(wire, "t", timestamp, version, replica=DEBUGGING_REPLICA_ID)
                assert answer.error_code == ErrorCode.NONE, timestamp
                assert answer.old_style_offsets == [0] if version == 0 else answer.offset == 0
                for replica in (-1, 1):
                    answer = ask(wire, "t", timestamp, version, replica=replica)
                    assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER, timestamp


def test_an_open_transaction_does_not_make_a_new_leader_doubtful(tmp_path: Path) -> None:
    """What is committed is known: the last stable offset lies before the epoch, and is told."""
    settings = {"transaction_partition_verification_enable": "false"}
    with hand_made(tmp_path, 1, **settings) as alone, Wire(alone.members[0].port) as wire:
        alone.appoint(0)
        begun = build_batch(
            [(100, None, b"v", ())],
            producer_id=7,
            producer_epoch=0,
            base_sequence=0,
            transactional=True,
        )
        entry = ListOffsetsPartition(partition_index=0, timestamp=LATEST_TIMESTAMP)
        request = ListOffsetsRequest(
            replica_id=-1,
            isolation_level=1,
            topics=[ListOffsetsTopic(name="t", partitions=[entry])],
        )
        producing = produce_request("t", begun)
        producing.transactional_id = "a producer"
        (produced,) = wire.ask(producing, 9).responses[0].partition_responses
        assert produced.error_code == ErrorCode.NONE
        alone.appoint(0)
        (answer,) = wire.ask(request, 9).topics[0].partitions
        assert (answer.error_code, answer.offset) == (ErrorCode.NONE, 0)
