"""DescribeGroups (key 15): the state and members of groups.

Versions:
   1: response adds throttle_time_ms.
   3: request adds include_authorized_operations; response adds authorized_operations.
   4: static members; response adds group_instance_id.
   5: flexible.
   6: GROUP_ID_NOT_FOUND is answered for unknown groups; response adds error_message.
"""

from barnabas_kafka.protocol.schema import (
    STRING,
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


class DescribeGroupsRequest(Request, api_key=15, versions="0-6", flexible="5+"):
    """DescribeGroups request."""

    groups: list[str] = array(STRING, "0+")
    include_authorized_operations: bool = boolean("3+")


class DescribedGroupMember(Struct):
    """Element of `members` in the response."""

    member_id: str = string("0+")
    group_instance_id: str | None = string("4+", nullable="4+", default=None, ignorable=True)
    client_id: str = string("0+")
    client_host: str = string("0+")
    member_metadata: bytes = binary("0+")
    member_assignment: bytes = binary("0+")


class DescribedGroup(Struct):
    """Element of `groups` in the response."""

    error_code: int = int16("0+")
    error_message: str | None = string("6+", nullable="6+", default=None)
    group_id: str = string("0+")
    group_state: str = string("0+")
    protocol_type: str = string("0+")
    protocol_data: str = string("0+")
    members: list[DescribedGroupMember] = array(DescribedGroupMember, "0+")
    authorized_operations: int = int32("3+", default=-0x8000_0000)


class DescribeGroupsResponse(Response, api_key=15, versions="0-6", flexible="5+"):
    """DescribeGroups response."""

    throttle_time_ms: int = int32("1+", ignorable=True)
    groups: list[DescribedGroup] = array(DescribedGroup, "0+")
