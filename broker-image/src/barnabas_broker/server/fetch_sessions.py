"""Begins the session of a Fetch (KIP-227), of consumers and of followers alike."""

from typing import Final

from barnabas_broker.replica.fetch_session import (
    FetchContext,
    Key,
    SessionCache,
    SessionRequest,
    Target,
)
from barnabas_broker.server.call import Call
from barnabas_kafka.protocol.messages.fetch import FetchRequest

FIRST_WITH_SESSIONS: Final = 7
FIRST_WITH_TOPIC_IDS: Final = 13


def begin(
    request: FetchRequest, call: Call, targets: dict[Key, Target], sessions: SessionCache
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
