"""SyncGroup (key 14): hands out the leader's assignment to the members.

Versions:
   1: response adds throttle_time_ms.
   2: the client does the waiting of a throttle.
   3: static members (KIP-345); request adds group_instance_id.
   4: flexible.
   5: request adds protocol_type, protocol_name; response adds protocol_type, protocol_name.
"""

from barnabas_kafka.protocol.schema import (
    Request,
    Response,
    Struct,
    array,
    binary,
    int16,
    int32,
    string,
)


class SyncGroupRequestAssignment(Struct):
    """Element of `assignments` in the request."""

    member_id: str = string("0+")
    assignment: bytes = binary("0+")


class SyncGroupRequest(Request, api_key=14, versions="0-5", flexible="4+"):
    """SyncGroup request."""

    group_id: str = string("0+")
    generation_id: int = int32("0+")
    member_id: str = string("0+")
    group_instance_id: str | None = string("3+", nullable="3+", default=None)
    protocol_type: str | None = string("5+", nullable="5+", default=None, ignorable=True)
    protocol_name: str | None = string("5+", nullable="5+", default=None, ignorable=True)
    assignments: list[SyncGroupRequestAssignment] = array(SyncGroupRequestAssignment, "0+")


class SyncGroupResponse(Response, api_key=14, versions="0-5", flexible="4+"):
    """SyncGroup response."""

    throttle_time_ms: int = int32("1+", ignorable=True)
    error_code: int = int16("0+")
    protocol_type: str | None = string("5+", nullable="5+", default=None, ignorable=True)
    protocol_name: str | None = string("5+", nullable="5+", default=None, ignorable=True)
    assignment: bytes = binary("0+")
