"""What is doubted is trusted one after the other, and the last time somebody hears of it."""

from barnabas_broker.log.doubts import Doubts
from barnabas_kafka.ids import TopicPartition

ONE, OTHER = TopicPartition("t", 0), TopicPartition("t", 1)


def test_the_end_of_all_doubts_is_told_once() -> None:
    """What was never doubted changes nothing."""
    doubts, told = Doubts(), []
    doubts.partitions |= {ONE, OTHER}
    doubts.ended = lambda: told.append(set(doubts.partitions))
    doubts.trust(ONE)
    doubts.trust(ONE)
    assert (doubts.partitions, told) == ({OTHER}, [])
    doubts.trust(OTHER)
    doubts.trust(OTHER)
    assert told == [set()]


def test_nobody_needs_to_hear_of_it() -> None:
    """Where nothing is said when registering."""
    doubts = Doubts()
    doubts.partitions.add(ONE)
    doubts.trust(ONE)
    assert not doubts.partitions
