"""ListGroups (key 16): lists the groups a broker coordinates.

Versions:
   1: response adds throttle_time_ms.
   3: flexible.
   4: filter by state (KIP-518); request adds states_filter; response adds group_state.
   5: filter by type (KIP-848); request adds types_filter; response adds group_type.
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


class ListGroupsRequest(Request, api_key=16, versions="0-5", flexible="3+"):
    """ListGroups request."""

    states_filter: list[str] = array(STRING, "4+")
    types_filter: list[str] = array(STRING, "5+")


class ListedGroup(Struct):
    """Element of `groups` in the response."""

    group_id: str = string("0+")
    protocol_type: str = string("0+")
    group_state: str = string("4+", ignorable=True)
    group_type: str = string("5+", ignorable=True)


class ListGroupsResponse(Response, api_key=16, versions="0-5", flexible="3+"):
    """ListGroups response."""

    throttle_time_ms: int = int32("1+", ignorable=True)
    error_code: int = int16("0+")
    groups: list[ListedGroup] = array(ListedGroup, "0+")
