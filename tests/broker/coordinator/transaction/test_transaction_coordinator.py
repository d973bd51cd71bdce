"""The transaction coordinator on a running broker: what survives, what is aborted, what expires."""

from dataclasses import replace
from pathlib import Path

import pytest

from barnabas_broker.server.node import broker_server as node_module
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.messages.describe_transactions import DescribeTransactionsRequest
from barnabas_kafka.protocol.messages.end_txn import EndTxnRequest
from tests.broker.server.members import committed, find
from tests.broker.server.running import Wire, port_of, running_node
from tests.broker.server.transactional import Transactional
from tests.waiting import wait_for

READ_COMMITTED = 1
FEW = {"transaction.state.log.num.partitions": "3", "offsets.topic.num.partitions": "3"}


def state_of(wire: Wire, transactional_id: str) -> str:
    """What DescribeTransactions tells, or the name of its error."""
    request = DescribeTransactionsRequest(transactional_ids=[transactional_id])
    (state,) = wire.ask(request, 0).transaction_states
    return str(state.transaction_state or ErrorCode(state.error_code).name)


def await_state(wire: Wire, transactional_id: str, wanted: str) -> None:
    """Wait until the coordinator describes the transaction so."""
    wait_for(
        f"the transaction {transactional_id} in {wanted}",
        lambda: state_of(wire, transactional_id),
        until=lambda state: state == wanted,
    )


def test_a_transaction_goes_on_after_a_restart(tmp_path: Path) -> None:
    """Id, epoch and partitions are read back; so are offsets that wait for its end."""
    with running_node(tmp_path, FEW) as node, Wire(port_of(node)) as wire:
        wire.create_topic("t")
        find(wire, "g")
        producer = Transactional(wire, "tx")
        producer.init()
        producer.add("t")
        producer.add_offsets("g")
        assert producer.produce("t", b"v") == 0
        assert producer.commit_offset("g", "t", 5) == 0
    with running_node(tmp_path, FEW) as node, Wire(port_of(node)) as wire:
        await_state(wire, "tx", "Ongoing")
        assert committed(wire, "g", "t") == -1
        producer.wire = wire
        assert producer.end(commit=True) == 0
        await_state(wire, "tx", "CompleteCommit")
        assert wire.fetch("t", isolation_level=READ_COMMITTED).last_stable_offset == 2
        assert committed(wire, "g", "t") == 5
    with running_node(tmp_path, FEW) as node, Wire(port_of(node)) as wire:
        await_state(wire, "tx", "CompleteCommit")
        assert committed(wire, "g", "t") == 5


def test_markers_are_written_after_a_restart(tmp_path: Path) -> None:
    """An end that was decided is carried out, whoever was stopped in between."""
    with running_node(tmp_path, FEW) as node, Wire(port_of(node)) as wire:
        wire.create_topic("t")
        producer = Transactional(wire, "tx")
        producer.init()
        producer.add("t")
        assert producer.produce("t", b"v") == 0
        partition = node.broker.replicas.led("t", 0)
        partition.state = replace(partition.state, replicas=(0, 1))
        partition.rules.min_in_sync_replicas = 2  # Of two, of which one is in sync.
        assert producer.end(commit=True) == 0
        assert state_of(wire, "tx") == "PrepareCommit"
        assert wire.fetch("t", isolation_level=READ_COMMITTED).last_stable_offset == 0
    with running_node(tmp_path, FEW) as node, Wire(port_of(node)) as wire:
        await_state(wire, "tx", "CompleteCommit")
        assert wire.fetch("t", isolation_level=READ_COMMITTED).last_stable_offset == 2


def test_with_fsync_each_step_waits_for_its_record(tmp_path: Path) -> None:
    """With the durability of fsync: every step waits for its record."""
    settings = FEW | {"barnabas.durability": "fsync"}
    with running_node(tmp_path, settings) as node, Wire(port_of(node)) as wire:
        wire.create_topic("t")
        producer = Transactional(wire, "tx")
        for value in (b"a", b"b"):
            assert producer.init().error_code == 0
            assert producer.add("t") == [0]
            assert producer.produce("t", value) == 0
            assert producer.end(commit=True) == 0
            await_state(wire, "tx", "CompleteCommit")
        assert wire.fetch("t", isolation_level=READ_COMMITTED).last_stable_offset == 4
        log = node.broker.replicas.led("t", 0).log
        assert log.durable_offset == log.log_end_offset == 4


def test_a_transaction_is_aborted_after_its_timeout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the wall clock, as in Kafka; and its producer is shut out."""
    clock_ms, passed_ms = node_module.clock_ms, [0]
    monkeypatch.setattr(node_module, "clock_ms", lambda: clock_ms() + passed_ms[0])
    settings = FEW | {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "20"}
    with running_node(tmp_path, settings) as node, Wire(port_of(node)) as wire:
        wire.create_topic("t")
        producer = Transactional(wire, "tx", timeout_ms=600_000)
        producer.init()
        producer.add("t")
        assert producer.produce("t", b"late") == 0
        passed_ms[0] = 601_000
        await_state(wire, "tx", "CompleteAbort")
        assert producer.end(commit=True) == ErrorCode.PRODUCER_FENCED
        assert len(wire.fetch("t", isolation_level=READ_COMMITTED).aborted_transactions or []) == 1


def test_an_unused_transactional_id_expires(tmp_path: Path) -> None:
    """Its producer is none any more."""
    settings = FEW | {
        "transaction.remove.expired.transaction.cleanup.interval.ms": "20",
        "transactional.id.expiration.ms": "300",
    }
    with running_node(tmp_path, settings) as node, Wire(port_of(node)) as wire:
        producer = Transactional(wire, "tx")
        producer.init()
        await_state(wire, "tx", "TRANSACTIONAL_ID_NOT_FOUND")
        assert producer.end(commit=True) == ErrorCode.INVALID_PRODUCER_ID_MAPPING


def test_requests_are_refused_before_the_transaction_topic_exists(tmp_path: Path) -> None:
    """Until FindCoordinator has created it."""
    with running_node(tmp_path, FEW) as node, Wire(port_of(node)) as wire:
        request = EndTxnRequest(transactional_id="tx", committed=True)
        assert wire.ask(request, 3).error_code == ErrorCode.NOT_COORDINATOR
