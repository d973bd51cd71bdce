"""Replica placement: Kafka's own examples, and the promises they illustrate."""

from collections import Counter
from itertools import product

import pytest

from barnabas_broker.cluster.image import BrokerRegistration
from barnabas_broker.controller.placement import (
    Assignment,
    alternate_racks,
    assign_replicas,
    growth_start,
)
from barnabas_kafka.errors import ErrorCode, KafkaError


def brokers(*ids: int, racks: dict[int, str] | None = None) -> list[BrokerRegistration]:
    """Brokers of those ids."""
    return [BrokerRegistration(each, (), (racks or {}).get(each)) for each in ids]


def place(
    members: list[BrokerRegistration], partitions: int, factor: int, start: int = 0, shift: int = 0
) -> Assignment:
    """Assign with a fixed start."""
    return assign_replicas(
        members,
        partitions=partitions,
        replication_factor=factor,
        start_index=start,
        shift=shift,
    )


def test_the_table_in_kafkas_documentation() -> None:
    """Five brokers, ten partitions, three replicas: followers shift by one in the second round."""
    assert place(brokers(0, 1, 2, 3, 4), 10, 3) == {
        0: (0, 1, 2),
        1: (1, 2, 3),
        2: (2, 3, 4),
        3: (3, 4, 0),
        4: (4, 0, 1),
        5: (0, 2, 3),
        6: (1, 3, 4),
        7: (2, 4, 0),
        8: (3, 0, 1),
        9: (4, 1, 2),
    }


def test_racks_are_taken_in_turn() -> None:
    """Kafka's example of six brokers in three racks."""
    racks = {0: "rack1", 1: "rack3", 2: "rack3", 3: "rack2", 4: "rack2", 5: "rack1"}
    assert alternate_racks(racks) == [0, 3, 1, 5, 4, 2]
    placed = place(brokers(*range(6), racks=racks), 7, 3)
    assert placed == {
        0: (0, 3, 1),
        1: (3, 1, 5),
        2: (1, 5, 4),
        3: (5, 4, 2),
        4: (4, 2, 0),
        5: (2, 0, 3),
        6: (0, 4, 2),
    }


def test_racks_of_different_sizes_are_all_gone_through() -> None:
    """A rack that has run out of brokers is passed over."""
    assert alternate_racks({1: "a", 2: "a", 3: "a", 4: "b"}) == [1, 4, 2, 3]


@pytest.mark.parametrize(("start", "shift"), list(product(range(6), range(6))))
@pytest.mark.parametrize("factor", [1, 2, 3, 4, 6])
def test_every_start_spreads_evenly_over_brokers_and_racks(
    start: int, shift: int, factor: int
) -> None:
    """With as many brokers in each rack, leaders and replicas are even and racks are all used."""
    racks = {broker: "abc"[broker % 3] for broker in range(6)}
    placed = place(brokers(*range(6), racks=racks), 36, factor, start, shift)
    assert set(Counter(replicas[0] for replicas in placed.values()).values()) == {6}
    for replicas in placed.values():
        assert len(set(replicas)) == factor
        assert len({racks[broker] for broker in replicas}) == min(3, factor)
    if factor == 3:
        held = Counter(broker for replicas in placed.values() for broker in replicas)
        assert set(held.values()) == {18}


@pytest.mark.parametrize("count", range(1, 8))
def test_without_racks_no_broker_holds_a_partition_twice(count: int) -> None:
    """For all numbers of brokers and replicas, every partition lies on different brokers."""
    members = brokers(*range(10, 10 + count))
    for factor in range(1, count + 1):
        placed = place(members, 2 * count, factor, start=1, shift=2)
        assert all(len(set(replicas)) == factor for replicas in placed.values())


@pytest.mark.parametrize(
    ("partitions", "factor", "code", "message"),
    [
        (0, 1, ErrorCode.INVALID_PARTITIONS, "Number of partitions must be larger than 0."),
        (-5, 1, ErrorCode.INVALID_PARTITIONS, "Number of partitions must be larger than 0."),
        (
            1,
            0,
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Replication factor must be larger than 0.",
        ),
        (
            1,
            4,
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Replication factor: 4 larger than available brokers: 3.",
        ),
    ],
)
def test_impossible_counts_are_refused(
    partitions: int, factor: int, code: ErrorCode, message: str
) -> None:
    """The code and the words that tools show and suites compare."""
    with pytest.raises(KafkaError) as caught:
        place(brokers(1, 2, 3), partitions, factor)
    assert (caught.value.code, caught.value.message) == (code, message)


def test_half_known_racks_are_refused() -> None:
    """Spreading over racks is a promise that cannot be kept if some brokers' are unknown."""
    with pytest.raises(KafkaError) as caught:
        place(brokers(1, 2, racks={1: "a"}), 1, 1)
    assert caught.value.code == ErrorCode.UNKNOWN_SERVER_ERROR


def test_added_partitions_go_on_where_the_topic_began() -> None:
    """Growing starts at the leader of partition 0, or the next broker if that one is gone."""
    assert growth_start([1, 3, 5], 3) == 1
    assert growth_start([1, 3, 5], 2) == 1
    assert growth_start([1, 3, 5], 9) == 0
    placed = assign_replicas(
        brokers(0, 1, 2),
        partitions=2,
        replication_factor=2,
        start_index=1,
        shift=1,
        first_partition=2,
    )
    assert placed == {2: (0, 2), 3: (1, 2)}
