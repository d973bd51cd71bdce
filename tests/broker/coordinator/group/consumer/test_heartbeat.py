"""Members of the consumer protocol: joining, giving up, moving on, leaving, and who is refused."""

import random

import pytest

from barnabas_broker.coordinator.group.consumer.member import MemberState
from barnabas_broker.coordinator.group.consumer.records import ConsumerRecord, Kind
from barnabas_broker.coordinator.group.joining import Join
from barnabas_broker.coordinator.group.members import Client
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.group_values import GroupJoin
from barnabas_kafka.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from barnabas_kafka.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from barnabas_kafka.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tests.broker.coordinator.group.consumer.scenarios import (
    REBALANCE_MS,
    SESSION_MS,
    Actor,
    ConsumerScenario,
    settle,
)
from tests.broker.coordinator.group.scenarios import TEAM, subscription


def test_the_first_member_gets_everything_at_once() -> None:
    """One answer: epoch 1 and all partitions; and six records, in Kafka's order."""
    scenario = ConsumerScenario({"t": 3})
    one = Actor(scenario, "one")
    assert one.beat() is ErrorCode.NONE
    assert (one.epoch, one.reads) == (1, [0, 1, 2])
    kinds = [each.kind for each in scenario.written if isinstance(each, ConsumerRecord)]
    assert kinds == [
        Kind.MEMBER,
        Kind.TOPICS,
        Kind.GROUP,
        Kind.TARGET,
        Kind.TARGET_EPOCH,
        Kind.CURRENT,
    ]
    assert scenario.consumers.state_name == "Stable"


def test_a_member_without_subscriptions_moves_no_partition() -> None:
    """Its joining leaves the group's epoch as it is, but for that of a new group."""
    scenario = ConsumerScenario({"t": 1})
    idle, one, other = (
        Actor(scenario, "idle", subscribed_topic_names=[]),
        Actor(scenario, "one"),
        Actor(scenario, "other", subscribed_topic_names=[]),
    )
    assert (idle.beat(), idle.epoch) == (ErrorCode.NONE, 1)
    assert (one.beat(), one.epoch) == (ErrorCode.NONE, 2)
    assert (other.beat(), other.epoch, other.reads) == (ErrorCode.NONE, 2, [])
    assert (one.beat(), one.epoch, one.reads) == (ErrorCode.NONE, 2, [0])


def test_a_partition_is_given_away_when_its_owner_has_let_go() -> None:
    """The newcomer has its epoch but waits; the owner is told to give up, says so, and all have."""
    scenario = ConsumerScenario({"t": 4})
    one, two = Actor(scenario, "one"), Actor(scenario, "two")
    one.beat()
    two.beat()
    assert (two.epoch, two.reads) == (2, [])
    before = one.owned
    one.beat()
    assert (one.epoch, one.reads) == (1, [0, 1])
    two.beat()
    assert two.reads == [], "the owner has not said that it let go"
    assert scenario.consumers.state_name == "Reconciling"
    one.beat()
    assert one.epoch == 2
    two.beat()
    assert two.owned == before - one.owned
    assert scenario.consumers.state_name == "Stable"


def test_a_member_that_does_not_let_go_in_time_is_out() -> None:
    """After the rebalance timeout others get what it did not give up; it must begin anew."""
    scenario = ConsumerScenario({"t": 4})
    one, two = Actor(scenario, "one"), Actor(scenario, "two")
    one.beat()
    two.beat()
    one.beat()
    one.owned = scenario.partitions("t")
    for _ in range(3):
        scenario.pass_time(REBALANCE_MS // 3)
        one.beat()
        two.beat()
    assert one.epoch == 0
    two.beat()
    assert two.reads == [0, 1, 2, 3]


def test_a_silent_member_is_out_after_its_session() -> None:
    """The others share what it had with their next heartbeat."""
    scenario = ConsumerScenario({"t": 4})
    one, two = Actor(scenario, "one"), Actor(scenario, "two")
    settle(one, two)
    for _ in range(5):
        scenario.pass_time(SESSION_MS // 4)
        two.beat()
    assert two.reads == [0, 1, 2, 3]
    assert one.beat() is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_leaving_member_is_removed_at_once() -> None:
    """The answer has epoch -1, and the group ends up empty."""
    scenario = ConsumerScenario({"t": 4})
    one, two = Actor(scenario, "one"), Actor(scenario, "two")
    settle(one, two)
    assert one.leave() is ErrorCode.NONE
    settle(two)
    assert two.reads == [0, 1, 2, 3]
    two.leave()
    assert scenario.consumers.state_name == "Empty"
    assert not scenario.consumers.owners


def test_topics_that_come_grow_and_go_are_noticed() -> None:
    """With the next heartbeat after the metadata changed, and each raises the group's epoch."""
    scenario = ConsumerScenario({"t": 2})
    one = Actor(scenario, "one", subscribed_topic_names=["t", "later"])
    one.beat()
    scenario.put_topic("t", 3)
    one.beat()
    assert (one.epoch, one.reads) == (2, [0, 1, 2])
    scenario.put_topic("later", 1)
    one.beat()
    assert (one.epoch, one.reads) == (3, [0, 0, 1, 2])
    scenario.drop_topic("t")
    settle(one)
    assert (one.epoch, one.reads) == (4, [0])
    scenario.put_topic("unrelated", 1)
    one.beat()
    assert one.epoch == 4


def test_an_expression_subscribes_to_what_it_matches_whole_and_may_be_seen() -> None:
    """RE2 on whole names; topics that come later are found, hidden ones never."""
    scenario = ConsumerScenario({"logs-a": 1, "secret-logs": 1, "old-logs-a": 1})
    one = Actor(
        scenario, "one", subscribed_topic_names=[], subscribed_topic_regex=r"(secret-)?logs.*"
    )
    one.beat()
    assert one.owned == scenario.partitions("logs-a")
    scenario.put_topic("logs-b", 1)
    one.beat()
    assert one.owned == scenario.partitions("logs-a") | scenario.partitions("logs-b")


@pytest.mark.parametrize("expression", ["(", r"(a)\1", "a(?=b)", "a{1001}"])
def test_expressions_that_re2_does_not_take_are_refused(expression: str) -> None:
    """Among them all that only a backtracking engine can match."""
    scenario = ConsumerScenario({"t": 1})
    code = scenario.refusal("one", 0, subscribed_topic_regex=expression)
    assert code is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert not scenario.written


def test_a_static_member_keeps_its_place() -> None:
    """It goes with epoch -2, comes back under another id, and no epoch is raised."""
    scenario = ConsumerScenario({"t": 4})
    one = Actor(scenario, "one", instance_id="i")
    other = Actor(scenario, "other")
    settle(one, other)
    had, epoch = one.owned, scenario.consumers.epoch
    again = Actor(scenario, "again", instance_id="i")
    assert again.beat() is ErrorCode.UNRELEASED_INSTANCE_ID
    assert one.leave(-2) is ErrorCode.NONE
    assert again.beat() is ErrorCode.NONE
    assert (again.owned, scenario.consumers.epoch) == (had, epoch)
    assert scenario.refusal("one", epoch, instance_id="i") is ErrorCode.FENCED_INSTANCE_ID
    assert set(scenario.consumers.members) == {"again", "other"}


def test_a_static_member_that_stays_away_is_missed() -> None:
    """Its session goes on while it is away."""
    scenario = ConsumerScenario({"t": 4})
    one = Actor(scenario, "one", instance_id="i")
    other = Actor(scenario, "other")
    settle(one, other)
    one.leave(-2)
    for _ in range(5):
        scenario.pass_time(SESSION_MS // 4)
        other.beat()
    assert other.reads == [0, 1, 2, 3]


def test_a_static_member_that_goes_while_it_lets_go_keeps_its_place() -> None:
    """It has let go by going; from then on only its session counts, as with Apache Kafka."""
    scenario = ConsumerScenario({"t": 4})
    one, other = Actor(scenario, "one", instance_id="i"), Actor(scenario, "other")
    one.beat()
    other.beat()
    scenario.beat("one", one.epoch, instance_id="i")
    assert scenario.consumers.members["one"].state is MemberState.UNREVOKED_PARTITIONS
    assert one.leave(-2) is ErrorCode.NONE
    scenario.pass_time(REBALANCE_MS + 1)
    assert "one" in scenario.consumers.members
    scenario.pass_time(SESSION_MS - REBALANCE_MS)
    assert "one" not in scenario.consumers.members


def test_a_failed_removal_keeps_the_member_until_its_session_timeout() -> None:
    """It has gone and will not ask again: only its session ends what it holds."""
    scenario = ConsumerScenario({"t": 4})
    one, two = Actor(scenario, "one"), Actor(scenario, "two")
    settle(one, two)
    scenario.fail_writes = ErrorCode.NOT_ENOUGH_REPLICAS
    assert one.leave() is ErrorCode.COORDINATOR_NOT_AVAILABLE
    scenario.fail_writes = None
    for _ in range(5):
        scenario.pass_time(SESSION_MS // 4)
        two.beat()
    assert two.reads == [0, 1, 2, 3]


def test_epochs_that_are_not_the_member_s_are_fenced() -> None:
    """A greater one always; the one before only with nothing but what was assigned."""
    scenario = ConsumerScenario({"t": 4})
    one, two = Actor(scenario, "one"), Actor(scenario, "two")
    settle(one, two)
    assert scenario.refusal("one", 9) is ErrorCode.FENCED_MEMBER_EPOCH
    assert scenario.refusal("one", 1) is ErrorCode.FENCED_MEMBER_EPOCH
    assert scenario.refusal("one", 1, topic_partitions=[]) is ErrorCode.NONE
    assert scenario.refusal("nobody", 1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert scenario.refusal("nobody", -1) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_group_has_room_for_so_many() -> None:
    """One more is refused, those inside go on."""
    scenario = ConsumerScenario({"t": 4}, members_max=1)
    assert scenario.refusal("one", 0) is ErrorCode.NONE
    assert scenario.refusal("two", 0) is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert scenario.refusal("one", 1) is ErrorCode.NONE


@pytest.mark.parametrize(
    ("failure", "reported"),
    [
        (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
def test_a_failed_write_maps_to_a_heartbeat_error(failure: ErrorCode, reported: ErrorCode) -> None:
    """What a heartbeat does not know ends a consumer for good."""
    scenario = ConsumerScenario({"t": 4})
    scenario.fail_writes = failure
    assert scenario.refusal("one", 0) is reported


def test_a_failed_write_creates_no_group() -> None:
    """The member is told to try again, and the group does not exist."""
    scenario = ConsumerScenario({"t": 4})
    scenario.fail_writes = ErrorCode.NOT_ENOUGH_REPLICAS
    assert scenario.refusal("one", 0) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert TEAM not in scenario.shard.groups
    scenario.fail_writes = None
    assert scenario.refusal("one", 0) is ErrorCode.NONE


def commit(scenario: ConsumerScenario, member_id: str, epoch: int, version: int = 9) -> ErrorCode:
    scenario.asked += 1
    request = OffsetCommitRequest(
        group_id=TEAM,
        member_id=member_id,
        generation_id_or_member_epoch=epoch,
        topics=[
            OffsetCommitRequestTopic(
                name="t",
                partitions=[OffsetCommitRequestPartition(partition_index=0, committed_offset=5)],
            )
        ],
    )
    scenario.perform(scenario.shard.commit(request, scenario.asked, scenario.now_ms, version))
    return ErrorCode(scenario.answers[scenario.asked].topics[0].partitions[0].error_code)


def test_commits_are_taken_in_the_member_s_epoch_only() -> None:
    """Others hear STALE_MEMBER_EPOCH, for they shall learn and try again."""
    scenario = ConsumerScenario({"t": 1})
    one = Actor(scenario, "one")
    one.beat()
    assert commit(scenario, "one", 1) is ErrorCode.NONE
    assert commit(scenario, "one", 0) is ErrorCode.STALE_MEMBER_EPOCH
    assert commit(scenario, "one", 1, version=8) is ErrorCode.UNSUPPORTED_VERSION
    assert commit(scenario, "nobody", 1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert commit(scenario, "", -1) is ErrorCode.UNKNOWN_MEMBER_ID
    one.leave()
    assert commit(scenario, "", -1) is ErrorCode.NONE


def test_a_group_s_end_is_written_when_nothing_is_left_of_it() -> None:
    """No members and no offsets: tombstones for all that it has, and it does not come back."""
    scenario = ConsumerScenario({"t": 1})
    one = Actor(scenario, "one", subscribed_topic_names=[], subscribed_topic_regex="t")
    one.beat()
    commit(scenario, "one", 1)
    one.leave()
    _expire(scenario)
    assert TEAM in scenario.shard.groups, "it has an offset"
    scenario.now_ms += scenario.limits.retention_ms
    _expire(scenario)
    _expire(scenario)
    assert TEAM not in scenario.shard.groups
    scenario.restart()
    assert TEAM not in scenario.shard.groups


def test_offsets_of_topics_that_members_read_do_not_expire() -> None:
    """However long ago they were committed."""
    scenario = ConsumerScenario({"t": 1})
    one = Actor(scenario, "one")
    one.beat()
    commit(scenario, "one", 1)
    scenario.now_ms += 2 * scenario.limits.retention_ms
    _expire(scenario)
    assert scenario.shard.groups[TEAM].offsets


def test_offsets_of_an_expression_do_not_expire_under_the_next_coordinator() -> None:
    """What it matches is in the log: no member has sent a heartbeat yet."""
    scenario = ConsumerScenario({"t": 1})
    one = Actor(scenario, "one", subscribed_topic_names=[], subscribed_topic_regex="t.*")
    one.beat()
    commit(scenario, "one", one.epoch)
    scenario.now_ms += 2 * scenario.limits.retention_ms
    scenario.restart()
    _expire(scenario)
    assert scenario.shard.groups[TEAM].offsets


def _expire(scenario: ConsumerScenario) -> None:
    for result in scenario.shard.expire(scenario.now_ms):
        scenario.perform(result)


def test_a_group_with_members_is_not_deleted() -> None:
    """One without is, offsets and all."""
    scenario = ConsumerScenario({"t": 1})
    one = Actor(scenario, "one")
    one.beat()
    commit(scenario, "one", 1)
    scenario.perform(scenario.shard.delete(TEAM, -1, scenario.now_ms))
    assert scenario.answers[-1].error_code == ErrorCode.NON_EMPTY_GROUP
    one.leave()
    scenario.perform(scenario.shard.delete(TEAM, -2, scenario.now_ms))
    assert scenario.answers[-2].error_code == ErrorCode.NONE
    scenario.restart()
    assert TEAM not in scenario.shard.groups


def join_classic(scenario: ConsumerScenario, member_id: str = "") -> JoinGroupResponse:
    scenario.asked += 1
    request = JoinGroupRequest(
        group_id=TEAM,
        member_id=member_id,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=subscription("t"))],
    )
    join = Join(GroupJoin.of(request, "c"), 9, Client("c", "/h"), scenario.asked)
    scenario.perform(scenario.shard.join(join, scenario.now_ms))
    response: JoinGroupResponse = scenario.answers[scenario.asked]
    return response


def test_an_empty_group_changes_its_protocol_and_keeps_its_offsets() -> None:
    """From the new to the old and back."""
    scenario = ConsumerScenario({"t": 1})
    one = Actor(scenario, "one")
    one.beat()
    commit(scenario, "one", 1)
    one.leave()
    member_id = join_classic(scenario).member_id
    assert join_classic(scenario, member_id).generation_id == 1
    assert one.beat() is ErrorCode.GROUP_ID_NOT_FOUND
    assert scenario.shard.groups[TEAM].kind == "classic"
    leaver = LeaveGroupRequest(group_id=TEAM, members=[MemberIdentity(member_id=member_id)])
    scenario.perform(scenario.shard.leave(leaver, -1, scenario.now_ms))
    assert one.beat() is ErrorCode.NONE
    for _ in range(2):
        group = scenario.shard.groups[TEAM]
        assert (group.kind, len(group.offsets)) == ("consumer", 1)
        assert list(scenario.consumers.members) == ["one"]
        scenario.restart()


def test_an_empty_group_without_a_written_tombstone_keeps_its_type() -> None:
    """Else what it was would come back under the classic group when that is read back."""
    scenario = ConsumerScenario({"t": 1})
    one = Actor(scenario, "one", subscribed_topic_names=[], subscribed_topic_regex="t.*")
    one.beat()
    commit(scenario, "one", 1)
    one.leave()
    scenario.fail_writes = ErrorCode.NOT_ENOUGH_REPLICAS
    assert join_classic(scenario).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    scenario.fail_writes = None
    assert (scenario.group.kind, scenario.consumers.expressions) == (
        "consumer",
        {"t.*": frozenset({"t"})},
    )
    assert join_classic(scenario).error_code == ErrorCode.MEMBER_ID_REQUIRED
    scenario.restart()
    assert (scenario.group.consumers, len(scenario.group.offsets)) == (None, 1)


SEEDS = range(300)


@pytest.mark.parametrize("assignor", ["uniform", "range"])
def test_no_partition_ever_has_two_owners_and_all_come_to_their_target(assignor: str) -> None:
    """Random members, topics and restarts; checked after every step.

    Owners are what members were told to read and have not yet said to have let go.
    """
    for seed in SEEDS:
        chance = random.Random(seed)
        scenario = ConsumerScenario({"t": chance.randint(1, 8), "u": chance.randint(1, 5)})
        actors: list[Actor] = []
        for _ in range(60):
            _act(scenario, actors, chance, assignor)
            _check_owners(actors, seed)
        settle(*actors)
        assert {actor.id for actor in actors if actor.epoch} == set(
            scenario.consumers.members if actors else ()
        ), seed
        for actor in actors:
            assert actor.owned == scenario.consumers.target[actor.id], seed
            assert actor.epoch == scenario.consumers.epoch, seed


def _act(
    scenario: ConsumerScenario, actors: list[Actor], chance: random.Random, assignor: str
) -> None:
    what = chance.random()
    if what < 0.1 and len(actors) < 6:
        names = chance.choice([["t"], ["u"], ["t", "u"]])
        member_id = scenario.new_id()
        actors.append(
            Actor(scenario, member_id, subscribed_topic_names=names, server_assignor=assignor)
        )
    elif what < 0.14 and actors:
        actors.pop(chance.randrange(len(actors))).leave()
    elif what < 0.17:
        name = chance.choice("tu")
        known = scenario.image.topic(name)
        scenario.put_topic(name, 1 if known is None else len(known.partitions) + 1)
    elif what < 0.18:
        name = chance.choice("tu")
        if scenario.image.topic(name) is not None:
            scenario.drop_topic(name)
    elif what < 0.20 and scenario.written:
        before = (
            {**scenario.consumers.members},
            {**scenario.consumers.owners},
            scenario.consumers.state_name,
        )
        scenario.restart()
        assert before == (
            scenario.consumers.members,
            scenario.consumers.owners,
            scenario.consumers.state_name,
        )
    elif actors:
        chance.choice(actors).beat()


def _check_owners(actors: list[Actor], seed: int) -> None:
    owned = [partition for actor in actors for partition in actor.owned]
    assert len(owned) == len(set(owned)), f"seed {seed}: {owned}"


@pytest.mark.parametrize("jump_ms", [3_600_000, -3_600_000])
def test_wall_clock_changes_expire_no_session(jump_ms: int) -> None:
    """A session takes as long as it shall, whatever the hour."""
    scenario = ConsumerScenario({"t": 1})
    one = Actor(scenario, "one")
    one.beat()
    scenario.now_ms += jump_ms
    scenario.pass_time(SESSION_MS - 1)
    assert list(scenario.consumers.members) == ["one"]
    scenario.pass_time(1)
    assert not scenario.consumers.members
