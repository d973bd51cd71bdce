"""The fast route of OffsetCommit and the handler: the same answers, and the same records."""

from contextlib import ExitStack
from pathlib import Path

import pytest

from barnabas_broker.coordinator.group import prompt_commits
from barnabas_broker.log.partition_log import PartitionLog
from barnabas_broker.server.network.response_coalescing import ANSWERS_MAX
from barnabas_broker.server.requests.request_context import RequestContext
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from barnabas_kafka.records.batch import headers
from tests.broker.server.members import commit, committed, find
from tests.broker.server.requests.fast.differential import ALONE, Pair
from tests.broker.server.running import Wire, port_of, running_node
from tests.waiting import wait_for

SETTINGS = {"offsets.topic.num.partitions": "2"}


def commit_of_member(wire: Wire, offset: int) -> int:
    """Commit an offset as the member of a stable group; returns the error code."""
    return commit(wire, "alone", "plain", offset, member=ALONE, generation=1)


def test_offsets_committed_on_the_fast_path_are_fetched(pair: Pair) -> None:
    """For those who ask, by members and by consumers that assign partitions themselves."""
    for wire in pair.wires:
        assert commit_of_member(wire, 17) == 0
        assert commit(wire, "by-itself", "plain", 4) == 0
        assert commit(wire, "by-itself", "plain", 5) == 0
        assert committed(wire, "alone", "plain") == 17
        assert committed(wire, "by-itself", "plain") == 5
    pair.compare_logs()


def test_a_commit_that_cannot_be_appended_goes_to_the_handler(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which finds out why, or gets it appended: nothing is done twice."""

    def refuse(*_: object, **__: object) -> int:
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)

    with Wire(port_of(pair.nodes[0])) as wire:
        monkeypatch.setattr(PartitionLog, "append_plain", refuse)
        assert commit_of_member(wire, 18) == 0
        assert committed(wire, "alone", "plain") == 18
    with Wire(port_of(pair.nodes[1])) as wire:
        monkeypatch.undo()
        assert commit_of_member(wire, 18) == 0
    pair.compare_logs()


@pytest.mark.parametrize("version", [2, 9])
@pytest.mark.parametrize("broken_at", ["taker", "take"])
def test_a_bug_is_answered_and_logged(
    pair: Pair,
    broken_at: str,
    version: int,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The connection stays; where records were written the partition is loaded again."""

    def broken(*_: object) -> None:
        raise ZeroDivisionError("a bug")

    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=77)
    request = OffsetCommitRequest(
        group_id="by-itself",
        topics=[OffsetCommitRequestTopic(name="plain", partitions=[partition])],
    )
    with Wire(port_of(pair.nodes[0])) as wire:
        assert commit(wire, "by-itself", "plain", 6) == 0
        with monkeypatch.context() as patch:
            patch.setattr(prompt_commits, broken_at, broken)
            response = wire.ask(request, version)
        assert response.topics[0].name == "plain"
        (answered,) = response.topics[0].partitions
        assert answered.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
        wait_for("the partition", lambda: not pair.nodes[0].broker.groups.loading)
        kept = 77 if broken_at == "take" else 6  # As the log has it.
        assert committed(wire, "by-itself", "plain") == kept
        assert commit(wire, "by-itself", "plain", kept) == 0
    assert "Request failed: OffsetCommit version" in caplog.text
    assert "a bug" in caplog.text
    with Wire(port_of(pair.nodes[1])) as wire:  # The logs of both are compared later.
        for offset in (6, kept) if broken_at == "taker" else (6, 77, kept):
            assert commit(wire, "by-itself", "plain", offset) == 0


def test_a_bug_before_the_group_is_asked_is_answered(
    pair: Pair, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """By the handler as by the fast route, for every partition that was named."""

    def broken(*_: object, **__: object) -> bool:
        raise ZeroDivisionError("a bug")

    named = [
        OffsetCommitRequestTopic(
            name=name, partitions=[OffsetCommitRequestPartition(partition_index=0)]
        )
        for name in ("plain", "nowhere")
    ]
    request = OffsetCommitRequest(group_id="by-itself", topics=named)
    for node in pair.nodes:
        with monkeypatch.context() as patch, Wire(port_of(node)) as wire:
            patch.setattr(RequestContext, "allowed", broken)
            response = wire.ask(request, 9)
        assert [
            (topic.name, each.error_code) for topic in response.topics for each in topic.partitions
        ] == [
            ("plain", ErrorCode.UNKNOWN_SERVER_ERROR),
            ("nowhere", ErrorCode.UNKNOWN_SERVER_ERROR),
        ]
    assert caplog.text.count("Request failed: OffsetCommit version") == 2


def test_each_of_many_connections_gets_its_own_answers(tmp_path: Path) -> None:
    """In whichever bursts they leave, and of a commit that is answered the offset is there."""
    groups = [f"g{number}" for number in range(2 * ANSWERS_MAX)]
    partition = OffsetCommitRequestPartition(partition_index=0)
    topic = OffsetCommitRequestTopic(name="orders", partitions=[partition])
    with running_node(tmp_path, SETTINGS) as node, ExitStack() as stack:
        wires = [stack.enter_context(Wire(port_of(node))) for _ in groups]
        wires[0].create_topic("orders")
        find(wires[0], "g")
        for offset in range(5):
            partition.committed_offset = offset
            asked = [
                wire.frame(OffsetCommitRequest(group_id=group, topics=[topic]), 9)
                for wire, group in zip(wires, groups, strict=True)
            ]
            for wire, frame in zip(wires, asked, strict=True):
                wire.socket.sendall(frame)
            for wire, frame in zip(wires, asked, strict=True):
                correlation_id, response = wire.receive(OffsetCommitResponse, 9)
                assert correlation_id == int.from_bytes(frame[8:12], "big")
                assert response.topics[0].partitions[0].error_code == 0
            assert {committed(wires[0], group, "orders") for group in groups} == {offset}


def test_offsets_that_are_to_be_compressed_are(tmp_path: Path) -> None:
    """`offsets.topic.compression.codec` holds for every commit."""
    settings = {**SETTINGS, "offsets.topic.num.partitions": "1"}
    compressed = {**settings, "offsets.topic.compression.codec": "1"}
    with running_node(tmp_path, compressed) as node, Wire(port_of(node)) as wire:
        wire.create_topic("orders")
        find(wire, "g")
        for offset in (1, 2, 3):
            assert commit(wire, "g", "orders", offset) == 0
    (log,) = tmp_path.glob("__consumer_offsets-0/*.log")
    assert [header.attributes & 7 for _, header in headers(log.read_bytes())] == [1, 1, 1]
