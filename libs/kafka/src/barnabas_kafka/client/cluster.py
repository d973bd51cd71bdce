"""What the client knows of the cluster: brokers, controller, partition leaders, coordinators.

A `ClusterView` is one Metadata response as a value. `Placement` adds what is learnt beside it:
coordinators and the partition leaders of the topics that calls have named. A mapping that has been
found wrong is dropped, so that the next attempt looks it up again.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final, NamedTuple

from barnabas_kafka.ids import NO_NODE, TopicPartition
from barnabas_kafka.protocol.messages.metadata import MetadataResponse

LEARNT_MAX: Final = 100_000
"""Leaders and coordinators that are remembered; over it the oldest are dropped."""


class Address(NamedTuple):
    """Where a broker listens."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class CoordinatorType(IntEnum):
    """What a coordinator coordinates, by FindCoordinator's numbers."""

    GROUP = 0
    TRANSACTION = 1


@dataclass(frozen=True, slots=True)
class BrokerNode:
    """A live broker."""

    id: int
    host: str
    port: int
    rack: str | None = None

    @property
    def address(self) -> Address:
        """Where it listens for clients."""
        return Address(self.host, self.port)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterView:
    """The cluster as one broker described it."""

    cluster_id: str | None = None
    controller_id: int = NO_NODE
    brokers: Mapping[int, BrokerNode] = field(default_factory=dict)

    @staticmethod
    def of(response: MetadataResponse) -> "ClusterView":
        """The view in a Metadata response."""
        return ClusterView(
            cluster_id=response.cluster_id,
            controller_id=response.controller_id,
            brokers={
                each.node_id: BrokerNode(each.node_id, each.host, each.port, each.rack)
                for each in response.brokers
            },
        )


@dataclass(frozen=True, slots=True)
class AnyBroker:
    """Every broker can answer."""


@dataclass(frozen=True, slots=True)
class Controller:
    """Only the active controller can answer."""


@dataclass(frozen=True, slots=True)
class OneBroker:
    """Only this broker can answer."""

    id: int


@dataclass(frozen=True, slots=True)
class LeaderOf:
    """Only the partition's leader can answer."""

    partition: TopicPartition


@dataclass(frozen=True, slots=True)
class CoordinatorOf:
    """Only the coordinator of a group or a transactional id can answer."""

    type: CoordinatorType
    key: str


Target = AnyBroker | Controller | OneBroker | LeaderOf | CoordinatorOf
ANY_BROKER: Final = AnyBroker()
CONTROLLER: Final = Controller()


class Placement:
    """Leaders and coordinators that were looked up, until they are found wrong."""

    def __init__(self, learnt_max: int = LEARNT_MAX) -> None:
        self._nodes: dict[Target, int] = {}
        self._max = learnt_max

    def learn(self, nodes: Mapping[LeaderOf, int] | Mapping[CoordinatorOf, int]) -> None:
        """Remember which broker leads or coordinates."""
        for target, node in nodes.items():
            self._nodes.pop(target, None)
            self._nodes[target] = node
        while len(self._nodes) > self._max:
            del self._nodes[next(iter(self._nodes))]

    def forget(self, targets: Iterable[Target]) -> None:
        """Look these up again before they are used."""
        for target in targets:
            self._nodes.pop(target, None)

    def node(self, view: ClusterView, target: Target) -> int | None:
        """The broker to send to; NO_NODE for any broker, None where it has to be looked up."""
        if isinstance(target, AnyBroker):
            return NO_NODE
        if isinstance(target, OneBroker):
            return target.id
        if isinstance(target, Controller):
            return view.controller_id if view.controller_id in view.brokers else None
        node = self._nodes.get(target)
        return node if node in view.brokers else None
