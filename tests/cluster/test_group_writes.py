"""What members of groups are told while their coordinator's log is not replicated."""

from contextlib import ExitStack

from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from barnabas_kafka.protocol.messages.describe_groups import (
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from barnabas_kafka.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from tests.clients.wire import Wire
from tests.cluster.running import Cluster


def coordinator(cluster: Cluster, group: str) -> int:
    """The broker that coordinates a group."""

    def found() -> FindCoordinatorResponse:
        with Wire(cluster.address(0)) as wire:
            return wire.ask(FindCoordinatorRequest(key=group), FindCoordinatorResponse, 2)

    return cluster.wait_for(
        f"the coordinator of {group}", found, until=lambda it: it.error_code == 0
    ).node_id


def test_a_heartbeat_that_is_not_replicated_is_to_be_sent_again(
    cluster: Cluster, topic: str
) -> None:
    """An error that heartbeats do not have would end a member of the consumer protocol for good."""
    cluster.create(topic)
    asked = coordinator(cluster, topic)
    cluster.until_whole("__consumer_offsets")
    join = ConsumerGroupHeartbeatRequest(
        group_id=topic,
        member_id="m",
        rebalance_timeout_ms=1000,
        subscribed_topic_names=[topic],
        topic_partitions=[],
    )
    with Wire(cluster.address(asked)) as wire, ExitStack() as frozen:
        # The controller may have named it before it has become the leader.
        cluster.wait_for(
            f"broker {asked} as the coordinator",
            lambda: wire.ask(DescribeGroupsRequest(groups=[topic]), DescribeGroupsResponse, 0),
            until=lambda it: it.groups[0].error_code == ErrorCode.NONE,
        )
        for broker in cluster.brokers.keys() - {asked}:
            frozen.enter_context(cluster.frozen(broker))
        answer = wire.ask(join, ConsumerGroupHeartbeatResponse, 0)
        assert answer.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
