"""OffsetCommit on a running broker."""

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from barnabas_broker.server.node.broker_server import BrokerServer
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.ids import TopicPartition
from barnabas_kafka.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tests.broker.server.members import Member, commit, committed, find
from tests.broker.server.running import Wire, port_of
from tests.waiting import ANSWER, seconds


@pytest.mark.parametrize("version", range(1, 10))
def test_every_version_commits(wire: Wire, topic: str, version: int) -> None:
    """For a consumer without a group, and for a member."""
    find(wire, "g")
    group = f"commit-{version}"
    assert commit(wire, group, topic, version, version=version) == 0
    assert committed(wire, group, topic) == version
    member = Member(wire, group)
    member.enter()
    member.sync({})
    assert commit(wire, group, topic, 1, version=version) == ErrorCode.UNKNOWN_MEMBER_ID
    more = {"member": member.id, "generation": 1}
    assert commit(wire, group, topic, 99, version=version, **more) == 0
    assert committed(wire, group, topic) == 99


def test_unknown_partitions_fail_and_the_others_are_committed(wire: Wire, topic: str) -> None:
    """The others are committed, and the answer keeps the order of the request."""
    find(wire, "g")
    partitions = [
        OffsetCommitRequestPartition(partition_index=each, committed_offset=3) for each in (9, 0)
    ]
    topics = [
        OffsetCommitRequestTopic(name="unknown", partitions=partitions),
        OffsetCommitRequestTopic(name=topic, partitions=partitions),
    ]
    answer = wire.ask(OffsetCommitRequest(group_id="some", topics=topics), 8)
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert [
        (reported.name, [(each.partition_index, each.error_code) for each in reported.partitions])
        for reported in answer.topics
    ] == [("unknown", [(9, unknown), (0, unknown)]), (topic, [(9, unknown), (0, 0)])]
    assert committed(wire, "some", topic) == 3


def test_version_0_is_kept_in_znodes(node: BrokerServer, wire: Wire, topic: str) -> None:
    """A decimal number, replaced by the next commit; the coordinator knows nothing of it."""
    find(wire, "g")
    assert commit(wire, "ancient", topic, 5, version=0) == 0
    assert commit(wire, "ancient", topic, 42, version=0) == 0
    assert committed(wire, "ancient", topic) == -1
    partition = TopicPartition(topic, 0)
    assert node.broker.zookeeper_offsets.read("ancient", [partition]) == {partition: 42}
    assert commit(wire, "ancient", "unknown", 5, version=0) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    for group in ("", "..", "a/b", "a\nb", "a\x1bb", "a\x85b", "a\0b", "a\U0001f600"):
        assert commit(wire, group, topic, 5, version=0) == ErrorCode.INVALID_GROUP_ID


def test_version_0_has_the_same_limit_for_metadata(wire: Wire, topic: str) -> None:
    """Which is not kept at all, but has to be of a length that could be."""
    partition = OffsetCommitRequestPartition(
        partition_index=0, committed_offset=3, committed_metadata="m" * 4097
    )
    topics = [OffsetCommitRequestTopic(name=topic, partitions=[partition])]
    answer = wire.ask(OffsetCommitRequest(group_id="ancient", topics=topics), 0)
    (reported,) = answer.topics[0].partitions
    assert reported.error_code == ErrorCode.OFFSET_METADATA_TOO_LARGE


def test_version_0_does_not_hold_the_controller_up(
    node: BrokerServer, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long ZooKeeper takes for the offsets: a topic is created meanwhile."""
    begun, goes_on = threading.Event(), threading.Event()
    write = node.broker.zookeeper_offsets.write

    def held_up(*arguments: Any) -> int:
        begun.set()
        goes_on.wait()
        return write(*arguments)

    monkeypatch.setattr(node.broker.zookeeper_offsets, "write", held_up)
    with (
        Wire(port_of(node)) as old,
        Wire(port_of(node)) as other,
        ThreadPoolExecutor(1) as thread,
    ):
        try:
            code = thread.submit(commit, old, "held-up", topic, 5, version=0)
            assert begun.wait(seconds(ANSWER))
            other.create_topic("made-meanwhile")
        finally:
            goes_on.set()
        assert code.result(seconds(ANSWER)) == 0
