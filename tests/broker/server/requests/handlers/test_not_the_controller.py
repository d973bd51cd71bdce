"""What only the controller may do, asked of another broker: where to ask, before anything else."""

import pytest

from barnabas_broker.controller.topics import NewTopic
from barnabas_broker.server.requests.handler import Handle
from barnabas_broker.server.requests.handlers import create_partitions, create_topics, delete_topics
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from barnabas_kafka.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from barnabas_kafka.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from barnabas_kafka.protocol.schema import Message
from tests.broker.controller.ensemble import Cluster

NOWHERE = DeleteTopicState(name="nowhere")
NAMELESS = DeleteTopicState()
TWICE = [CreatableTopic(name="new"), CreatableTopic(name="new")]
GROWN = [CreatePartitionsTopic(name="t", count=2, assignments=None)]


@pytest.mark.parametrize(
    ("handle", "request_", "version", "answers"),
    [
        (delete_topics.handle, DeleteTopicsRequest(topics=[NOWHERE, NAMELESS]), 6, "responses"),
        (delete_topics.handle, DeleteTopicsRequest(topic_names=["t", "nowhere"]), 5, "responses"),
        (create_topics.handle, CreateTopicsRequest(topics=TWICE), 7, "topics"),
        (create_topics.handle, CreateTopicsRequest(topics=TWICE[:1]), 7, "topics"),
        (create_partitions.handle, CreatePartitionsRequest(topics=GROWN), 3, "results"),
        (create_partitions.handle, CreatePartitionsRequest(topics=GROWN * 2), 3, "results"),
    ],
)
def test_another_broker_judges_nothing(
    handle: Handle, request_: Message, version: int, answers: str
) -> None:
    """It may not have heard of a topic, and whoever believes it asks nobody else."""
    cluster = Cluster(2)
    cluster.create(NewTopic(name="t", assignments=[(0, (1,))]))
    reported = getattr(cluster.ask(2, handle, request_, version), answers)
    assert {each.error_code for each in reported} == {ErrorCode.NOT_CONTROLLER}
    reported = getattr(cluster.ask(1, handle, request_, version), answers)
    assert ErrorCode.NOT_CONTROLLER not in {each.error_code for each in reported}


@pytest.mark.parametrize("broker", [1, 2])
def test_with_deletion_disabled_the_controller_is_still_the_one_to_ask(broker: int) -> None:
    """Whoever is told that topics cannot be deleted believes it of the cluster."""
    cluster = Cluster(2, {"delete.topic.enable": "false"})
    answer = cluster.ask(broker, delete_topics.handle, DeleteTopicsRequest(topics=[NOWHERE]), 6)
    assert answer.responses[0].error_code == (
        ErrorCode.TOPIC_DELETION_DISABLED if broker == 1 else ErrorCode.NOT_CONTROLLER
    )
