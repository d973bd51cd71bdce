"""The log of the clusters with transactions: what it takes, and what read_committed sees."""

from random import Random

from simulator.transactional_log import TransactionalLog

COMMITTED = ("d:1:0:0:a", "d:2:0:0:b", "m:1:1:0:1:2", "m:2:1:0:0:2")


def written(*values: str) -> TransactionalLog:
    """A log with these values, all of which every replica has."""
    log = TransactionalLog()
    for value in values:
        assert log.refusal(value) == ""
        log.append(0, value)
    log.high_watermark = log.log_end_offset
    return log


def test_only_what_was_committed_is_seen() -> None:
    """Up to the first transaction that is open, without those that were aborted."""
    log = written(*COMMITTED[:2])
    assert log.last_stable_offset == 0
    log = written(*COMMITTED[:3])
    assert (log.last_stable_offset, log.committed_between(0, 1)) == (1, ["d:1:0:0:a"])
    log = written(*COMMITTED)
    assert (log.last_stable_offset, log.committed_between(0, 4)) == (4, ["d:1:0:0:a"])


def test_truncation_removes_transactions() -> None:
    """Producers, open transactions and the list of the aborted are those of the log."""
    log = written(*COMMITTED)
    log.truncate_to(3)
    assert (log.last_stable_offset, log.aborted) == (1, [])
    log.restart(Random(1), power_lost=False)
    assert log.is_open(COMMITTED[1])
    assert not log.is_open(COMMITTED[0])


def test_late_records_and_markers_are_refused() -> None:
    """After its marker, and a marker while the next transaction is open; doubles are found."""
    log = written(*COMMITTED)
    assert log.refusal("d:1:0:1:a") == "INVALID_PRODUCER_EPOCH"
    log.append(0, "d:1:1:0:c")
    assert log.find("d:1:1:0:c") == 4
    assert log.refusal("m:1:1:0:1:2") == "INVALID_PRODUCER_EPOCH"
    assert log.refusal("d:1:1:2:c") == "OUT_OF_ORDER_SEQUENCE_NUMBER"
