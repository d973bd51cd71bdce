"""OffsetForLeaderEpoch, as a client sees it."""

from pathlib import Path

from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from barnabas_kafka.records.builder import build_batch
from tests.broker.server.running import Wire, port_of, running_node

BATCH = build_batch([(1000, None, b"value", ())])


def ask(wire: Wire, epoch: int, *, known: int = -1, partition: int = 0) -> EpochEndOffset:
    """Where leader epoch `epoch` of topic t ended, by a client that knows epoch `known`."""
    entry = OffsetForLeaderPartition(
        partition=partition, current_leader_epoch=known, leader_epoch=epoch
    )
    request = OffsetForLeaderEpochRequest(
        topics=[OffsetForLeaderTopic(topic="t", partitions=[entry])]
    )
    answer: EpochEndOffset = wire.ask(request, 4).topics[0].partitions[0]
    return answer


def test_epochs_end_where_the_next_began(tmp_path: Path) -> None:
    """Each restart of the broker is a new leader epoch; truncation is found by their ends."""
    for restart in range(2):
        with running_node(tmp_path) as node, Wire(port_of(node)) as wire:
            if restart == 0:
                wire.create_topic("t")
            assert wire.produce("t", BATCH).base_offset == restart
            if restart == 1:
                assert (ask(wire, 0).leader_epoch, ask(wire, 0).end_offset) == (0, 1)
                assert (ask(wire, 1).leader_epoch, ask(wire, 1).end_offset) == (1, 2)
                assert ask(wire, 9).end_offset == -1
                assert ask(wire, 1, known=0).error_code == ErrorCode.FENCED_LEADER_EPOCH
                assert ask(wire, 1, known=2).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
                unknown = ask(wire, 0, partition=4)
                assert unknown.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
