"""The leaders that a refusal names (KIP-951).

A client that asks a broker which does not lead a partition would have to ask for metadata first.
From version 10 of Produce and 16 of Fetch on the response has the partition's leader, its epoch and
that broker's endpoint, as far as this broker knows (`KafkaApis.getCurrentLeader`).
Responses to followers name it, too.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Generic, Protocol, TypeVar

from barnabas_broker.cluster.image import PartitionState
from barnabas_broker.cluster.views import racks
from barnabas_broker.server.requests.request_context import RequestContext
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.ids import TopicPartition
from barnabas_kafka.protocol.messages import fetch, produce

MOVED: Final = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)


class _Endpoint(Protocol):
    """A broker in `node_endpoints`."""

    node_id: int


Endpoint = TypeVar("Endpoint", bound=_Endpoint)
Leader = TypeVar("Leader")


class _Answer(Protocol[Leader]):
    """What a response says of one partition."""

    error_code: int
    current_leader: Leader


@dataclass(frozen=True, slots=True)
class CurrentLeaders(Generic[Leader, Endpoint]):
    """How the responses of one API name leaders, from the version `since` on."""

    since: int
    leader: Callable[..., Leader]
    endpoint: Callable[..., Endpoint]

    def name(
        self,
        call: RequestContext,
        tp: TopicPartition,
        answer: _Answer[Leader],
        endpoints: list[Endpoint],
    ) -> None:
        """Name the leader in an answer whose client has another leader or epoch, else nothing.

        `endpoints` are those of the response; each broker is added once.
        """
        if answer.error_code not in MOVED or call.version < self.since:
            return
        state = _state(call, tp)
        if state is None:
            return
        answer.current_leader = self.leader(leader_id=state.leader, leader_epoch=state.leader_epoch)
        # Not where the leader is away or not on the listener of the request.
        image, listener = call.broker.image, call.listener
        known = racks(image, listener)
        found = image.brokers[state.leader].endpoint(listener) if state.leader in known else None
        if found is not None and all(each.node_id != state.leader for each in endpoints):
            endpoints.append(
                self.endpoint(
                    node_id=state.leader,
                    host=found.host,
                    port=found.port,
                    rack=known[state.leader],
                )
            )


def _state(call: RequestContext, tp: TopicPartition) -> PartitionState | None:
    """Leader and epoch by the replica here, else by the metadata; None where not known."""
    replica = call.broker.replicas.get(tp)
    return call.broker.image.partition(tp) if replica is None else replica.state


IN_PRODUCE: Final = CurrentLeaders(10, produce.LeaderIdAndEpoch, produce.NodeEndpoint)
IN_FETCH: Final = CurrentLeaders(16, fetch.LeaderIdAndEpoch, fetch.NodeEndpoint)
