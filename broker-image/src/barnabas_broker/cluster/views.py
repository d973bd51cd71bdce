"""The cluster as clients of one listener see it: which partitions they can reach, and how.

Kafka's rules (`ZkMetadataCache.getPartitionMetadata`): a partition whose leader is unknown or not
alive is LEADER_NOT_AVAILABLE; one whose leader is alive, but not on the listener of the client,
is LISTENER_NOT_FOUND. Both come with leader -1, so that a client waits and asks again.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from barnabas_broker.cluster.image import (
    NO_CONTROLLER,
    NO_LEADER,
    Endpoint,
    MetadataImage,
    PartitionState,
)
from barnabas_kafka.errors import ErrorCode


@dataclass(frozen=True, slots=True)
class PartitionView:
    """A partition through one listener; `error` is that of its leadership."""

    error: ErrorCode
    leader: int
    offline: list[int]


def live_endpoints(image: MetadataImage, listener: str) -> dict[int, Endpoint]:
    """Where each broker is reached through a listener; brokers without it are left out.

    None before a controller has sent the brokers, as in Kafka's metadata cache: clients
    take an answer without brokers for no answer and ask again. The first thing a broker knows,
    itself and no topic, they would take for the cluster.
    """
    if image.controller_id == NO_CONTROLLER:
        return {}
    found = ((broker.id, broker.endpoint(listener)) for broker in image.brokers.values())
    return {broker: endpoint for broker, endpoint in found if endpoint is not None}


def racks(image: MetadataImage, listener: str) -> Mapping[int, str | None]:
    """The rack, if it names one, of each broker that is reached through a listener."""
    key = "racks", listener
    found = image.memo.get(key)
    if found is None:
        found = {broker: image.brokers[broker].rack for broker in live_endpoints(image, listener)}
        image.memo[key] = found
    return cast("Mapping[int, str | None]", found)


def view_partition(
    state: PartitionState, image: MetadataImage, endpoints: dict[int, Endpoint]
) -> PartitionView:
    """What clients may know of a partition's leader, and which replicas cannot be used.

    `endpoints` are those of `live_endpoints` for the client's listener.
    """
    offline = [
        broker
        for broker in state.replicas
        if broker not in image.brokers or broker in state.offline
    ]
    if state.leader in state.offline:
        return PartitionView(ErrorCode.LEADER_NOT_AVAILABLE, NO_LEADER, offline)
    if state.leader in endpoints:
        return PartitionView(ErrorCode.NONE, state.leader, offline)
    if state.leader in image.brokers:
        return PartitionView(ErrorCode.LISTENER_NOT_FOUND, NO_LEADER, offline)
    return PartitionView(ErrorCode.LEADER_NOT_AVAILABLE, NO_LEADER, offline)
