"""Three brokers in this process on a ZooKeeper for development, for commands that need them."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import MappingProxyType

from barnabas_broker.cluster.image import PartitionState
from barnabas_broker.server.node.broker_server import BrokerServer
from barnabas_kafka.ids import TopicPartition
from tests.broker.cli.test_zookeeper import started
from tests.broker.server.running import port_of, running_node
from tests.waiting import wait_for

SETTINGS = {
    "offsets.topic.replication.factor": "1",
    "auto.leader.rebalance.enable": "false",
    "controlled.shutdown.enable": "false",
    "barnabas.admin.listener": "127.0.0.1:0",
}


class Three:
    """Brokers 0, 1 and 2, in racks a, b and c."""

    def __init__(self, nodes: list[BrokerServer]) -> None:
        self.nodes = nodes
        self.bootstrap = ",".join(f"127.0.0.1:{port_of(node)}" for node in nodes)

    def until_assigned(self, topic: str, *replicas: tuple[int, ...]) -> None:
        """Wait until every broker sees these replicas, a leader, and all of them in the ISR."""
        wait_for(
            f"replicas {replicas} of {topic} on every broker",
            lambda: self.states(topic, len(replicas)),
            until=lambda states: are_whole(states, replicas),
        )

    def states(self, topic: str, count: int) -> list[list[PartitionState | None]]:
        """The topic's partitions as each broker sees them."""
        partitions = [TopicPartition(topic, number) for number in range(count)]
        return [[node.broker.image.partition(tp) for tp in partitions] for node in self.nodes]


def are_whole(
    states: list[list[PartitionState | None]], replicas: tuple[tuple[int, ...], ...]
) -> bool:
    """Whether on every broker the partitions have these replicas, a leader and a full ISR."""
    return all(
        state is not None
        and state.replicas == expected
        and state.leader >= 0
        and set(state.isr) == set(expected)
        for seen in states
        for state, expected in zip(seen, replicas, strict=True)
    )


@contextmanager
def three_brokers(
    directory: Path,
    settings: Mapping[str, str] = MappingProxyType({}),
    last: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[Three]:
    """Three that know each other; `last` are settings of broker 2 alone."""
    with started(directory) as (_, zookeeper), ExitStack() as running:
        nodes = [
            running.enter_context(
                running_node(
                    directory / str(broker),
                    {
                        **SETTINGS,
                        **settings,
                        **(last if broker == 2 else {}),
                        "broker.id": str(broker),
                        "broker.rack": "abc"[broker],
                        "zookeeper.connect": zookeeper,
                    },
                )
            )
            for broker in range(3)
        ]
        three = Three(nodes)
        wait_for(
            "three live brokers in the image of each",
            lambda: [sorted(node.broker.image.brokers) for node in nodes],
            until=lambda seen: seen == [[0, 1, 2]] * 3,
        )
        yield three
