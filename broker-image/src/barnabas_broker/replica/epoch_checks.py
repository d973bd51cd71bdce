"""A leader's answers about epochs: which requests it may answer, and where logs diverge.

Pure. Follows Apache Kafka 3.9's Partition (checkCurrentLeaderEpoch, lastOffsetForLeaderEpoch and
the divergence check of readRecords; KIP-101, KIP-320, KIP-595).
"""

from barnabas_broker.replica.follower import EpochEnd, ReplicaLog
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.ids import NO_EPOCH, NO_OFFSET


def check_epoch(own: int, asked: int) -> ErrorCode:
    """Whether a request made in the leader epoch `asked` (-1: it does not say) may be answered.

    FENCED_LEADER_EPOCH: the other side is behind; UNKNOWN_LEADER_EPOCH: this one is.
    """
    if asked in (NO_EPOCH, own):
        return ErrorCode.NONE
    return ErrorCode.FENCED_LEADER_EPOCH if asked < own else ErrorCode.UNKNOWN_LEADER_EPOCH


def epoch_end(log: ReplicaLog, epoch: int) -> EpochEnd:
    """The answer to OffsetsForLeaderEpoch: the greatest epoch up to `epoch` and its end."""
    return EpochEnd(*log.end_offset_for_epoch(epoch))


def divergence(log: ReplicaLog, *, offset: int, fetched_epoch: int) -> EpochEnd | None:
    """Where the log of a follower that asks for `offset` parts from this one; None: nowhere.

    `fetched_epoch` is that of the last batch it has. A fetch that diverges gets no records and
    says nothing of the follower's log end. Raises KafkaError OFFSET_OUT_OF_RANGE where this log
    is too short: it knows no such epoch, or begins after `offset`.
    """
    if fetched_epoch == NO_EPOCH:
        return None
    end = epoch_end(log, fetched_epoch)
    if NO_OFFSET in (end.offset, end.epoch):
        raise KafkaError(
            ErrorCode.OFFSET_OUT_OF_RANGE, f"the log knows nothing of leader epoch {fetched_epoch}"
        )
    if offset < log.log_start_offset:
        raise KafkaError(
            ErrorCode.OFFSET_OUT_OF_RANGE,
            f"the log begins at {log.log_start_offset}, after {offset}",
        )
    return end if end.epoch < fetched_epoch or end.offset < offset else None
