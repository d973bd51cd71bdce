"""How a Fetch begins and ends, of consumers and of followers alike: its session, its answers."""

from typing import Final

from barnabas_broker.replica.fetch_session import (
    FetchContext,
    Key,
    SessionCache,
    SessionRequest,
    Target,
)
from barnabas_broker.server.requests.request_context import RequestContext
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    PartitionData,
)

FIRST_WITH_SESSIONS: Final = 7
FIRST_WITH_TOPIC_IDS: Final = 13
JUDGED_FIRST: Final = frozenset(
    {
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
)
"""Errors known without reading a log; they come after all records, as from Apache's brokers."""


def begin(
    request: FetchRequest, call: RequestContext, targets: dict[Key, Target], sessions: SessionCache
) -> FetchContext:
    """The partitions to read, with the session they belong to; raises KafkaError."""
    by_id = call.version >= FIRST_WITH_TOPIC_IDS
    if call.version < FIRST_WITH_SESSIONS:
        return FetchContext(targets, None, incremental=False)
    forgotten = tuple(
        (topic.topic_id if by_id else topic.topic, partition)
        for topic in request.forgotten_topics_data
        for partition in topic.partitions
    )
    return sessions.begin(
        SessionRequest(
            request.session_id, request.session_epoch, str(call.principal), by_id, forgotten
        ),
        targets,
        draw_id=call.broker.draw_session_id,
        now_ms=call.now_ms,
    )


def gather(
    responses: list[FetchableTopicResponse], key: Key, target: Target, data: PartitionData
) -> None:
    """Add the answer for a partition to those before it.

    Neighbours of one topic come together, and no others: the order is that of the request (Kafka's
    `FetchResponse.toMessage`).
    """
    last = responses[-1] if responses else None
    if last is None or key[0] not in (last.topic_id, last.topic):
        last = FetchableTopicResponse(topic=target.topic, topic_id=target.topic_id)
        responses.append(last)
    last.partitions.append(data)
