"""What the two requests that commit offsets share."""

from typing import Any, TypeVar

import pytest

from barnabas_broker.server.process.cooperative_scheduler import Work
from barnabas_broker.server.requests import offset_commits
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.ids import TopicPartition
from barnabas_kafka.protocol.messages import offset_commit, txn_offset_commit

T = TypeVar("T")

PLAIN = (
    offset_commit.OffsetCommitRequestTopic,
    offset_commit.OffsetCommitRequestPartition,
    offset_commit.OffsetCommitResponseTopic,
    offset_commit.OffsetCommitResponsePartition,
)
IN_TRANSACTION = (
    txn_offset_commit.TxnOffsetCommitRequestTopic,
    txn_offset_commit.TxnOffsetCommitRequestPartition,
    txn_offset_commit.TxnOffsetCommitResponseTopic,
    txn_offset_commit.TxnOffsetCommitResponsePartition,
)


def done(work: Work[T]) -> T:
    """What comes of work, done at one go."""
    while True:
        try:
            next(work)
        except StopIteration as end:
            result: T = end.value
            return result


def topics(kinds: tuple[Any, ...], **partitions: list[int]) -> list[Any]:
    topic, partition = kinds[:2]
    return [
        topic(name=name, partitions=[partition(partition_index=each) for each in numbers])
        for name, numbers in partitions.items()
    ]


@pytest.mark.parametrize("kinds", [PLAIN, IN_TRANSACTION])
def test_refused_partitions_keep_their_place_in_the_response(kinds: tuple[Any, ...]) -> None:
    """The group never sees it; a topic of which nothing is left is not there."""
    asked = topics(kinds, a=[1, 0, 2], b=[0])
    codes = {
        TopicPartition("a", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        TopicPartition("b", 0): ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    }
    kept = done(offset_commits.without(asked, codes, kinds[0]))
    assert kept == topics(kinds, a=[1, 2])
    reported = [
        kinds[2](
            name="a",
            partitions=[
                kinds[3](partition_index=2, error_code=ErrorCode.OFFSET_METADATA_TOO_LARGE),
                kinds[3](partition_index=1, error_code=0),
            ],
        )
    ]
    done(offset_commits.note(reported, codes))
    answers = done(offset_commits.in_order(asked, codes, *kinds[2:]))
    assert [
        (topic.name, each.partition_index, ErrorCode(each.error_code))
        for topic in answers
        for each in topic.partitions
    ] == [
        ("a", 1, ErrorCode.NONE),
        ("a", 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("a", 2, ErrorCode.OFFSET_METADATA_TOO_LARGE),
        ("b", 0, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
    ]
