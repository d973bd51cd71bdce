"""The cluster through a listener: which leaders a client can reach."""

import pytest

from barnabas_broker.cluster.image import (
    BrokerRegistration,
    Endpoint,
    MetadataImage,
    PartitionState,
)
from barnabas_broker.cluster.views import live_endpoints, view_partition
from barnabas_kafka.errors import ErrorCode

IMAGE = MetadataImage(
    cluster_id="c",
    controller_id=1,
    brokers={
        1: BrokerRegistration(1, (Endpoint("IN", "h1", 1), Endpoint("OUT", "h1", 2))),
        2: BrokerRegistration(2, (Endpoint("IN", "h2", 1),)),
    },
)


def test_brokers_are_shown_where_the_listener_is() -> None:
    """A broker without the listener cannot be reached through it."""
    assert live_endpoints(IMAGE, "IN") == {1: Endpoint("IN", "h1", 1), 2: Endpoint("IN", "h2", 1)}
    assert live_endpoints(IMAGE, "OUT") == {1: Endpoint("OUT", "h1", 2)}


def test_no_broker_is_listed_before_the_first_update_metadata() -> None:
    """Clients ask again then, and do not take one broker without topics for the cluster."""
    started = MetadataImage(cluster_id="c", brokers={1: IMAGE.brokers[1]})
    assert live_endpoints(started, "IN") == {}


@pytest.mark.parametrize(
    ("leader", "listener", "error", "shown"),
    [
        (1, "OUT", ErrorCode.NONE, 1),
        (2, "IN", ErrorCode.NONE, 2),
        (2, "OUT", ErrorCode.LISTENER_NOT_FOUND, -1),
        (3, "IN", ErrorCode.LEADER_NOT_AVAILABLE, -1),
        (-1, "IN", ErrorCode.LEADER_NOT_AVAILABLE, -1),
    ],
)
def test_a_leader_is_reachable_or_the_error_names_the_reason(
    leader: int, listener: str, error: ErrorCode, shown: int
) -> None:
    """Not alive and not on this listener are different faults, with different cures."""
    state = PartitionState((1, 3, 2), (1,), leader, 4, 1)
    view = view_partition(state, IMAGE, live_endpoints(IMAGE, listener))
    assert (view.error, view.leader, view.offline) == (error, shown, [3])
