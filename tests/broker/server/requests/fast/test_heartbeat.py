"""The short way of Heartbeat and the general one: the same answers."""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas_broker.security.acls import AclOperation, ResourceType
from barnabas_broker.security.principals import ANONYMOUS
from barnabas_broker.server.node.broker_server import BrokerServer
from barnabas_broker.server.requests.dispatch import Caller, Dispatcher, PlainWay
from barnabas_broker.server.requests.fast import heartbeat
from barnabas_broker.server.requests.fast.heartbeat import PlainHeartbeats
from barnabas_kafka.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from barnabas_kafka.protocol.registry import ApiKey
from tests.broker.controller.embedded import Denying
from tests.broker.server.members import Member, find
from tests.broker.server.running import Wire, port_of, running_node, told_of_dispatchers

SETTINGS = {"group.initial.rebalance.delay.ms": "0", "offsets.topic.num.partitions": "2"}
# No story takes so long.
SESSION = {"session_timeout_ms": 1_800_000, "rebalance_timeout_ms": 1_800_000}


class Ways:
    """One broker whose short way can be closed."""

    def __init__(self, node: BrokerServer, wire: Wire, dispatcher: Dispatcher) -> None:
        self.node = node
        self.wire = wire
        self._plain = dispatcher._plain
        self._short = self._plain[ApiKey.HEARTBEAT]
        find(wire, "stable")
        self.stable = Member(wire, "stable")
        self.stable.enter(**SESSION)
        self.stable.sync({})
        self.static = Member(wire, "static")
        self.static.enter(group_instance_id="i", **SESSION)

    def ask(self, request: HeartbeatRequest, version: int) -> HeartbeatResponse:
        """Send a request both ways; the answer, which is the same but for its number."""
        answers = []
        ways: tuple[PlainWay, PlainWay] = (self._short, lambda *_: None)
        try:
            for way in ways:
                self._plain[ApiKey.HEARTBEAT] = way
                response: HeartbeatResponse = self.wire.ask(request, version)
                answers.append(response)
        finally:
            self._plain[ApiKey.HEARTBEAT] = self._short
        assert answers[0] == answers[1]
        return answers[0]


@pytest.fixture(scope="module")
def ways(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ways]:
    """A broker with a group that is stable, and one that waits for its leader."""
    dispatchers: list[Dispatcher] = []
    with ExitStack() as stack, told_of_dispatchers(dispatchers.append):
        node = stack.enter_context(running_node(tmp_path_factory.mktemp("ways"), SETTINGS))
        wire = stack.enter_context(Wire(port_of(node)))
        yield Ways(node, wire, dispatchers[0])


@given(
    group=st.sampled_from(("stable", "stable", "static", "nobody", "")),
    generation=st.sampled_from((1, 1, 2, -1)),
    member=st.sampled_from(("stable", "stable", "static", "stranger")),
    instance=st.sampled_from((None, None, "i", "j")),
    version=st.integers(0, 4),
)
def test_both_ways_answer_alike(
    ways: Ways, group: str, generation: int, member: str, instance: str | None, version: int
) -> None:
    """Members that live, that speak of another generation, strangers and groups that are not."""
    ids = {"stable": ways.stable.id, "static": ways.static.id}
    request = HeartbeatRequest(
        group_id=group,
        generation_id=generation,
        member_id=ids.get(member, member),
        group_instance_id=instance if version >= 3 else None,
    )
    ways.ask(request, version)


def test_members_live_the_short_way(ways: Ways, monkeypatch: pytest.MonkeyPatch) -> None:
    """The general way is not needed for that; where the short one has a bug it is gone."""
    request = HeartbeatRequest(group_id="stable", generation_id=1, member_id=ways.stable.id)
    assert ways.ask(request, 4).error_code == 0
    frame = memoryview(ways.wire.frame(request, 4)[4:])
    caller = Caller("PLAINTEXT", "127.0.0.1", ANONYMOUS)

    group = AclOperation.READ, ResourceType.GROUP, "stable"
    authorizer = Denying(group)
    denied = PlainHeartbeats(ways.node.broker, authorizer)
    assert denied.serve(frame, 4, 1, caller, 0) is None
    assert authorizer.asked == [group]

    def broken(*_: object) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(heartbeat, "beat", broken)
    assert ways.stable.beat() == 0
