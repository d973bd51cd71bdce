"""What a follower names in its requests, and how it and the leader agree on the rest (KIP-227)."""

from uuid import UUID

from barnabas_broker.replica.follower import AskRecords
from barnabas_broker.replica.leader_session import EPOCH_MAX, Changes, LeaderSession, Wanted
from barnabas_kafka.ids import TopicPartition

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


def want(offset: int, topic: int = 1) -> Wanted:
    """A fetch from an offset."""
    return Wanted(UUID(int=topic), AskRecords(0, offset, 0, 0))


def begun() -> LeaderSession:
    """A session about both partitions that the leader has given the id 5."""
    session = LeaderSession()
    session.changes({A: want(0), B: want(0)}, by_topic_id=True)
    session.answered(5)
    return session


def test_the_first_request_names_everything() -> None:
    """And so does every other until the leader opens a session."""
    session = LeaderSession()
    wanted = {A: want(0), B: want(0)}
    assert session.changes(wanted, by_topic_id=True) == Changes(0, 0, wanted)
    session.answered(0)
    assert session.changes(wanted, by_topic_id=True) == Changes(0, 0, wanted)


def test_then_only_what_changed_is_named() -> None:
    """With an epoch that counts the requests."""
    session = begun()
    assert session.changes({A: want(7), B: want(0)}, by_topic_id=True) == Changes(
        5, 1, {A: want(7)}
    )
    session.answered(5)
    assert session.changes({A: want(7), B: want(0)}, by_topic_id=True) == Changes(5, 2, {})


def test_partitions_no_longer_fetched_are_forgotten() -> None:
    """By the id it was named with; a topic of the same name with another id is another."""
    session = begun()
    assert session.changes({A: want(0, topic=2)}, by_topic_id=True) == Changes(
        5, 1, {A: want(0, topic=2)}, {A: UUID(int=1), B: UUID(int=1)}
    )


def test_a_session_by_names_keeps_a_partition_whose_topic_id_becomes_known() -> None:
    """Apache's leader removes forgotten names last: forgetting one would end its replication."""
    session = LeaderSession()
    session.changes({A: want(0, topic=0), B: want(0, topic=0)}, by_topic_id=False)
    session.answered(5)
    assert session.changes({A: want(0), B: want(0, topic=0)}, by_topic_id=False) == Changes(
        5, 1, {A: want(0)}
    )


def test_an_answer_that_does_not_come_closes_the_session() -> None:
    """The next request names the session, so that the leader can drop it, and begins another."""
    session = begun()
    session.changes({A: want(1), B: want(0)}, by_topic_id=True)
    session.failed()
    wanted = {A: want(1), B: want(0)}
    assert session.changes(wanted, by_topic_id=True) == Changes(5, 0, wanted)
    session.answered(6)
    assert session.changes(wanted, by_topic_id=True) == Changes(6, 1, {})


def test_a_session_the_leader_does_not_know_is_over() -> None:
    """Nothing is left of it."""
    session = begun()
    session.end()
    assert session.changes({A: want(0)}, by_topic_id=True) == Changes(0, 0, {A: want(0)})


def test_names_instead_of_ids_are_another_session() -> None:
    """An older leader after a newer one at the same address."""
    session = begun()
    assert session.changes({A: want(0)}, by_topic_id=False) == Changes(5, 0, {A: want(0)})


def test_the_epoch_begins_again_at_its_end() -> None:
    """It goes on from 1: 0 would open another session."""
    session = begun()
    session.epoch = EPOCH_MAX
    session.answered(5)
    assert session.epoch == 1
