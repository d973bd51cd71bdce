"""Incremental fetches over partitions that had nothing to tell, and then have.

Such partitions are passed over without being read; every way in which one can get something to
tell must bring it back.
"""

import pytest

from barnabas_broker.cluster.image import MetadataImage
from barnabas_broker.log.partition_log import PartitionLog
from barnabas_broker.server.node.broker_server import BrokerServer
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from barnabas_kafka.protocol.messages.delete_topics import DeleteTopicsRequest
from barnabas_kafka.protocol.messages.fetch import FetchResponse, PartitionData
from barnabas_kafka.records.builder import build_batch
from tests.broker.server.running import Wire, fetch_request, port_of

BATCH = build_batch([(0, None, b"value", ())])


class Follower:
    """A client with a session over three partitions, told everything there is."""

    def __init__(self, wire: Wire, topic: str) -> None:
        self.wire, self.topic = wire, topic
        wire.create_topic(topic, partitions=3)
        for partition in range(3):
            wire.produce(topic, BATCH, partition=partition)
        opening = fetch_request([(topic, p, 1) for p in range(3)], session_epoch=0)
        self.session_id: int = wire.ask(opening, 12).session_id
        self.epoch = 0
        assert self.poll() == {}

    def poll(self, offsets: dict[int, int] | None = None, **more: int) -> dict[int, PartitionData]:
        """An incremental fetch: the partitions it tells of."""
        self.send(offsets, **more)
        return self.receive()

    def send(self, offsets: dict[int, int] | None = None, **more: int) -> None:
        """Only the request."""
        self.epoch += 1
        wanted = [(self.topic, partition, at) for partition, at in (offsets or {}).items()]
        more = {"session_id": self.session_id, "session_epoch": self.epoch, **more}
        self.wire.send(fetch_request(wanted, **more), 12)

    def receive(self) -> dict[int, PartitionData]:
        """Only the answer."""
        _, response = self.wire.receive(FetchResponse, 12)
        assert response.error_code == 0
        return {
            entry.partition_index: entry
            for topic in response.responses
            for entry in topic.partitions
        }


@pytest.fixture
def follower(wire: Wire, request: pytest.FixtureRequest) -> Follower:
    """A client that has been told everything."""
    return Follower(wire, f"q-{request.node.name[:60]}")


def test_idle_partitions_are_not_read(follower: Follower, monkeypatch: pytest.MonkeyPatch) -> None:
    """A poll of a thousand idle partitions must not cost a thousand reads."""
    monkeypatch.setattr(PartitionLog, "end_offset_for_epoch", None)
    monkeypatch.setattr(
        "barnabas_broker.server.requests.handlers.fetch._Fetch._read_partition",
        lambda *_: pytest.fail("a quiet partition was read"),
    )
    assert follower.poll() == {}


def test_an_appended_partition_is_returned_until_read(follower: Follower) -> None:
    """Of the partition that it went to, until the client has read it."""
    follower.wire.produce(follower.topic, BATCH, partition=1)
    assert follower.poll().keys() == {1}
    assert follower.poll().keys() == {1}
    assert follower.poll({1: 2}) == {}


def test_an_append_completes_a_waiting_fetch(node: BrokerServer, follower: Follower) -> None:
    """A long poll waits on quiet partitions as on any other."""
    follower.send(max_wait_ms=60_000)
    with Wire(port_of(node)) as producer:
        producer.produce(follower.topic, BATCH, partition=2)
    assert follower.receive().keys() == {2}


def test_a_moved_log_start_is_returned(follower: Follower) -> None:
    """Clients learn it from fetches; an offset below it is out of range from then on."""
    everything = DeleteRecordsPartition(partition_index=2, offset=1)
    topic = DeleteRecordsTopic(name=follower.topic, partitions=[everything])
    follower.wire.ask(DeleteRecordsRequest(timeout_ms=5000, topics=[topic]), 2)
    reported = follower.poll()
    assert reported.keys() == {2}
    assert reported[2].log_start_offset == 1
    assert follower.poll({2: 0})[2].error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_a_client_that_goes_back_gets_records(follower: Follower) -> None:
    """What was quiet at one offset is not at another."""
    assert follower.poll({0: 0})[0].records


def test_the_isolation_level_of_each_request_counts(follower: Follower) -> None:
    """With nothing undecided both levels read up to the same offset."""
    assert follower.poll(isolation_level=1) == {}
    follower.wire.produce(follower.topic, BATCH, partition=0)
    assert follower.poll(isolation_level=1).keys() == {0}


def test_a_deleted_topic_is_reported_in_each_response(follower: Follower) -> None:
    """With every answer, until the client forgets it."""
    request = DeleteTopicsRequest(topic_names=[follower.topic], timeout_ms=5000)
    follower.wire.ask(request, 5)
    for _ in range(2):
        reported = follower.poll()
        assert {data.error_code for data in reported.values()} == {
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        }
        assert reported.keys() == {0, 1, 2}


def test_a_recreated_topic_has_new_logs(follower: Follower) -> None:
    """Its name leads to new logs, in which the client's offset lies past the end."""
    follower.wire.ask(DeleteTopicsRequest(topic_names=[follower.topic], timeout_ms=5000), 5)
    follower.wire.create_topic(follower.topic, partitions=3)
    assert [data.error_code for data in follower.poll().values()] == [
        ErrorCode.OFFSET_OUT_OF_RANGE
    ] * 3


def test_a_new_metadata_image_invalidates_the_cache(node: BrokerServer, follower: Follower) -> None:
    """Whatever changed in the cluster, nothing is taken to be quiet because it once was."""
    (session,) = (
        each
        for each in node.broker.fetch_sessions.sessions.values()
        if each.id == follower.session_id
    )
    assert all(target.quiet for target in session.targets.values())
    session.take_image(MetadataImage(cluster_id="another"))
    assert not any(target.quiet for target in session.targets.values())
