"""The fast route of OffsetCommit: consumers commit often, one small request after the other.

It serves what nearly all requests hold: a few partitions that exist, committed by a member where
its group has it, whose records count as soon as they are appended. Nothing is changed where any of
that is otherwise, errors and waits included: the request goes to the handler then.
"""

from collections.abc import Callable
from typing import Final

from barnabas_broker.server.requests.handler import FastRoute
from barnabas_broker.server.requests.request_context import RequestContext
from barnabas_kafka.protocol.group_values import GroupCommit
from barnabas_kafka.protocol.plain_commit import answer, read

PARTITIONS_AT_ONCE: Final = 100
"""Requests for more are served in time slices: these take a fraction of a millisecond."""

FRAME_BYTES_AT_ONCE: Final = 512 << 10
"""Larger requests are not even copied to be read. A hundred offsets with metadata of 4 KiB each are
less."""


def commits(commit_at_once: Callable[[GroupCommit, RequestContext], bool]) -> FastRoute:
    """The route to what commits all of a request, or nothing and returns False."""

    def serve(frame: memoryview, call: RequestContext) -> bytes | None:
        if len(frame) > FRAME_BYTES_AT_ONCE:
            return None
        request = read(bytes(frame), call.version, PARTITIONS_AT_ONCE)
        if request is None or not commit_at_once(request, call):
            return None
        return answer(call.version, call.correlation_id, request[5])

    return serve
