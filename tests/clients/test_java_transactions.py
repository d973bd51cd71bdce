"""Transactions of Java's producers, whose state machine is stricter than that of others."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from barnabas_kafka.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from tests.clients.brokers import Broker
from tests.clients.java_probe import classpath
from tests.clients.java_team import FLAGS
from tests.clients.transactional import new_topic
from tests.clients.wire import Wire
from tests.waiting import RUN, seconds

TRANSACTOR = Path(__file__).parent / "programs" / "Transactor.java"


#: Release -> the epoch after three ends, and a fourth by closing: with one for each or for all.
EPOCHS = {"2.8.2": 0, "3.9.1": 0, "4.4.0": 4}


@pytest.mark.jvm
@pytest.mark.parametrize("release", EPOCHS)
def test_a_java_producer_commits_aborts_copies_and_is_fenced(
    transactional_broker: Broker, release: str
) -> None:
    """All or nothing with a group's offsets; the first of two of one id is fenced for good.

    Kafka 4's producers speak the second transaction protocol without being told to.
    """
    broker = transactional_broker
    topics = [new_topic(broker, f"{name}-{release}") for name in ("from", "to")]
    command = ["java", *FLAGS, "-cp", classpath(release), str(TRANSACTOR), broker.bootstrap]
    done = subprocess.run(
        [*command, *topics], capture_output=True, text=True, timeout=seconds(RUN), check=False
    )
    assert done.stdout.splitlines() == [
        "committed in the first: [a, b, c, d]",
        "offsets after the abort: none",
        "offsets after the commit: all",
        "offsets of a stranger: CommitFailedException",
        "the first: ProducerFencedException",
        "and then: ProducerFencedException",
        "committed in the second: [A, B, C, D, fourth, second, third]",
        (
            "written in the second: [A, A again, B, B again, C, C again, D, D again, first, "
            "fourth, second, third]"
        ),
    ], done.stderr[-3000:]
    with Wire(broker.bootstrap) as wire:
        asked = DescribeTransactionsRequest(transactional_ids=[f"endings-{topics[0]}"])
        (described,) = wire.ask(asked, DescribeTransactionsResponse, 0).transaction_states
    assert described.producer_epoch == EPOCHS[release]
