"""Which replicas and brokers a throttled reassignment names."""

from barnabas_kafka.ids import TopicPartition
from barnabas_kafka.reassignment.throttles import (
    FOLLOWER_REPLICAS,
    LEADER_REPLICAS,
    moves,
    throttled_brokers,
    throttled_replicas,
)

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)


def test_old_replicas_send_and_new_ones_fetch() -> None:
    """Any old replica may lead meanwhile; one that stays does not fetch."""
    moving = moves({A0: (1, 0), A1: (2,), B0: (0, 1)}, {A0: (1, 3), A1: (0, 2), B0: (0,)})
    assert throttled_replicas(moving) == {
        "a": {LEADER_REPLICAS: "0:0,0:1,1:2", FOLLOWER_REPLICAS: "0:3,1:0"},
        "b": {LEADER_REPLICAS: "0:0,0:1"},
    }
    assert throttled_brokers(moving.values()) == [0, 1, 2, 3]
