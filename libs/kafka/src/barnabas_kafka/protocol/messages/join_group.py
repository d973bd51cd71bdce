"""JoinGroup (key 11): enters a member into a group's next generation.

Versions:
   1: request adds rebalance_timeout_ms.
   2: the client does the waiting of a throttle; response adds throttle_time_ms.
   4: a new member is first given its id (KIP-394).
   5: static members (KIP-345); request adds group_instance_id; response adds group_instance_id.
   6: flexible.
   7: response adds protocol_type; response: protocol_name may be null.
   8: request adds reason.
   9: leaders may be asked to skip the assignment (KIP-814); response adds skip_assignment.
"""

from barnabas_kafka.protocol.schema import (
    Request,
    Response,
    Struct,
    array,
    binary,
    boolean,
    int16,
    int32,
    string,
)


class JoinGroupRequestProtocol(Struct):
    """Element of `protocols` in the request."""

    name: str = string("0+")
    metadata: bytes = binary("0+")


class JoinGroupRequest(Request, api_key=11, versions="0-9", flexible="6+"):
    """JoinGroup request."""

    group_id: str = string("0+")
    session_timeout_ms: int = int32("0+")
    rebalance_timeout_ms: int = int32("1+", default=-1, ignorable=True)
    member_id: str = string("0+")
    group_instance_id: str | None = string("5+", nullable="5+", default=None)
    protocol_type: str = string("0+")
    protocols: list[JoinGroupRequestProtocol] = array(JoinGroupRequestProtocol, "0+")
    reason: str | None = string("8+", nullable="8+", default=None, ignorable=True)


class JoinGroupResponseMember(Struct):
    """Element of `members` in the response."""

    member_id: str = string("0+")
    group_instance_id: str | None = string("5+", nullable="5+", default=None, ignorable=True)
    metadata: bytes = binary("0+")


class JoinGroupResponse(Response, api_key=11, versions="0-9", flexible="6+"):
    """JoinGroup response."""

    throttle_time_ms: int = int32("2+", ignorable=True)
    error_code: int = int16("0+")
    generation_id: int = int32("0+", default=-1)
    protocol_type: str | None = string("7+", nullable="7+", default=None, ignorable=True)
    protocol_name: str | None = string("0+", nullable="7+")
    leader: str = string("0+")
    skip_assignment: bool = boolean("9+")
    member_id: str = string("0+")
    members: list[JoinGroupResponseMember] = array(JoinGroupResponseMember, "0+")
