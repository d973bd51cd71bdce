"""FindCoordinator (key 10): finds the broker that coordinates a group or a transactional id.

Versions:
   1: request adds key_type; response adds throttle_time_ms, error_message.
   3: flexible.
   4: several keys in one request (KIP-699); request adds coordinator_keys; request drops key;
      response adds coordinators; response drops error_code, error_message, node_id, host, port.
   5: TRANSACTION_ABORTABLE may be answered.
   6: share groups (KIP-932).
"""

from barnabas_kafka.protocol.schema import (
    STRING,
    Request,
    Response,
    Struct,
    array,
    int8,
    int16,
    int32,
    string,
)


class FindCoordinatorRequest(Request, api_key=10, versions="0-6", flexible="3+"):
    """FindCoordinator request."""

    key: str = string("0-3")
    key_type: int = int8("1+")
    coordinator_keys: list[str] = array(STRING, "4+")


class Coordinator(Struct):
    """Element of `coordinators` in the response."""

    key: str = string("4+")
    node_id: int = int32("4+")
    host: str = string("4+")
    port: int = int32("4+")
    error_code: int = int16("4+")
    error_message: str | None = string("4+", nullable="4+", ignorable=True)


class FindCoordinatorResponse(Response, api_key=10, versions="0-6", flexible="3+"):
    """FindCoordinator response."""

    throttle_time_ms: int = int32("1+", ignorable=True)
    error_code: int = int16("0-3")
    error_message: str | None = string("1-3", nullable="1-3", ignorable=True)
    node_id: int = int32("0-3")
    host: str = string("0-3")
    port: int = int32("0-3")
    coordinators: list[Coordinator] = array(Coordinator, "4+")
