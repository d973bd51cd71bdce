"""The short ways of JoinGroup and SyncGroup, and the general ones: the same answers."""

import itertools
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas_broker.coordinator.group.shard import Shard
from barnabas_broker.security.acls import AclOperation, ResourceType
from barnabas_broker.security.principals import ANONYMOUS
from barnabas_broker.server.network.session import Session
from barnabas_broker.server.node.broker_server import BrokerServer
from barnabas_broker.server.requests.dispatch import Caller, Dispatcher
from barnabas_broker.server.requests.fast.rebalance import ParkedJoin, ParkedSync, PlainRebalances
from barnabas_broker.server.requests.handlers import join_group, sync_group
from barnabas_broker.server.requests.pending_responses import Answers
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.protocol import codec, registry
from barnabas_kafka.protocol.headers import decode_response_header
from barnabas_kafka.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from barnabas_kafka.protocol.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from barnabas_kafka.protocol.plain_rebalance import PlainSync
from barnabas_kafka.protocol.registry import ApiKey
from tests.broker.controller.embedded import Denying
from tests.broker.server.members import Member, find, join_request
from tests.broker.server.running import Wire, port_of
from tests.broker.server.two_ways import two_ways
from tests.waiting import wait_for

NOW = 1_700_000_000_000
SETTINGS = {"group.initial.rebalance.delay.ms": "0", "offsets.topic.num.partitions": "2"}
# No story takes so long.
SESSION = {"session_timeout_ms": 1_800_000, "rebalance_timeout_ms": 1_800_000}
ALONE = "wire-1"


def protocols(*names: str) -> list[JoinGroupRequestProtocol]:
    """Some protocols with metadata of their own."""
    return [JoinGroupRequestProtocol(name=name, metadata=name.encode()) for name in names]


class Pair:
    """Two brokers that are told the same, one of which knows the general ways only.

    `alone` is the only member of its group, so that whatever it asks is answered at once.
    """

    def __init__(self, nodes: tuple[BrokerServer, BrokerServer], wires: tuple[Wire, Wire]) -> None:
        self.nodes = nodes
        self.wires = wires
        self.generation = 1
        for wire in wires:
            find(wire, "alone")
            alone = Member(wire, "alone")
            alone.enter(**SESSION)
            assert alone.id == ALONE
            alone.sync({ALONE: b"all"})

    def ask(self, request: JoinGroupRequest | SyncGroupRequest, version: int) -> bytes:
        """Send both the same bytes; their answer, which is the same."""
        answers = []
        for wire in self.wires:
            wire.send(request, version)
            answers.append(wire.receive_frame())
        assert answers[0] == answers[1]
        return answers[0]


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """One pair for the module, for which it is always the same time; ids of members are told."""
    directory = tmp_path_factory.mktemp("pair")
    with two_ways(
        directory, SETTINGS, ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP, now_ms=NOW, names=_names
    ) as told:
        yield Pair(*told)


def _names() -> Callable[[], str]:
    numbers = itertools.count(1)
    return lambda: str(next(numbers))


JOINS = st.builds(
    join_request,
    st.sampled_from(("alone", "alone", "alone", "nobody", "")),
    st.sampled_from((ALONE, ALONE, ALONE, "stranger")),
    group_instance_id=st.sampled_from((None, None, None, "i")),
    protocol_type=st.sampled_from(("consumer", "consumer", "connect", "")),
    protocols=st.sampled_from(
        (protocols("range"), protocols("range", "sticky"), protocols("é"), protocols())
    ),
    session_timeout_ms=st.sampled_from((1_800_000, 1_800_000, 1)),
    rebalance_timeout_ms=st.just(1_800_000),
)


@given(request=JOINS, version=st.integers(0, 9))
def test_random_joins_get_the_same_answer(
    pair: Pair, request: JoinGroupRequest, version: int
) -> None:
    """By a member that is alone, by strangers, in groups that are not; whatever is wrong."""
    if version < 5:
        request.group_instance_id = None
    for wire in pair.wires:
        wire.send(request, version)
    told = [wire.receive(JoinGroupResponse, version)[1] for wire in pair.wires]
    assert told[0] == told[1]
    if told[0].error_code == 0:
        pair.generation = told[0].generation_id


@given(
    group=st.sampled_from(("alone", "alone", "alone", "nobody", "")),
    behind=st.sampled_from((0, 0, 0, 1)),
    member=st.sampled_from((ALONE, ALONE, ALONE, "stranger")),
    instance=st.sampled_from((None, None, None, "i")),
    kind=st.sampled_from(("consumer", "consumer", "connect", None)),
    name=st.sampled_from(("range", "range", "sticky", None)),
    assignments=st.dictionaries(st.sampled_from((ALONE, "stranger")), st.binary(max_size=5)),
    version=st.integers(0, 5),
)
def test_random_syncs_get_the_same_answer(
    pair: Pair,
    group: str,
    behind: int,
    member: str,
    instance: str | None,
    kind: str | None,
    name: str | None,
    assignments: dict[str, bytes],
    version: int,
) -> None:
    """Whatever is wrong with the request."""
    request = SyncGroupRequest(
        group_id=group,
        generation_id=pair.generation - behind,
        member_id=member,
        group_instance_id=instance if version >= 3 else None,
        protocol_type=kind,
        protocol_name=name,
        assignments=[
            SyncGroupRequestAssignment(member_id=each, assignment=assignment)
            for each, assignment in assignments.items()
        ],
    )
    pair.ask(request, version)


class Crew:
    """Two members of one group on one broker, and what they are told."""

    def __init__(
        self, stack: ExitStack, node: BrokerServer, group: str, versions: tuple[int, int]
    ) -> None:
        self.group = group
        self.versions = versions
        self.told: list[bytes] = []
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
        self.told.append(frame)
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
def test_a_rebalance_is_told_alike(pair: Pair, version: int) -> None:
    """Members that wait for each other and for their leader, in every version."""
    group = f"crew-{version}"
    versions = (version, min(version, 5))
    told = []
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
            crew.told.append(crew.wires[1].receive_frame())
            crew.sync(1, {})
            crew.sync(0, {crew.ids[0]: b"some", crew.ids[1]: b"the rest"})
            crew.told += [wire.receive_frame() for wire in crew.wires]
            told.append(crew.told)
    assert told[0] == told[1]
    assert [b"some" in told[0][-2], b"the rest" in told[0][-1]] == [True, True]


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


def test_an_assignment_is_told_without_a_turn_only_once_it_counts(pair: Pair) -> None:
    """So is a refusal: what the group looks like might not outlast a crash."""
    groups = pair.nodes[0].broker.groups
    held = groups.held("alone")
    request = PlainSync("alone", 1, "stranger", None, None, None, [])
    known = groups.assignment(held, request)
    assert known is not None
    assert known.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    held.end += 1
    assert groups.assignment(held, request) is None
    held.end -= 1


def test_ordinary_requests_do_not_reach_the_general_ways(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The short ones do all of them."""
    monkeypatch.setattr(Dispatcher, "_small", None)
    wire = pair.wires[0]
    wire.send(join_request("alone", ALONE, **SESSION), 5)
    assert wire.receive_frame()
    monkeypatch.undo()
    pair.wires[1].send(join_request("alone", ALONE, **SESSION), 5)
    pair.generation = pair.wires[1].receive(JoinGroupResponse, 5)[1].generation_id


def test_what_the_general_way_has_to_look_at(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """Members that may not read the group, and groups of other brokers; nothing is done then."""
    node, wire = pair.nodes[0], pair.wires[0]
    join = memoryview(wire.frame(join_request("alone", ALONE), 9)[4:])
    sync = memoryview(wire.frame(SyncGroupRequest(group_id="alone", member_id=ALONE), 4)[4:])
    caller = Caller("PLAINTEXT", "127.0.0.1", ANONYMOUS)

    def nowhere(*_: object) -> None:
        raise KafkaError(ErrorCode.NOT_COORDINATOR)

    monkeypatch.setattr(Shard, "join", None)
    monkeypatch.setattr(Shard, "sync", None)
    monkeypatch.setattr(Shard, "assignment", None)
    group = AclOperation.READ, ResourceType.GROUP, "alone"
    for authorizer in (Denying(group), Denying()):
        ways = PlainRebalances(node.broker, authorizer, Answers())
        assert ways.join(join, 9, 1, caller, NOW) is None
        assert ways.sync(sync, 4, 1, caller, NOW) is None
        assert authorizer.asked == [group, group]
        monkeypatch.setattr(node.broker.groups, "held", nowhere)


def test_a_bug_on_the_short_way_ends_the_connection_and_is_logged(
    pair: Pair, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """What the group made of the request is not known then."""

    def broken(*_: object) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(Shard, "join", broken)
    monkeypatch.setattr(Shard, "assignment", broken)
    requests = (join_request("alone", ALONE), 9), (SyncGroupRequest(group_id="alone"), 4)
    for request, version in requests:
        with Wire(port_of(pair.nodes[0])) as wire:
            wire.send(request, version)
            assert wire.closed_by_broker()
    for api in ("JoinGroup", "SyncGroup"):
        assert f"Request failed: {api} version" in caplog.text


def test_what_does_not_count_is_refused_as_on_the_general_ways() -> None:
    """With the same code, and the id of the member that joined."""
    fault = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)
    answers = Answers()
    join, sync = ParkedJoin(answers, 9, 7, "me"), ParkedSync(answers, 5, 7)
    for parked in (join, sync):
        assert not parked.done()
        parked.fail(fault)
        assert parked.done()
    assert join.response == join_group.refusal(fault, "me")
    assert sync.response == sync_group.refusal(fault)
    gone = ParkedSync(answers, 5, 7)
    gone.cancel()
    assert gone.done()
    assert isinstance(sync.response, SyncGroupResponse)


def test_a_response_that_cannot_be_written_is_the_codec_s_affair() -> None:
    """The short way leaves it, and the codec says what is wrong."""
    join = ParkedJoin(Answers(), 5, 7, "me")
    join.set_result(JoinGroupResponse(protocol_name=None))
    with pytest.raises(codec.EncodeError):
        join.encoded()
    join.set_result(JoinGroupResponse(protocol_name="range", throttle_time_ms=1))
    assert join.encoded()[-4:] == bytes(4)
