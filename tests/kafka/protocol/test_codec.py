"""Tests of barnabas_kafka.protocol.codec."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from barnabas_kafka.protocol.codec import (
    DecodeError,
    EncodeError,
    decode,
    decode_from,
    encode,
    encode_parts,
    parts_length,
)
from barnabas_kafka.protocol.messages.fetch import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from barnabas_kafka.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from barnabas_kafka.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from barnabas_kafka.protocol.schema import Message
from tests.kafka.protocol.samples import MESSAGES, filled
from tests.kafka.protocol.strategies import messages

each_message = pytest.mark.parametrize("cls", MESSAGES, ids=lambda cls: cls.__name__)
FEW = settings(max_examples=3, deadline=None, suppress_health_check=list(HealthCheck))


@each_message
def test_round_trip(cls: type[Message]) -> None:
    """What is written in any version is read back equal, and not a byte is left over."""

    @FEW
    @given(st.data())
    def check(data: st.DataObject) -> None:
        for version in range(cls.versions.min, cls.versions.max + 1):
            message = data.draw(messages(cls, version))
            encoded = encode(message, version)
            decoded, end = decode_from(cls, encoded, version, 0)
            assert decoded == message
            assert end == len(encoded)

    check()


@each_message
def test_defaults_round_trip(cls: type[Message]) -> None:
    """A message nobody filled can be written and read in every version."""
    for version in range(cls.versions.min, cls.versions.max + 1):
        assert decode(cls, encode(cls(), version), version) == cls()


@each_message
def test_truncated_messages_are_refused(cls: type[Message]) -> None:
    """A message cut off after any of its bytes is a DecodeError, never another error."""
    for version in range(cls.versions.min, cls.versions.max + 1):
        encoded = encode(filled(cls, version), version)
        for length in range(len(encoded)):
            with pytest.raises(DecodeError):
                decode(cls, encoded[:length], version)


@each_message
def test_damaged_messages_never_surprise(cls: type[Message]) -> None:
    """Whatever bytes come, reading gives a message or a DecodeError."""

    @FEW
    @given(st.data())
    def check(data: st.DataObject) -> None:
        for version in {cls.versions.min, cls.versions.max}:
            damaged = bytearray(encode(filled(cls, version), version))
            for _ in range(min(3, len(damaged))):
                position = data.draw(st.integers(0, len(damaged) - 1))
                damaged[position] = data.draw(st.sampled_from([0, 1, 0x7F, 0x80, 0xFF]))
            try:
                decode(cls, damaged, version)
            except DecodeError:
                pass

    check()


@pytest.mark.parametrize(
    ("version", "length"), [(8, b"\x7f\xff\xff\xff"), (9, b"\xff\xff\xff\xff\x0f")]
)
def test_hostile_array_length_allocates_nothing(version: int, length: bytes) -> None:
    """An array that claims two thousand million elements is refused before the first is made."""
    with pytest.raises(DecodeError, match="topics holds more than the message"):
        decode(MetadataRequest, length + b"\0\0\0", version)


@pytest.mark.parametrize("tail", [b"\xff\xff\xff\xff\x1f", b"\x80" * 6])
def test_overlong_lengths_are_refused(tail: bytes) -> None:
    """A variable-length number of more than 32 bits is malformed."""
    with pytest.raises(DecodeError, match="32 bits"):
        decode(MetadataRequest, tail + b"\0\0\0", 9)


def test_text_that_is_not_utf8_is_refused() -> None:
    """A name must be UTF-8."""
    with pytest.raises(DecodeError, match="utf-8"):
        decode(MetadataRequest, b"\0\0\0\1\0\1\xff", 0)


def test_null_where_none_is_allowed() -> None:
    """Null is an error in the versions whose field is not nullable, both ways."""
    with pytest.raises(DecodeError, match="topics may not be null"):
        decode(MetadataRequest, b"\xff\xff\xff\xff", 0)
    with pytest.raises(EncodeError):
        encode(MetadataRequest(topics=None), 0)
    assert decode(MetadataRequest, b"\xff\xff\xff\xff", 1).topics is None


@pytest.mark.parametrize("cls", [MetadataRequest, MetadataResponse, FetchRequest, FetchResponse])
def test_unknown_tagged_fields_are_skipped(cls: type[Message]) -> None:
    """A newer peer's tagged fields do not disturb (KIP-482)."""
    version = cls.versions.max
    encoded = encode(cls(), version)
    assert encoded.endswith(b"\0")
    tagged = encoded[:-1] + b"\2" + b"\x63\3abc" + b"\x80\x01\0"
    assert decode_from(cls, tagged, version, 0) == (cls(), len(tagged))


def test_tagged_field_of_the_wrong_size() -> None:
    """A known tagged field must fill exactly the size announced for it."""
    good = encode(FetchRequest(cluster_id="abc"), 12)
    assert good.endswith(b"\1\0\4\4abc")
    with pytest.raises(DecodeError, match="not as long as it says"):
        decode(FetchRequest, good[:-6] + b"\0\5\4abc\0", 12)
    with pytest.raises(DecodeError):
        decode(FetchRequest, good[:-5] + b"\x7f\4abc", 12)


def test_tagged_fields_travel_only_when_set() -> None:
    """The default of a tagged field costs no byte; another value is read back."""
    unset = PartitionData(partition_index=1, records=b"")
    diverging = PartitionData(
        partition_index=1, records=b"", diverging_epoch=EpochEndOffset(epoch=3, end_offset=9)
    )

    def size(partition: PartitionData) -> int:
        topic = FetchableTopicResponse(topic="t", partitions=[partition])
        response = FetchResponse(responses=[topic])
        encoded = encode(response, 12)
        assert decode(FetchResponse, encoded, 12) == response
        return len(encoded)

    assert size(diverging) - size(unset) == 2 + 13


def test_fields_that_a_version_lacks() -> None:
    """A set field the version lacks is dropped where that is harmless and refused where not."""
    named = [MetadataRequestTopic(name="t", topic_id=UUID(int=1))]
    assert encode(MetadataRequest(topics=named), 9) == b"\2\2t\0\1\0\0\0"
    with pytest.raises(EncodeError, match="allow_auto_topic_creation is set"):
        encode(MetadataRequest(allow_auto_topic_creation=False), 3)


@pytest.mark.parametrize(
    "message",
    [
        MetadataResponse(controller_id=1 << 31),
        MetadataResponse(topics=[MetadataResponseTopic(name="\ud800")]),
        MetadataResponse(topics=[MetadataResponseTopic(name="n" * 40_000)]),
        MetadataResponse(topics=[MetadataResponseTopic(name=None)]),
        MetadataResponse(
            topics=[
                MetadataResponseTopic(partitions=[MetadataResponsePartition(isr_nodes=[1 << 40])])
            ]
        ),
    ],
    ids=["number", "surrogate", "long name", "null", "number in array"],
)
def test_values_that_do_not_fit(message: Message) -> None:
    """A value outside its type is an EncodeError that names message and version."""
    with pytest.raises(EncodeError, match="MetadataResponse v4"):
        encode(message, 4)


def test_versions_that_do_not_exist() -> None:
    """Neither direction invents versions."""
    with pytest.raises(EncodeError, match="no version 99"):
        encode(MetadataRequest(), 99)
    with pytest.raises(DecodeError, match="no version -1"):
        decode(MetadataRequest, b"", -1)


def test_records_are_views_of_the_frame() -> None:
    """Records are not copied: stamping them changes the frame they came in."""
    topic = TopicProduceData(name="t", partition_data=[PartitionProduceData(records=b"batch")])
    frame = bytearray(encode(ProduceRequest(acks=1, topic_data=[topic]), 9))
    records = decode(ProduceRequest, frame, 9).topic_data[0].partition_data[0].records
    assert isinstance(records, memoryview)
    records[:1] = b"B"
    assert b"Batch" in frame


@dataclass
class Slice:
    """A stand-in for a slice of a log file."""

    length: int


@pytest.mark.parametrize("version", [4, 11, 12, 17])
def test_record_sources_keep_their_place_between_the_pieces(version: int) -> None:
    """With a slice of a file as records only its length is encoded, and it keeps its place."""

    def response(records: Any) -> FetchResponse:
        partitions = [PartitionData(partition_index=i, records=records[i]) for i in range(2)]
        topic = FetchableTopicResponse(topic="" if version > 12 else "t", partitions=partitions)
        return FetchResponse(responses=[topic])

    first, second = Slice(300), Slice(5)
    parts = encode_parts(response([first, second]), version)
    sources = [part for part in parts if isinstance(part, Slice)]
    assert sources == [first, second]
    whole = encode(response([bytes(300), b"01234"]), version)
    assert parts_length(parts) == len(whole)
    content = {first.length: bytes(300), second.length: b"01234"}
    joined = (content[part.length] if isinstance(part, Slice) else part for part in parts)
    assert b"".join(joined) == whole  # type: ignore[arg-type]  # all that is left are bytes


def test_decoding_from_the_middle() -> None:
    """A message may lie anywhere in a buffer; what follows it is not looked at."""
    encoded = encode(MetadataRequest(topics=None), 9)
    data = b"header" + encoded + b"more"
    assert decode_from(MetadataRequest, data, 9, 6) == (
        MetadataRequest(topics=None),
        6 + len(encoded),
    )
    assert decode(MetadataRequest, memoryview(data)[6:], 9).topics is None
