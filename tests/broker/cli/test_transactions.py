"""`barnabas transactions` against a running broker."""

from __future__ import annotations

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from barnabas_broker.testing import Broker
from tests.broker.cli.conftest import Outcome, run_command
from tests.waiting import ANSWER, seconds


@pytest.fixture
def opened(kafka_broker: Broker) -> Producer:
    """A producer with a record in its open transaction."""
    admin = AdminClient({"bootstrap.servers": kafka_broker.bootstrap_servers})
    admin.create_topics([NewTopic("held", num_partitions=1)])["held"].result(seconds(ANSWER))
    producer = Producer(
        {"bootstrap.servers": kafka_broker.bootstrap_servers, "transactional.id": "holder"}
    )
    producer.init_transactions(seconds(ANSWER))
    producer.begin_transaction()
    producer.produce("held", b"v", partition=0)
    assert producer.flush(seconds(ANSWER)) == 0
    return producer


def test_an_open_transaction_is_shown_and_aborted(kafka_broker: Broker, opened: Producer) -> None:
    """In the list, by its id, in its partition; it hangs only where nobody coordinates it."""

    def run(*args: str, fails: int = 0) -> Outcome:
        return run_command(
            "transactions", *args, bootstrap=kafka_broker.bootstrap_servers, fails=fails
        )

    (listed,) = run("list", "--state", "Ongoing", "--output", "json").json()
    assert (listed["transactional_id"], listed["state"]) == ("holder", "Ongoing")
    assert run("list", "--longer-than", "3600000", "--output", "json").json() == []
    assert run("list", "--longer-than", "3600000").stderr == "There are no such transactions.\n"
    assert "there is no state Sleeping" in run("list", "--state", "Sleeping", fails=1).stderr
    (described,) = run("describe", "holder", "--output", "json").json()
    assert described["partitions"] == ["held-0"]
    assert "TRANSACTIONAL_ID_NOT_FOUND" in run("describe", "nobody", fails=1).stderr
    where = ("--topic", "held", "--partition", "0")
    (producer,) = run("describe-producers", *where, "--output", "json").json()
    assert producer["start_offset"] == 0
    assert run("find-hanging", "--idle-minutes", "0", "--output", "json").json() == []
    assert "no transaction is open" in run("abort", *where, "--start-offset", "7", fails=1).stderr
    assert "aborted in" in run("abort", *where, "--start-offset", "0").stdout
    (producer,) = run("describe-producers", *where, "--output", "json").json()
    assert producer["start_offset"] == -1
    opened.abort_transaction(seconds(ANSWER))
