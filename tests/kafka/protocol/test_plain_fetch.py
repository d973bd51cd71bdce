"""The short way through Fetch: what the declared codec says, compiled and pure."""

from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas_kafka.protocol import codec, plain_fetch, registry
from barnabas_kafka.protocol.headers import (
    RequestHeader,
    decode_client,
    encode_request_header,
    encode_response_header,
)
from barnabas_kafka.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
    ReplicaState,
)
from barnabas_kafka.protocol.plain_fetch import FIRST_BY_ID, PlainFetch, PlainFound, PlainWanted
from tests.kafka.pure import pure

API = registry.api(1)
VERSIONS = st.integers(plain_fetch.FIRST_VERSION, plain_fetch.LAST_VERSION)
INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)
NAMES = st.text(st.characters(codec="utf-8"), max_size=150)
WANTED = st.tuples(INT32, INT32, INT64, INT32, INT32)
PARTS = st.lists(WANTED, max_size=4, unique_by=lambda wanted: wanted[0])
TOPICS = st.lists(
    st.tuples(NAMES, st.uuids(), PARTS),
    max_size=4,
    unique_by=(lambda topic: topic[0], lambda topic: topic[1]),
)
Topics = list[tuple[str, UUID, list[PlainWanted]]]


PURE = pure("barnabas_kafka.protocol.plain_fetch")


def _read(frame: bytes, version: int, most: int) -> PlainFetch | None:
    """What both lives of the module find, which is the same."""
    found = plain_fetch.read(frame, version, most)
    assert PURE.read(frame, version, most) == found
    return found


def _frame(version: int, topics: Topics, client_id: str | None = "client", **more: Any) -> bytes:
    """A Fetch request as the declared codec writes it."""
    given: dict[str, Any] = {"max_wait_ms": 500, "min_bytes": 1, "max_bytes": 1000, **more}
    request = FetchRequest(**given)
    for name, topic_id, wanted in topics:
        partitions = [
            FetchPartition(
                partition=index,
                current_leader_epoch=leader_epoch,
                fetch_offset=offset,
                last_fetched_epoch=last_epoch if version >= 12 else -1,
                log_start_offset=index,
                partition_max_bytes=limit,
            )
            for index, leader_epoch, offset, last_epoch, limit in wanted
        ]
        request.topics.append(FetchTopic(topic=name, topic_id=topic_id, partitions=partitions))
    header = encode_request_header(RequestHeader(1, version, 7, client_id))
    return header + codec.encode(request, version)


def _declared(frame: bytes, version: int) -> PlainFetch:
    """What a request asks for, by the declared codec, which has to find it plain."""
    client_id, body = decode_client(frame, 0, API.request_header_version(version))
    request, end = codec.decode_from(FetchRequest, frame, version, body)
    assert end == len(frame)
    assert (request.session_id, request.session_epoch) == (0, -1)
    assert request.replica_id == request.replica_state.replica_id == -1
    assert not request.forgotten_topics_data
    topics = [
        (
            topic.topic_id.bytes if version >= FIRST_BY_ID else topic.topic.encode(),
            [
                (
                    wanted.partition,
                    wanted.current_leader_epoch,
                    wanted.fetch_offset,
                    wanted.last_fetched_epoch,
                    wanted.partition_max_bytes,
                )
                for wanted in topic.partitions
            ],
        )
        for topic in request.topics
    ]
    limits = request.max_wait_ms, request.min_bytes, request.max_bytes, request.isolation_level
    return PlainFetch(client_id, *limits, topics, names_rack=request.rack_id != "")


@given(
    version=VERSIONS,
    topics=TOPICS,
    client_id=st.none() | NAMES,
    isolation=st.integers(0, 1),
    rack=st.sampled_from(["", "rack"]),
)
def test_ordinary_requests_are_read_as_declared(
    version: int, topics: Topics, client_id: str | None, isolation: int, rack: str
) -> None:
    """Every part of a request without anything special is found, and nothing else."""
    frame = _frame(version, topics, client_id, isolation_level=isolation, rack_id=rack)
    assert _read(frame, version, 1000) == _declared(frame, version)


@settings(max_examples=400)
@given(
    version=VERSIONS,
    topics=TOPICS,
    edits=st.lists(st.tuples(st.integers(8, 2000), st.integers(0, 255)), min_size=1, max_size=4),
    cut=st.integers(0, 40),
)
def test_what_is_read_of_damaged_requests_is_what_is_declared(
    version: int, topics: Topics, edits: list[tuple[int, int]], cut: int
) -> None:
    """Either the short way leaves a request alone, or it finds what the declared codec finds."""
    whole = bytearray(_frame(version, topics))
    for where, value in edits:
        whole[8 + where % (len(whole) - 8)] = value
    frame = bytes(whole[: len(whole) - cut] if cut < 20 else whole)
    plain = _read(frame, version, 1000)
    if plain is not None:
        try:
            assert plain == _declared(frame, version)
        except (UnicodeDecodeError, codec.DecodeError):
            with pytest.raises(UnicodeDecodeError):  # Left to whoever looks for the topic.
                [str(name, "utf-8") for name, _ in plain.topics]


@settings(max_examples=300)
@given(frame=st.binary(max_size=80), version=st.integers(-2, 20))
def test_noise_is_left_alone(frame: bytes, version: int) -> None:
    """Random bytes never raise, and hardly ever look like a request."""
    plain = _read(frame, version, 1000)
    if plain is not None:
        assert plain == _declared(frame, version)


ONE = ("t", UUID(int=1), [(0, -1, 5, -1, 1000)])
OTHER = ("u", UUID(int=2), [(0, -1, 5, -1, 1000), (1, -1, 5, -1, 1000)])


@pytest.mark.parametrize("version", range(10, 18))
def test_what_is_not_ordinary_is_left_alone(version: int) -> None:
    """Followers, sessions, partitions named twice, other layouts, bytes behind the request."""
    frame = _frame(version, [ONE, OTHER])
    assert _read(frame, version, 3) is not None
    assert _read(frame, version, 2) is None
    assert _read(frame + b"\0", version, 9) is None
    assert _read(frame, 9, 9) is _read(frame, 18, 9) is None
    forgotten = [ForgottenTopic(topic="t", topic_id=UUID(int=1), partitions=[0])]
    follower = {"replica_state": ReplicaState(replica_id=1)} if version > 14 else {"replica_id": 1}
    for special in (
        follower,
        {"session_id": 1, "session_epoch": 1},
        {"session_epoch": 0},
        {"forgotten_topics_data": forgotten},
    ):
        assert _read(_frame(version, [ONE], **special), version, 9) is None
    assert _read(_frame(version, [ONE, ONE]), version, 9) is None
    assert _read(_frame(version, [(*ONE[:2], ONE[2] * 2)]), version, 9) is None
    if version >= 12:
        tagged = _frame(version, [ONE], cluster_id="c")
        assert _read(tagged, version, 9) is None


FOUND = st.tuples(INT64, INT64, INT64, st.binary(max_size=300))


@given(
    version=VERSIONS,
    topics=st.lists(st.tuples(NAMES, st.uuids(), st.lists(FOUND, max_size=4)), max_size=150),
    throttle_ms=st.integers(0, 2**31 - 1),
    committed=st.booleans(),
)
def test_answers_are_written_as_declared(
    version: int,
    topics: list[tuple[str, UUID, list[tuple[int, int, int, bytes]]]],
    throttle_ms: int,
    committed: bool,
) -> None:
    """Byte for byte what the declared codec writes for the same answers."""
    responses = []
    asked: list[tuple[bytes, list[PlainWanted]]] = []
    found: list[PlainFound] = []
    contents: list[bytes] = []
    for name, topic_id, answers in topics:
        written = topic_id.bytes if version >= FIRST_BY_ID else name.encode()
        asked.append((written, [(index, 0, 0, 0, 0) for index in range(len(answers))]))
        topic = FetchableTopicResponse(topic=name, topic_id=topic_id)
        responses.append(topic)
        for index, (high_watermark, stable, start, records) in enumerate(answers):
            found.append((high_watermark, stable, start, len(records)))
            contents.append(records)
            topic.partitions.append(
                PartitionData(
                    partition_index=index,
                    high_watermark=high_watermark,
                    last_stable_offset=stable,
                    log_start_offset=start,
                    aborted_transactions=[] if committed else None,
                    records=records,
                )
            )
    response = FetchResponse(throttle_time_ms=throttle_ms, responses=responses)
    body = encode_response_header(7, API.response_header_version(version)) + codec.encode(
        response, version
    )
    for module in (plain_fetch, PURE):
        parts = module.answer(version, 7, throttle_ms, asked, found, committed=committed)
        assert len(parts) == len(contents) + 1
        got = parts[0] + b"".join(a + b for a, b in zip(contents, parts[1:], strict=True))
        assert bytes(got) == len(body).to_bytes(4, "big") + body
