"""What clients may not do to the topics of the coordinators: write, delete records, expire them.

A record in `__consumer_offsets` or `__transaction_state` takes effect when its coordinator loads
the log, so each test that forges one ends with a restart.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from barnabas_broker.coordinator.group import records as group_records
from barnabas_broker.coordinator.group.records import CommittedOffset, OffsetRecord
from barnabas_broker.coordinator.transaction import records as transaction_records
from barnabas_broker.coordinator.transaction.records import TransactionRecord
from barnabas_broker.coordinator.transaction.states import TransactionState
from barnabas_broker.coordinator.transaction.transaction import Transaction
from barnabas_broker.zk.session import SessionStore
from barnabas_broker.zk.store import Create, SetData
from barnabas_kafka import ids
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.messages import describe_transactions
from barnabas_kafka.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from barnabas_kafka.protocol.messages.produce import ProduceRequest, ProduceResponse
from barnabas_kafka.records import batch, legacy
from barnabas_kafka.records.builder import build_batch
from barnabas_kafka.records.compression import Codec
from tests.clients import START_MS, librdkafka, wire
from tests.clients.brokers import Barnabas
from tests.clients.transactional import SETTINGS, seen_in
from tests.clients.troubles import admin, create
from tests.clients.wire import Wire
from tests.oracle.apache import OwnZooKeeper
from tests.waiting import ANSWER, ATTEMPT_S, seconds, wait_for

GROUPS: Final = "__consumer_offsets"
TRANSACTIONS: Final = "__transaction_state"
TOPIC: Final = "orders"
GROUP: Final = "billing"
COMMITTED: Final = 3
ONE_PARTITION_EACH: Final = {
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
}
KEY, VALUE = group_records.encode(
    OffsetRecord(
        GROUP, ids.TopicPartition(TOPIC, 0), CommittedOffset(offset=999, commit_timestamp=START_MS)
    )
)
REFUSED: Final = ErrorCode.INVALID_TOPIC_EXCEPTION


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Barnabas]:
    """A broker whose group has committed an offset, with one partition of each internal topic."""
    with Barnabas(tmp_path, SETTINGS | ONE_PARTITION_EACH) as started:
        librdkafka.fill(started.bootstrap, TOPIC, 10)
        alone = member(started)
        alone.commit(offsets=[TopicPartition(TOPIC, 0, COMMITTED)], asynchronous=False)
        alone.close()
        yield started


def member(broker: Barnabas) -> Consumer:
    """A consumer that names the group."""
    return librdkafka.consumer(broker.bootstrap, **{"group.id": GROUP})


def committed(broker: Barnabas) -> int | None:
    """What the group has committed."""
    alone = member(broker)
    (found,) = alone.committed([TopicPartition(TOPIC, 0)], timeout=seconds(ANSWER))
    alone.close()
    return found.offset


def end_of(broker: Barnabas, topic: str) -> int:
    """Where the log of an internal topic ends."""
    asker = librdkafka.consumer(broker.bootstrap)
    _, end = asker.get_watermark_offsets(TopicPartition(topic, 0), timeout=seconds(ANSWER))
    asker.close()
    return end


def forged(version: int, **how: Any) -> bytes:
    """The forged commit in the record format of a Produce version."""
    if version < 3:
        record = batch.Record(0, START_MS if version == 2 else -1, KEY, VALUE)
        return legacy.build_message_set([record], magic=1 if version == 2 else 0)
    return build_batch([(START_MS, KEY, VALUE, ())], **how)


def produced(broker: Barnabas, requests: Sequence[ProduceRequest], version: int) -> list[int]:
    """The error codes of requests that are sent in one piece."""
    with Wire(broker.bootstrap) as connection:
        frames = [wire.frame(each, version, number) for number, each in enumerate(requests)]
        connection.send(b"".join(frames))
        answers = [connection.receive(ProduceResponse, version, n) for n in range(len(requests))]
    return [each.responses[0].partition_responses[0].error_code for each in answers]


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"acks": "1"},
        {"compression.type": "zstd"},
        {"enable.idempotence": "true"},
        {"client.id": "__admin_client"},
    ],
    ids=str,
)
def test_a_producer_cannot_forge_a_commit(broker: Barnabas, settings: dict[str, Any]) -> None:
    """The broker refuses librdkafka under every client id; Apache lets `__admin_client` write."""
    before = end_of(broker, GROUPS)
    outcomes: list[KafkaError | None] = []
    producer = Producer({"bootstrap.servers": broker.bootstrap} | settings)
    producer.produce(
        GROUPS, VALUE, KEY, partition=0, on_delivery=lambda error, _: outcomes.append(error)
    )
    assert producer.flush(seconds(ANSWER)) == 0
    (error,) = outcomes
    assert error is not None
    assert error.code() == KafkaError.TOPIC_EXCEPTION
    broker.stop()
    broker.start()
    assert committed(broker) == COMMITTED
    assert end_of(broker, GROUPS) == before


def test_no_version_of_produce_forges_a_commit(broker: Barnabas) -> None:
    """Old record formats, codecs, sequences, requests in one piece: refused with any acks."""
    before = end_of(broker, GROUPS)
    for version in range(13):
        for acks in (1, -1):
            request = wire.produce(GROUPS, forged(version), acks=acks)
            assert produced(broker, [request], version) == [REFUSED], version
        with Wire(broker.bootstrap) as connection:
            connection.send(wire.frame(wire.produce(GROUPS, forged(version), acks=0), version))
            connection.assert_closed()
    for codec in Codec:
        assert produced(broker, [wire.produce(GROUPS, forged(9, codec=codec))], 9) == [REFUSED]
    sequenced = forged(9, producer_id=7, producer_epoch=0, base_sequence=0)
    assert produced(broker, [wire.produce(GROUPS, sequenced)], 9) == [REFUSED]
    large = build_batch([(START_MS, KEY, VALUE, ()), (START_MS, b"k", b"x" * 900_000, ())])
    assert produced(broker, [wire.produce(GROUPS, large)], 9) == [REFUSED]
    for acks in (1, -1):
        together = [wire.produce(GROUPS, forged(9), acks=acks)] * 8
        assert produced(broker, together, 9) == [REFUSED] * 8
    broker.stop()
    broker.start()
    assert committed(broker) == COMMITTED
    assert end_of(broker, GROUPS) == before


def test_a_producer_cannot_decide_a_transaction(broker: Barnabas) -> None:
    """A forged PREPARE_COMMIT is refused, and after a restart the transaction is still open."""
    transactional = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": "payer"})
    transactional.init_transactions(seconds(ANSWER))
    transactional.begin_transaction()
    transactional.produce(TOPIC, b"undecided", partition=0)
    assert transactional.flush(seconds(ANSWER)) == 0
    open_now, before = described(broker, "payer"), end_of(broker, TRANSACTIONS)
    assert open_now.transaction_state == "Ongoing"
    decided = Transaction(
        id="payer",
        producer_id=open_now.producer_id,
        epoch=open_now.producer_epoch,
        timeout_ms=open_now.transaction_timeout_ms,
        state=TransactionState.PREPARE_COMMIT,
        partitions=frozenset({ids.TopicPartition(TOPIC, 0)}),
        started_ms=open_now.transaction_start_time_ms,
        updated_ms=open_now.transaction_start_time_ms,
    )
    key, value = transaction_records.KIND.encode(TransactionRecord("payer", decided))
    batches = build_batch([(START_MS, key, value, ())])
    for acks in (1, -1):
        assert produced(broker, [wire.produce(TRANSACTIONS, batches, acks=acks)], 9) == [REFUSED]
    broker.stop()
    broker.start()
    assert end_of(broker, TRANSACTIONS) == before
    assert described(broker, "payer").transaction_state == "Ongoing"
    assert "undecided" not in seen_in(broker, TOPIC, 1)
    transactional.abort_transaction(seconds(ANSWER))


def described(broker: Barnabas, transactional_id: str) -> describe_transactions.TransactionState:
    """A transaction as its coordinator has it."""
    request = describe_transactions.DescribeTransactionsRequest(
        transactional_ids=[transactional_id]
    )
    with Wire(broker.bootstrap) as connection:
        answer = connection.ask(request, describe_transactions.DescribeTransactionsResponse, 0)
    return answer.transaction_states[0]


@pytest.mark.parametrize("version", [9, 11, 12])
def test_a_refused_partition_does_not_join_the_transaction(broker: Barnabas, version: int) -> None:
    """From version 12 on partitions join by being written to: not those that refuse the write."""
    settings = {"bootstrap.servers": broker.bootstrap, "transactional.id": "payer"}
    Producer(settings).init_transactions(seconds(ANSWER))
    with Wire(broker.bootstrap) as connection:
        initialise = InitProducerIdRequest(transactional_id="payer", transaction_timeout_ms=60_000)
        ours = connection.ask(initialise, InitProducerIdResponse, 4)
        assert not ours.error_code
        batches = forged(
            version,
            producer_id=ours.producer_id,
            producer_epoch=ours.producer_epoch,
            base_sequence=0,
            transactional=True,
        )
        request = wire.produce(GROUPS, batches)
        request.transactional_id = "payer"
        answer = connection.ask(request, ProduceResponse, version)
    assert answer.responses[0].partition_responses[0].error_code == REFUSED
    found = described(broker, "payer")
    assert (found.transaction_state, found.topics) == ("Empty", [])


def test_other_ways_to_such_a_topic(broker: Barnabas) -> None:
    """A topic that a client deletes and creates is internal still; its look-alikes are not read."""
    for alike in ("__Consumer_Offsets", "__consumer_offsets-0", "__consumer_offsets_"):
        assert create(broker, alike) is None
        assert produced(broker, [wire.produce(alike, forged(9))], 9) == [ErrorCode.NONE]
    broker.stop()
    broker.start()
    assert committed(broker) == COMMITTED
    client = admin(broker)
    client.delete_topics([GROUPS])[GROUPS].result(seconds(ANSWER))
    assert create(broker, GROUPS, cleanup_policy="compact") is None
    assert produced(broker, [wire.produce(GROUPS, forged(9))], 9) == [REFUSED]
    assert end_of(broker, GROUPS) == 0


def test_offsets_in_transactions_still_count(broker: Barnabas) -> None:
    """Coordinators and markers write where clients may not."""
    transactional = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": "payer"})
    transactional.init_transactions(seconds(ANSWER))
    alone = member(broker)
    transactional.begin_transaction()
    transactional.send_offsets_to_transaction(
        [TopicPartition(TOPIC, 0, 7)], alone.consumer_group_metadata(), seconds(ANSWER)
    )
    transactional.commit_transaction(seconds(ANSWER))
    alone.close()
    broker.stop()
    broker.start()
    assert committed(broker) == 7


@pytest.mark.parametrize("topic", [GROUPS, TRANSACTIONS])
@pytest.mark.parametrize(
    ("operation", "value"),
    [
        (AlterConfigOpType.SET, "delete"),
        (AlterConfigOpType.APPEND, "delete"),
        (AlterConfigOpType.SUBTRACT, "compact"),
        (AlterConfigOpType.DELETE, None),
    ],
)
def test_an_internal_topic_stays_compacted(
    broker: Barnabas, topic: str, operation: AlterConfigOpType, value: str | None
) -> None:
    """Retention would delete offsets and transactions; the refusal names setting and topic."""
    client = admin(broker)
    if topic == TRANSACTIONS:
        Producer(
            {"bootstrap.servers": broker.bootstrap, "transactional.id": "payer"}
        ).init_transactions(seconds(ANSWER))
    entry = ConfigEntry("cleanup.policy", value, incremental_operation=operation)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    (altered,) = client.incremental_alter_configs([resource]).values()
    with pytest.raises(KafkaException, match=f"{topic}.*must be compact") as refusal:
        altered.result(seconds(ANSWER))
    assert refusal.value.args[0].code() == KafkaError.INVALID_CONFIG


def test_a_policy_in_zookeeper_does_not_expire_offsets(tmp_path: Path) -> None:
    """Tools can write it there, and Apache's brokers go by it; the log says that it is ignored."""
    zookeeper = OwnZooKeeper(directory=tmp_path / "zookeeper")
    with zookeeper, closing(SessionStore(zookeeper.connect, session_timeout_ms=40_000)) as store:
        more = {
            "zookeeper.connect": zookeeper.connect,
            "log.retention.check.interval.ms": "100",
            "log.initial.task.delay.ms": "0",
        }
        with Barnabas(tmp_path / "broker", SETTINGS | ONE_PARTITION_EACH | more) as broker:
            store.open(connection_timeout_ms=60_000)
            librdkafka.fill(broker.bootstrap, TOPIC, 10)
            alone = member(broker)
            alone.commit(offsets=[TopicPartition(TOPIC, 0, COMMITTED)], asynchronous=False)
            alone.close()
            broker.stop()
            expiring = {"cleanup.policy": "delete", "retention.ms": "1"}
            for topic in (TOPIC, GROUPS):
                data = json.dumps({"version": 1, "config": expiring}).encode()
                path = f"/config/topics/{topic}"
                write = Create if store.exists(path) is None else SetData
                store.commit([write(path, data)], now_ms=START_MS)
            broker.start()
            until_expired(broker, TOPIC)
            broker.stop()
            broker.start()
            assert committed(broker) == COMMITTED
            reported = broker.log_file.read_text()
            assert f"compacted topic: topic={GROUPS} cleanup.policy=delete" in reported


def until_expired(broker: Barnabas, topic: str) -> None:
    """Return when retention has deleted all records of a topic."""
    asker = librdkafka.consumer(broker.bootstrap)
    place = TopicPartition(topic, 0)
    wait_for(
        f"the log start offset of {topic} to reach its end",
        lambda: asker.get_watermark_offsets(place, timeout=ATTEMPT_S),
        until=lambda ends: ends[0] == ends[1],
        retry=(KafkaException,),
    )
    asker.close()
