"""Three brokers in this process on a ZooKeeper for development, for commands that need them."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Event
from time import monotonic

from barnabas_broker.server.node import Node
from barnabas_kafka.ids import TopicPartition
from tests.broker.cli.test_zookeeper import started
from tests.broker.server.running import port_of, running_node

DEADLINE_S = 60
SETTINGS = {
    "offsets.topic.replication.factor": "1",
    "auto.leader.rebalance.enable": "false",
    "controlled.shutdown.enable": "false",
    "barnabas.admin.listener": "127.0.0.1:0",
}


class Three:
    """Brokers 0, 1 and 2, in racks a, b and c."""

    def __init__(self, nodes: list[Node]) -> None:
        self.nodes = nodes
        self.bootstrap = ",".join(f"127.0.0.1:{port_of(node)}" for node in nodes)

    def until(self, condition: Callable[[], bool]) -> None:
        """Ask again until it is so."""
        deadline, waiting = monotonic() + DEADLINE_S, Event()
        while not condition():
            assert monotonic() < deadline, "it did not come true"
            waiting.wait(0.01)  # The brokers run in this process.

    def lies(self, topic: str, *replicas: tuple[int, ...]) -> bool:
        """Whether every broker knows that the partitions lie there, have leaders and are whole."""
        for node in self.nodes:
            for number, expected in enumerate(replicas):
                state = node.broker.image.partition(TopicPartition(topic, number))
                if state is None or state.replicas != expected or state.leader < 0:
                    return False
                if set(state.isr) != set(expected):
                    return False
        return True


@contextmanager
def three_brokers(directory: Path) -> Iterator[Three]:
    """Three that know each other."""
    with started(directory) as (_, zookeeper), ExitStack() as running:
        nodes = [
            running.enter_context(
                running_node(
                    directory / str(broker),
                    {
                        **SETTINGS,
                        "broker.id": str(broker),
                        "broker.rack": "abc"[broker],
                        "zookeeper.connect": zookeeper,
                    },
                )
            )
            for broker in range(3)
        ]
        three = Three(nodes)
        three.until(lambda: all(len(node.broker.image.brokers) == 3 for node in nodes))
        yield three
