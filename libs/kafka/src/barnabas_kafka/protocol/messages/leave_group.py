"""LeaveGroup (key 13): takes members out of a group.

Versions:
   1: response adds throttle_time_ms.
   2: the client does the waiting of a throttle.
   3: several members in one request; request adds members; request drops member_id; response
      adds members.
   4: flexible.
   5: request adds reason.
"""

from barnabas_kafka.protocol.schema import Request, Response, Struct, array, int16, int32, string


class MemberIdentity(Struct):
    """Element of `members` in the request."""

    member_id: str = string("3+")
    group_instance_id: str | None = string("3+", nullable="3+", default=None)
    reason: str | None = string("5+", nullable="5+", default=None, ignorable=True)


class LeaveGroupRequest(Request, api_key=13, versions="0-5", flexible="4+"):
    """LeaveGroup request."""

    group_id: str = string("0+")
    member_id: str = string("0-2")
    members: list[MemberIdentity] = array(MemberIdentity, "3+")


class MemberResponse(Struct):
    """Element of `members` in the response."""

    member_id: str = string("3+")
    group_instance_id: str | None = string("3+", nullable="3+")
    error_code: int = int16("3+")


class LeaveGroupResponse(Response, api_key=13, versions="0-5", flexible="4+"):
    """LeaveGroup response."""

    throttle_time_ms: int = int32("1+", ignorable=True)
    error_code: int = int16("0+")
    members: list[MemberResponse] = array(MemberResponse, "3+")
