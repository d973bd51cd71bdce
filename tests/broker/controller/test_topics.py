"""Whether a topic may be created or grown: every refusal, in Kafka's order, with Kafka's code."""

from collections.abc import Mapping, Sequence
from uuid import UUID

import pytest

from barnabas_broker.cluster.image import (
    BrokerRegistration,
    MetadataImage,
    PartitionState,
    TopicImage,
)
from barnabas_broker.controller.requests import CreatedTopic, Outcome
from barnabas_broker.controller.topics import (
    NewTopic,
    Start,
    TakenNames,
    TopicDefaults,
    TopicPlan,
    is_internal,
    name_fault,
    plan_growth,
    plan_topic,
)
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.ids import ZERO_UUID


def refuse_bad(config: Mapping[str, str]) -> None:
    """Settings are judged elsewhere; here one name stands for all that is wrong."""
    if "bad" in config:
        raise KafkaError(ErrorCode.INVALID_CONFIG, "bad")


IMAGE = MetadataImage(
    cluster_id="c", brokers={each: BrokerRegistration(each, ()) for each in (1, 2, 3)}
)


def plan(new: NewTopic, *existing: str) -> TopicPlan:
    """Plan a topic on three brokers where num.partitions is 4 and default.replication.factor 2."""
    return plan_topic(
        new,
        IMAGE,
        taken=TakenNames(existing),
        defaults=TopicDefaults(num_partitions=4, replication_factor=2),
        start=Start(0, 0),
        check_config=refuse_bad,
    )


def refusal(new: NewTopic, *existing: str) -> tuple[ErrorCode, str]:
    """The error that a topic is refused with."""
    with pytest.raises(KafkaError) as caught:
        plan(new, *existing)
    return caught.value.code, caught.value.message


@pytest.mark.parametrize(
    "name", ["a", "A-1", "a.b_c-D", "x" * 249, "...", "..a", "_", "__consumer_offsets", "-"]
)
def test_names_that_kafka_allows(name: str) -> None:
    """Letters, digits, dot, underscore and dash, up to 249 of them."""
    assert name_fault(name) is None


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("", "the empty string is not allowed"),
        (".", "'.' is not allowed"),
        ("..", "'..' is not allowed"),
        ("x" * 250, "is longer than the max allowed length 249"),
        ("a b", "contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"),
        ("a/b", "contains one or more characters"),
        ("käse", "contains one or more characters"),
        ("a\n", "contains one or more characters"),
        ("\N{ARABIC-INDIC DIGIT ONE}", "contains one or more characters"),
    ],
)
def test_names_that_kafka_refuses(name: str, why: str) -> None:
    """Names become directories and metric names; the reason is shown to the user."""
    code, message = refusal(NewTopic(name=name))
    assert code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert message.startswith("Topic name is invalid: ")
    assert why in message


def test_minus_one_means_the_brokers_defaults() -> None:
    """Both counts are optional since CreateTopics 4 (KIP-464)."""
    assert len(plan(NewTopic(name="t")).replicas) == 4
    assert {len(replicas) for replicas in plan(NewTopic(name="t")).replicas} == {2}
    explicit = plan(NewTopic(name="t", num_partitions=1, replication_factor=3))
    assert [len(replicas) for replicas in explicit.replicas] == [3]


def test_own_settings_are_kept() -> None:
    """A plan carries what was asked for, not the defaults."""
    assert plan(NewTopic(name="t", configs=[("a", "1")])).config == {"a": "1"}


def test_replicas_can_be_placed_by_hand_in_any_order() -> None:
    """Assignments name their partition; the first replica of each is the preferred leader."""
    new = NewTopic(name="t", assignments=[(1, (3, 1)), (0, (2, 3))])
    assert plan(new).replicas == ((2, 3), (3, 1))


@pytest.mark.parametrize(
    ("assignments", "message"),
    [
        ([(1, (1,))], "partitions should be a consecutive 0-based integer sequence"),
        ([(0, (1,)), (2, (1,))], "partitions should be a consecutive 0-based integer sequence"),
        ([(0, (1,)), (0, (2,))], "partitions should be a consecutive 0-based integer sequence"),
        ([(-1, (1,))], "partitions should be a consecutive 0-based integer sequence"),
        ([(0, (1,)), (1, (1, 2))], "All partitions should have the same number of replicas"),
        ([(0, ())], "Cannot have replication factor of 0 for partition id 0."),
        (
            [(0, (1, 1))],
            "Duplicate brokers not allowed in replica assignment: 1, 1 for partition id 0.",
        ),
        ([(0, (1, 9))], "Unknown broker(s) in replica assignment: 9."),
    ],
)
def test_bad_assignments_are_refused(
    assignments: Sequence[tuple[int, tuple[int, ...]]], message: str
) -> None:
    """What is placed by hand must be a complete topic on brokers that exist."""
    code, said = refusal(NewTopic(name="t", assignments=assignments))
    assert (code, said) == (ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)


@pytest.mark.parametrize(("partitions", "factor"), [(1, -1), (-1, 1), (1, 1)])
def test_counts_and_assignments_exclude_each_other(partitions: int, factor: int) -> None:
    """Either the broker places replicas or the caller does."""
    new = NewTopic(
        name="t",
        num_partitions=partitions,
        replication_factor=factor,
        assignments=[(0, (1,))],
    )
    assert refusal(new)[0] == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    ("new", "code"),
    [
        (NewTopic(name="t", num_partitions=0), ErrorCode.INVALID_PARTITIONS),
        (NewTopic(name="t", num_partitions=-2), ErrorCode.INVALID_PARTITIONS),
        (NewTopic(name="t", replication_factor=0), ErrorCode.INVALID_REPLICATION_FACTOR),
        (NewTopic(name="t", replication_factor=4), ErrorCode.INVALID_REPLICATION_FACTOR),
        (NewTopic(name="t", num_partitions=10_001), ErrorCode.POLICY_VIOLATION),
        (NewTopic(name="t", configs=[("bad", "1")]), ErrorCode.INVALID_CONFIG),
        (NewTopic(name="t", configs=[("a", None)]), ErrorCode.INVALID_CONFIG),
    ],
)
def test_single_faults(new: NewTopic, code: ErrorCode) -> None:
    """Each has a code of its own."""
    assert refusal(new)[0] == code


def test_a_taken_name_is_refused_before_anything_else() -> None:
    """Clients that create if missing look for this code, whatever else they sent."""
    new = NewTopic(name="t", num_partitions=0, configs=[("a", None)])
    assert refusal(new, "t") == (ErrorCode.TOPIC_ALREADY_EXISTS, "Topic 't' already exists.")


def test_counts_are_refused_before_the_name() -> None:
    """Kafka places replicas before it looks at the name."""
    assert refusal(NewTopic(name="a b", num_partitions=0))[0] == ErrorCode.INVALID_PARTITIONS


@pytest.mark.parametrize(("new", "existing"), [("a.b", "a_b"), ("a_b", "a.b"), ("._.", "___")])
def test_names_that_differ_in_dot_and_underscore_collide(new: str, existing: str) -> None:
    """Their metrics would have one name."""
    assert refusal(NewTopic(name=new), existing) == (
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        f"Topic '{new}' collides with existing topics: {existing}",
    )


def test_internal_topics_are_known_by_name() -> None:
    """Clients hide them from subscriptions by pattern."""
    assert is_internal("__consumer_offsets")
    assert is_internal("__transaction_state")
    assert not is_internal("__mine")


def topic(*replicas: tuple[int, ...], adding: tuple[int, ...] = ()) -> TopicImage:
    """An existing topic with those replicas."""
    states = tuple(PartitionState(each, each, each[0], 0, 1, adding=adding) for each in replicas)
    return TopicImage("t", UUID(int=9), states)


def grow(
    count: int, assignments: Sequence[tuple[int, ...]] | None = None
) -> tuple[tuple[int, ...], ...]:
    """Grow a topic of two partitions with two replicas each."""
    return plan_growth(topic((2, 3), (3, 1)), IMAGE, count=count, assignments=assignments)


def test_growth_goes_on_with_the_placement_of_the_topic() -> None:
    """As if the topic had been made with that many partitions by Kafka's rule."""
    assert grow(4) == ((1, 3), (2, 3))


def test_growth_by_hand() -> None:
    """One list of replicas for each added partition."""
    assert grow(4, [(1, 2), (3, 1)]) == ((1, 2), (3, 1))


@pytest.mark.parametrize(
    ("count", "assignments", "code", "message"),
    [
        (
            1,
            None,
            ErrorCode.INVALID_PARTITIONS,
            "Topic currently has 2 partitions, which is higher than the requested 1.",
        ),
        (2, None, ErrorCode.INVALID_PARTITIONS, "Topic already has 2 partitions."),
        (99_999, None, ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions"),
        (
            4,
            [(1, 2)],
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "Increasing the number of partitions by 2 but 1 assignments provided.",
        ),
        (
            5,
            [(1,), (1, 2), (1, 2, 3)],
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            (
                "Inconsistent replication factor between partitions, partition 0 has 2 while"
                " partitions [2, 4] have replication factors [1, 3], respectively."
            ),
        ),
        (3, [()], ErrorCode.INVALID_REPLICA_ASSIGNMENT, "Cannot have replication factor of 0"),
        (3, [(1, 1)], ErrorCode.INVALID_REPLICA_ASSIGNMENT, "Duplicate brokers not allowed"),
        (3, [(1, 8)], ErrorCode.INVALID_REPLICA_ASSIGNMENT, "Unknown broker(s)"),
    ],
)
def test_growth_that_cannot_be(
    count: int, assignments: Sequence[tuple[int, ...]] | None, code: ErrorCode, message: str
) -> None:
    """Topics only grow, and by what was asked for."""
    with pytest.raises(KafkaError) as caught:
        grow(count, assignments)
    assert caught.value.code == code
    assert caught.value.message.startswith(message)


def test_a_topic_that_is_being_moved_does_not_grow() -> None:
    """Two writers of one assignment would overwrite each other."""
    with pytest.raises(KafkaError) as caught:
        plan_growth(topic((1, 2), adding=(2,)), IMAGE, count=5, assignments=None)
    assert caught.value.code == ErrorCode.REASSIGNMENT_IN_PROGRESS


def test_a_failure_to_write_spares_what_was_refused_before() -> None:
    """The client learns the first reason of each."""
    failure = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "disk")
    refused = Outcome.refused("a", KafkaError(ErrorCode.INVALID_CONFIG, "why"))
    assert (refused.granted, refused.message) == (False, "why")
    assert refused.unless_failed(failure) is refused
    assert Outcome("b").granted
    assert Outcome("b").unless_failed(failure) == Outcome.refused("b", failure)


def test_a_plan_is_answered_with_its_counts() -> None:
    """Without an id where it was only validated."""
    plan = TopicPlan(name="a", replicas=((1, 2), (2, 1), (1, 2)), config={"k": "v"})
    made, validated = CreatedTopic.planned(plan, UUID(int=4)), CreatedTopic.planned(plan, None)
    assert (made.num_partitions, made.replication_factor, made.config) == (3, 2, {"k": "v"})
    assert (made.id, validated.id) == (UUID(int=4), ZERO_UUID)
