"""The short way through OffsetCommit: what the declared codecs say, compiled and pure."""

from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas_kafka.protocol import codec, plain_commit, registry
from barnabas_kafka.protocol.embedded import OffsetCommitKey, OffsetCommitValue, pack
from barnabas_kafka.protocol.headers import (
    RequestHeader,
    decode_client,
    encode_request_header,
    encode_response_header,
)
from barnabas_kafka.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from barnabas_kafka.protocol.plain_commit import PlainCommit
from barnabas_kafka.records.builder import build_batch, plain_batch_of
from tests.kafka.pure import pure

API = registry.api(8)
VERSIONS = st.integers(plain_commit.FIRST_VERSION, plain_commit.LAST_VERSION)
INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)
NAMES = st.text(st.characters(codec="utf-8"), max_size=40)
PARTITION = st.tuples(INT32, INT64, INT32, st.none() | NAMES)
TOPICS = st.lists(
    st.tuples(NAMES, st.lists(PARTITION, min_size=1, max_size=3)), min_size=1, max_size=3
)
NOW = 1_700_000_000_000

Topics = list[tuple[str, list[tuple[int, int, int, str | None]]]]
ONE: Topics = [("t", [(0, 5, 1, "m")])]


PURE = pure("barnabas_kafka.protocol.plain_commit")


@dataclass
class Asked:
    """An OffsetCommit request, of which a version may leave parts out."""

    topics: Topics
    group: str = "g"
    generation: int = 3
    member: str = "m"
    instance: str | None = None
    retention_ms: int = -1
    client_id: str | None = "client"

    def frame(self, version: int) -> bytes:
        """The request as the declared codec writes it."""
        request = OffsetCommitRequest(
            group_id=self.group,
            generation_id_or_member_epoch=self.generation,
            member_id=self.member,
            group_instance_id=self.instance if version >= 7 else None,
            retention_time_ms=self.retention_ms,
            topics=[
                OffsetCommitRequestTopic(
                    name=name,
                    partitions=[
                        OffsetCommitRequestPartition(
                            partition_index=index,
                            committed_offset=offset,
                            committed_leader_epoch=epoch,
                            committed_metadata=metadata,
                        )
                        for index, offset, epoch, metadata in partitions
                    ],
                )
                for name, partitions in self.topics
            ],
        )
        header = encode_request_header(RequestHeader(8, version, 7, self.client_id))
        return header + codec.encode(request, version)


REQUESTS = st.builds(
    Asked,
    topics=TOPICS,
    group=NAMES,
    generation=INT32,
    member=NAMES,
    instance=st.none() | NAMES,
    client_id=st.none() | NAMES,
)


def _declared(frame: bytes, version: int) -> tuple[object, ...]:
    """The contents of a request, by the declared codec."""
    _, body = decode_client(frame, 0, API.request_header_version(version))
    request, end = codec.decode_from(OffsetCommitRequest, frame, version, body)
    assert end == len(frame)
    assert request.retention_time_ms == -1
    topics = [
        (
            topic.name,
            topic.name.encode(),
            [
                (
                    each.partition_index,
                    each.committed_offset,
                    each.committed_leader_epoch,
                    each.committed_metadata or "",
                    (each.committed_metadata or "").encode(),
                )
                for each in topic.partitions
            ],
        )
        for topic in request.topics
    ]
    return (
        request.group_id,
        request.group_id.encode(),
        request.generation_id_or_member_epoch,
        request.member_id,
        request.group_instance_id,
        topics,
    )


def _read(frame: bytes, version: int, most: int = 1000) -> PlainCommit | None:
    """What both lives of the module find, which is the same."""
    found: PlainCommit | None = PURE.read(frame, version, most)
    assert plain_commit.read(frame, version, most) == found
    return found


@given(version=VERSIONS, asked=REQUESTS)
def test_ordinary_requests_are_read_as_declared(version: int, asked: Asked) -> None:
    """Every part of a request without anything special is found, and nothing else."""
    frame = asked.frame(version)
    plain = _read(frame, version)
    assert plain is not None
    assert plain == _declared(frame, version)


@settings(max_examples=400)
@given(
    version=VERSIONS,
    asked=REQUESTS,
    edits=st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 255)), min_size=1, max_size=4),
    cut=st.integers(0, 40),
)
def test_what_is_read_of_damaged_requests_is_what_is_declared(
    version: int, asked: Asked, edits: list[tuple[int, int]], cut: int
) -> None:
    """Either the short way leaves a request alone, or it finds what the declared codec finds."""
    whole = bytearray(asked.frame(version))
    for where, value in edits:
        whole[8 + where % (len(whole) - 8)] = value
    frame = bytes(whole[: len(whole) - cut] if cut < 20 else whole)
    plain = _read(frame, version)
    if plain is not None:
        assert plain == _declared(frame, version)


@settings(max_examples=300)
@given(frame=st.binary(max_size=80), version=st.integers(0, 11))
def test_noise_is_left_alone(frame: bytes, version: int) -> None:
    """Random bytes never raise, and hardly ever look like a request."""
    plain = _read(frame, version)
    if plain is not None:
        assert plain == _declared(frame, version)


@pytest.mark.parametrize("version", range(2, 10))
def test_what_is_not_ordinary_is_left_alone(version: int) -> None:
    """Nothing to commit, retentions, bytes behind the request and versions of other layouts."""
    frame = Asked(ONE).frame(version)
    assert _read(frame, version) is not None
    assert _read(frame + b"\0", version) is None
    assert _read(frame, 1) is _read(frame, 10) is None
    assert _read(Asked([]).frame(version), version) is None
    assert _read(Asked([("t", [])]).frame(version), version) is None
    if version < 5:
        assert _read(Asked(ONE, retention_ms=60_000).frame(version), version) is None


@pytest.mark.parametrize("version", [8, 9])
def test_texts_that_no_record_can_hold_are_left_alone(version: int) -> None:
    """Only flexible requests have room for them; what is then said is for the general way."""
    long = "x" * 32_768
    for asked in (Asked(ONE, group=long), Asked([("t", [(0, 5, 1, long)])])):
        assert _read(asked.frame(version), version) is None


@pytest.mark.parametrize("version", [7, 8])
def test_requests_of_very_many_parts_are_left_alone(version: int) -> None:
    """Partitions count together over the topics; whoever reads them in turns has to do it."""
    one, two = ONE[0][1], ONE[0][1] * 2
    assert _read(Asked([("t", two)]).frame(version), version, 2) is not None
    assert _read(Asked([("t", two)]).frame(version), version, 1) is None
    assert _read(Asked([("t", two), ("u", one)]).frame(version), version, 3) is not None
    assert _read(Asked([("t", two), ("u", one)]).frame(version), version, 2) is None


@given(asked=REQUESTS, count=st.sampled_from((1, 2, 70)))
def test_records_are_laid_out_as_declared(asked: Asked, count: int) -> None:
    """Byte for byte the batch of the declared key and value; also of commits that share it."""
    plain = _read(asked.frame(9), 9)
    assert plain is not None
    contents: list[tuple[int, bytes | None, bytes | None, tuple[()]]] = []
    for name, partitions in asked.topics:
        for index, offset, epoch, metadata in partitions:
            key = OffsetCommitKey(group=asked.group, topic=name, partition=index)
            value = OffsetCommitValue(
                offset=offset, leader_epoch=epoch, metadata=metadata or "", commit_timestamp=NOW
            )
            contents.append((NOW, pack(key, 1), pack(value, 3), ()))
    expected = build_batch(contents * count)
    for module in (plain_commit, PURE):
        section, place = b"", 0
        for _ in range(count):
            more, place = module.records(plain[1], plain[5], NOW, place)
            section += more
        assert place == len(contents) * count
        assert plain_batch_of(section, place, NOW) == expected


@given(version=VERSIONS, asked=REQUESTS)
def test_answers_are_written_as_declared(version: int, asked: Asked) -> None:
    """Byte for byte what the declared codec writes for a commit that was taken as a whole."""
    response = OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                name=name,
                partitions=[
                    OffsetCommitResponsePartition(partition_index=each[0]) for each in partitions
                ],
            )
            for name, partitions in asked.topics
        ]
    )
    plain = _read(asked.frame(version), version)
    assert plain is not None
    header = encode_response_header(7, API.response_header_version(version))
    body = header + codec.encode(response, version)
    expected = len(body).to_bytes(4, "big") + body
    for module in (plain_commit, PURE):
        assert module.answer(version, 7, plain[5]) == expected
