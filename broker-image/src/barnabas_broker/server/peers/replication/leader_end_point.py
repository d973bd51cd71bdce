"""What a follower asks the leader of many partitions, in requests that name them together."""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple
from uuid import UUID

from barnabas_broker.replica.follower import (
    AskEpochEnd,
    AskLogEnds,
    EpochEnd,
    Fetched,
    LogEnds,
)
from barnabas_broker.replica.leader_session import Changes, LeaderSession, WantedPartitions
from barnabas_broker.server.peers.peers import Peers
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.ids import (
    EARLIEST_TIMESTAMP,
    LATEST_TIMESTAMP,
    TopicPartition,
)
from barnabas_kafka.primitives import Buffer
from barnabas_kafka.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas_kafka.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
    ReplicaState,
)
from barnabas_kafka.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from barnabas_kafka.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from barnabas_kafka.protocol.registry import ApiKey

FIRST_WITH_DIVERGING_EPOCH: Final = 12
FIRST_WITH_TOPIC_IDS: Final = 13
FIRST_WITH_REPLICA_STATE: Final = 15

FETCH_MAX: Final = 17
"""The newest Fetch of Apache's brokers in ZooKeeper mode."""

_SESSION_GONE: Final = (
    ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
    ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
)


class FetchLimits(NamedTuple):
    """How much a fetch may bring, and how long it may wait for something."""

    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    partition_max_bytes: int


class Records(NamedTuple):
    """The answer to a fetch of one partition, and its batches."""

    fetched: Fetched
    batches: Buffer


class LeaderEndPoint:
    """The requests of one fetcher to one leader, one in flight at a time.

    Every method raises PeerError where no answer comes, upon which the session is closed.
    """

    def __init__(self, peers: Peers, leader: int, *, broker_id: int) -> None:
        self._peers = peers
        self._leader = leader
        self._broker_id = broker_id
        self._session = LeaderSession()

    async def names_divergence(self, timeout_s: float) -> bool:
        """Whether the leader looks for divergence when it answers Fetch (Kafka 2.7 and newer)."""
        version = await self._fetch_version(timeout_s)
        return version >= FIRST_WITH_DIVERGING_EPOCH

    async def hurry(self, timeout_s: float) -> None:
        """Have a fetch that waits at the leader answered, by a request that comes behind it.

        Apache's leaders answer the fetch in its time all the same, and then this.
        """
        await self._peers.send(
            self._leader,
            ApiVersionsRequest(),
            ApiVersionsResponse,
            timeout_s=timeout_s,
            version_max=0,
        )

    async def epoch_ends(
        self, questions: Mapping[TopicPartition, AskEpochEnd], timeout_s: float
    ) -> dict[TopicPartition, EpochEnd]:
        """Where epochs end in the leader's logs."""
        topics: dict[str, OffsetForLeaderTopic] = {}
        for tp, ask in questions.items():
            topic = topics.setdefault(tp.topic, OffsetForLeaderTopic(topic=tp.topic))
            topic.partitions.append(
                OffsetForLeaderPartition(
                    partition=tp.partition,
                    current_leader_epoch=ask.leader_epoch,
                    leader_epoch=ask.epoch,
                )
            )
        answer = await self._peers.send(
            self._leader,
            OffsetForLeaderEpochRequest(replica_id=self._broker_id, topics=list(topics.values())),
            OffsetForLeaderEpochResponse,
            timeout_s=timeout_s,
        )
        return {
            TopicPartition(of_topic.topic, each.partition): EpochEnd(
                each.leader_epoch, each.end_offset, error_code(each.error_code)
            )
            for of_topic in answer.topics
            for each in of_topic.partitions
        }

    async def log_ends(
        self, questions: Mapping[TopicPartition, AskLogEnds], timeout_s: float
    ) -> dict[TopicPartition, LogEnds]:
        """Where the leader's logs begin and end: their latest first, as Apache's followers ask."""
        ends = await self._offsets(questions, LATEST_TIMESTAMP, timeout_s)
        starts = await self._offsets(questions, EARLIEST_TIMESTAMP, timeout_s)
        found = {}
        for tp, (end, error) in ends.items():
            start, other_error = starts.get(tp, (-1, ErrorCode.UNKNOWN_SERVER_ERROR))
            found[tp] = LogEnds(start, end, error or other_error)
        return found

    async def _offsets(
        self, questions: Mapping[TopicPartition, AskLogEnds], timestamp: int, timeout_s: float
    ) -> dict[TopicPartition, tuple[int, ErrorCode]]:
        topics: dict[str, ListOffsetsTopic] = {}
        for tp, ask in questions.items():
            topic = topics.setdefault(tp.topic, ListOffsetsTopic(name=tp.topic))
            topic.partitions.append(
                ListOffsetsPartition(
                    partition_index=tp.partition,
                    current_leader_epoch=ask.leader_epoch,
                    timestamp=timestamp,
                )
            )
        answer = await self._peers.send(
            self._leader,
            ListOffsetsRequest(replica_id=self._broker_id, topics=list(topics.values())),
            ListOffsetsResponse,
            timeout_s=timeout_s,
        )
        return {
            TopicPartition(of_topic.name, each.partition_index): (
                each.offset,
                error_code(each.error_code),
            )
            for of_topic in answer.topics
            for each in of_topic.partitions
        }

    async def fetch(
        self,
        wanted: WantedPartitions,
        limits: FetchLimits,
        *,
        broker_epoch: int,
        timeout_s: float,
    ) -> dict[TopicPartition, Records]:
        """Records of all partitions for which the leader's response has news.

        Empty where the session has to be opened again. Raises KafkaError where the leader refuses
        the request as a whole for another reason.
        """
        version = await self._fetch_version(timeout_s)
        by_id = version >= FIRST_WITH_TOPIC_IDS and wanted.all_have_ids
        changes = self._session.changes(
            wanted.partitions, by_topic_id=by_id, changed=wanted.changed
        )
        wanted.said()
        if not by_id:
            version = min(version, FIRST_WITH_TOPIC_IDS - 1)
        request = _request(changes, limits, by_id=by_id)
        if version >= FIRST_WITH_REPLICA_STATE:
            request.replica_state = ReplicaState(
                replica_id=self._broker_id, replica_epoch=broker_epoch
            )
        else:
            request.replica_id = self._broker_id
        try:
            answer = await self._peers.send(
                self._leader,
                request,
                FetchResponse,
                timeout_s=timeout_s,
                version_max=version,
            )
        except BaseException:
            self._session.failed()
            raise
        return self._taken(answer)

    def _taken(self, answer: FetchResponse) -> dict[TopicPartition, Records]:
        error = error_code(answer.error_code)
        if error in _SESSION_GONE:
            self._session.end()
            return {}
        if error is not ErrorCode.NONE:
            self._session.failed()
            if error is ErrorCode.INVALID_FETCH_SESSION_EPOCH:
                return {}
            raise KafkaError(error)
        self._session.answered(answer.session_id)
        names = self._session.names
        return {
            TopicPartition(topic.topic or names.get(topic.topic_id, ""), data.partition_index): (
                _records(data)
            )
            for topic in answer.responses
            for data in topic.partitions
        }

    async def _fetch_version(self, timeout_s: float) -> int:
        return await self._peers.version(
            self._leader, ApiKey.FETCH, timeout_s=timeout_s, version_max=FETCH_MAX
        )


def _request(changes: Changes, limits: FetchLimits, *, by_id: bool) -> FetchRequest:
    topics: dict[object, FetchTopic] = {}
    for tp, wanted in changes.send.items():
        key = wanted.topic_id if by_id else tp.topic
        topic = topics.get(key)
        if topic is None:
            topic = topics[key] = FetchTopic(topic=tp.topic, topic_id=wanted.topic_id)
        topic.partitions.append(
            FetchPartition(
                partition=tp.partition,
                current_leader_epoch=wanted.ask.leader_epoch,
                fetch_offset=wanted.ask.offset,
                last_fetched_epoch=wanted.ask.fetched_epoch,
                log_start_offset=wanted.ask.log_start,
                partition_max_bytes=limits.partition_max_bytes,
            )
        )
    return FetchRequest(
        max_wait_ms=limits.max_wait_ms,
        min_bytes=limits.min_bytes,
        max_bytes=limits.max_bytes,
        session_id=changes.session_id,
        session_epoch=changes.epoch,
        topics=list(topics.values()),
        forgotten_topics_data=_forgotten(changes.forget.items(), by_id=by_id),
    )


def _forgotten(gone: Iterable[tuple[TopicPartition, UUID]], *, by_id: bool) -> list[ForgottenTopic]:
    topics: dict[object, ForgottenTopic] = {}
    for tp, topic_id in gone:
        key = topic_id if by_id else tp.topic
        topic = topics.get(key)
        if topic is None:
            topic = topics[key] = ForgottenTopic(topic=tp.topic, topic_id=topic_id)
        topic.partitions.append(tp.partition)
    return list(topics.values())


def _records(data: PartitionData) -> Records:
    diverging = data.diverging_epoch
    records = data.records
    return Records(
        Fetched(
            high_watermark=data.high_watermark,
            log_start=data.log_start_offset,
            diverging=(
                EpochEnd(diverging.epoch, diverging.end_offset)
                if diverging.end_offset >= 0
                else None
            ),
            error=error_code(data.error_code),
        ),
        records if isinstance(records, bytes | bytearray | memoryview) else b"",
    )


def error_code(code: int) -> ErrorCode:
    """The error of that number; what a newer broker invents is UNKNOWN_SERVER_ERROR."""
    try:
        return ErrorCode(code)
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR
