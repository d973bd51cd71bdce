"""Topics that are created because somebody asked: here, or by the controller elsewhere."""

from __future__ import annotations

from pathlib import Path

from barnabas_broker.server.requests.handlers.metadata import HANDLER, handle
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from barnabas_kafka.protocol.messages.find_coordinator import FindCoordinatorRequest
from barnabas_kafka.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.broker.cli.cluster import three_brokers
from tests.broker.controller.embedded import Embedded, no_replicas
from tests.broker.controller.ensemble import Cluster
from tests.broker.server.requests.test_client_quotas import set_quota
from tests.broker.server.running import Wire, port_of, running_node
from tests.waiting import wait_for

WANTED = MetadataRequest(topics=[MetadataRequestTopic(name="t")])


def test_the_controller_creates_it_at_once(tmp_path: Path) -> None:
    """Its client asks again, and then the answer has the topic."""
    embedded = Embedded(tmp_path)
    for expected in (ErrorCode.LEADER_NOT_AVAILABLE, ErrorCode.NONE):
        answer = embedded.ask(handle, WANTED, embedded.call(HANDLER.versions.max))
        assert [(each.name, each.error_code) for each in answer.topics] == [("t", expected)]


def test_a_member_has_its_client_ask_again() -> None:
    """It asks the controller, and does not know the topic yet."""
    cluster = Cluster(2)
    asked = []

    class Link:
        async def ask(self, request: object, kind: type, *, timeout_s: float) -> object:
            asked.append(request)
            return kind()

    answer = cluster.ask(
        2, handle, WANTED, HANDLER.versions.max, link=Link(), replicas=no_replicas(2)
    )
    assert [each.error_code for each in answer.topics] == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert len(asked) == 1


def test_a_member_passes_on_an_error_that_it_does_not_know() -> None:
    """A newer controller invents one: the client hears that something is wrong, and what."""
    cluster = Cluster(2)

    class Link:
        async def ask(self, request: object, kind: type, *, timeout_s: float) -> object:
            refused = CreatableTopicResult(name="t", error_code=9999, error_message="no")
            return CreateTopicsResponse(topics=[refused])

    answer = cluster.ask(
        2, handle, WANTED, HANDLER.versions.max, link=Link(), replicas=no_replicas(2)
    )
    assert [each.error_code for each in answer.topics] == [ErrorCode.UNKNOWN_SERVER_ERROR]


def test_a_topic_that_cannot_be_created_is_explained(tmp_path: Path) -> None:
    """Where more replicas are asked for than there are brokers."""
    settings = {"transaction.state.log.replication.factor": "3"}
    with running_node(tmp_path, settings) as node, Wire(port_of(node)) as wire:
        answer = wire.ask(FindCoordinatorRequest(key="tx", key_type=1), 3)
        assert answer.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert "__transaction_state is not created" in answer.error_message


def test_the_controller_does_not_count_what_a_broker_asks_for_its_clients(tmp_path: Path) -> None:
    """A quota of all users limits the brokers' user, too: brokers would be throttled.

    The broker that has the client counts, and throttles it afterwards, as Apache's broker does.
    """
    with three_brokers(tmp_path, {"num.partitions": "20"}) as three:
        controller = three.nodes[0].broker.image.controller_id
        broker = three.nodes[(controller + 1) % 3]
        with Wire(port_of(three.nodes[controller])) as wire:
            set_quota(wire, {"user": None}, controller_mutation_rate=1.0)
        for node in three.nodes:
            wait_for(
                "the quota",
                lambda node=node: bool(node.broker.image.quota_configs),  # type: ignore[misc]
            )
        with Wire(port_of(broker)) as wire:
            for name in ("first", "second"):
                wanted = MetadataRequest(topics=[MetadataRequestTopic(name=name)])
                (topic,) = wire.ask(wanted, 12).topics
                assert topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        with Wire(port_of(three.nodes[controller])) as wire:
            # The controller counts what its own clients create.
            for name, error in (
                ("third", ErrorCode.NONE),
                ("fourth", ErrorCode.THROTTLING_QUOTA_EXCEEDED),
            ):
                large = CreatableTopic(name=name, num_partitions=20, replication_factor=1)
                answer = wire.ask(CreateTopicsRequest(topics=[large], timeout_ms=60_000), 6)
                assert answer.topics[0].error_code == error
