"""OffsetFetch on a running broker."""

import pytest

from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from tests.broker.server.members import commit, find
from tests.broker.server.running import Wire


@pytest.mark.parametrize("version", range(1, 8))
def test_one_group_is_asked_about(wire: Wire, topic: str, version: int) -> None:
    """Partitions without an offset have -1 and no error; null topics are all, from 2 on."""
    find(wire, "g")
    assert commit(wire, "g", topic, 7) == 0
    asked = [OffsetFetchRequestTopic(name=topic, partition_indexes=[0, 9])]
    answer = wire.ask(OffsetFetchRequest(group_id="g", topics=asked), version)
    assert [each.committed_offset for each in answer.topics[0].partitions] == [7, -1]
    assert answer.error_code == 0
    if version >= 2:
        everything = wire.ask(OffsetFetchRequest(group_id="g", topics=None), version)
        assert topic in {each.name for each in everything.topics}


@pytest.mark.parametrize("version", [8, 9])
def test_several_groups_are_asked_about(wire: Wire, topic: str, version: int) -> None:
    """Each has its own answer (KIP-709); an unknown one has no offsets."""
    find(wire, "g")
    assert commit(wire, "one", topic, 7) == 0
    some = [OffsetFetchRequestTopics(name=topic, partition_indexes=[0])]
    request = OffsetFetchRequest(
        require_stable=True,
        groups=[
            OffsetFetchRequestGroup(group_id="one", topics=None),
            OffsetFetchRequestGroup(group_id="unknown", topics=some),
        ],
    )
    answer = wire.ask(request, version)
    assert [
        (group.group_id, group.error_code, group.topics[0].partitions[0].committed_offset)
        for group in answer.groups
    ] == [("one", 0, 7), ("unknown", 0, -1)]


def test_version_0_is_read_from_znodes(wire: Wire, topic: str) -> None:
    """A partition without one is unknown there, and what the coordinator has is not told."""
    find(wire, "g")
    assert commit(wire, "ancient", topic, 7) == 0
    asked = [OffsetFetchRequestTopic(name=topic, partition_indexes=[0, 9])]
    request = OffsetFetchRequest(group_id="ancient", topics=asked)

    def reported() -> list[tuple[int, int]]:
        partitions = wire.ask(request, 0).topics[0].partitions
        return [(each.committed_offset, each.error_code) for each in partitions]

    unknown = (-1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert reported() == [unknown, unknown]
    assert commit(wire, "ancient", topic, 42, version=0) == 0
    assert reported() == [(42, 0), unknown]
