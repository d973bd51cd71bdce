"""A transaction coordinator dies when it has decided a transaction and not written all markers.

One partition's leader is away when the coordinator decides, so that its marker cannot be written;
other partitions have theirs, or are about to. The next coordinator finds the decision in the log of
`__transaction_state`, and completes it.
"""

from __future__ import annotations

from typing import Final

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as Position
from confluent_kafka.admin import NewTopic

from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from barnabas_kafka.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from tests.cluster.load import read_all
from tests.cluster.running import NOT_YET, Cluster
from tests.cluster.test_transactions import coordinator, coordinator_of, writer
from tests.waiting import ANSWER, ATTEMPT_S, SETTLE, seconds, wait_for

AWAY: Final = (*NOT_YET, OSError, EOFError)
OLD, NEW = 3, 5
"""EndTxn before and since each transaction has an epoch of its own (KIP-890)."""
OFFSET: Final = 7


@pytest.mark.parametrize("version", [OLD, NEW])
@pytest.mark.parametrize("commit", [True, False], ids=["commit", "abort"])
def test_the_next_coordinator_completes_what_was_decided(
    cluster: Cluster, topic: str, version: int, *, commit: bool
) -> None:
    """Consumers see exactly the decided outcome, and the producer that asks again learns of it."""
    name = f"{topic}-transactions"
    producer = writer(cluster, name)
    decides = coordinator(cluster, "__transaction_state", name)
    away, other = sorted(cluster.brokers.keys() - {decides})
    new = NewTopic(topic, 2, replica_assignment=[[away], [other]])
    cluster.change(lambda admin: admin.create_topics([new]))
    cluster.wait_for_leadership(
        "a leader of each partition", topic, lambda it: [each[0] for each in it] == [away, other]
    )
    write(cluster, producer, topic)
    ends = ending(cluster, name, version, commit=commit)
    instead = ending(cluster, name, version, commit=not commit)
    cluster.brokers[away].kill()
    cluster.wait_for_leadership(
        f"coordinators without broker {away}",
        "__transaction_state",
        lambda it: all(away not in isr for _, isr in it),
        cluster.address(decides),
    )
    assert ask(cluster, name, ends, version) == ErrorCode.NONE
    assert ask(cluster, name, ends, version) == ErrorCode.CONCURRENT_TRANSACTIONS
    cluster.brokers[decides].kill()
    cluster.brokers[away].start()
    wait_for(
        "an answer of the next coordinator that the transaction has ended",
        lambda: ask(cluster, name, ends, version),
        until=lambda code: code == ErrorCode.NONE,
        retry=AWAY,
        within=SETTLE,
    )
    assert ask(cluster, name, instead, version) == ErrorCode.INVALID_TXN_STATE
    assert committed(cluster, topic) == (OFFSET if commit else None)
    after = Producer({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
    for partition in range(2):
        after.produce(topic, f"after {partition}".encode(), partition=partition)
    assert after.flush(seconds(ANSWER)) == 0
    expected = ["after 0", "after 1", *(["within 0", "within 1"] if commit else [])]
    polls = read_all(cluster.bootstrap, topic, 2, values=expected)
    assert sorted(value for poll in polls for _, value in poll.records) == expected
    cluster.start_missing()
    cluster.until_whole("__transaction_state")


def write(cluster: Cluster, producer: Producer, topic: str) -> None:
    """Begin a transaction with a record in each partition and an offset of a group."""
    producer.begin_transaction()
    for partition in range(2):
        producer.produce(topic, f"within {partition}".encode(), partition=partition)
    assert producer.flush(seconds(ANSWER)) == 0
    member = consumer(cluster, topic)
    offsets = [Position(topic, 0, OFFSET)]
    producer.send_offsets_to_transaction(offsets, member.consumer_group_metadata(), seconds(SETTLE))
    member.close()


def consumer(cluster: Cluster, group: str) -> Consumer:
    """A consumer that has joined no group."""
    return Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": group, "log_level": 0})


def committed(cluster: Cluster, topic: str) -> int | None:
    """The offset of the group of that name, which is the topic's, None where there is none."""
    member = consumer(cluster, topic)
    try:
        (found,) = wait_for(
            "the offsets of a group",
            lambda: member.committed([Position(topic, 0)], ATTEMPT_S),
            retry=AWAY,
        )
    finally:
        member.close()
    return found.offset if found.offset >= 0 else None


def ending(cluster: Cluster, name: str, version: int, *, commit: bool) -> EndTxnRequest:
    """The end of the transaction that is open."""
    asked = DescribeTransactionsRequest(transactional_ids=[name])
    with coordinator_of(cluster, name) as wire:
        (found,) = wire.ask(asked, DescribeTransactionsResponse, 0).transaction_states
    assert found.transaction_state == "Ongoing"
    return EndTxnRequest(
        transactional_id=name,
        producer_id=found.producer_id,
        producer_epoch=found.producer_epoch,
        committed=commit,
    )


def ask(cluster: Cluster, name: str, request: EndTxnRequest, version: int) -> int:
    """What the coordinator answers to the end of a transaction."""
    with coordinator_of(cluster, name) as wire:
        return wire.ask(request, EndTxnResponse, version).error_code
