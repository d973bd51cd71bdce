"""The fast routes of JoinGroup and SyncGroup, and the handlers: the same answers."""

from contextlib import ExitStack
from types import SimpleNamespace
from typing import Any, cast

import pytest

from barnabas_broker.server.network.session import Session
from barnabas_broker.server.node.broker_server import BrokerServer
from barnabas_broker.server.requests.fast.rebalance import PendingJoin, PendingSync
from barnabas_broker.server.requests.handlers import join_group, sync_group
from barnabas_broker.server.requests.pending_responses import Answers
from barnabas_broker.server.requests.request_context import RequestContext
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.protocol import codec, registry
from barnabas_kafka.protocol.group_values import GroupSync
from barnabas_kafka.protocol.headers import decode_response_header
from barnabas_kafka.protocol.messages.join_group import JoinGroupResponse
from barnabas_kafka.protocol.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)
from tests.broker.server.members import Member, join_request
from tests.broker.server.requests.fast.differential import SESSION, Pair
from tests.broker.server.running import Wire, port_of
from tests.waiting import wait_for


class Crew:
    """Two members of one group on one broker, and what they are told."""

    def __init__(
        self, stack: ExitStack, node: BrokerServer, group: str, versions: tuple[int, int]
    ) -> None:
        self.group = group
        self.versions = versions
        self.reported: list[bytes] = []
        self.wires = [stack.enter_context(Wire(port_of(node))) for _ in range(2)]
        self.ids = ["", ""]
        self.generation = 0
        # Asked until it has heard of something: how often is not the same on two brokers.
        self.pulse = Member(stack.enter_context(Wire(port_of(node))), group)

    def join(self, number: int) -> None:
        """Send JoinGroup."""
        self.wires[number].send(
            join_request(self.group, self.ids[number], **SESSION), self.versions[0]
        )

    def joined(self, number: int) -> JoinGroupResponse:
        """Take up what a member is told."""
        frame = self.wires[number].receive_frame()
        self.reported.append(frame)
        response: JoinGroupResponse
        version = self.versions[0]
        header = decode_response_header(frame, registry.api(11).response_header_version(version))
        response, _ = codec.decode_from(JoinGroupResponse, frame, version, header[1])
        self.ids[number], self.generation = response.member_id, response.generation_id
        return response

    def come(self, number: int) -> None:
        """Send the JoinGroup of a new member, under its id where the version wants one."""
        self.join(number)
        if self.versions[0] >= 4:
            assert self.joined(number).error_code == ErrorCode.MEMBER_ID_REQUIRED
            self.join(number)

    def heard_of_rebalance(self) -> None:
        """Wait until the first member, which does not wait itself, is told to join again."""
        self.pulse.id, self.pulse.generation = self.ids[0], 1
        wait_for(
            "a rebalance in progress",
            self.pulse.beat,
            until=lambda code: code == ErrorCode.REBALANCE_IN_PROGRESS,
        )

    def sync(self, number: int, assign: dict[str, bytes]) -> None:
        """Send SyncGroup."""
        request = SyncGroupRequest(
            group_id=self.group,
            generation_id=self.generation,
            member_id=self.ids[number],
            protocol_type="consumer",
            protocol_name="range",
            assignments=[
                SyncGroupRequestAssignment(member_id=member, assignment=assignment)
                for member, assignment in assign.items()
            ],
        )
        self.wires[number].send(request, self.versions[1])


@pytest.mark.parametrize("version", range(10))
def test_a_rebalance_has_the_same_responses(pair: Pair, version: int) -> None:
    """Members that wait for each other and for their leader, in every version."""
    group = f"crew-{version}"
    versions = (version, min(version, 5))
    reported = []
    for node in pair.nodes:
        with ExitStack() as stack:
            crew = Crew(stack, node, group, versions)
            crew.come(0)
            assert crew.joined(0).error_code == 0
            crew.come(1)
            crew.heard_of_rebalance()
            # What comes behind a request that waits is answered after it.
            crew.sync(1, {})
            crew.join(0)
            for number in (1, 0):
                assert crew.joined(number).generation_id == 2
            crew.reported.append(crew.wires[1].receive_frame())
            crew.sync(1, {})
            crew.sync(0, {crew.ids[0]: b"some", crew.ids[1]: b"the rest"})
            crew.reported += [wire.receive_frame() for wire in crew.wires]
            reported.append(crew.reported)
    assert reported[0] == reported[1]
    assert [b"some" in reported[0][-2], b"the rest" in reported[0][-1]] == [True, True]


def test_a_member_that_goes_while_it_waits_is_not_answered(pair: Pair) -> None:
    """The others are."""
    with ExitStack() as stack:
        crew = Crew(stack, pair.nodes[0], "left", (9, 5))
        crew.come(0)
        crew.joined(0)
        crew.come(1)
        crew.heard_of_rebalance()
        crew.wires[1].socket.close()
        crew.join(0)
        assert crew.joined(0).error_code == 0


def test_a_parked_connection_is_not_idle_and_is_read_from(pair: Pair) -> None:
    """It is owed an answer; that its client has gone is noticed at once."""
    (listener,) = pair.nodes[0].listeners
    with ExitStack() as stack:
        crew = Crew(stack, pair.nodes[0], "parked", (9, 5))
        crew.come(0)
        crew.joined(0)
        crew.come(1)
        crew.heard_of_rebalance()
        place = crew.wires[1].socket.getsockname()
        (parked,) = (
            each
            for each in list(listener.sessions)
            if each._transport.get_extra_info("peername") == place
        )
        assert parked.idle_since is None
        crew.wires[1].socket.close()

        def sessions() -> list[Session]:
            crew.pulse.beat()
            return list(listener.sessions)

        wait_for("the end of the session", sessions, until=lambda left: parked not in left)


def test_an_assignment_takes_the_fast_path_only_once_written(pair: Pair) -> None:
    """So is a refusal: what the group looks like might not outlast a crash."""
    groups = pair.nodes[0].broker.groups
    held = groups._runtime.held("alone")
    request = GroupSync("alone", 1, "stranger", None, None, None, [])
    known = groups.assignment(request)
    assert known is not None
    assert known.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    held.end += 1
    assert groups.assignment(request) is None
    held.end -= 1


def pending(kind: type[PendingJoin] | type[PendingSync], version: int) -> Any:
    """A request of "me" that waits."""
    refusal = join_group.refusal if kind is PendingJoin else sync_group.refusal
    services = SimpleNamespace(answers=Answers())
    call = SimpleNamespace(broker=services, version=version, correlation_id=7)
    return kind(cast(RequestContext, call), "me", refusal)


def test_a_failed_write_has_the_handlers_error() -> None:
    """With the same code, and the id of the member that joined."""
    fault = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)
    join, sync = pending(PendingJoin, 9), pending(PendingSync, 5)
    for each in (join, sync):
        assert not each.done()
        each.fail(fault)
        assert each.done()
    assert join.response == join_group.refusal(fault, "me")
    assert sync.response == sync_group.refusal(fault)
    gone = pending(PendingSync, 5)
    gone.cancel()
    assert gone.done()


def test_a_response_that_cannot_be_written_is_the_codec_s_affair() -> None:
    """The fast route leaves it, and the codec says what is wrong."""
    join = pending(PendingJoin, 5)
    join.set_result(JoinGroupResponse(protocol_name=None))
    with pytest.raises(codec.EncodeError):
        join.encoded()
    join.set_result(JoinGroupResponse(protocol_name="range", throttle_time_ms=1))
    assert join.encoded()[-4:] == bytes(4)
