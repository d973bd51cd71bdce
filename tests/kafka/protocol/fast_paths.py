"""The table of fast paths: six requests that are read, and answered, in one pass each.

`test_fast_paths` holds every row against the declared codec of its API, compiled and from source.
A row says how to draw requests and responses, and what the declared codec finds in a request.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from types import ModuleType
from typing import Any, Final
from uuid import UUID

from hypothesis import strategies as st

from barnabas_kafka.protocol import (
    codec,
    group_values,
    plain_commit,
    plain_fetch,
    plain_heartbeat,
    plain_produce,
    plain_rebalance,
    registry,
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
from barnabas_kafka.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from barnabas_kafka.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
    JoinGroupResponseMember,
)
from barnabas_kafka.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from barnabas_kafka.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from barnabas_kafka.protocol.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from barnabas_kafka.protocol.plain_fetch import FIRST_BY_ID
from tests.kafka.protocol.fast_path import CORRELATION_ID, Answer, Example, FastPath, framed

INT16 = st.integers(-(2**15), 2**15 - 1)
INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)
NAMES = st.text(st.characters(codec="utf-8"), max_size=150)
# Longer than what one byte of a varint counts.
BYTES = st.binary(max_size=20) | st.binary(min_size=126, max_size=130)
# Beyond what an int16 counts.
LONG = "x" * 0x8000


def _no_instance_before(first: int, request: Any, version: int) -> None:
    if version < first:
        request.group_instance_id = None


# --- OffsetCommit ---------------------------------------------------------------------------------

COMMIT = registry.api(8)
COMMITTED = st.builds(
    OffsetCommitRequestPartition,
    partition_index=INT32,
    committed_offset=INT64,
    committed_leader_epoch=INT32,
    committed_metadata=st.none() | NAMES,
)
COMMITS = st.builds(
    OffsetCommitRequest,
    group_id=NAMES,
    generation_id_or_member_epoch=INT32,
    member_id=NAMES,
    group_instance_id=st.none() | NAMES,
    topics=st.lists(
        st.builds(
            OffsetCommitRequestTopic,
            name=NAMES,
            partitions=st.lists(COMMITTED, min_size=1, max_size=3),
        ),
        min_size=1,
        max_size=3,
    ),
)


def _declared_commit(request: OffsetCommitRequest, _: str | None, _version: int) -> object:
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


def _commit(topics: dict[str, int], metadata: str = "m", **more: Any) -> OffsetCommitRequest:
    """Commit of so many partitions of each topic."""
    partition = partial(
        OffsetCommitRequestPartition, committed_offset=5, committed_metadata=metadata
    )
    return OffsetCommitRequest(
        **{"group_id": "g", "generation_id_or_member_epoch": 3, "member_id": "m", **more},
        topics=[
            OffsetCommitRequestTopic(
                name=name, partitions=[partition(partition_index=0) for _ in range(count)]
            )
            for name, count in topics.items()
        ],
    )


def _commit_examples(version: int) -> Iterable[Example]:
    """Nothing to commit, retentions, texts that no record can hold, and very many partitions."""
    yield Example(_commit({"t": 1}), taken=True)
    yield Example(_commit({}), taken=False)
    yield Example(_commit({"t": 0}), taken=False)
    if version in (2, 3, 4):
        yield Example(_commit({"t": 1}, retention_time_ms=60_000), taken=False)
    if version >= 8:  # Only flexible requests have room for them.
        yield Example(_commit({"t": 1}, group_id=LONG), taken=False)
        yield Example(_commit({"t": 1}, LONG), taken=False)
    for topics, parts in (({"t": 2}, 2), ({"t": 2, "u": 1}, 3)):
        yield Example(_commit(topics), taken=True, most=parts)
        yield Example(_commit(topics), taken=False, most=parts - 1)


def _commit_answers(version: int) -> st.SearchStrategy[Answer]:
    def answer(request: OffsetCommitRequest) -> Answer:
        path = PATHS["OffsetCommit"]
        found = path.read(path.frame(request, version), version)
        topics = [
            OffsetCommitResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetCommitResponsePartition(partition_index=each.partition_index)
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ]
        expected = framed(OffsetCommitResponse(topics=topics), COMMIT, version)
        return Answer(expected, lambda module: module.answer(version, CORRELATION_ID, found[5]))

    return COMMITS.map(answer)


# --- Fetch ----------------------------------------------------------------------------------------

FETCH = registry.api(1)


def _fetches(wanted: list[tuple[str, UUID, list[FetchPartition]]], **more: Any) -> FetchRequest:
    request = FetchRequest(**{"max_wait_ms": 500, "min_bytes": 1, "max_bytes": 1000, **more})
    for name, topic_id, partitions in wanted:
        request.topics.append(FetchTopic(topic=name, topic_id=topic_id, partitions=partitions))
    return request


FETCHED = st.builds(
    FetchPartition,
    partition=INT32,
    current_leader_epoch=INT32,
    fetch_offset=INT64,
    last_fetched_epoch=INT32,
    log_start_offset=INT32,
    partition_max_bytes=INT32,
)
FETCHES = st.builds(
    _fetches,
    st.lists(
        st.tuples(
            NAMES,
            st.uuids(),
            st.lists(FETCHED, max_size=4, unique_by=lambda wanted: wanted.partition),
        ),
        max_size=4,
        unique_by=(lambda topic: topic[0], lambda topic: topic[1]),
    ),
    isolation_level=st.integers(0, 1),
    rack_id=st.sampled_from(["", "rack"]),
)


def _blank_fetch(request: FetchRequest, version: int) -> None:
    if version < 12:
        for topic in request.topics:
            for wanted in topic.partitions:
                wanted.last_fetched_epoch = -1


def _declared_fetch(request: FetchRequest, client_id: str | None, version: int) -> object:
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
    return plain_fetch.PlainFetch(client_id, *limits, topics, names_rack=request.rack_id != "")


def _has_undecodable_name(found: plain_fetch.PlainFetch) -> bool:
    if found.names_rack:  # It is decoded only where a replica selector asks for it.
        return True
    try:
        for name, _ in found.topics:
            str(name, "utf-8")
    except UnicodeDecodeError:
        return True
    return False


def _fetch_examples(version: int) -> Iterable[Example]:
    """Followers, sessions, partitions named twice, a cluster's id, and very many partitions."""
    partition = partial(FetchPartition, fetch_offset=5, partition_max_bytes=1000)
    one = ("t", UUID(int=1), [partition(partition=0)])
    other = ("u", UUID(int=2), [partition(partition=0), partition(partition=1)])
    yield Example(_fetches([one, other]), taken=True, most=3)
    yield Example(_fetches([one, other]), taken=False, most=2)
    yield Example(_fetches([one, one]), taken=False)
    yield Example(_fetches([(*one[:2], one[2] * 2)]), taken=False)
    forgotten = [ForgottenTopic(topic="t", topic_id=UUID(int=1), partitions=[0])]
    special: list[dict[str, Any]] = [
        {"replica_state": ReplicaState(replica_id=1)} if version > 14 else {"replica_id": 1},
        {"session_id": 1, "session_epoch": 1},
        {"session_epoch": 0},
        {"forgotten_topics_data": forgotten},
    ]
    if version >= 12:
        special.append({"cluster_id": "c"})
    for fields in special:
        yield Example(_fetches([one], **fields), taken=False)


FOUND = st.tuples(INT64, INT64, INT64, st.binary(max_size=300))


def _fetch_answers(version: int) -> st.SearchStrategy[Answer]:
    def answer(
        topics: list[tuple[str, UUID, list[tuple[int, int, int, bytes]]]],
        throttle_ms: int,
        committed: bool,
    ) -> Answer:
        responses = [
            FetchableTopicResponse(
                topic=name,
                topic_id=topic_id,
                partitions=[
                    PartitionData(
                        partition_index=index,
                        high_watermark=high_watermark,
                        last_stable_offset=stable,
                        log_start_offset=start,
                        aborted_transactions=[] if committed else None,
                        records=records,
                    )
                    for index, (high_watermark, stable, start, records) in enumerate(answers)
                ],
            )
            for name, topic_id, answers in topics
        ]
        asked = [
            (
                topic_id.bytes if version >= FIRST_BY_ID else name.encode(),
                [(index, 0, 0, 0, 0) for index in range(len(answers))],
            )
            for name, topic_id, answers in topics
        ]
        given = [each for _, _, answers in topics for each in answers]
        found = [(*offsets, len(records)) for *offsets, records in given]

        def write(module: ModuleType) -> bytes:
            parts = module.answer(
                version, CORRELATION_ID, throttle_ms, asked, found, committed=committed
            )
            assert len(parts) == len(given) + 1
            return bytes(parts[0]) + b"".join(
                each[3] + bytes(part) for each, part in zip(given, parts[1:], strict=True)
            )

        response = FetchResponse(throttle_time_ms=throttle_ms, responses=responses)
        return Answer(framed(response, FETCH, version), write)

    topics = st.lists(st.tuples(NAMES, st.uuids(), st.lists(FOUND, max_size=4)), max_size=150)
    return st.builds(answer, topics, st.integers(0, 2**31 - 1), st.booleans())


# --- Heartbeat ------------------------------------------------------------------------------------

HEARTBEAT = registry.api(12)
HEARTBEATS = st.builds(
    HeartbeatRequest,
    group_id=NAMES,
    generation_id=INT32,
    member_id=NAMES,
    group_instance_id=st.none() | NAMES,
)


def _heartbeat_answers(version: int) -> st.SearchStrategy[Answer]:
    def answer(code: int) -> Answer:
        expected = framed(HeartbeatResponse(error_code=code), HEARTBEAT, version)
        return Answer(expected, lambda module: module.answer(version, CORRELATION_ID, code))

    return (st.sampled_from((0, 27, -1)) | INT16).map(answer)


# --- Produce --------------------------------------------------------------------------------------

PRODUCE = registry.api(0)


def _produce(topics: list[tuple[str, list[tuple[int, bytes | None]]]], **more: Any) -> Any:
    return ProduceRequest(
        **{"acks": -1, "timeout_ms": 1000, **more},
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


PRODUCES = st.builds(
    _produce,
    st.lists(
        st.tuples(NAMES, st.lists(st.tuples(INT32, st.binary(max_size=300)), max_size=4)),
        min_size=1,
        max_size=4,
    ),
    acks=st.integers(-1, 1),
)


def _declared_produce(request: ProduceRequest, client_id: str | None, _version: int) -> object:
    assert request.transactional_id is None
    topics = [
        (
            topic.name,
            topic.name.encode(),
            [(data.index, bytes(data.records or b"")) for data in topic.partition_data],
        )
        for topic in request.topic_data
    ]
    return client_id, request.acks, topics


def _produce_content(frame: bytes, found: plain_produce.PlainRequest) -> object:
    client_id, acks, topics = found
    return (
        client_id,
        acks,
        [
            (name, written, [(index, frame[start:end]) for index, start, end in partitions])
            for name, written, partitions in topics
        ],
    )


def _produce_examples(_version: int) -> Iterable[Example]:
    """Transactions, nulls, and very many partitions, which count together over the topics."""
    two: list[tuple[int, bytes | None]] = [(0, b""), (1, b"")]
    yield Example(_produce([("t", [(0, b"records")])]), taken=True)
    yield Example(_produce([("t", [(0, b"records")])], transactional_id="x"), taken=False)
    yield Example(_produce([("t", [(0, None)])], acks=1), taken=False)
    for parts in ([("t", two)], [("t", two), ("u", two[:1])]):
        count = sum(len(each) for _, each in parts)
        yield Example(_produce(parts), taken=True, most=count)
        yield Example(_produce(parts), taken=False, most=count - 1)
    yield Example(_produce([("t", []), ("u", [])]), taken=False, most=1)


def _produce_answers(version: int) -> st.SearchStrategy[Answer]:
    def answer(
        topics: list[tuple[str, list[tuple[int, int, int, int]]]], throttle_ms: int
    ) -> Answer:
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
        asked = [(name, name.encode(), [(one[0], 0, 0) for one in each]) for name, each in topics]
        given = [one for _, answers in topics for one in answers]
        return Answer(
            framed(response, PRODUCE, version),
            lambda module: module.answer(version, CORRELATION_ID, asked, given, throttle_ms),
        )

    answers = st.lists(st.tuples(INT32, INT64, INT64, INT64), max_size=4)
    topics = st.lists(st.tuples(NAMES, answers), max_size=150)
    return st.builds(answer, topics, st.integers(0, 2**31 - 1))


# --- JoinGroup and SyncGroup ----------------------------------------------------------------------

JOIN, SYNC = registry.api(11), registry.api(14)
TEXTS = st.none() | NAMES
THROTTLES = st.sampled_from((0, 0, 0, 5))
JOINS = st.builds(
    JoinGroupRequest,
    group_id=NAMES,
    session_timeout_ms=INT32,
    rebalance_timeout_ms=INT32,
    member_id=NAMES,
    group_instance_id=TEXTS,
    protocol_type=NAMES,
    protocols=st.lists(st.builds(JoinGroupRequestProtocol, name=NAMES, metadata=BYTES), max_size=5),
    reason=TEXTS,
)
SYNCS = st.builds(
    SyncGroupRequest,
    group_id=NAMES,
    generation_id=INT32,
    member_id=NAMES,
    group_instance_id=TEXTS,
    protocol_type=TEXTS,
    protocol_name=TEXTS,
    assignments=st.lists(
        st.builds(SyncGroupRequestAssignment, member_id=NAMES, assignment=BYTES), max_size=5
    ),
)
JOINED = st.builds(
    JoinGroupResponse,
    throttle_time_ms=THROTTLES,
    error_code=INT16,
    generation_id=INT32,
    protocol_type=TEXTS,
    protocol_name=TEXTS,
    leader=NAMES | st.just(LONG),  # That has no room in old versions.
    skip_assignment=st.booleans(),
    member_id=NAMES,
    members=st.lists(
        st.builds(
            JoinGroupResponseMember, member_id=NAMES, group_instance_id=TEXTS, metadata=BYTES
        ),
        max_size=4,
    ),
)
SYNCED = st.builds(
    SyncGroupResponse,
    throttle_time_ms=THROTTLES,
    error_code=INT16,
    protocol_type=TEXTS,
    protocol_name=TEXTS,
    assignment=BYTES,
)


def _declared_join(request: JoinGroupRequest, client_id: str | None, _version: int) -> object:
    return group_values.GroupJoin(
        client_id or "",
        request.group_id,
        request.session_timeout_ms,
        request.rebalance_timeout_ms,
        request.member_id,
        request.group_instance_id,
        request.protocol_type,
        tuple((each.name, bytes(each.metadata)) for each in request.protocols),
    )


def _declared_sync(request: SyncGroupRequest, _: str | None, _version: int) -> object:
    return group_values.GroupSync(
        request.group_id,
        request.generation_id,
        request.member_id,
        request.group_instance_id,
        request.protocol_type,
        request.protocol_name,
        [(each.member_id, bytes(each.assignment)) for each in request.assignments],
    )


def _join_examples(_version: int) -> Iterable[Example]:
    """More protocols than a member may have."""
    for count in (1, 3):
        protocols = [JoinGroupRequestProtocol(name="p", metadata=b"") for _ in range(count)]
        request = JoinGroupRequest(group_id="g", protocols=protocols)
        yield Example(request, taken=True, most=count)
        yield Example(request, taken=False, most=count - 1)


def _sync_examples(_version: int) -> Iterable[Example]:
    """More assignments than a group may have members."""
    for count in (1, 3):
        assignments = [SyncGroupRequestAssignment(member_id="m") for _ in range(count)]
        request = SyncGroupRequest(group_id="g", assignments=assignments)
        yield Example(request, taken=True, most=count)
        yield Example(request, taken=False, most=count - 1)


def _group_answers(
    api: registry.Api, name: str, responses: st.SearchStrategy[Any], version: int
) -> st.SearchStrategy[Answer]:
    def answer(response: JoinGroupResponse | SyncGroupResponse) -> Answer:
        try:
            expected = framed(response, api, version)
        except codec.EncodeError:
            expected = None
        return Answer(
            expected,
            lambda module: getattr(module, name)(version, CORRELATION_ID, response),
            may_decline=expected is None or response.throttle_time_ms != 0,
        )

    return responses.map(answer)


PATHS: Final = {
    path.name: path
    for path in (
        FastPath(
            "Produce",
            PRODUCE,
            plain_produce,
            (plain_produce.FIRST_VERSION, plain_produce.LAST_VERSION),
            PRODUCES,
            _declared_produce,
            _produce_answers,
            content=_produce_content,
            examples=_produce_examples,
        ),
        FastPath(
            "Fetch",
            FETCH,
            plain_fetch,
            (plain_fetch.FIRST_VERSION, plain_fetch.LAST_VERSION),
            FETCHES,
            _declared_fetch,
            _fetch_answers,
            examples=_fetch_examples,
            blank=_blank_fetch,
            is_undecodable=_has_undecodable_name,
        ),
        FastPath(
            "OffsetCommit",
            COMMIT,
            plain_commit,
            (plain_commit.FIRST_VERSION, plain_commit.LAST_VERSION),
            COMMITS,
            _declared_commit,
            _commit_answers,
            examples=_commit_examples,
            blank=partial(_no_instance_before, 7),
        ),
        FastPath(
            "Heartbeat",
            HEARTBEAT,
            plain_heartbeat,
            (plain_heartbeat.FIRST_VERSION, plain_heartbeat.LAST_VERSION),
            HEARTBEATS,
            lambda request, _, _version: tuple(
                getattr(request, name) for name in group_values.GroupHeartbeat._fields
            ),
            _heartbeat_answers,
            is_bounded=False,
            blank=partial(_no_instance_before, 3),
        ),
        FastPath(
            "JoinGroup",
            JOIN,
            plain_rebalance,
            (0, plain_rebalance.LAST_JOIN),
            JOINS,
            _declared_join,
            partial(_group_answers, JOIN, "answer_join", JOINED),
            examples=_join_examples,
            reader="read_join",
            blank=partial(_no_instance_before, 5),
        ),
        FastPath(
            "SyncGroup",
            SYNC,
            plain_rebalance,
            (0, plain_rebalance.LAST_SYNC),
            SYNCS,
            _declared_sync,
            partial(_group_answers, SYNC, "answer_sync", SYNCED),
            examples=_sync_examples,
            reader="read_sync",
            blank=partial(_no_instance_before, 3),
        ),
    )
}
