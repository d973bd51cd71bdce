"""A broker of Apache's and one of ours are asked the same where neither leads nor controls.

Both are members of one cluster; `tests/oracle/test_same_answers.py` asks brokers that are alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from operator import eq, methodcaller
from typing import Any, Final

import pytest
from confluent_kafka.admin import NewTopic

from barnabas_kafka.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from barnabas_kafka.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from barnabas_kafka.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from barnabas_kafka.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from barnabas_kafka.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from barnabas_kafka.protocol.messages.describe_cluster import DescribeClusterRequest
from barnabas_kafka.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    TopicRequest,
)
from barnabas_kafka.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
)
from barnabas_kafka.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from barnabas_kafka.protocol.messages.update_features import (
    FeatureUpdateKey,
    UpdateFeaturesRequest,
)
from tests.clients.wire import metadata, produce, some_batch
from tests.cluster.running import move_controller, on_record
from tests.cluster.test_among_apache import APACHE, RECORDS, Mixed, running
from tests.oracle.apache import DEFAULT_VERSION
from tests.oracle.questions_about_records import fetching, looking_up
from tests.oracle.sides import Side, accidents, differences, no_longer_different

pytestmark = pytest.mark.jvm

CONTROLLER, OURS = 0, 1
NO_REPLICA, FOLLOWED, NOWHERE = "no-replica", "followed", "nowhere"
REPLICAS: Final = {NO_REPLICA: [CONTROLLER], FOLLOWED: [CONTROLLER, OURS, APACHE]}
#: Topics of which neither broker leads a partition, and partitions there are or are not.
PARTITIONS: Final = ((NO_REPLICA, 0), (FOLLOWED, 0), (NO_REPLICA, 9), (NOWHERE, 0))


def records_elsewhere(side: Side) -> None:
    """Produce, and DeleteRecords."""
    for topic, partition in PARTITIONS:
        for acks in (-1, 1):
            request = produce(topic, some_batch(), acks=acks, partition=partition)
            side.ask_all(f"{topic}-{partition}, acks {acks}", request, (3, 7, 9, 10))
        entry = DeleteRecordsPartition(partition_index=partition, offset=0)
        topics = [DeleteRecordsTopic(name=topic, partitions=[entry])]
        deletion = DeleteRecordsRequest(topics=topics, timeout_ms=60_000)
        side.ask_all(f"deleted from {topic}-{partition}", deletion, range(3))


def fetches_elsewhere(side: Side) -> None:
    """Fetch, by consumers and by a debugging one, in epochs believed and not."""
    for topic, partition in PARTITIONS:
        for epoch in (-1, 0, 9):
            request = fetching(topic, partition=partition, current_leader_epoch=epoch)
            side.ask_all(f"{topic}-{partition}, epoch {epoch}", request, (4, 9, 11, 12))
        debugging = fetching(topic, partition=partition, replica_id=-2)
        side.ask_all(f"{topic}-{partition}, debugging", debugging, (4, 11))
        side.ask(
            f"{topic}-{partition}, a rack", fetching(topic, partition=partition, rack_id="r"), 12
        )
    for topic in REPLICAS:
        for epoch in (-1, 0, 9):
            request = fetching(topic, current_leader_epoch=epoch)
            request.topics[0].topic_id = side.id_of(topic)
            side.ask_all(f"{topic} by its id, epoch {epoch}", request, (15, 16, 17))


def offsets_elsewhere(side: Side) -> None:
    """ListOffsets and OffsetForLeaderEpoch, by consumers, debugging ones and followers."""
    for topic, partition in PARTITIONS:
        where = f"{topic}-{partition}"
        for replica in (-1, -2, CONTROLLER):
            for timestamp in (-1, -2, 0):
                request = looking_up(
                    topic, timestamp, partition_index=partition, replica_id=replica
                )
                side.ask_all(f"{where}, time {timestamp}, by {replica}", request, (0, 1, 4, 7))
        for current in (-1, 0, 9):
            request = looking_up(topic, -1, partition_index=partition, current_leader_epoch=current)
            side.ask_all(f"{where}, current epoch {current}", request, (4, 7))
            asked = OffsetForLeaderPartition(
                partition=partition, leader_epoch=0, current_leader_epoch=current
            )
            epochs = OffsetForLeaderEpochRequest(
                replica_id=-1, topics=[OffsetForLeaderTopic(topic=topic, partitions=[asked])]
            )
            side.ask_all(f"{where}, where 0 ends, current epoch {current}", epochs, (2, 3, 4))


def producers_elsewhere(side: Side) -> None:
    """DescribeProducers, which replicas answer, too."""
    for topic, partition in PARTITIONS:
        request = DescribeProducersRequest(
            topics=[TopicRequest(name=topic, partition_indexes=[partition])]
        )
        side.ask(f"{topic}-{partition}", request, 0)


def changes_of_topics_elsewhere(side: Side) -> None:
    """CreateTopics, CreatePartitions and DeleteTopics, of what is there and what cannot be."""
    for name in ("created", NO_REPLICA, "not a name", ""):
        created = CreatableTopic(name=name, num_partitions=1, replication_factor=1)
        grown = CreatePartitionsTopic(name=name, count=5, assignments=None)
        for only_validate in (False, True):
            request = CreateTopicsRequest(
                topics=[created], timeout_ms=60_000, validate_only=only_validate
            )
            side.ask_all(f"create {name!r}, {only_validate=}", request, (2, 4, 7))
            growth = CreatePartitionsRequest(
                topics=[grown], timeout_ms=60_000, validate_only=only_validate
            )
            side.ask_all(f"grow {name!r}, {only_validate=}", growth, range(4))
    for name in (NO_REPLICA, NOWHERE, "not a name", ""):
        by_name = DeleteTopicsRequest(topic_names=[name], timeout_ms=60_000)
        side.ask_all(f"delete {name!r}", by_name, range(6))
        by_state = DeleteTopicsRequest(topics=[DeleteTopicState(name=name)], timeout_ms=60_000)
        side.ask(f"delete {name!r}, version 6", by_state, 6)
    by_id = DeleteTopicsRequest(
        topics=[DeleteTopicState(topic_id=side.id_of(NO_REPLICA))], timeout_ms=60_000
    )
    side.ask("delete by id", by_id, 6)


def changes_of_replicas_elsewhere(side: Side) -> None:
    """Reassignments begun and listed, and features changed."""
    for topic, partition in PARTITIONS:
        moved = ReassignablePartition(partition_index=partition, replicas=[CONTROLLER])
        request = AlterPartitionReassignmentsRequest(
            topics=[ReassignableTopic(name=topic, partitions=[moved])]
        )
        side.ask(f"{topic}-{partition}", request, 0)
    side.ask("nothing moved", AlterPartitionReassignmentsRequest(), 0)
    side.ask("under way", ListPartitionReassignmentsRequest(topics=None), 0)
    update = FeatureUpdateKey(feature="no.such.feature", max_version_level=1)
    side.ask_all("features", UpdateFeaturesRequest(feature_updates=[update]), (0, 1))


def the_same_cluster(side: Side) -> None:
    """Who is there, who controls, and who leads what."""
    side.ask_all("topics", metadata(NO_REPLICA, FOLLOWED, NOWHERE), (4, 8, 9))
    side.ask("cluster", DescribeClusterRequest(), 0)


QUESTIONS: Final = (
    records_elsewhere,
    fetches_elsewhere,
    offsets_elsewhere,
    producers_elsewhere,
    changes_of_topics_elsewhere,
    changes_of_replicas_elsewhere,
    the_same_cluster,
)
DELIBERATE: Final[dict[str, dict[str, str]]] = {}
"""Answers that differ on purpose: by question, what the difference looks like and why it is."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mixed]:
    """Broker 0, which is ours, controls the cluster and leads all there is."""
    mixed = Mixed(tmp_path_factory.mktemp("mixed"), DEFAULT_VERSION, {})
    with running(mixed):
        with on_record(mixed) as znodes:
            move_controller(mixed, znodes, CONTROLLER)
        both = (mixed.address(OURS), mixed.apache.bootstrap)
        for address in both:
            mixed.wait_for(
                f"broker {CONTROLLER} as the controller in the metadata of {address}",
                partial(mixed.metadata, bootstrap=address),
                until=lambda found: found.controller_id == CONTROLLER,
            )
        new = [NewTopic(name, 1, replica_assignment=[ids]) for name, ids in REPLICAS.items()]
        mixed.change(methodcaller("create_topics", new))
        for address in both:
            for topic, replicas in REPLICAS.items():
                expected = [(CONTROLLER, tuple(replicas))]
                mixed.wait_for_leadership(
                    f"{expected} of {topic} in the metadata of {address}",
                    topic,
                    partial(eq, expected),
                    address,
                )
        mixed.send(FOLLOWED, partitions=1)  # Every replica knows their producer.
        for address in both:
            _until_followed(address)
        yield mixed


def _until_followed(address: str) -> None:
    """Wait until the broker, a follower, knows that all records of the topic are committed.

    It learns the high watermark with the fetch after the one that brings the records (KIP-392).
    """
    with closing(Side(address)) as follower:
        found = follower.wait(
            fetching(FOLLOWED),
            11,
            settled=lambda answer: answer.responses[0].partitions[0].high_watermark == RECORDS,
        )
    assert not isinstance(found, str), found


def answers(bootstrap: str, question: Callable[[Side], None], *, stumbles: bool) -> dict[str, Any]:
    """What one broker answers, by label."""
    side = Side(bootstrap, stumbles=stumbles)
    try:
        question(side)
        return side.reported
    finally:
        side.close()


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.__name__)
def test_answers_are_the_same(cluster: Mixed, question: Callable[[Side], None]) -> None:
    """Every answer is Apache's, but for those that differ on purpose, and these do differ."""
    apache = answers(cluster.apache.bootstrap, question, stumbles=True)
    ours = answers(cluster.address(OURS), question, stumbles=False)
    found = list(differences(apache, ours))
    purposes = DELIBERATE.get(question.__name__, {})
    unexpected = accidents(found, purposes)
    assert not unexpected, "\n".join(["", *unexpected])
    assert not no_longer_different(found, purposes)
