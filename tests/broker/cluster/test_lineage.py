"""What differs between images, by the steps that led from one to the other."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from barnabas_broker.cluster.image import MetadataImage, PartitionState, TopicImage
from barnabas_broker.cluster.lineage import PARTITIONS_PER_STEP_MAX, STEPS_MAX, Lineage
from barnabas_kafka.ids import TopicPartition

STATE = PartitionState((1, 2), (1, 2), 1, 0, 1)
NAMES = ("a", "b", "c")


def topic(name: str, partitions: int, number: int = 0) -> TopicImage:
    """A topic; another number is another topic."""
    id_ = UUID(int=NAMES.index(name) * 1000 + number + 1)
    return TopicImage(name, id_, tuple(replace(STATE) for _ in range(partitions)))


def found(old: MetadataImage, new: MetadataImage) -> dict[str, list[int] | None]:
    """By topic the partitions that differ, None for a topic that is gone."""
    return {
        each.name: None if each.after is None else [number for number, _, _ in each.partitions()]
        for each in new.differences(old)
    }


def test_a_step_names_what_it_touched() -> None:
    """And several steps what they touched together."""
    first = MetadataImage(cluster_id="c").with_changes(put=(topic("a", 3), topic("b", 1)))
    second = first.with_partitions({TopicPartition("a", 1): replace(STATE, leader=2)})
    third = second.with_changes(remove=frozenset({"b"}))
    assert second.lineage.since(first.lineage) == {"a": frozenset({1})}
    assert third.lineage.since(first.lineage) == {"a": frozenset({1}), "b": None}
    assert found(first, third) == {"a": [1], "b": None}
    assert found(third, third) == {}


def test_without_recorded_steps_everything_is_compared() -> None:
    """After a change in another way, one from elsewhere, too many, or one too large."""
    first = MetadataImage(cluster_id="c").with_changes(put=(topic("a", 2), topic("b", 1)))
    other = replace(first, topics={"a": first.topics["a"]})
    assert other.lineage.since(first.lineage) is None
    assert found(first, other) == {"b": None}
    last = first
    for leader in range(STEPS_MAX + 1):
        last = last.with_partitions({TopicPartition("a", 0): replace(STATE, leader=leader)})
    assert last.lineage.since(first.lineage) is None
    assert found(first, last) == {"a": [0]}
    many = range(PARTITIONS_PER_STEP_MAX + 1)
    for large in (dict.fromkeys(map(str, many)), {"a": frozenset(many)}):
        assert first.lineage.then(large).since(first.lineage) is None
    assert Lineage().since(first.lineage) is None


def test_a_topic_that_was_made_again_is_new_in_all_its_partitions() -> None:
    """Nobody compares partitions of two topics that have a name in common."""
    first = MetadataImage(cluster_id="c").with_changes(put=(topic("a", 2),))
    second = first.with_changes(remove=frozenset({"a"})).with_changes(put=(topic("a", 3, 5),))
    (each,) = second.differences(first)
    assert each.replaced
    assert [(number, known) for number, known, _ in each.partitions()] == [
        (0, None), (1, None), (2, None),
    ]  # fmt: skip


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.sampled_from(NAMES), st.integers(1, 4)),
        st.tuples(st.just("remove"), st.sampled_from(NAMES), st.just(0)),
        st.tuples(st.just("state"), st.sampled_from(NAMES), st.integers(0, 3)),
        st.tuples(st.just("brokers"), st.just("a"), st.just(0)),
    ),
    max_size=12,
)


@given(STEPS, STEPS)
def test_recorded_changes_equal_a_comparison(
    before: list[tuple[str, str, int]], after: list[tuple[str, str, int]]
) -> None:
    """Nothing that differs is missed, whatever happened in between."""
    old = walked(MetadataImage(cluster_id="c"), before)
    new = walked(old, after)
    noted = found(old, new)
    compared = found(old, replace(new))  # A copy has no lineage.
    assert noted == compared


def walked(image: MetadataImage, steps: list[tuple[str, str, int]]) -> MetadataImage:
    """The image after these steps, as far as they are possible."""
    for count, (what, name, number) in enumerate(steps):
        known = image.topics.get(name)
        if what == "put":
            image = image.with_changes(put=(topic(name, number, count),))
        elif what == "remove" and known is not None:
            image = image.with_changes(remove=frozenset({name}))
        elif what == "state" and known is not None and number < len(known.partitions):
            state = replace(STATE, leader_epoch=count)
            image = image.with_partitions({TopicPartition(name, number): state})
        elif what == "brokers":
            image = image.with_changes(brokers={})
    return image
