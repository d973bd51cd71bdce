"""The fast route of Heartbeat, the most frequent request to a coordinator."""

from collections.abc import Callable
from typing import Final

from barnabas_broker.server.requests.handler import FastRoute
from barnabas_broker.server.requests.request_context import RequestContext
from barnabas_broker.server.transport.outbound import Item
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.group_values import GroupHeartbeat
from barnabas_kafka.protocol.plain_heartbeat import answer, read

FRAME_BYTES_AT_ONCE: Final = 64 << 10
"""Larger requests are not even copied to be read."""


def heartbeats(decide: Callable[[GroupHeartbeat, RequestContext], ErrorCode]) -> FastRoute:
    """The route to what decides on a heartbeat."""

    def serve(frame: memoryview, call: RequestContext) -> list[Item] | None:
        if len(frame) > FRAME_BYTES_AT_ONCE:
            return None
        request = read(bytes(frame), call.version)
        if request is None:
            return None
        return [answer(call.version, call.correlation_id, decide(request, call))]

    return serve
