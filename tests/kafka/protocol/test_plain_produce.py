"""The short way through Produce: what the declared codec says, compiled and pure."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas_kafka.protocol import codec, plain_produce, registry
from barnabas_kafka.protocol.headers import (
    RequestHeader,
    decode_client,
    encode_request_header,
    encode_response_header,
)
from barnabas_kafka.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from barnabas_kafka.protocol.plain_produce import PlainAnswer, PlainRequest, PlainTopic
from tests.kafka.pure import pure

API = registry.api(0)
VERSIONS = st.integers(plain_produce.FIRST_VERSION, plain_produce.LAST_VERSION)
INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)
NAMES = st.text(st.characters(codec="utf-8"), max_size=150)
PARTS = st.lists(st.tuples(INT32, st.binary(max_size=300)), max_size=4)
TOPICS = st.lists(st.tuples(NAMES, PARTS), min_size=1, max_size=4)
CLIENTS = st.none() | NAMES


PURE = pure("barnabas_kafka.protocol.plain_produce")


def _frame(
    version: int,
    topics: list[tuple[str, list[tuple[int, bytes]]]],
    *,
    acks: int = -1,
    client_id: str | None = "client",
    transactional_id: str | None = None,
) -> bytes:
    """A Produce request as the declared codec writes it."""
    request = ProduceRequest(
        transactional_id=transactional_id,
        acks=acks,
        timeout_ms=1000,
        topic_data=[
            TopicProduceData(
                name=name,
                partition_data=[
                    PartitionProduceData(index=index, records=records) for index, records in parts
                ],
            )
            for name, parts in topics
        ],
    )
    header = encode_request_header(RequestHeader(0, version, 7, client_id))
    return header + codec.encode(request, version)


def _declared(frame: bytes, version: int) -> tuple[object, ...]:
    """Client id, acks and contents of a request, by the declared codec."""
    client_id, body = decode_client(frame, 0, API.request_header_version(version))
    request, end = codec.decode_from(ProduceRequest, frame, version, body)
    assert end == len(frame)
    assert request.transactional_id is None
    topics = [
        (topic.name, [(data.index, bytes(data.records or b"")) for data in topic.partition_data])
        for topic in request.topic_data
    ]
    return client_id, request.acks, topics


def _contents(frame: bytes, plain: PlainRequest) -> tuple[object, ...]:
    """The same of what the short way found."""
    client_id, acks, topics = plain
    for name, written, _ in topics:
        assert written == name.encode()
    found = [
        (name, [(index, frame[start:end]) for index, start, end in partitions])
        for name, _, partitions in topics
    ]
    return client_id, acks, found


def _read(frame: bytes, version: int, most: int = 1000) -> PlainRequest | None:
    """What both lives of the module find, which is the same."""
    found: PlainRequest | None = PURE.read(frame, version, most)
    assert plain_produce.read(frame, version, most) == found
    return found


@given(version=VERSIONS, topics=TOPICS, acks=st.integers(-1, 1), client_id=CLIENTS)
def test_ordinary_requests_are_read_as_declared(
    version: int,
    topics: list[tuple[str, list[tuple[int, bytes]]]],
    acks: int,
    client_id: str | None,
) -> None:
    """Every part of a request without anything special is found, and nothing else."""
    frame = _frame(version, topics, acks=acks, client_id=client_id)
    plain = _read(frame, version)
    assert plain is not None
    assert _contents(frame, plain) == _declared(frame, version) == (client_id, acks, topics)


@settings(max_examples=400)
@given(
    version=VERSIONS,
    topics=TOPICS,
    edits=st.lists(st.tuples(st.integers(8, 2000), st.integers(0, 255)), min_size=1, max_size=4),
    cut=st.integers(0, 40),
)
def test_what_is_read_of_damaged_requests_is_what_is_declared(
    version: int,
    topics: list[tuple[str, list[tuple[int, bytes]]]],
    edits: list[tuple[int, int]],
    cut: int,
) -> None:
    """Either the short way leaves a request alone, or it finds what the declared codec finds."""
    whole = bytearray(_frame(version, topics))
    for where, value in edits:
        whole[8 + where % (len(whole) - 8)] = value
    frame = bytes(whole[: len(whole) - cut] if cut < 20 else whole)
    plain = _read(frame, version)
    if plain is not None:
        assert _contents(frame, plain) == _declared(frame, version)


@settings(max_examples=300)
@given(frame=st.binary(max_size=80), version=st.integers(-2, 14))
def test_noise_is_left_alone(frame: bytes, version: int) -> None:
    """Random bytes never raise, and hardly ever look like a request."""
    plain = _read(frame, version)
    if plain is not None:
        assert _contents(frame, plain) == _declared(frame, version)


@pytest.mark.parametrize("version", range(3, 13))
def test_what_is_not_ordinary_is_left_alone(version: int) -> None:
    """Transactions, nulls, bytes behind the request and versions of other layouts."""
    topics = [("t", [(0, b"records")])]
    frame = _frame(version, topics)
    assert _read(frame, version) is not None
    assert _read(_frame(version, topics, transactional_id="x"), version) is None
    assert _read(frame + b"\0", version) is None
    assert _read(frame, 2) is _read(frame, 13) is None
    nothing = ProduceRequest(
        acks=1,
        topic_data=[
            TopicProduceData(name="t", partition_data=[PartitionProduceData(index=0, records=None)])
        ],
    )
    header = encode_request_header(RequestHeader(0, version, 7, "client"))
    assert _read(header + codec.encode(nothing, version), version) is None


@pytest.mark.parametrize("version", [8, 9])
def test_requests_of_very_many_parts_are_left_alone(version: int) -> None:
    """Partitions count together over the topics; whoever reads them in turns has to do it."""
    one, two = [(0, b"")], [(0, b""), (1, b"")]
    assert _read(_frame(version, [("t", two)]), version, 2) is not None
    assert _read(_frame(version, [("t", two)]), version, 1) is None
    assert _read(_frame(version, [("t", two), ("u", one)]), version, 3) is not None
    assert _read(_frame(version, [("t", two), ("u", one)]), version, 2) is None
    assert _read(_frame(version, [("t", []), ("u", [])]), version, 1) is None


@given(
    version=VERSIONS,
    topics=st.lists(
        st.tuples(NAMES, st.lists(st.tuples(INT32, INT64, INT64, INT64), max_size=4)), max_size=150
    ),
    throttle_ms=st.integers(0, 2**31 - 1),
)
def test_answers_are_written_as_declared(
    version: int, topics: list[tuple[str, list[PlainAnswer]]], throttle_ms: int
) -> None:
    """Byte for byte what the declared codec writes for the same answers."""
    response = ProduceResponse(
        responses=[
            TopicProduceResponse(
                name=name,
                partition_responses=[
                    PartitionProduceResponse(
                        index=index,
                        base_offset=base,
                        log_append_time_ms=append_time,
                        log_start_offset=start,
                    )
                    for index, base, append_time, start in answers
                ],
            )
            for name, answers in topics
        ],
        throttle_time_ms=throttle_ms,
    )
    asked: list[PlainTopic] = [
        (name, name.encode(), [(one[0], 0, 0) for one in answers]) for name, answers in topics
    ]
    given_answers = [one for _, answers in topics for one in answers]
    body = encode_response_header(7, API.response_header_version(version)) + codec.encode(
        response, version
    )
    expected = len(body).to_bytes(4, "big") + body
    for module in (plain_produce, PURE):
        assert module.answer(version, 7, asked, given_answers, throttle_ms) == expected
