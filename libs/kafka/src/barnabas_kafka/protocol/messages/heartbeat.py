"""Heartbeat (key 12): keeps a group member alive.

Versions:
   1: response adds throttle_time_ms.
   2: the client does the waiting of a throttle.
   3: static members (KIP-345); request adds group_instance_id.
   4: flexible.
"""

from barnabas_kafka.protocol.schema import Request, Response, int16, int32, string


class HeartbeatRequest(Request, api_key=12, versions="0-4", flexible="4+"):
    """Heartbeat request."""

    group_id: str = string("0+")
    generation_id: int = int32("0+")
    member_id: str = string("0+")
    group_instance_id: str | None = string("3+", nullable="3+", default=None)


class HeartbeatResponse(Response, api_key=12, versions="0-4", flexible="4+"):
    """Heartbeat response."""

    throttle_time_ms: int = int32("1+", ignorable=True)
    error_code: int = int16("0+")
