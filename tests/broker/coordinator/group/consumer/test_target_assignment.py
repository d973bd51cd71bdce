"""What a consumer group's target assignment is made of, and who may ask for it."""

from __future__ import annotations

from uuid import UUID

import pytest

from barnabas_broker.cluster.image import OWN_SOFTWARE, BrokerRegistration, MetadataImage
from barnabas_broker.coordinator.group.consumer import subscriptions
from barnabas_broker.coordinator.group.consumer.availability import is_served
from barnabas_broker.coordinator.group.consumer.expressions import Expressions
from barnabas_broker.coordinator.group.consumer.fencing import check_epoch
from barnabas_broker.coordinator.group.consumer.group import ConsumerGroup, SeenTopic
from barnabas_broker.coordinator.group.consumer.member import ConsumerMember
from barnabas_broker.coordinator.group.consumer.records import Partitions
from barnabas_broker.coordinator.group.consumer.target import (
    elected_assignor,
    target,
    target_records,
)
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.settings.broker import BrokerSettings
from tests.broker.coordinator.group.consumer.scenarios import ConsumerScenario

# --- When the consumer protocol is served


@pytest.mark.parametrize(
    ("protocols", "served"), [(None, True), ("classic,consumer", True), ("classic", False)]
)
def test_it_is_on_unless_it_is_left_out(protocols: str | None, served: bool) -> None:
    """Whoever wants the classic protocol alone says so."""
    given = {} if protocols is None else {"group.coordinator.rebalance.protocols": protocols}
    assert is_served(BrokerSettings(given), MetadataImage(cluster_id="c")) is served


@pytest.mark.parametrize(("software", "served"), [(OWN_SOFTWARE, True), (None, False)])
def test_server_side_assignment_is_off_among_foreign_brokers(
    software: str | None, served: bool
) -> None:
    """Brokers that do not say they run this software may be Apache's."""
    brokers = {
        0: BrokerRegistration(0, (), software=OWN_SOFTWARE),
        1: BrokerRegistration(1, (), software=software),
    }
    assert is_served(BrokerSettings({}), MetadataImage(cluster_id="c", brokers=brokers)) is served


# --- Which epochs a member may speak in


ZERO, ONE = (UUID(int=1), 0), (UUID(int=1), 1)
MEMBER = ConsumerMember(id="m", epoch=5, previous_epoch=3, assigned=frozenset({ZERO}))


@pytest.mark.parametrize(
    ("epoch", "owned"),
    [(5, None), (5, frozenset({ONE})), (3, frozenset()), (3, frozenset({ZERO}))],
)
def test_the_epoch_it_has_and_the_one_before(epoch: int, owned: Partitions | None) -> None:
    """The latter may be all that it heard of, if it reads nothing that is not its own."""
    check_epoch(MEMBER, epoch, owned)


@pytest.mark.parametrize(
    ("epoch", "owned"), [(6, None), (4, frozenset()), (3, None), (3, frozenset({ONE}))]
)
def test_any_other_is_fenced(epoch: int, owned: Partitions | None) -> None:
    """It must let go of everything and join again."""
    with pytest.raises(KafkaError) as caught:
        check_epoch(MEMBER, epoch, owned)
    assert caught.value.code is ErrorCode.FENCED_MEMBER_EPOCH


# --- What members subscribe to, in the metadata of now


NAMES = ("logs-a", "logs-b", "x-logs-a")


def test_an_expression_matches_whole_names_that_may_be_seen() -> None:
    """Each of several members' expressions once."""
    members = [ConsumerMember(id=str(i), regex="logs-.") for i in range(2)]
    known = Expressions()
    known.on_topics(NAMES)
    found = subscriptions.resolve(members, known, lambda name: name != "logs-b")
    assert found == {"logs-.": frozenset({"logs-a"})}


def test_only_changes_are_written() -> None:
    """New results, and the end of expressions that nobody has any more."""
    group = ConsumerGroup("g")
    resolved = {"a": frozenset({"x"})}
    for record in subscriptions.expression_records(group, resolved, version=1, now_ms=1):
        group.replay(record)
    assert group.expressions == resolved
    assert subscriptions.expression_records(group, resolved, version=2, now_ms=2) == []
    (end,) = subscriptions.expression_records(group, {}, version=3, now_ms=3)
    assert (end.part, end.value) == ("a", None)


def test_topics_that_do_not_exist_are_not_seen() -> None:
    """They will be when they come."""
    scenario = ConsumerScenario({"t": 3})
    found = subscriptions.seen({"t", "later"}, scenario.image)
    assert {name: topic.partitions for name, topic in found.items()} == {"t": 3}


# --- The target assignment: which assignor, and what is written of its result


def test_most_votes_decide_and_else_the_first_offered() -> None:
    """A vote for what is not offered any more does not count."""
    members = [ConsumerMember(id=str(i), assignor=name) for i, name in enumerate(["range", "old"])]
    assert elected_assignor(members, ("uniform", "range")) == "range"
    assert elected_assignor(members[1:], ("uniform", "range")) == "uniform"


def test_topics_that_are_missing_count_for_nothing() -> None:
    """And only what changed is written, before the epoch."""
    topics = {"t": SeenTopic(UUID(int=1), 2)}
    wanted = {"a": frozenset({"t"}), "b": frozenset({"t", "gone"})}
    found = target(wanted, topics, {}, assignor="range")
    assert found == {"a": {(UUID(int=1), 0)}, "b": {(UUID(int=1), 1)}}
    records = target_records("g", {"a": found["a"]}, found, 3)
    assert [(record.kind.name, record.part) for record in records] == [
        ("TARGET", "b"),
        ("TARGET_EPOCH", ""),
    ]
