"""The coordinator on a running broker: what survives, what expires, who waits."""

from pathlib import Path

import pytest

from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.messages.delete_topics import DeleteTopicsRequest
from barnabas_kafka.protocol.messages.describe_groups import DescribeGroupsRequest
from barnabas_kafka.protocol.messages.heartbeat import HeartbeatRequest
from barnabas_kafka.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from tests.broker.server.members import Member, commit, committed, find, join_request
from tests.broker.server.running import Wire, port_of, running_node
from tests.waiting import wait_for

FAST = {"group.initial.rebalance.delay.ms": "0", "offsets.topic.num.partitions": "3"}


def test_groups_survive_a_restart(tmp_path: Path) -> None:
    """Generation, assignment and offsets are read back; the member goes on without joining."""
    with running_node(tmp_path, FAST) as node, Wire(port_of(node)) as wire:
        wire.create_topic("t")
        find(wire, "g")
        member = Member(wire, "g")
        member.enter()
        member.sync({member.id: b"mine"})
        commit(wire, "g", "t", 5, member=member.id, generation=1)
    with running_node(tmp_path, FAST) as node, Wire(port_of(node)) as wire:
        heir = Member(wire, "g", member.id, generation=1)
        while (code := heir.sync_error()) == ErrorCode.REBALANCE_IN_PROGRESS:
            pass  # It is being read back.
        assert code == 0
        assert heir.sync({}) == b"mine"
        assert heir.beat() == 0
        assert committed(wire, "g", "t") == 5


def test_a_member_whose_connection_is_lost_stays_for_its_session(tmp_path: Path) -> None:
    """A parked join has nobody to answer; the session decides when it goes."""
    settings = FAST | {"group.min.session.timeout.ms": "200"}
    with running_node(tmp_path, settings) as node, Wire(port_of(node)) as wire:
        find(wire, "g")
        first = Member(wire, "g")
        first.enter(version=3)
        first.sync({})
        with Wire(port_of(node)) as lost:
            lost.send(join_request("g", session_timeout_ms=200), 3)
            while first.beat() == 0:
                pass
        first.enter(version=3)
        assert len(first.reported.members) == 2
        first.sync({})
        while first.beat() == 0:
            pass
        first.enter(version=3)
        assert len(first.reported.members) == 1


def test_waiting_clients_are_answered_when_the_broker_stops(tmp_path: Path) -> None:
    """They are sent to look for another coordinator at once."""
    settings = FAST | {"group.initial.rebalance.delay.ms": "60000"}
    with running_node(tmp_path, settings) as node:
        wire = Wire(port_of(node))
        find(wire, "g")
        wire.send(join_request("g"), 3)
        with Wire(port_of(node)) as other:
            wait_for(
                "a member in the group",
                lambda: other.ask(DescribeGroupsRequest(groups=["g"]), 5).groups[0].members,
            )
    with wire:
        _, answer = wire.receive(JoinGroupResponse, 3)
        assert answer.error_code == ErrorCode.NOT_COORDINATOR


@pytest.mark.parametrize("version", [1, 7])
def test_offsets_go_with_their_topic(tmp_path: Path, version: int) -> None:
    """A topic of the same name begins anew."""
    with running_node(tmp_path, FAST) as node, Wire(port_of(node)) as wire:
        wire.create_topic("t")
        find(wire, "g")
        commit(wire, "g", "t", 5)
        assert committed(wire, "g", "t", version=version) == 5
        wire.ask(DeleteTopicsRequest(topic_names=["t"]), 5)
        wire.create_topic("t")
        assert committed(wire, "g", "t", version=version) == -1


def test_requests_are_refused_before_the_offsets_topic_exists(tmp_path: Path) -> None:
    """Without it nobody coordinates anything; the first FindCoordinator creates it."""
    with running_node(tmp_path, FAST) as node, Wire(port_of(node)) as wire:
        refused = wire.ask(JoinGroupRequest(group_id="g"), 5)
        assert refused.error_code == ErrorCode.NOT_COORDINATOR
        beat = wire.ask(HeartbeatRequest(group_id="g"), 3)
        assert beat.error_code == ErrorCode.NOT_COORDINATOR
        find(wire, "g")
        topic = node.broker.image.topics["__consumer_offsets"]
        assert len(topic.partitions) == 3
        assert topic.config["cleanup.policy"] == "compact"


def test_commits_keep_a_member_alive(tmp_path: Path) -> None:
    """A session begins anew with each, as with a heartbeat."""
    with running_node(tmp_path, FAST) as node, Wire(port_of(node)) as wire:
        wire.create_topic("t")
        find(wire, "g")
        member = Member(wire, "g")
        member.enter(session_timeout_ms=1_800_000, rebalance_timeout_ms=1_800_000)
        member.sync({})
        deadlines = node.broker.groups.shard("g")._rebalancer.timers._deadlines
        ((key, before),) = deadlines.items()
        while deadlines[key] == before:
            assert commit(wire, "g", "t", 5, member=member.id, generation=1) == 0
