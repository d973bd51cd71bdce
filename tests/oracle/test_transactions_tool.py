"""`kafka-transactions` beside Apache's, on one broker with transactions open, done and hanging."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from barnabas_kafka.protocol.messages.produce import ProduceResponse
from barnabas_kafka.records.builder import build_batch
from tests.clients import START_MS
from tests.clients.brokers import Barnabas
from tests.clients.wire import Wire, produce
from tests.oracle.apache import run_tool
from tests.waiting import ANSWER, RUN, SETTLE, seconds

pytestmark = pytest.mark.jvm

BIN = Path(sys.executable).parent
APACHES = "org.apache.kafka.tools.TransactionsCommand"
TOPIC = "held"
HANGING = 4711
SETTINGS = {
    "broker.id": "0",
    "transaction.state.log.num.partitions": "3",
    # As in the brokers whose transactions could hang.
    "transaction.partition.verification.enable": "false",
}
#: Columns that tell how long something is, which is longer when the second tool asks.
PASSING = ("TransactionDurationMs", "Duration(min)")


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Barnabas]:
    """One transaction is done, one open in partition 1, and one hangs in both others."""
    with Barnabas(tmp_path_factory.mktemp("broker"), SETTINGS) as started:
        admin = AdminClient({"bootstrap.servers": started.bootstrap})
        admin.create_topics([NewTopic(TOPIC, 3)])[TOPIC].result(seconds(ANSWER))
        kept = [_transaction(started, name) for name in ("done", "open")]
        kept[0].commit_transaction(seconds(SETTLE))
        for partition in (0, 2):
            batch = build_batch(
                [(START_MS, None, b"value", ())],
                producer_id=HANGING,
                producer_epoch=0,
                base_sequence=0,
                transactional=True,
            )
            request = produce(TOPIC, batch, partition=partition)
            request.transactional_id = "hanging"
            with Wire(started.bootstrap) as wire:
                answer = wire.ask(request, ProduceResponse, 9)
            assert answer.responses[0].partition_responses[0].error_code == 0
        yield started
        kept[1].abort_transaction(seconds(SETTLE))


def _transaction(broker: Barnabas, name: str) -> Producer:
    """A producer with a record in its transaction."""
    producer = Producer(
        {
            "bootstrap.servers": broker.bootstrap,
            "transactional.id": name,
            # All tools together may take longer than the minute that it is otherwise.
            "transaction.timeout.ms": 900_000,
        }
    )
    producer.init_transactions(seconds(SETTLE))
    producer.begin_transaction()
    producer.produce(TOPIC, b"value", partition=1)
    assert producer.flush(seconds(ANSWER)) == 0
    return producer


def ours(broker: Barnabas, *arguments: str) -> tuple[int, list[list[str]]]:
    """The exit code of our tool, and the cells it prints."""
    command = [str(BIN / "kafka-transactions.sh"), "--bootstrap-server", broker.bootstrap]
    done = subprocess.run(
        [*command, *arguments], capture_output=True, text=True, timeout=seconds(RUN), check=False
    )
    return done.returncode, cells(done.stdout)


def apaches(broker: Barnabas, *arguments: str) -> tuple[int, list[list[str]]]:
    """The same of Apache's."""
    done = run_tool(APACHES, "--bootstrap-server", broker.bootstrap, *arguments)
    return done.returncode, cells(done.stdout)


def cells(printed: str) -> list[list[str]]:
    """The table with all its blanks; who prints the rows has no say in their order."""
    rows = [line.split("\t") for line in printed.splitlines()]
    for row in rows[1:]:
        for position, column in enumerate(rows[0]):
            if column.strip() in PASSING:
                assert int(row[position]) >= 0
                row[position] = "a while"
    return rows[:1] + sorted(rows[1:])


@pytest.mark.parametrize(
    ("typed", "lines"),
    [
        ("list", 3),
        ("list --duration-filter 3600000", 1),
        ("describe --transactional-id open", 2),
        ("describe --transactional-id done", 2),
        ("describe --transactional-id nobody", 0),
        (f"describe-producers --topic {TOPIC} --partition 0", 2),
        (f"describe-producers --topic {TOPIC} --partition 1 --broker-id 0", 3),
        (f"find-hanging --topic {TOPIC}", 3),
        (f"find-hanging --topic {TOPIC} --partition 1 --max-transaction-timeout 0", 1),
        ("find-hanging --broker-id 0", 3),
        ("find-hanging", 0),
        (f"abort --topic {TOPIC} --partition 0 --start-offset 77", 0),
        (f"abort --topic {TOPIC} --partition 0", 0),
        ("list --partition 0", 0),
        ("sleep", 0),
    ],
)
def test_it_prints_what_apaches_prints(broker: Barnabas, typed: str, lines: int) -> None:
    """The same table and the same exit code."""
    code, printed = ours(broker, *typed.split())
    assert (code, printed) == apaches(broker, *typed.split())
    assert (code, len(printed)) == (0 if lines else 1, lines)


def test_it_aborts_what_hangs(broker: Barnabas) -> None:
    """By where it begins, or by its producer; then nothing hangs, whoever looks."""
    where = ("abort", "--topic", TOPIC, "--partition")
    assert ours(broker, *where, "0", "--start-offset", "0") == (0, [])
    producer = ("--producer-id", str(HANGING), "--producer-epoch", "0", "--coordinator-epoch", "0")
    assert ours(broker, *where, "2", *producer) == (0, [])
    look = ("find-hanging", "--topic", TOPIC)
    found = ours(broker, *look)
    assert found == apaches(broker, *look)
    assert len(found[1]) == 1
