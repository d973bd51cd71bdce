"""Questions that both brokers are asked: producing, fetching and looking up offsets."""

from __future__ import annotations

import struct
from typing import Any, Final
from uuid import UUID

from barnabas_kafka.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from barnabas_kafka.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
)
from barnabas_kafka.protocol.messages.init_producer_id import InitProducerIdRequest
from barnabas_kafka.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from barnabas_kafka.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from barnabas_kafka.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from barnabas_kafka.records import batch, legacy
from barnabas_kafka.records.builder import build_batch
from barnabas_kafka.records.compression import Codec
from barnabas_kafka.records.crc import crc32c
from tests.clients import START_MS, wire
from tests.kafka.records.stored import stored_batch
from tests.oracle.sides import Side

HOUR_MS: Final = 3_600_000
NOBODY: Final = UUID(int=4711)
FETCH_VERSIONS: Final = range(18)
PRODUCER: Final = 555_000


def some_records(count: int = 3, *, start_ms: int = START_MS, key: bytes | None = b"key") -> Any:
    """Records a second apart."""
    return [(start_ms + i * 1000, key, b"value %d" % i, ()) for i in range(count)]


def resealed(data: bytes, position: int, layout: str, value: int) -> bytes:
    """The batch with one header field changed and a checksum that suits it."""
    changed = bytearray(data)
    struct.pack_into(layout, changed, position, value)
    struct.pack_into(">I", changed, 17, crc32c(memoryview(changed)[21:]))
    return bytes(changed)


def message_set(magic: int, count: int = 3, codec: Codec = Codec.NONE) -> bytes:
    """A message set of clients before 0.11."""
    stamp = START_MS if magic else -1
    sent = [batch.Record(i, stamp, b"k%d" % i, b"v%d" % i) for i in range(count)]
    return legacy.build_message_set(sent, magic=magic, codec=codec)


def filled(side: Side, name: str, **config: Any) -> str:
    """A topic with three batches of three records, a second apart."""
    side.topic(name, **config)
    for number in range(3):
        start_ms = START_MS + number * 10_000
        data = build_batch(some_records(start_ms=start_ms))
        side.ask(f"{name} filled with batch {number}", wire.produce(name, data), 9)
    return name


# Produce


def produce_where(side: Side) -> None:
    """Topics and partitions that are not there, names that cannot be, acks that mean nothing."""
    topic = side.topic("produce-where")
    good = build_batch(some_records())
    for name in ("produce-nowhere", "not a name", "", ".", "..", "x" * 250):
        side.ask(f"topic {name[:20]!r}", wire.produce(name, good), 9)
    for partition in (1, -1, 2**31 - 1):
        side.ask(f"partition {partition}", wire.produce(topic, good, partition=partition), 9)
    for acks in (2, -2, 100):
        side.ask_all(f"acks {acks}", wire.produce(topic, good, acks=acks), (0, 3, 9))
        nowhere = wire.produce("produce-nowhere", good, acks=acks)
        side.ask(f"acks {acks} to a topic that is not there", nowhere, 9)
        corrupt = wire.produce(topic, good[:-1] + b"?", acks=acks)
        side.ask(f"acks {acks} with a wrong checksum", corrupt, 9)
    side.ask_all("no topics", ProduceRequest(acks=1, topic_data=[]), range(12))
    nothing = ProduceRequest(acks=1, topic_data=[TopicProduceData(name=topic)])
    side.ask("no partitions", nothing, 9)
    twice = ProduceRequest(
        acks=1,
        timeout_ms=60_000,
        topic_data=[
            TopicProduceData(
                name=topic,
                partition_data=[
                    PartitionProduceData(index=0, records=good),
                    PartitionProduceData(index=7, records=good),
                ],
            ),
            TopicProduceData(
                name="produce-nowhere", partition_data=[PartitionProduceData(records=good)]
            ),
        ],
    )
    side.ask_all("good and bad at once", twice, (0, 2, 5, 8, 9, 10, 11))
    side.ask("the end", wire.fetch(topic, 0), 11)


def produce_versions(side: Side) -> None:
    """Every format in every version, every codec in every version."""
    topic = side.topic("produce-versions")
    formats = {"format 0": message_set(0), "format 1": message_set(1)}
    formats["format 2"] = build_batch(some_records())
    for what, data in formats.items():
        side.ask_all(what, wire.produce(topic, data), range(12))
    for codec in Codec:
        data = build_batch(some_records(), codec=codec)
        side.ask_all(f"codec {codec.name}", wire.produce(topic, data), range(3, 12))
    for codec in (Codec.GZIP, Codec.SNAPPY, Codec.LZ4):
        side.ask(f"old, {codec.name}", wire.produce(topic, message_set(1, codec=codec)), 2)
        side.ask(f"oldest, {codec.name}", wire.produce(topic, message_set(0, codec=codec)), 1)
    side.ask_all("what is there", wire.fetch(topic, 0), FETCH_VERSIONS[:13])


def produce_contents(side: Side) -> None:
    """Batches that are not what they say."""
    good = build_batch(some_records())
    gzip = build_batch(some_records(), codec=Codec.GZIP)
    bad = {
        "null": None,
        "empty": b"",
        "a byte": b"\0",
        "only a header": good[:61],
        "cut short": good[:-4],
        "a wrong checksum": good[:-1] + b"?",
        "two batches": good + good,
        "a batch and rubbish": good + b"rubbish",
        "a batch and the beginning of another": good + good[:30],
        "format 3": resealed(good, 16, ">b", 3),
        "format -1": resealed(good, 16, ">b", -1),
        "length 0": good[:8] + b"\0\0\0\0" + good[12:],
        "length negative": good[:8] + b"\xff\xff\xff\xff" + good[12:],
        "length too great": good[:8] + b"\0\0\x0f\xff" + good[12:],
        "base offset 5": build_batch(some_records(), base_offset=5),
        "base offset negative": good[:7] + b"\xff" + good[8:],
        "leader epoch 7": build_batch(some_records(), leader_epoch=7),
        "no records": resealed(good, 57, ">i", 0),
        "count negative": resealed(good, 57, ">i", -1),
        "count too small": resealed(good, 57, ">i", 2),
        "count too great": resealed(good, 57, ">i", 4),
        "last offset delta too great": resealed(good, 23, ">i", 3),
        "last offset delta negative": resealed(good, 23, ">i", -1),
        "control": resealed(good, 21, ">h", 0x20),
        "append time": resealed(good, 21, ">h", 0x08),
        "delete horizon": resealed(good, 21, ">h", 0x40),
        "an unknown attribute": resealed(good, 21, ">h", 0x80),
        "codec 5": resealed(good, 21, ">h", 5),
        "codec 7": resealed(good, 21, ">h", 7),
        "plain called gzip": resealed(good, 21, ">h", 1),
        "plain called snappy": resealed(good, 21, ">h", 2),
        "plain called lz4": resealed(good, 21, ">h", 3),
        "plain called zstd": resealed(good, 21, ">h", 4),
        "gzip called plain": resealed(gzip, 21, ">h", 0),
        "max timestamp wrong": resealed(good, 35, ">q", START_MS + 77_000),
        "base timestamp -1": resealed(good, 27, ">q", -1),
        "no timestamps": build_batch([(-1, None, b"v", ())] * 2),
        "producer without sequence": resealed(good, 43, ">q", PRODUCER),
        "sequence without producer": resealed(good, 53, ">i", 4),
        "offset deltas with a gap": stored_batch(some_records(), offset_deltas=(0, 2, 3)),
        "offset deltas the same": stored_batch(
            some_records(), offset_deltas=(0, 0, 2), last_offset_delta=2
        ),
        "offset deltas backwards": stored_batch(
            some_records(), offset_deltas=(2, 1, 0), last_offset_delta=2
        ),
        "compressed offset deltas backwards": stored_batch(
            some_records(), offset_deltas=(2, 1, 0), last_offset_delta=2, codec=Codec.GZIP
        ),
        "header key that is no text": build_batch([(START_MS, None, b"v", [("\udcff", b"h")])]),
        "null everywhere": build_batch([(START_MS, None, None, [("h", None)])]),
    }
    _produce_each(side, side.topic("produce-contents", partitions=len(bad)), bad, (3, 9))


def _produce_each(
    side: Side, topic: str, contents: dict[str, bytes | None], versions: tuple[int, ...]
) -> None:
    """Each into a partition of its own, and what is there afterwards."""
    for partition, (what, data) in enumerate(contents.items()):
        request = wire.produce(topic, b"", partition=partition)
        request.topic_data[0].partition_data[0].records = data
        side.ask_all(what, request, versions, trap=data is None)
        side.ask(f"{what}, read", fetching(topic, partition=partition), 11)


def produce_old_contents(side: Side) -> None:
    """Message sets that are not what they say."""
    good = message_set(1)
    zip_set = message_set(1, codec=Codec.GZIP)
    bad = {
        "null": None,
        "empty": b"",
        "cut short": good[:-3],
        "a wrong checksum": good[:-1] + b"?",
        "the last checksum wrong": good + good[:-1] + b"?",
        "offsets that start at 3": b"\0\0\0\0\0\0\0\3" + good[8:],
        "two wrappers": zip_set + zip_set,
        "a wrapper and a message": zip_set + good,
        "formats 0 and 1": message_set(0) + good,
        "formats 1 and 2": good + build_batch(some_records()),
    }
    _produce_each(side, side.topic("produce-old-contents", partitions=len(bad)), bad, (0, 2))


def produce_rules(side: Side) -> None:
    """What topics forbid: sizes, times, records without keys."""
    good = build_batch(some_records())
    small = side.topic("produce-small", max_message_bytes="100")
    side.ask_all("too large", wire.produce(small, build_batch(some_records(9))), (0, 3, 9))
    side.ask_all("old and too large", wire.produce(small, message_set(1, 9)), (0, 2))
    zipped = build_batch([(START_MS, None, b"x" * 2000, ())], codec=Codec.GZIP)
    side.ask("large before compression", wire.produce(small, zipped), 9)
    compact = side.topic("produce-compact", cleanup_policy="compact")
    mixed = [(START_MS, key, b"v", ()) for key in (b"a", None, b"b", None)]
    for codec in (Codec.NONE, Codec.GZIP):
        data = build_batch(mixed, codec=codec)
        side.ask_all(f"without keys, {codec.name}", wire.produce(compact, data), (3, 7, 8, 9))
    keyless = [batch.Record(i, START_MS, None, b"v") for i in range(3)]
    old = legacy.build_message_set(keyless, magic=1)
    side.ask("old without keys", wire.produce(compact, old), 2)
    side.ask("with keys", wire.produce(compact, good), 9)
    bounds: dict[str, Any] = {
        f"message_timestamp_{when}_max_ms": "5000" for when in ("before", "after")
    }
    near = side.topic("produce-near", **bounds)
    for what, at in (("long ago", START_MS), ("far ahead", START_MS + 5 * HOUR_MS)):
        data = build_batch(some_records(start_ms=at))
        side.ask_all(what, wire.produce(near, data), (3, 8, 9))
        packed = build_batch(some_records(start_ms=at), codec=Codec.LZ4)
        side.ask(f"{what}, compressed", wire.produce(near, packed), 9)
    side.ask("old, long ago", wire.produce(near, message_set(1)), 2)
    side.ask("oldest, without time", wire.produce(near, message_set(0)), 1)
    ahead = side.topic("produce-ahead")
    data = build_batch(some_records(start_ms=START_MS + 48 * HOUR_MS))
    side.ask("two days ahead of a default topic", wire.produce(ahead, data), 9)
    stamped = side.topic("produce-stamped", message_timestamp_type="LogAppendTime")
    side.ask_all("the broker's time", wire.produce(stamped, good), (3, 9))
    side.ask("the broker's time claimed", wire.produce(stamped, resealed(good, 21, ">h", 8)), 9)
    for name in ("gzip", "snappy", "lz4", "zstd", "uncompressed"):
        packed_topic = side.topic(f"produce-{name}", compression_type=name)
        side.ask(f"recompressed {name}", wire.produce(packed_topic, good), 9)
        side.ask(f"recompressed {name}, read", wire.fetch(packed_topic, 0), 11)


def produce_in_sequence(side: Side) -> None:
    """Producers with sequence numbers: repeats, gaps, epochs."""
    topic = side.topic("produce-in-sequence")

    def send(label: str, sequence: int, *, epoch: int = 0, count: int = 1, who: int = 0) -> None:
        data = build_batch(
            some_records(count),
            producer_id=PRODUCER + who,
            producer_epoch=epoch,
            base_sequence=sequence,
        )
        side.ask(label, wire.produce(topic, data), 9)

    for number in range(7):
        send(f"batch {number}", number * 2, count=2)
    for number in range(7):
        send(f"batch {number} again", number * 2, count=2)
    send("a gap", 15)
    send("an overlap", 13, count=2)
    send("half a repeat", 12)
    send("the next", 14)
    send("a new epoch that does not start over", 15, epoch=1)
    send("a new epoch", 0, epoch=1)
    send("the old epoch", 15)
    send("the old epoch at its start", 0)
    send("a repeat in the new epoch", 0, epoch=1)
    send("another producer in the middle", 77, who=1)
    send("another producer goes on", 78, who=1)
    send("another producer skips", 80, who=1)
    send("a sequence before the wrap", 2**31 - 2, count=4, who=2)
    send("after the wrap", 2, who=2)
    send("an epoch below zero", 0, epoch=-1, who=3)
    send("the greatest epoch", 0, epoch=32767, who=4)
    side.ask("what is there", wire.fetch(topic, 0), 11)


# Fetch


def fetching(topic: str, **changes: Any) -> FetchRequest:
    """A fetch of one partition, with any field of the request or the partition changed."""
    request = wire.fetch(topic, 0)
    partition = request.topics[0].partitions[0]
    for name, value in changes.items():
        setattr(partition if name in FetchPartition.__fields__ else request, name, value)
    return request


def fetch_where(side: Side) -> None:
    """Positions inside, at and beyond the ends of a log; partitions that are not there."""
    topic = filled(side, "fetch-where")
    for offset in (0, 1, 3, 5, 8, 9, 10, 1 << 40, -1, -2):
        side.ask_all(f"offset {offset}", fetching(topic, fetch_offset=offset), (0, 3, 4, 9, 11, 12))
    side.ask_all("each version", fetching(topic, fetch_offset=4), FETCH_VERSIONS[:13])
    for name in ("fetch-nowhere", "not a name", ""):
        side.ask_all(f"topic {name!r}", fetching(name), (0, 4, 11, 12))
    for partition in (1, -1):
        side.ask_all(f"partition {partition}", fetching(topic, partition=partition), (4, 12))
    for epoch in (0, 1, 99, -2):
        side.ask_all(f"epoch {epoch}", fetching(topic, current_leader_epoch=epoch), (9, 12))
    side.ask("no topics", FetchRequest(max_wait_ms=0, topics=[]), 11)
    for who in (1, 0, -2):
        side.ask_all(f"replica {who}", fetching(topic, replica_id=who), (4, 12))
    side.ask("a rack", fetching(topic, rack_id="r1"), 12)
    for epoch in (0, 3):
        request = fetching(topic, last_fetched_epoch=epoch, fetch_offset=5)
        side.ask(f"last fetched epoch {epoch}", request, 12)
        request = fetching(topic, last_fetched_epoch=epoch, fetch_offset=50)
        side.ask(f"last fetched epoch {epoch} beyond the end", request, 12)


def fetch_order(side: Side) -> None:
    """Entries of a topic that stand apart, and a partition twice: clients see the order."""
    one, other = (side.topic(name, partitions=3) for name in ("fetch-order", "fetch-order-other"))
    ids = {side.id_of(name): name for name in (one, other)} | {NOBODY: "nobody"}
    entries = {
        "apart": [(one, 0), (other, 0), (one, 1)],
        "neighbours": [(one, 2), (one, 0), (other, 1), (other, 0)],
        "twice": [(one, 0), (other, 0), (one, 0), (one, 1)],
        "missing": [(one, 9), (other, 0), ("nobody", 0), (one, 0)],
    }
    for what, wanted in entries.items():
        for version in (4, 10, 12, 13, 17):
            request = FetchRequest(max_wait_ms=0, max_bytes=1 << 20, session_epoch=-1)
            for name, partition in wanted:
                topic_id = next(each for each, named in ids.items() if named == name)
                asked = FetchPartition(partition=partition, partition_max_bytes=1 << 20)
                by_id = {"topic_id": topic_id} if version >= 13 else {"topic": name}
                request.topics.append(FetchTopic(partitions=[asked], **by_id))
            answer = side.wait(request, version, settled=lambda _: True)
            order = [
                (
                    each.topic or ids.get(each.topic_id),
                    [it.partition_index for it in each.partitions],
                )
                for each in answer.responses
            ]
            side.keep(f"{what}, version {version}", order)


def fetch_limits(side: Side) -> None:
    """How much comes, by limits of the request and of the partition."""
    topic = filled(side, "fetch-limits")
    for limit in (0, 1, 100, 250, 1 << 20, 2**31 - 1, -1):
        side.ask_all(
            f"partition limit {limit}", fetching(topic, partition_max_bytes=limit), (2, 4, 12)
        )
        side.ask_all(f"limit {limit}", fetching(topic, max_bytes=limit), (3, 12))
    for least in (0, -1, 10_000):
        side.ask(f"at least {least}", fetching(topic, min_bytes=least), 12)
        side.ask(
            f"at least {least} of nothing", fetching(topic, min_bytes=least, fetch_offset=9), 12
        )
    side.ask("no waiting", fetching(topic, fetch_offset=9, max_wait_ms=-5), 12)
    side.ask("some waiting", fetching(topic, fetch_offset=9, max_wait_ms=50), 12)
    for level in (0, 1):
        side.ask_all(f"isolation {level}", fetching(topic, isolation_level=level), (4, 11, 12))
    both = fetching(topic, partition_max_bytes=1)
    both.topics.append(FetchTopic(topic=filled(side, "fetch-limits-too"), partitions=[
        FetchPartition(partition=0, partition_max_bytes=1)
    ]))  # fmt: skip
    side.ask("two partitions, small limits", both, 12)


def fetch_sessions(side: Side) -> None:
    """Sessions: opening, going on, forgetting, closing, and ids and epochs that are wrong."""
    topic = filled(side, "fetch-sessions")
    wrong = ((123, 1), (123, 0), (0, 1), (0, 7), (123, -1), (0, -1), (-1, 3), (123, -7))
    for session, epoch in wrong:
        request = fetching(topic, session_id=session, session_epoch=epoch)
        side.ask_all(f"session {session} epoch {epoch}", request, (7, 11, 12))
    opened = side.ask("opening", fetching(topic, session_id=0, session_epoch=0), 12)
    session = opened.session_id if opened is not None else 0

    def go_on(label: str, epoch: int, request: FetchRequest, version: int = 12) -> None:
        request.session_id, request.session_epoch = session, epoch
        side.ask(label, request, version)

    go_on("unread records again", 1, FetchRequest(max_wait_ms=0))
    go_on("read to the end", 2, fetching(topic, fetch_offset=9))
    go_on("nothing new", 3, FetchRequest(max_wait_ms=0))
    side.ask("more", wire.produce(topic, build_batch(some_records())), 9)
    go_on("something new", 4, FetchRequest(max_wait_ms=0))
    go_on("an epoch again", 4, FetchRequest(max_wait_ms=0))
    go_on("another partition", 5, fetching("fetch-sessions-nowhere"))
    gone = ForgottenTopic(topic=topic, partitions=[0])
    go_on("forgetting", 6, FetchRequest(max_wait_ms=0, forgotten_topics_data=[gone]))
    go_on("by id instead", 7, FetchRequest(max_wait_ms=0), 13)
    go_on("closing", -1, fetching(topic))
    go_on("after the end", 8, FetchRequest(max_wait_ms=0))


def fetch_by_id(side: Side) -> None:
    """Topics by their ids."""
    topic = filled(side, "fetch-by-id")
    for what, topic_id in (("known", side.id_of(topic)), ("unknown", NOBODY), ("no", UUID(int=0))):
        request = fetching(topic)
        request.topics[0].topic_id = topic_id
        side.ask_all(f"{what} id", request, (13, 15, 16, 17))
        request.session_epoch = 0
        side.ask(f"{what} id in a session", request, 13)
        request.session_epoch = -1
        request.topics[0].partitions[0].partition = 6
        side.ask(f"{what} id, another partition", request, 13)


# Offsets


def looking_up(topic: str, timestamp: int, **changes: Any) -> ListOffsetsRequest:
    """A look-up in one partition, with any field of the request or the partition changed."""
    partition = ListOffsetsPartition(timestamp=timestamp)
    request = ListOffsetsRequest(
        replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=[partition])]
    )
    for name, value in changes.items():
        setattr(partition if name in ListOffsetsPartition.__fields__ else request, name, value)
    return request


def list_offsets(side: Side) -> None:
    """Special times, moments, and what cannot be looked up."""
    topic = filled(side, "list-offsets")
    times = {str(special): special for special in (-1, -2, -3, -4, -5, -6, 0)}
    moments = (-1, 0, 1, 1000, 2001, 10_000, 22_000, 22_001)
    times |= {f"start + {ms}": START_MS + ms for ms in moments}
    for what, timestamp in times.items():
        side.ask_all(f"time {what}", looking_up(topic, timestamp), range(1, 10))
    for what in ("-1", "-2"):
        for most in (0, 1, 5):
            request = looking_up(topic, times[what], max_num_offsets=most)
            side.ask(f"oldest, time {what}, {most} offsets", request, 0)
    side.ask("oldest, time 0", looking_up(topic, 0, max_num_offsets=5), 0)
    empty = side.topic("list-offsets-empty")
    for timestamp in (-1, -2, -3, 0):
        side.ask_all(f"empty, time {timestamp}", looking_up(empty, timestamp), (0, 1, 4, 7, 9))
    for name in ("list-offsets-nowhere", "not a name", ""):
        side.ask_all(f"topic {name!r}", looking_up(name, -1), (0, 1, 9))
    side.ask_all("partition 4", looking_up(topic, -1, partition_index=4), (0, 1, 9))
    for epoch in (0, 9, -2):
        side.ask_all(f"epoch {epoch}", looking_up(topic, -1, current_leader_epoch=epoch), (4, 9))
    for level in (0, 1):
        side.ask_all(f"isolation {level}", looking_up(topic, -1, isolation_level=level), (2, 9))
    for replica in (0, 1, -2, -3):
        asking = looking_up(topic, -1, replica_id=replica)
        side.ask_all(f"replica {replica}", asking, (0, 1, 9))
    twice = looking_up(topic, -1)
    twice.topics[0].partitions.append(ListOffsetsPartition(timestamp=-2))
    side.ask_all("a partition twice", twice, (0, 1, 9))


def list_offsets_for_tools(side: Side) -> None:
    """What a debugging replica asks, and times that are yet to come."""
    topic = filled(side, "list-offsets-tools")
    for timestamp in (-1, -2, -3, -4, -5, -6, 0, START_MS + 2001, START_MS + 22_001):
        asking = looking_up(topic, timestamp, replica_id=-2)
        side.ask_all(f"debugging, time {timestamp}", asking, (0, 1, 4, 9))
    to_come = 2**62
    for name in (topic, side.topic("list-offsets-none")):
        oldest = looking_up(name, to_come, max_num_offsets=5)
        side.ask(f"{name}, oldest, a time to come", oldest, 0)
        side.ask_all(f"{name}, a time to come", looking_up(name, to_come), (1, 9))


def delete_records(side: Side) -> None:
    """Moving the start of a log, and what it changes."""
    topic = filled(side, "delete-records")

    def delete(label: str, name: str, offset: int, version: int = 2, partition: int = 0) -> None:
        entry = DeleteRecordsPartition(partition_index=partition, offset=offset)
        topics = [DeleteRecordsTopic(name=name, partitions=[entry])]
        side.ask(label, DeleteRecordsRequest(topics=topics, timeout_ms=60_000), version)

    for version in range(3):
        delete(f"up to 4, version {version}", topic, 4, version)
    delete("up to 2", topic, 2)
    delete("beyond the end", topic, 99)
    delete("negative", topic, -2)
    delete("no topic", "delete-records-nowhere", 1)
    delete("no name", "not a name", 1)
    delete("no partition", topic, 1, partition=8)
    side.ask_all("below the start", fetching(topic, fetch_offset=3), (4, 11))
    side.ask("inside the batch", fetching(topic, fetch_offset=4), 11)
    for timestamp in (-2, -1, -3, 0, START_MS):
        what = "start" if timestamp > 0 else timestamp
        side.ask(f"time {what}", looking_up(topic, timestamp), 7)
    delete("everything", topic, -1)
    for timestamp in (-2, -1, -3, 0):
        side.ask(f"time {timestamp} of nothing", looking_up(topic, timestamp), 7)
    compact = filled(side, "delete-records-compact", cleanup_policy="compact")
    delete("of a compacted topic", compact, 1)
    both = filled(side, "delete-records-both", cleanup_policy="compact,delete")
    delete("of a topic with both policies", both, 1)


def leader_epochs(side: Side) -> None:
    """Where epochs end."""
    topic = filled(side, "leader-epochs")

    def about(name: str, epoch: int, current: int = -1, partition: int = 0) -> Any:
        entry = OffsetForLeaderPartition(
            partition=partition, leader_epoch=epoch, current_leader_epoch=current
        )
        topics = [OffsetForLeaderTopic(topic=name, partitions=[entry])]
        return OffsetForLeaderEpochRequest(replica_id=-1, topics=topics)

    for epoch in (0, 1, 5, -1, -2):
        side.ask_all(f"epoch {epoch}", about(topic, epoch), range(5))
    for current in (0, 3, -2):
        side.ask_all(f"current epoch {current}", about(topic, 0, current), (2, 4))
    side.ask_all("no topic", about("leader-epochs-nowhere", 0), (0, 4))
    side.ask_all("no partition", about(topic, 0, partition=3), (0, 4))
    side.ask("epoch 0 of nothing", about(side.topic("leader-epochs-empty"), 0), 4)


def producer_ids(side: Side) -> None:
    """Ids for idempotent producers, and half an identity."""
    # Apache asks its controller for the first ids when somebody wants one.
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
    side.wait(request, 4, settled=lambda answer: not answer.error_code)
    side.ask_all("a new id", request, range(6))
    for producer_id, epoch in ((5, -1), (-1, 5), (5, 5), (-1, -1), (-2, -1)):
        request = InitProducerIdRequest(
            transactional_id=None, producer_id=producer_id, producer_epoch=epoch
        )
        side.ask_all(f"id {producer_id} epoch {epoch}", request, (3, 5))
    side.ask("an empty transactional id", InitProducerIdRequest(transactional_id=""), 4)


QUESTIONS: Final = (
    produce_where, produce_versions, produce_contents, produce_old_contents, produce_rules,
    produce_in_sequence, fetch_where, fetch_order, fetch_limits, fetch_sessions, fetch_by_id,
    list_offsets, list_offsets_for_tools, delete_records, leader_epochs, producer_ids,
)  # fmt: skip
