"""Who reads what: the worked tables of Kafka's assignors, with real Java consumers in real groups.

A member's id begins with its client id, so C1, C2 and C3 come in that order whenever they join.
What a sticky assignor shares out is due to what came before: all members are to come together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient, ConsumerGroupDescription, NewTopic

from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from barnabas_kafka.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from barnabas_kafka.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from tests.clients.brokers import Broker, broker_under_test
from tests.clients.java_probe import marked
from tests.clients.java_team import Has, Team
from tests.clients.wire import Wire
from tests.waiting import ANSWER, ATTEMPT_S, seconds, wait_for

pytestmark = pytest.mark.jvm

RANGE, ROUND_ROBIN, STICKY = "RangeAssignor", "RoundRobinAssignor", "StickyAssignor"
PROTOCOLS = {RANGE: "range", ROUND_ROBIN: "roundrobin", STICKY: "sticky"}
NO_TOPICS = bytes(10)
"""A consumer's subscription: version 0, no topics, no user data."""
CLIENTS = ("C1", "C2", "C3")
OLD = ("0.10.1.0", "0.11.0.3", "1.1.1", "2.4.1")


@dataclass
class Ground:
    """A broker, the Java consumers and the topics so far."""

    broker: Broker
    admin: AdminClient
    team: Team
    games: int = 0

    def play(
        self, assignor: str, partitions: Sequence[int], subscriptions: Mapping[str, str]
    ) -> Game:
        """A group of its own whose members subscribe to `12` for topics T1 and T2."""
        self.games += 1
        prefix = f"game{self.games}"
        topics = {f"T{i}": f"{prefix}.T{i}" for i in range(1, len(partitions) + 1)}
        wanted = [
            NewTopic(n, count, 1) for n, count in zip(topics.values(), partitions, strict=True)
        ]
        for future in self.admin.create_topics(wanted).values():
            future.result(seconds(ANSWER))
        everything = {
            f"T{i}-{number}" for i, count in enumerate(partitions, 1) for number in range(count)
        }
        with together(self.broker, self.admin, prefix, assignor, set(subscriptions)):
            for name, digits in subscriptions.items():
                subscribed = [topics[f"T{digit}"] for digit in digits]
                self.team.start(name, prefix, assignor, *subscribed)
        return Game(self, prefix, everything, set(subscriptions))


@dataclass
class Game:
    """A group with its members."""

    ground: Ground
    prefix: str
    everything: set[str]
    members: set[str]

    def assigned(self) -> Has:
        """What each member has, once the group is stable with these members and agrees."""
        found, _ = wait_for(
            "the partitions of each member, as it and as the broker knows them",
            lambda: (self.ground.team.show(), self._known_to_the_broker()),
            until=lambda both: both[0] == both[1],
            retry=(KafkaException, TimeoutError),
        )
        short = {n: {p.removeprefix(f"{self.prefix}.") for p in h} for n, h in found.items()}
        assert sorted(part for has in short.values() for part in has) == sorted(self.everything)
        return short

    def fails(self, name: str) -> None:
        """A member is there no more."""
        self.ground.team.stop(name)
        self.members.remove(name)

    def over(self) -> None:
        """All leave."""
        for name in list(self.members):
            self.fails(name)

    def _known_to_the_broker(self) -> Has | None:
        group = described(self.ground.admin, self.prefix)
        if group.state.name != "STABLE" or {m.client_id for m in group.members} != self.members:
            return None
        return {
            member.client_id: {
                f"{each.topic}-{each.partition}" for each in member.assignment.topic_partitions
            }
            for member in group.members
        }


def described(admin: AdminClient, group: str) -> ConsumerGroupDescription:
    """What the broker says of a group."""
    asked = admin.describe_consumer_groups([group], request_timeout=ATTEMPT_S)
    found: ConsumerGroupDescription = asked[group].result(ATTEMPT_S)
    return found


@contextmanager
def together(
    broker: Broker, admin: AdminClient, group: str, assignor: str, names: set[str]
) -> Iterator[None]:
    """Members that are started within get their first partitions in one rebalance.

    It waits for a member that has joined before, does not join again, and leaves when the broker
    knows all of them.
    """
    join = JoinGroupRequest(
        group_id=group,
        session_timeout_ms=300_000,
        rebalance_timeout_ms=300_000,
        member_id="",
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name=PROTOCOLS[assignor], metadata=NO_TOPICS)],
    )
    with Wire(broker.bootstrap) as first:
        first.ask(FindCoordinatorRequest(key=group), FindCoordinatorResponse, 2)
        joined = wait_for(
            "the answer to the first member",
            lambda: first.ask(join, JoinGroupResponse, 2),
            until=lambda answer: answer.error_code == ErrorCode.NONE,
        )
        yield
        wait_for(
            f"the members of {group}, to be {sorted(names)} and one more",
            lambda: {member.client_id for member in described(admin, group).members},
            until=lambda found: names < found,
            retry=(KafkaException, TimeoutError),
        )
        leave = LeaveGroupRequest(group_id=group, member_id=joined.member_id)
        assert first.ask(leave, LeaveGroupResponse, 0).error_code == 0


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    """A broker that does not wait for more members by itself, and a JVM."""
    settings = {
        "broker.id": "0",
        "group.initial.rebalance.delay.ms": "0",
        "offsets.topic.num.partitions": "1",
        "offsets.topic.replication.factor": "1",
    }
    with broker_under_test(tmp_path_factory.mktemp("broker"), settings) as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        with Team(broker.bootstrap) as team:
            yield Ground(broker, admin, team)


def table(**rows: str) -> Has:
    """`C1="T1:036 T2:25"` as what C1 has."""
    return {
        name: {
            f"{topic}-{number}"
            for part in row.split()
            for topic, numbers in [part.split(":")]
            for number in numbers
        }
        for name, row in rows.items()
    }


TABLES = {
    "range, 6 partitions": (RANGE, [6], table(C1="T1:01", C2="T1:23", C3="T1:45")),
    "range, 7 partitions": (RANGE, [7], table(C1="T1:012", C2="T1:34", C3="T1:56")),
    "range, 3 topics of 7": (
        RANGE,
        [7, 7, 7],
        table(C1="T1:012 T2:012 T3:012", C2="T1:34 T2:34 T3:34", C3="T1:56 T2:56 T3:56"),
    ),
    "round robin, 3 topics of 7": (
        ROUND_ROBIN,
        [7, 7, 7],
        table(C1="T1:036 T2:25 T3:14", C2="T1:14 T2:036 T3:25", C3="T1:25 T2:14 T3:036"),
    ),
    "round robin, 2 topics of 3": (
        ROUND_ROBIN,
        [3, 3],
        table(C1="T1:0 T2:0", C2="T1:1 T2:1", C3="T1:2 T2:2"),
    ),
}


@pytest.mark.parametrize("name", TABLES)
def test_members_with_the_same_topics(ground: Ground, name: str) -> None:
    """Row by row as worked out by hand."""
    assignor, partitions, expected = TABLES[name]
    topics = "123"[: len(partitions)]
    game = ground.play(assignor, partitions, dict.fromkeys(CLIENTS, topics))
    assert game.assigned() == expected
    game.over()


UNEQUAL = {"C1": "1", "C2": "12", "C3": "123"}


def test_round_robin_with_different_topics(ground: Ground) -> None:
    """Whoever subscribes to most gets most; when C1 is gone, all is dealt out anew."""
    game = ground.play(ROUND_ROBIN, [1, 2, 3], UNEQUAL)
    assert game.assigned() == table(C1="T1:0", C2="T2:0", C3="T2:1 T3:012")
    game.fails("C1")
    assert game.assigned() == table(C2="T1:0 T2:1", C3="T2:0 T3:012")
    game.over()


def test_round_robin_reassigns_when_a_member_fails(ground: Ground) -> None:
    """Most partitions change hands."""
    game = ground.play(ROUND_ROBIN, [3, 3], dict.fromkeys(CLIENTS, "12"))
    game.assigned()
    game.fails("C3")
    assert game.assigned() == table(C1="T1:02 T2:1", C2="T1:1 T2:02")
    game.over()


def test_sticky_keeps_what_members_have_when_one_fails(ground: Ground) -> None:
    """First it shares out as round robin; then C1 and C2 keep theirs, and share what C3 had."""
    game = ground.play(STICKY, [3, 3], dict.fromkeys(CLIENTS, "12"))
    before = game.assigned()
    assert before == table(C1="T1:0 T2:0", C2="T1:1 T2:1", C3="T1:2 T2:2")
    game.fails("C3")
    after = game.assigned()
    assert all(before[name] < after[name] for name in ("C1", "C2"))
    assert {len(has) for has in after.values()} == {3}
    game.over()


def test_sticky_with_different_topics(ground: Ground) -> None:
    """As even as the subscriptions allow; when C1 is gone, C2 and C3 keep what they have."""
    game = ground.play(STICKY, [1, 2, 3], UNEQUAL)
    before = game.assigned()
    assert before == table(C1="T1:0", C2="T2:01", C3="T3:012")
    game.fails("C1")
    after = game.assigned()
    assert after == {"C2": before["C2"] | {"T1-0"}, "C3": before["C3"]}
    game.over()


@pytest.mark.parametrize("release", marked(OLD))
def test_consumers_of_old_releases_share_a_topic(ground: Ground, release: str) -> None:
    """Two read everything once, commit and leave; a third goes on after them."""
    topic = f"old-{release}"
    ground.admin.create_topics([NewTopic(topic, 4, 1)])[topic].result(seconds(ANSWER))
    producer = Producer({"bootstrap.servers": ground.broker.bootstrap})

    def fill() -> None:
        for number in range(40):
            producer.produce(topic, b"x", partition=number % 4)
        assert producer.flush(seconds(ANSWER)) == 0

    fill()
    with Team(ground.broker.bootstrap, release) as team:
        with together(ground.broker, ground.admin, topic, RANGE, {"C1", "C2"}):
            for name in ("C1", "C2"):
                team.start(name, topic, RANGE, topic)
        halves = {"C1": {f"{topic}-0", f"{topic}-1"}, "C2": {f"{topic}-2", f"{topic}-3"}}
        team.until(lambda found: found == halves and team.seen >= 40)
        team.stop("C1")
        team.stop("C2")
        assert team.show() == {}  # Both have ended: what comes now is for C3.
        fill()
        team.start("C3", topic, RANGE, topic)
        everything = halves["C1"] | halves["C2"]
        team.until(lambda found: found == {"C3": everything} and team.seen >= 40)
        assert team.seen == 40
