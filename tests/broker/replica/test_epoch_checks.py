"""What a leader answers about epochs: to who is behind, ahead, or of another history."""

import pytest

from barnabas_broker.replica.epoch_checks import check_epoch, divergence, epoch_end
from barnabas_broker.replica.follower import EpochEnd
from barnabas_kafka.errors import ErrorCode, KafkaError
from simulator.memory_log import MemoryLog


def log_of(*epochs: int) -> MemoryLog:
    """A log with one record of each of these epochs."""
    log = MemoryLog()
    for epoch in epochs:
        log.append(epoch, "x")
    return log


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        (-1, ErrorCode.NONE),
        (5, ErrorCode.NONE),
        (4, ErrorCode.FENCED_LEADER_EPOCH),
        (6, ErrorCode.UNKNOWN_LEADER_EPOCH),
    ],
)
def test_stale_and_unknown_leader_epochs_are_refused(asked: int, answer: ErrorCode) -> None:
    """An older epoch is fenced, a newer one unknown, none at all is let pass (KIP-320)."""
    assert check_epoch(5, asked) is answer


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        (2, EpochEnd(2, 0)),
        (3, EpochEnd(3, 3)),
        (4, EpochEnd(3, 3)),
        (6, EpochEnd(6, 4)),
        (7, EpochEnd(-1, -1)),
    ],
)
def test_epoch_end_offsets(asked: int, answer: EpochEnd) -> None:
    """The greatest epoch up to the one asked, and the start of the first one after it."""
    assert epoch_end(log_of(3, 3, 3, 6), asked) == answer


def test_a_fetch_that_agrees_does_not_diverge() -> None:
    """The same epoch, and no further than it went here."""
    log = log_of(3, 3, 6)
    assert divergence(log, offset=2, fetched_epoch=3) is None
    assert divergence(log, offset=3, fetched_epoch=6) is None
    assert divergence(log, offset=3, fetched_epoch=-1) is None, "it does not say"
    assert divergence(log, offset=0, fetched_epoch=3) is None, "the log begins there"


def test_a_fetch_that_diverges() -> None:
    """An epoch that is not here, or ended here before the offset asked for."""
    log = log_of(3, 3, 6)
    assert divergence(log, offset=3, fetched_epoch=5) == EpochEnd(3, 2)
    assert divergence(log, offset=3, fetched_epoch=3) == EpochEnd(3, 2)
    assert divergence(log, offset=5, fetched_epoch=6) == EpochEnd(6, 3)
    assert divergence(log, offset=1, fetched_epoch=5) == EpochEnd(3, 2), "though it goes further"


def test_an_unknown_epoch_is_out_of_range() -> None:
    """An epoch newer than any known, and an offset that is gone, are out of range."""
    log = log_of(3)
    with pytest.raises(KafkaError) as caught:
        divergence(log, offset=1, fetched_epoch=4)
    assert caught.value.code is ErrorCode.OFFSET_OUT_OF_RANGE
    with pytest.raises(KafkaError) as caught:
        divergence(log, offset=-1, fetched_epoch=3)
    assert caught.value.code is ErrorCode.OFFSET_OUT_OF_RANGE
