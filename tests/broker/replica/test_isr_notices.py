"""When the controller hears of what leaders have written: soon, but not of each change alone."""

from barnabas_broker.replica.isr_notices import IsrNotices
from barnabas_kafka.ids import TopicPartition

ONE, OTHER = TopicPartition("t", 0), TopicPartition("t", 1)


def test_changes_travel_together_once_there_are_no_more() -> None:
    """Five seconds after the last one."""
    notices = IsrNotices(0)
    notices.written(ONE, now_ms=10_000)
    assert notices.take(15_000) == frozenset()
    notices.written(OTHER, now_ms=15_000)
    assert notices.take(17_500) == frozenset()
    assert notices.take(20_001) == {ONE, OTHER}
    assert notices.take(60_000) == frozenset()


def test_continuous_isr_changes_are_propagated_after_a_minute() -> None:
    """Counted from the last time that anything was told."""
    notices = IsrNotices(0)
    for now_ms in range(0, 60_001, 2_500):
        notices.written(ONE, now_ms=now_ms)
        assert notices.take(now_ms) == frozenset()
    notices.written(ONE, now_ms=60_001)
    assert notices.take(60_001) == {ONE}
    notices.written(ONE, now_ms=60_002)
    assert notices.take(62_500) == frozenset()


def test_a_failed_notification_is_sent_with_the_next() -> None:
    """It is not forgotten, and what was written meanwhile goes with it."""
    notices = IsrNotices(0)
    notices.written(ONE, now_ms=0)
    taken = notices.take(5_001)
    notices.put_back(taken)
    notices.written(OTHER, now_ms=5_002)
    assert notices.take(10_003) == {ONE, OTHER}
