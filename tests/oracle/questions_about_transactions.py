"""Questions that both brokers are asked: what becomes of a producer's transactions."""

from __future__ import annotations

from copy import copy
from typing import Any, Final

from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from barnabas_kafka.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from barnabas_kafka.protocol.messages.describe_groups import DescribeGroupsRequest
from barnabas_kafka.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    TopicRequest,
)
from barnabas_kafka.protocol.messages.describe_transactions import DescribeTransactionsRequest
from barnabas_kafka.protocol.messages.end_txn import EndTxnRequest
from barnabas_kafka.protocol.messages.find_coordinator import FindCoordinatorRequest
from barnabas_kafka.protocol.messages.init_producer_id import InitProducerIdRequest
from barnabas_kafka.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from barnabas_kafka.protocol.messages.list_transactions import ListTransactionsRequest
from barnabas_kafka.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from barnabas_kafka.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from barnabas_kafka.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from barnabas_kafka.records.builder import build_batch
from tests.clients import START_MS, wire
from tests.oracle.sides import Side

TRANSACTION: Final = 1
GROUP: Final = 0
LONG_MS: Final = 600_000
#: Of a transaction that shall time out, though not before a busy machine has written to it.
SHORT_MS: Final = 12_000
#: What passes by itself: a coordinator that loads, a topic being created, markers being written.
PASSING: Final = {
    ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR, ErrorCode.CONCURRENT_TRANSACTIONS,
}  # fmt: skip


class TransactionalProducer:
    """A producer as a broker knows it."""

    def __init__(self, side: Side, name: str) -> None:
        self.side = side
        self.name = name
        self.id = -1
        self.epoch = -1
        for kind in (TRANSACTION, GROUP):
            side.ask_until(
                f"where is {name}, {kind}",
                FindCoordinatorRequest(coordinator_keys=[name], key_type=kind),
                4,
                settled=lambda answer: answer.coordinators[0].error_code == 0,
            )
        # It is there before it has loaded what it coordinates.
        side.wait(
            DescribeTransactionsRequest(transactional_ids=[name]),
            0,
            settled=lambda answer: answer.transaction_states[0].error_code not in PASSING,
        )
        side.wait(
            DescribeGroupsRequest(groups=[name]),
            5,
            settled=lambda answer: answer.groups[0].error_code not in PASSING,
        )

    def successor(self) -> TransactionalProducer:
        """Another producer with its name, which has no id yet."""
        other = copy(self)
        other.id = other.epoch = -1
        return other

    def begin(self, label: str, **changed: Any) -> None:
        """InitProducerId until it is granted."""
        answer = self.side.ask_until(label, self.init(**changed), 4, settled=_settled)
        self.id, self.epoch = answer.producer_id, answer.producer_epoch

    def init(
        self, *, timeout_ms: int = LONG_MS, producer_id: int = -1, epoch: int = -1
    ) -> InitProducerIdRequest:
        """InitProducerId, of a producer that knows of no id unless it is given."""
        return InitProducerIdRequest(
            transactional_id=self.name,
            transaction_timeout_ms=timeout_ms,
            producer_id=producer_id,
            producer_epoch=epoch,
        )

    def add(
        self, topic: str, *partitions: int, producer_id: int | None = None, older: int = 0
    ) -> AddPartitionsToTxnRequest:
        """AddPartitionsToTxn, with an epoch that is `older`."""
        return AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.name,
            v3_and_below_producer_id=self.id if producer_id is None else producer_id,
            v3_and_below_producer_epoch=self.epoch - older,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name=topic, partitions=list(partitions))],
        )

    def open(self, label: str, topic: str) -> None:
        """Have the first partition in a transaction, once the one before is over."""
        self.side.ask_until(
            label,
            self.add(topic, 0),
            3,
            settled=lambda answer: (
                answer.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code
                not in PASSING
            ),
        )

    def end(
        self, committed: bool, *, producer_id: int | None = None, older: int = 0
    ) -> EndTxnRequest:
        """EndTxn, with an epoch that is `older`."""
        return EndTxnRequest(
            transactional_id=self.name,
            producer_id=self.id if producer_id is None else producer_id,
            producer_epoch=self.epoch - older,
            committed=committed,
        )

    def close(self, label: str, committed: bool) -> None:
        """End it, and ask once more when every partition knows."""
        self.side.ask(label, self.end(committed), 4)
        self.side.ask_until(f"{label} again", self.end(committed), 4, settled=_settled)

    def batch(self, sequence: int, *, older: int = 0) -> bytes:
        """One record of its transaction."""
        return build_batch(
            [(START_MS, None, b"value", ())],
            producer_id=self.id,
            producer_epoch=self.epoch - older,
            base_sequence=sequence,
            transactional=True,
        )

    def write(self, topic: str, sequence: int, *, older: int = 0) -> Any:
        """Produce of it."""
        request = wire.produce(topic, self.batch(sequence, older=older))
        request.transactional_id = self.name
        return request

    def described(self, label: str) -> None:
        """How the coordinator has it."""
        self.side.ask(label, DescribeTransactionsRequest(transactional_ids=[self.name]), 0)


def _settled(answer: Any) -> bool:
    return answer.error_code not in PASSING


def transactional_ids(side: Side) -> None:
    """Who gets an id and an epoch: timeouts, names, epochs believed and not."""
    producer = TransactionalProducer(side, "ids")
    producer.begin("at first")
    for timeout_ms in (-1, 0, 900_000, 900_001):
        side.ask_all(f"timeout {timeout_ms}", producer.init(timeout_ms=timeout_ms), (0, 4, 5))
    producer.begin("first")
    side.ask_all(
        "no name", InitProducerIdRequest(transactional_id="", transaction_timeout_ms=1), (0, 4)
    )
    side.ask("id without epoch", producer.init(producer_id=producer.id), 4)
    side.ask("epoch without id", producer.init(epoch=producer.epoch), 4)
    side.ask("another's id", producer.init(producer_id=987_654, epoch=0), 4)
    side.ask("ahead of its time", producer.init(producer_id=producer.id, epoch=30_000), 4)
    held = {"producer_id": producer.id, "epoch": producer.epoch}
    producer.begin("bump", **held)
    side.ask("the same bump again", producer.init(**held), 4)
    producer.begin("one more bump", producer_id=producer.id, epoch=producer.epoch)
    side.ask_all("behind its time", producer.init(**held), (3, 4, 5))
    producer.begin("anew")
    producer.described("described")
    nobody = TransactionalProducer(side, "nobody with this id")
    side.ask("unknown, with an id", nobody.init(producer_id=4, epoch=3), 4)


def ends_of_transactions(side: Side) -> None:
    """EndTxn where nothing is open, twice, the other way round, and of others."""
    topic = side.topic("ends", partitions=2)
    producer = TransactionalProducer(side, "ends")
    side.ask("of an id nobody had", producer.end(True), 4)
    producer.begin("first")
    producer.begin("next epoch")
    for committed in (True, False):
        side.ask_all(f"empty, {committed}", producer.end(committed), (0, 1, 2, 4))
    for committed in (True, False):
        producer.open(f"open, {committed}", topic)
        side.ask_all(f"too old, {committed}", producer.end(committed, older=1), (0, 1, 2, 4))
        side.ask_all(f"too new, {committed}", producer.end(committed, older=-1), (1, 4))
        side.ask_all(f"other id, {committed}", producer.end(committed, producer_id=7), (1, 4))
        producer.described(f"described, {committed}")
        producer.close(f"end, {committed}", committed)
        side.ask_all(f"again, {committed}", producer.end(committed), (0, 4))
        side.ask_all(f"but otherwise, {committed}", producer.end(not committed), (0, 4))
        producer.described(f"described at rest, {committed}")


def partitions_of_transactions(side: Side) -> None:
    """AddPartitionsToTxn: unknown ones, twice, of others, and what may be written then."""
    topic = side.topic("parts", partitions=2)
    producer = TransactionalProducer(side, "parts")
    side.ask("of an id nobody had", producer.add(topic, 0), 3)
    producer.begin("first")
    producer.begin("next epoch")
    versions = (0, 1, 2, 3)
    side.ask_all("unknown partition", producer.add(topic, 0, 9), versions)
    side.ask_all("unknown topic", producer.add("is-not-there", 0), versions)
    side.ask_all("too old", producer.add(topic, 0, older=1), versions)
    side.ask_all("too new", producer.add(topic, 0, older=-1), versions)
    side.ask_all("other id", producer.add(topic, 0, producer_id=7), versions)
    side.ask("no partitions", producer.add(topic), 3)
    producer.described("described")
    side.ask("write without adding", producer.write(topic, 0), 9)
    producer.open("added", topic)
    side.ask("added twice", producer.add(topic, 0, 0, 1), 3)
    side.ask("write", producer.write(topic, 0), 9)
    side.ask("write too old", producer.write(topic, 1, older=1), 9)
    producer.described("described when open")
    side.ask(
        "listed",
        ListTransactionsRequest(state_filters=["Ongoing"], producer_id_filters=[producer.id]),
        1,
    )
    side.ask("listed by no state", ListTransactionsRequest(state_filters=["Sleeping"]), 1)
    side.ask("listed by no state twice", ListTransactionsRequest(state_filters=["Sleeping"] * 2), 1)
    side.ask(
        "not long enough",
        ListTransactionsRequest(duration_filter=LONG_MS, producer_id_filters=[producer.id]),
        1,
    )
    producer.close("end", True)
    side.ask("write after the end", producer.write(topic, 1), 9)
    side.ask("write ahead of its time", producer.write(topic, 0, older=-1), 9)
    side.ask("marker", _marker(topic, producer, (0, 9)), 1)
    side.ask(
        "unknown partition of producers",
        DescribeProducersRequest(topics=[TopicRequest(name=topic, partition_indexes=[9])]),
        0,
    )


def requests_of_several_kinds(side: Side) -> None:
    """Produce of partitions within and outside a transaction, of one and of two producers.

    Base offsets and the ends of the logs tell what was appended.
    """
    topic = side.topic("kinds", partitions=3)
    one, two = TransactionalProducer(side, "kinds"), TransactionalProducer(side, "kinds-two")
    for producer in (one, two):
        producer.begin(f"{producer.name} first")
        producer.open(f"{producer.name} opens", topic)
    plain = build_batch([(START_MS, None, b"plain", ())])

    def write(*batches: bytes, name: str | None, acks: int = -1) -> ProduceRequest:
        data = [PartitionProduceData(index=at, records=each) for at, each in enumerate(batches)]
        return ProduceRequest(
            transactional_id=name,
            acks=acks,
            timeout_ms=10_000,
            topic_data=[TopicProduceData(name=topic, partition_data=data)],
        )

    def ask(label: str, *batches: bytes, name: str | None) -> None:
        for version in (3, 8, 9, 11):
            side.ask(f"{label}, version {version}", write(*batches, name=name), version)
        ends = [ListOffsetsPartition(partition_index=at, timestamp=-1) for at in range(3)]
        request = ListOffsetsRequest(
            replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=ends)]
        )
        side.ask(f"{label}, ends", request, 5)

    own, others = one.batch(0), two.batch(0)
    ask("no transactional id, plain first", plain, own, name=None)
    ask("no transactional id, plain last", own, plain, name=None)
    ask("with one that is not part of it", plain, plain, own, name=one.name)
    ask("with one that is", own, plain, name=one.name)
    ask("only plain, by name", plain, plain, name=one.name)
    ask("of two producers", own, others, plain, name=one.name)
    ask("of two producers, plain first", plain, others, own, name=one.name)
    ask("of another producer", others, plain, name=one.name)
    for producer in (one, two):
        producer.close(f"{producer.name} ends", True)
    ask("after the end", plain, own, name=one.name)


def _marker(
    topic: str, producer: TransactionalProducer, partitions: tuple[int, ...], *, epoch: int = 0
) -> Any:
    reported = WritableTxnMarkerTopic(name=topic, partition_indexes=list(partitions))
    marker = WritableTxnMarker(
        producer_id=producer.id, producer_epoch=producer.epoch, transaction_result=False,
        topics=[reported], coordinator_epoch=epoch,
    )  # fmt: skip
    return WriteTxnMarkersRequest(markers=[marker])


def offsets_of_transactions(side: Side) -> None:
    """AddOffsetsToTxn and TxnOffsetCommit: inside and outside, of groups and members."""
    topic = side.topic("offsets", partitions=2)
    producer = TransactionalProducer(side, "offsets")
    producer.begin("first")
    producer.begin("next epoch")

    def add(group: str, older: int = 0) -> AddOffsetsToTxnRequest:
        return AddOffsetsToTxnRequest(
            transactional_id=producer.name, producer_id=producer.id,
            producer_epoch=producer.epoch - older, group_id=group,
        )  # fmt: skip

    def commit(older: int = 0, partition: int = 0, name: str = topic, **of: Any) -> Any:
        at = TxnOffsetCommitRequestPartition(
            partition_index=partition, committed_offset=5, committed_metadata=of.pop("text", "")
        )
        return TxnOffsetCommitRequest(
            transactional_id=producer.name, producer_id=producer.id,
            producer_epoch=producer.epoch - older,
            topics=[TxnOffsetCommitRequestTopic(name=name, partitions=[at])],
            **({"group_id": "offsets"} | of),
        )  # fmt: skip

    side.ask_all("before adding", commit(), (0, 3, 4))
    side.ask_all("group added too old", add("offsets", older=1), (0, 1, 2, 3, 4))
    side.ask("group without a name", add(""), 3)
    side.ask("group added", add("offsets"), 3)
    side.ask("group added twice", add("offsets"), 3)
    side.ask_all("commit", commit(), (0, 1, 2, 3, 4))
    side.ask_all("too old", commit(older=1), (0, 3, 4))
    side.ask_all("unknown partition", commit(partition=9), (0, 3))
    side.ask_all("unknown topic", commit(name="is-not-there"), (0, 3))
    side.ask("long text", commit(text="x" * 5000), 3)
    side.ask("no group", commit(group_id=""), 3)
    side.ask("unknown member", commit(member_id="somebody", generation_id=1), 3)
    side.ask("generation without member", commit(generation_id=1), 3)
    side.ask("static member", commit(group_instance_id="i", generation_id=1, member_id="m"), 3)
    side.ask("group not added", commit(group_id="offsets"), 3)
    producer.close("end", True)
    side.ask_all("after the end", commit(), (0, 3, 4))


def fencing_of_producers(side: Side) -> None:
    """What a producer is told whose successor is there, and what becomes of the successor."""
    topic = side.topic("fencing", partitions=1)
    first = TransactionalProducer(side, "fencing")
    first.begin("first")
    first.open("first opens", topic)
    side.ask("first writes", first.write(topic, 0), 9)
    second = first.successor()
    side.ask("second, at first", second.init(), 4)
    second.begin("second")
    second.open("second opens", topic)
    side.ask("second writes", second.write(topic, 0), 9)
    side.ask_all("first adds", first.add(topic, 0), (0, 1, 2, 3))
    side.ask_all("first ends", first.end(True), (0, 1, 2, 4))
    side.ask("first writes again", first.write(topic, 1), 9)
    second.described("second before")
    side.ask_all("first bumps", first.init(producer_id=first.id, epoch=first.epoch), (3, 4, 5))
    second.described("second after")
    side.ask("second commits", second.end(True), 4)


def transactions_that_take_too_long(side: Side) -> None:
    """A transaction is aborted by its timeout, and its producer told so."""
    topic = side.topic("slow", partitions=1)
    producer = TransactionalProducer(side, "slow")
    producer.begin("first", timeout_ms=SHORT_MS)
    producer.open("open", topic)
    side.ask("write", producer.write(topic, 0), 9)
    side.ask_until(
        "aborted",
        DescribeTransactionsRequest(transactional_ids=[producer.name]),
        0,
        settled=lambda answer: answer.transaction_states[0].transaction_state == "CompleteAbort",
    )
    side.ask_all("commit", producer.end(True), (1, 4))
    side.ask_all("abort", producer.end(False), (1, 4))
    side.ask_all("add", producer.add(topic, 0), (1, 3))
    side.ask("write again", producer.write(topic, 1), 9)
    side.ask("bump", producer.init(producer_id=producer.id, epoch=producer.epoch), 4)
    producer.begin("anew")


QUESTIONS: Final = (
    transactional_ids, ends_of_transactions, partitions_of_transactions,
    requests_of_several_kinds, offsets_of_transactions,
    fencing_of_producers, transactions_that_take_too_long,
)  # fmt: skip
