"""ConsumerGroupHeartbeat on a running broker."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.messages.api_versions import ApiVersionsRequest
from barnabas_kafka.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
)
from barnabas_kafka.protocol.messages.list_groups import ListGroupsRequest
from barnabas_kafka.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
)
from barnabas_kafka.protocol.registry import ApiKey
from tests.broker.coordinator.group.consumer.test_expressions import counted_matches
from tests.broker.server.members import find
from tests.broker.server.running import Wire, port_of, running_node

ON = {"offsets.topic.num.partitions": "2"}


@pytest.fixture(scope="module")
def modern(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wire]:
    """A connection to a broker with a topic and groups."""
    directory: Path = tmp_path_factory.mktemp("modern")
    with running_node(directory, ON) as node, Wire(port_of(node)) as wire:
        wire.create_topic("t", partitions=3)
        find(wire, "g")
        yield wire


def join(group: str, **fields: Any) -> ConsumerGroupHeartbeatRequest:
    first: dict[str, Any] = {
        "member_id": "m",
        "rebalance_timeout_ms": 1000,
        "subscribed_topic_names": ["t"],
        "topic_partitions": [],
    }
    return ConsumerGroupHeartbeatRequest(group_id=group, **{**first, **fields})


@pytest.mark.parametrize("version", [0, 1])
def test_every_version_joins_and_leaves(modern: Wire, version: int) -> None:
    """The first answer has everything; version 0 is given an id where it has none."""
    group = f"joins-{version}"
    answer = modern.ask(join(group, member_id="m" if version else ""), version)
    assert (answer.error_code, answer.member_epoch) == (0, 1)
    assert answer.member_id
    assert [each.partitions for each in answer.assignment.topic_partitions] == [[0, 1, 2]]
    leave = ConsumerGroupHeartbeatRequest(
        group_id=group, member_id=answer.member_id, member_epoch=-1
    )
    assert modern.ask(leave, version).member_epoch == -1


def test_a_refusal_says_why(modern: Wire) -> None:
    """With a code and a sentence."""
    answer = modern.ask(join("g", rebalance_timeout_ms=-1), 1)
    assert answer.error_code == ErrorCode.INVALID_REQUEST
    assert answer.error_message == "RebalanceTimeoutMs must be provided in first request."
    answer = modern.ask(join("nowhere", member_epoch=3), 1)
    assert answer.error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_the_group_is_listed_as_what_it_is(modern: Wire) -> None:
    """By type and with its own states."""
    modern.ask(join("listed"), 1)
    listed = modern.ask(ListGroupsRequest(types_filter=["Consumer"]), 5).groups
    found = {each.group_id: (each.group_type, each.group_state) for each in listed}
    assert found["listed"] == ("consumer", "Stable")


def test_offset_fetch_checks_the_member_epoch(modern: Wire) -> None:
    """OffsetFetch 9 tells others to learn first."""

    def code(**fields: Any) -> int:
        group = OffsetFetchRequestGroup(group_id="fetches", topics=[], **fields)
        found: int = modern.ask(OffsetFetchRequest(groups=[group]), 9).groups[0].error_code
        return found

    modern.ask(join("fetches"), 1)
    assert code(member_id="m", member_epoch=1) == 0
    assert code() == 0
    assert code(member_id="m", member_epoch=0) == ErrorCode.STALE_MEMBER_EPOCH
    assert code(member_id="x", member_epoch=1) == ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize(
    "off",
    [
        {"group.coordinator.rebalance.protocols": "classic"},
        {"inter.broker.protocol.version": "3.9"},
    ],
)
def test_the_consumer_protocol_is_enabled_by_default(
    wire: Wire, tmp_path: Path, off: dict[str, str]
) -> None:
    """Where it is off it is not advertised, and refused."""

    def advertised(to: Wire) -> set[int]:
        return {each.api_key for each in to.ask(ApiVersionsRequest(), 0).api_keys}

    both = {ApiKey.CONSUMER_GROUP_HEARTBEAT, ApiKey.CONSUMER_GROUP_DESCRIBE}
    assert both <= advertised(wire)
    with running_node(tmp_path, {**ON, **off}) as node, Wire(port_of(node)) as old:
        assert not both & advertised(old)
        find(old, "g")
        assert old.ask(join("g"), 1).error_code == ErrorCode.UNSUPPORTED_VERSION


def test_expressions_are_matched_once_for_all_members(tmp_path: Path) -> None:
    """And in turns: what the decision needs is there when it is made."""
    with running_node(tmp_path, ON) as node, Wire(port_of(node)) as wire:
        for number in range(5):
            wire.create_topic(f"topic-{number}")
        find(wire, "g")
        with counted_matches() as looked_at:
            for number in range(10):
                expression = {"subscribed_topic_names": None, "subscribed_topic_regex": "topic-.*"}
                answer = wire.ask(join("g", member_id=f"m{number}", **expression), 1)
                assert answer.error_code == 0
            assert sorted(looked_at.copy())[-5:] == [f"topic-{number}" for number in range(5)]
            assert len(looked_at) <= 6  # With the topic of groups.
