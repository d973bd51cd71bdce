"""Apache Kafka 4 and Barnabas are asked the same in the second transaction protocol (KIP-890)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest

from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.embedded import TransactionLogValue, pack, unpack, version_of
from barnabas_kafka.protocol.messages.api_versions import ApiVersionsRequest
from barnabas_kafka.protocol.messages.describe_transactions import DescribeTransactionsRequest
from barnabas_kafka.protocol.messages.end_txn import EndTxnRequest
from barnabas_kafka.protocol.messages.fetch import FetchResponse
from barnabas_kafka.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from barnabas_kafka.records import batch
from tests.clients.brokers import Barnabas
from tests.clients.wire import Wire, fetch
from tests.oracle.apache import ApacheKRaft
from tests.oracle.questions_about_transactions import PASSING, SHORT_MS, TransactionalProducer
from tests.oracle.sides import Side, differences

pytestmark = pytest.mark.jvm

SETTINGS: Final = {
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
    "group.initial.rebalance.delay.ms": "0",
}


#: A partition that was created a moment ago.
NEW: Final = {ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


class Bumped(TransactionalProducer):
    """A producer that speaks the second protocol."""

    def bump(self, label: str, committed: bool, *, older: int = 0, **changed: Any) -> Any:
        """EndTxn in version 5, asked until what is under way is over."""
        request: EndTxnRequest = self.end(committed, older=older, **changed)
        return self.side.ask_until(
            label, request, 5, settled=lambda answer: answer.error_code not in PASSING
        )

    def go_on(self, label: str, committed: bool) -> None:
        """End it, and take the epoch that the answer gives."""
        answer = self.bump(label, committed)
        self.id, self.epoch = answer.producer_id, answer.producer_epoch

    def rest(self, label: str) -> None:
        """Wait until its transaction is ended, and every partition knows."""
        self.side.ask_until(
            label,
            DescribeTransactionsRequest(transactional_ids=[self.name]),
            0,
            settled=lambda answer: "Complete" in answer.transaction_states[0].transaction_state,
        )

    def put(self, label: str, topic: str, sequence: int, *, older: int = 0) -> None:
        """Produce in version 12, until the markers of the transaction before are written."""
        self.side.ask_until(
            label,
            self.write(topic, sequence, older=older),
            12,
            settled=lambda answer: (
                answer.responses[0].partition_responses[0].error_code not in NEW | PASSING
            ),
        )

    def commit(self, label: str, topic: str, offset: int, *, older: int = 0) -> None:
        """TxnOffsetCommit in version 5."""
        at = TxnOffsetCommitRequestPartition(
            partition_index=0, committed_offset=offset, committed_metadata=""
        )
        request = TxnOffsetCommitRequest(
            transactional_id=self.name, producer_id=self.id, group_id=self.name,
            producer_epoch=self.epoch - older,
            topics=[TxnOffsetCommitRequestTopic(name=topic, partitions=[at])],
        )  # fmt: skip
        self.side.ask_until(
            label,
            request,
            5,
            settled=lambda answer: answer.topics[0].partitions[0].error_code not in PASSING,
        )


def epochs(side: Side) -> None:
    """Ends, repeated, late, the other way round, of what was never begun, and of strangers."""
    topic = side.topic("epochs")
    producer = Bumped(side, "epochs")
    producer.bump("of an id nobody had", True)
    producer.begin("first")
    producer.bump("nothing to commit", True)
    producer.go_on("nothing to abort", False)
    for committed in (True, False):
        producer.put(f"joins, {committed}", topic, 0)
        producer.put(f"goes on, {committed}", topic, 1)
        producer.put(f"leaves one out, {committed}", topic, 5)
        producer.described(f"open, {committed}")
        for older in (1, -1):
            for kind in (True, False):
                producer.bump(f"{older} too old, {kind}, {committed}", kind, older=older)
        producer.bump(f"other id, {committed}", committed, producer_id=77)
        producer.go_on(f"ends, {committed}", committed)
        producer.bump(f"again, {committed}", committed, older=1)
        producer.bump(f"but otherwise, {committed}", not committed, older=1)
        producer.bump(f"and once more before, {committed}", committed, older=2)
        producer.described(f"at rest, {committed}")
        producer.put(f"late, {committed}", topic, 2, older=1)
    producer.bump("nothing to commit then", True)
    producer.go_on("nothing to abort then", False)
    producer.begin("bumps itself", producer_id=producer.id, epoch=producer.epoch)
    side.ask("log", fetch(topic, 0), 11)


def sequences(side: Side) -> None:
    """What begins in the middle, what nobody let in, and who writes with another's id."""
    topic, other = side.topic("sequences"), side.topic("sequences-other")
    producer = Bumped(side, "sequences")
    producer.begin("first")
    producer.put("begins in the middle", topic, 3)
    producer.put("begins", other, 0)
    producer.put("ahead of its time", other, 0, older=-1)
    before = producer.id
    producer.id = 987_654
    producer.put("another's id", topic, 0)
    producer.id = before
    producer.go_on("ends", True)
    producer.put("begins the next", other, 0)
    producer.go_on("ends the next", False)
    producer.rest("every partition knows")
    side.ask("log", fetch(other, 0), 11)


def offsets(side: Side) -> None:
    """Offsets join the transaction by being committed."""
    topic = side.topic("joined-offsets")
    producer = Bumped(side, "joined-offsets")
    producer.begin("first")
    producer.commit("joins", topic, 5)
    producer.commit("goes on", topic, 6)
    producer.commit("too old", topic, 6, older=1)
    producer.commit("unknown topic", "is-not-there", 6)
    producer.described("open")
    producer.go_on("ends", True)
    producer.rest("every partition knows")
    producer.commit("late", topic, 7, older=1)
    producer.commit("the next", topic, 8)
    producer.go_on("ends the next", False)
    producer.rest("every partition knows of that, too")


def shut_out(side: Side) -> None:
    """By a successor and by the time: who may go on, and with which epoch."""
    topic = side.topic("shut-out")
    producer = Bumped(side, "shut-out")
    producer.begin("first", timeout_ms=SHORT_MS)
    producer.put("writes", topic, 0)
    producer.rest("aborted")
    producer.put("writes again", topic, 1)
    producer.bump("commits", True)
    producer.go_on("aborts and goes on", False)
    producer.put("is in again", topic, 0)
    successor = producer.successor()
    side.ask("successor, at first", successor.init(), 5)
    successor.begin("successor")
    producer.put("is out", topic, 1)
    producer.bump("cannot abort", False)
    side.ask("cannot bump", producer.init(producer_id=producer.id, epoch=producer.epoch), 5)


def both_protocols(side: Side) -> None:
    """Who speaks the first protocol keeps its epoch, and may go on with the second."""
    topic = side.topic("both")
    producer = Bumped(side, "both")
    producer.begin("first")
    producer.open("opens", topic)
    producer.put("writes", topic, 0)
    producer.close("ends", True)
    producer.put("joins", topic, 1)
    producer.go_on("ends with the second", False)
    producer.put("joins the next", topic, 0)
    producer.close("ends that with the first", True)
    producer.open("opens once more", topic)
    side.ask("writes as before", producer.write(topic, 1), 9)
    producer.close("ends as before", True)
    producer.rest("every partition knows")


QUESTIONS: Final = (epochs, sequences, offsets, shut_out, both_protocols)


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Side, Side]]:
    """Apache's broker and ours, with the same settings."""
    with (
        ApacheKRaft(overrides=SETTINGS) as apache,
        Barnabas(tmp_path_factory.mktemp("barnabas"), {"broker.id": "0"} | SETTINGS) as barnabas,
    ):
        yield Side(apache.bootstrap), Side(barnabas.bootstrap)


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.__name__)
def test_answers_and_records_are_the_same(
    sides: tuple[Side, Side], question: Callable[[Side], None]
) -> None:
    """What producers are told, and what `__transaction_state` remembers, byte for byte."""
    reported: list[dict[str, Any]] = []
    written = []
    for side in sides:
        begin = len(_records(side.bootstrap))
        try:
            question(side)
            reported.append(side.reported)
        finally:
            side.close()
        written.append(_records(side.bootstrap)[begin:])
    found = list(differences(reported[0], reported[1]))
    assert not found, "\n".join(["", *found])
    assert written[0] == written[1]


def test_the_feature_is_advertised_alike(sides: tuple[Side, Side]) -> None:
    """Apache lists more features; this one looks the same, in each version that has any."""
    for version in (3, 4):
        listed = []
        for side in sides:
            answer = side.ask(
                f"version {version}",
                ApiVersionsRequest(client_software_name="wire", client_software_version="1"),
                version,
            )
            assert answer.finalized_features_epoch >= 0
            features = [*answer.supported_features, *answer.finalized_features]
            listed.append([repr(it) for it in features if it.name == "transaction.version"])
            side.close()
        assert listed[0] == listed[1]


def _records(bootstrap: str) -> list[tuple[bytes, bytes]]:
    """Keys and values of the coordinator's log, without times and with ids from 0 on."""
    found: list[tuple[bytes, bytes]] = []
    ids: dict[int, int] = {}
    with Wire(bootstrap) as connection:
        answer = connection.ask(fetch("__transaction_state", 0), FetchResponse, 11)
    data = answer.responses[0].partitions[0].records
    assert isinstance(data, (bytes, memoryview))
    for position, _ in batch.headers(data, allow_partial=True):
        for record in batch.records(memoryview(data), position):
            assert record.key is not None
            assert record.value is not None
            value = unpack(TransactionLogValue, record.value)
            version = version_of(record.value)
            assert pack(value, version) == bytes(record.value)
            value.producer_id = ids.setdefault(value.producer_id, len(ids))
            value.transaction_last_update_timestamp_ms = 0
            if value.transaction_start_timestamp_ms >= 0:
                value.transaction_start_timestamp_ms = 0
            # Apache has them in the order of its sets.
            topics = value.transaction_partitions or []
            topics.sort(key=lambda it: it.topic)
            found.append((bytes(record.key), pack(value, version)))
    return found
