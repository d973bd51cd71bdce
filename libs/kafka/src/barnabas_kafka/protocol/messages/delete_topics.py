"""DeleteTopics (key 20): deletes topics.

Versions:
   1: response adds throttle_time_ms.
   4: flexible.
   5: THROTTLING_QUOTA_EXCEEDED may be answered (KIP-599); response adds error_message.
   6: topics by name or id; request adds topics; request drops topic_names; response adds
      topic_id; response: name may be null.
"""

from uuid import UUID

from barnabas_kafka.protocol.schema import (
    STRING,
    Request,
    Response,
    Struct,
    array,
    int16,
    int32,
    string,
    uuid,
)


class DeleteTopicState(Struct):
    """Element of `topics` in the request."""

    name: str | None = string("6+", nullable="6+", default=None)
    topic_id: UUID = uuid("6+")


class DeleteTopicsRequest(Request, api_key=20, versions="0-6", flexible="4+"):
    """DeleteTopics request."""

    topics: list[DeleteTopicState] = array(DeleteTopicState, "6+")
    topic_names: list[str] = array(STRING, "0-5", ignorable=True)
    timeout_ms: int = int32("0+")


class DeletableTopicResult(Struct):
    """Element of `responses` in the response."""

    name: str | None = string("0+", nullable="6+")
    topic_id: UUID = uuid("6+", ignorable=True)
    error_code: int = int16("0+")
    error_message: str | None = string("5+", nullable="5+", default=None, ignorable=True)


class DeleteTopicsResponse(Response, api_key=20, versions="0-6", flexible="4+"):
    """DeleteTopics response."""

    throttle_time_ms: int = int32("1+", ignorable=True)
    responses: list[DeletableTopicResult] = array(DeletableTopicResult, "0+")
