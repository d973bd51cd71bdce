"""The leaders that a refusal names (KIP-951).

A client that asks a broker which does not lead a partition would have to ask for metadata first.
From version 10 of Produce and 16 of Fetch on the response says who leads the partition, in which
epoch, and where that broker is reached, as far as this broker knows (`KafkaApis.getCurrentLeader`).
"""

from collections.abc import Callable
from typing import Generic, TypeVar

from barnabas_broker.cluster.image import NO_LEADER
from barnabas_broker.cluster.views import racks
from barnabas_broker.server.requests.request_context import RequestContext
from barnabas_kafka.ids import NO_EPOCH, TopicPartition

NodeEndpoint = TypeVar("NodeEndpoint")
"""That of the Produce or the Fetch response."""


class CurrentLeaders(Generic[NodeEndpoint]):
    """The leaders that one response names; `endpoints` has each of their brokers once."""

    __slots__ = ("_call", "_named", "_node", "endpoints")

    def __init__(self, call: RequestContext, node: Callable[..., NodeEndpoint]) -> None:
        """`node` builds an endpoint from `node_id`, `host`, `port` and `rack`."""
        self._call = call
        self._node = node
        self._named: set[int] = set()
        self.endpoints: list[NodeEndpoint] = []

    def of(self, tp: TopicPartition) -> tuple[int, int]:
        """Leader and epoch by the replica here, else by the metadata; -1 where not known."""
        broker = self._call.broker
        replica = broker.replicas.get(tp)
        state = broker.image.partition(tp) if replica is None else replica.state
        if state is None:
            return NO_LEADER, NO_EPOCH
        self._name(state.leader)
        return state.leader, state.leader_epoch

    def _name(self, leader: int) -> None:
        """Add where it is reached, unless it is away or not on the listener of the request."""
        image, listener = self._call.broker.image, self._call.listener
        known = racks(image, listener)
        if leader in self._named or leader not in known:
            return
        endpoint = image.brokers[leader].endpoint(listener)
        if endpoint is not None:
            self._named.add(leader)
            self.endpoints.append(
                self._node(
                    node_id=leader, host=endpoint.host, port=endpoint.port, rack=known[leader]
                )
            )
