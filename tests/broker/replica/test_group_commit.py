"""Group commit in a running broker: what counts, when, and what is synced for it."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import pytest

from barnabas_broker.log.flushing import FlushPlan
from barnabas_broker.log.partition_log import PartitionLog
from barnabas_broker.server.node.broker_server import BrokerServer
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.ids import TopicPartition
from barnabas_kafka.protocol.messages.delete_topics import DeleteTopicsRequest
from barnabas_kafka.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from barnabas_kafka.protocol.messages.produce import PartitionProduceResponse, ProduceResponse
from barnabas_kafka.records.builder import build_batch
from tests.broker.log.syncs import COMMIT_THREADS, Syncs, watching
from tests.broker.server.members import Member, commit, committed, find
from tests.broker.server.running import Wire, port_of, produce_request, running_node

T = TypeVar("T")
BATCH = build_batch([(1000, None, b"value", ())])
LOG = "00000000000000000000.log"
FSYNC = {
    "barnabas.durability": "fsync",
    "offsets.topic.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
}


@pytest.fixture
def syncs() -> Iterator[Syncs]:
    """The syncs of the broker of this test."""
    with watching() as watched:
        yield watched


@pytest.fixture
def node(syncs: Syncs, tmp_path: Path) -> Iterator[BrokerServer]:
    """A broker whose records count once they are on disk."""
    with running_node(tmp_path, FSYNC) as running:
        yield running


@pytest.fixture
def wire(node: BrokerServer) -> Iterator[Wire]:
    """A client of it."""
    with Wire(port_of(node)) as client:
        yield client


def answer(wire: Wire) -> PartitionProduceResponse:
    """The answer to a Produce request sent before."""
    _, response = wire.receive(ProduceResponse, 9)
    return response.responses[0].partition_responses[0]


def ends(wire: Wire, topic: str = "t") -> int:
    """The latest offset that a consumer is told of."""
    entry = ListOffsetsPartition(partition_index=0, timestamp=-1)
    request = ListOffsetsRequest(
        replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=[entry])]
    )
    offset: int = wire.ask(request, 5).topics[0].partitions[0].offset
    return offset


def _in_thread(work: Callable[[], T]) -> "Future[T]":
    """Do what blocks beside the test."""
    pool = ThreadPoolExecutor(1)
    try:
        return pool.submit(work)
    finally:
        pool.shutdown(wait=False)


def wire_is_served(node: BrokerServer) -> bool:
    """A round trip to the broker on a connection of its own."""
    with Wire(port_of(node)) as client:
        return ends(client) == 0


def by_commit(syncs: Syncs) -> list[str]:
    """The paths that group commit synced, without the directory of everything."""
    return [path for thread, path in syncs.asked if thread.startswith(COMMIT_THREADS)]


@pytest.mark.parametrize("acks", [-1, 1])
def test_no_answer_before_the_disk_has_it(
    node: BrokerServer, wire: Wire, syncs: Syncs, acks: int
) -> None:
    """Neither producers nor consumers hear of a record that a power failure would take."""
    wire.create_topic("t")
    syncs.hold()
    wire.send(produce_request("t", BATCH, acks=acks), 9)
    syncs.wait_for_one()
    with Wire(port_of(node)) as reader:
        assert ends(reader) == 0
        assert reader.fetch("t").high_watermark == 0
        syncs.let_go()
        reported = answer(wire)
        assert (reported.error_code, reported.base_offset) == (0, 0)
        assert ends(reader) == 1
        assert reader.fetch("t").records


def test_acks_0_waits_for_nothing_but_counts_later(
    node: BrokerServer, wire: Wire, syncs: Syncs
) -> None:
    """The producer goes on; consumers see the record once it is on disk."""
    wire.create_topic("t")
    syncs.hold()
    wire.send(produce_request("t", BATCH, acks=0), 9)
    syncs.wait_for_one()
    assert ends(wire) == 0
    syncs.let_go()
    assert wire.produce("t", BATCH).base_offset == 1
    assert ends(wire) == 2


def test_one_sync_covers_all_waiting_appends(node: BrokerServer, wire: Wire, syncs: Syncs) -> None:
    """What arrives during a sync is covered by the next, however much that is."""
    wire.create_topic("t")
    syncs.hold()
    clients = [Wire(port_of(node)) for _ in range(6)]
    clients[0].send(produce_request("t", BATCH), 9)
    syncs.wait_for_one()
    for client in clients[1:]:
        client.send(produce_request("t", BATCH), 9)
    partition = node.broker.replicas.leader(TopicPartition("t", 0))
    while partition.log.log_end_offset < len(clients):
        assert ends(wire) == 0  # A round trip: the broker goes on serving meanwhile.
    syncs.let_go()
    assert sorted(answer(client).base_offset for client in clients) == list(range(6))
    assert [path.endswith(LOG) for path in by_commit(syncs)].count(True) == 2
    for client in clients:
        client.socket.close()


def test_names_are_durable_before_what_they_name_counts(
    wire: Wire, syncs: Syncs, tmp_path: Path
) -> None:
    """Side files, then the bytes, then the directory, then its parent; later only the bytes."""
    wire.create_topic("t", segment_bytes="1000")
    wire.produce("t", BATCH)
    partition = tmp_path / "t-0"
    synced = by_commit(syncs)
    assert synced[-3:] == [str(partition / LOG), str(partition), str(tmp_path)]
    assert str(partition / "partition.metadata") in synced[:-3]
    syncs.asked.clear()
    wire.produce("t", BATCH)
    assert by_commit(syncs) == [str(partition / LOG)]


def test_a_rolled_segment_is_synced_with_the_next(
    node: BrokerServer, wire: Wire, syncs: Syncs, tmp_path: Path
) -> None:
    """A record counts only when everything before it does, in whatever file that is."""
    wire.create_topic("t", segment_bytes="100")
    syncs.hold()
    wire.send(produce_request("t", BATCH), 9)
    syncs.wait_for_one()
    with Wire(port_of(node)) as second, Wire(port_of(node)) as third:
        for client in (second, third):
            client.send(produce_request("t", BATCH), 9)
        partition = node.broker.replicas.leader(TopicPartition("t", 0))
        while partition.log.log_end_offset < 3:
            assert wire_is_served(node)
        syncs.asked.clear()
        syncs.let_go()
        assert sorted(answer(each).base_offset for each in (wire, second, third)) == [0, 1, 2]
    synced = by_commit(syncs)
    directory = tmp_path / "t-0"
    rolled = [str(directory / f"{base:020}.log") for base in (1, 2)]
    assert [path for path in synced if path.endswith(".log")][-2:] == rolled
    assert synced.index(str(directory), synced.index(rolled[0])) > synced.index(rolled[1])


def test_a_failed_sync_is_reported_and_not_retried(wire: Wire, syncs: Syncs) -> None:
    """Who waits hears KAFKA_STORAGE_ERROR; the record never counts, and nothing more is taken."""
    wire.create_topic("t")
    wire.produce("t", BATCH)
    syncs.broken = True
    assert wire.produce("t", BATCH).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    syncs.broken = False
    syncs.asked.clear()
    assert wire.produce("t", BATCH).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    for offset in (0, 1):  # Within the log, and at the end of what counts.
        assert wire.fetch("t", offset).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert [path for path in by_commit(syncs) if "t-0" in path] == []


def test_a_producer_does_not_wait_for_ever(node: BrokerServer, wire: Wire, syncs: Syncs) -> None:
    """After the request's timeout it is told so; sent again, the batch is found and awaited."""
    wire.create_topic("t")
    batch = build_batch(
        [(1000, None, b"value", ())], producer_id=7, producer_epoch=0, base_sequence=0
    )
    syncs.hold()
    request = produce_request("t", batch)
    request.timeout_ms = 1
    wire.send(request, 9)
    assert answer(wire).error_code == ErrorCode.REQUEST_TIMED_OUT
    wire.send(produce_request("t", batch), 9)
    syncs.wait_for_one()
    syncs.let_go()
    reported = answer(wire)
    assert (reported.error_code, reported.base_offset) == (0, 0)
    assert ends(wire) == 1


def test_a_deleted_topic_sends_its_producers_away(
    node: BrokerServer, wire: Wire, syncs: Syncs
) -> None:
    """Whoever waited for a record of it is told at once that it is not led here."""
    wire.create_topic("t")
    syncs.hold()
    wire.send(produce_request("t", BATCH), 9)
    syncs.wait_for_one()
    with Wire(port_of(node)) as admin:
        admin.ask(DeleteTopicsRequest(topic_names=["t"], timeout_ms=5000), 5)
    assert answer(wire).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    syncs.let_go()


def test_commits_of_offsets_wait_too(node: BrokerServer, wire: Wire, syncs: Syncs) -> None:
    """Neither the one who commits nor another hears of an offset that could still go back."""
    wire.create_topic("t")
    find(wire, "g")
    assert commit(wire, "g", "t", 1) == 0
    syncs.hold()
    partition = node.broker.replicas.leader(TopicPartition("__consumer_offsets", 0))
    end = partition.log.log_end_offset
    with Wire(port_of(node)) as other, Wire(port_of(node)) as bystander:
        waiting = _in_thread(lambda: commit(wire, "g", "t", 2))
        syncs.wait_for_one()
        assert partition.log.log_end_offset == end + 1
        asking = _in_thread(lambda: committed(other, "g", "t"))
        while len(partition.produce_waiters) < 2:
            assert ends(bystander) == 0
        assert not waiting.done()
        assert not asking.done()
        syncs.let_go()
        assert (waiting.result(), asking.result()) == (0, 2)


def test_members_wait_for_their_assignment(node: BrokerServer, wire: Wire, syncs: Syncs) -> None:
    """A group's generation is told to nobody before it would survive."""
    find(wire, "g")
    member = Member(wire, "g")
    member.enter()
    syncs.hold()
    waiting = _in_thread(lambda: member.sync({member.id: b"mine"}))
    syncs.wait_for_one()
    assert not waiting.done()
    syncs.let_go()
    assert waiting.result() == b"mine"


def test_records_of_a_crashed_process_count_after_a_sync(tmp_path: Path) -> None:
    """Records that the last process wrote and did not sync are synced before they are shown."""
    with running_node(tmp_path) as node, Wire(port_of(node)) as wire:
        wire.create_topic("t")
        wire.produce("t", BATCH)
    (tmp_path / ".kafka_cleanshutdown").unlink()
    (tmp_path / "recovery-point-offset-checkpoint").unlink()
    with watching() as syncs:
        syncs.hold()
        with running_node(tmp_path, FSYNC) as node, Wire(port_of(node)) as wire:
            syncs.wait_for_one()
            wire.send(produce_request("t", BATCH), 9)
            syncs.let_go()
            assert answer(wire).base_offset == 1
            assert str(tmp_path / "t-0" / LOG) in by_commit(syncs)
            assert ends(wire) == 2


def test_without_the_profile_nothing_is_synced_for_a_producer(tmp_path: Path) -> None:
    """As in Kafka, a record counts when it is written."""
    with watching() as syncs, running_node(tmp_path) as node, Wire(port_of(node)) as wire:
        wire.create_topic("t")
        wire.produce("t", BATCH)
        assert by_commit(syncs) == []
        assert ends(wire) == 1


@pytest.mark.parametrize("place", [(FlushPlan, "_sync"), (PartitionLog, "commit_plan")])
def test_an_unexpected_sync_failure_completes_all_waiting_appends(
    tmp_path: Path, place: tuple[type, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is known to be durable: as after a failed sync, and nobody waits for ever."""
    first, second = tmp_path / "first", tmp_path / "second"
    owner, name = place
    real = getattr(owner, name)

    def faulty(it: Any) -> Any:
        directory = it.directory if isinstance(it, PartitionLog) else it.files[0].path.parent
        if directory.name == "broken-0":
            raise ValueError("a defect")
        return real(it)

    settings = FSYNC | {"log.dirs": f"{first},{second}"}
    with running_node(first, settings) as node, Wire(port_of(node)) as client:
        client.create_topic("broken")
        client.create_topic("fine")
        homes = {tp.topic: log.directory.parent for tp, log in node.broker.logs.logs.items()}
        assert homes["broken"] != homes["fine"]
        monkeypatch.setattr(owner, name, faulty)
        assert client.produce("broken", BATCH).error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert client.produce("fine", BATCH).error_code == ErrorCode.NONE
