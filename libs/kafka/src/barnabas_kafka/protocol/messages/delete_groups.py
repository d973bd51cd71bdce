"""DeleteGroups (key 42): deletes groups without members.

Versions:
   1: the client does the waiting of a throttle.
   2: flexible.
   3: response adds error_message.
"""

from barnabas_kafka.protocol.schema import (
    STRING,
    Request,
    Response,
    Struct,
    array,
    int16,
    int32,
    string,
)


class DeleteGroupsRequest(Request, api_key=42, versions="0-3", flexible="2+"):
    """DeleteGroups request."""

    groups_names: list[str] = array(STRING, "0+")


class DeletableGroupResult(Struct):
    """Element of `results` in the response."""

    group_id: str = string("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("3+", nullable="3+", default=None, ignorable=True)


class DeleteGroupsResponse(Response, api_key=42, versions="0-3", flexible="2+"):
    """DeleteGroups response."""

    throttle_time_ms: int = int32("0+")
    results: list[DeletableGroupResult] = array(DeletableGroupResult, "0+")
