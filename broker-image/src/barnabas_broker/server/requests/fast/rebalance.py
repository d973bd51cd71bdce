"""The fast routes of JoinGroup and SyncGroup: a rebalance of a large group is little else.

They wait without a future, which would cost as much as the decision.
"""

from collections.abc import Callable
from typing import Any, Final

from barnabas_broker.coordinator.waiting import Parked
from barnabas_broker.server.requests.fast.declared import response_frame
from barnabas_broker.server.requests.handler import FastRoute
from barnabas_broker.server.requests.pending_responses import PendingResponse
from barnabas_broker.server.requests.request_context import RequestContext
from barnabas_broker.server.transport.outbound import Item
from barnabas_kafka.errors import KafkaError
from barnabas_kafka.protocol import registry
from barnabas_kafka.protocol.group_values import GroupJoin, GroupSync
from barnabas_kafka.protocol.messages.sync_group import SyncGroupResponse
from barnabas_kafka.protocol.plain_rebalance import (
    answer_join,
    answer_sync,
    read_join,
    read_sync,
)
from barnabas_kafka.protocol.registry import ApiKey

PROTOCOLS_AT_ONCE: Final = 100
ASSIGNMENTS_AT_ONCE: Final = 10_000
"""Of what a request names; the handler serves those with more."""

COPIED_BYTES_MAX: Final = 1 << 20
"""Of larger requests no more is copied than members keep."""

_JOIN_GROUP: Final = registry.api(ApiKey.JOIN_GROUP)
_SYNC_GROUP: Final = registry.api(ApiKey.SYNC_GROUP)

Refusal = Callable[[KafkaError, str], object]
"""The response where what was decided for a member does not count."""


class _Pending(PendingResponse):
    __slots__ = ("_member_id", "_refusal")

    def __init__(self, call: RequestContext, member_id: str, refusal: Refusal) -> None:
        super().__init__(call.broker.answers, call.version, call.correlation_id)
        self._member_id = member_id
        self._refusal = refusal

    def refusal(self, error: KafkaError) -> object:
        """The response where what was decided does not count."""
        return self._refusal(error, self._member_id)


class PendingJoin(_Pending):
    """A JoinGroup request that waits for the others of its group."""

    __slots__ = ()

    def encoded(self) -> bytes:
        """The response as it is sent."""
        answer = answer_join(self.version, self.correlation_id, self.response)
        return answer or response_frame(
            _JOIN_GROUP, self.version, self.correlation_id, self.response
        )


class PendingSync(_Pending):
    """A SyncGroup request that waits for the leader of its group."""

    __slots__ = ()

    def encoded(self) -> bytes:
        """The response as it is sent."""
        return _synced(self.version, self.correlation_id, self.response)


def joins(
    decide: Callable[[GroupJoin, RequestContext, Parked], Any], refusal: Refusal
) -> FastRoute:
    """The route to what decides on a JoinGroup: it gives the response, or the one that waits."""

    def serve(frame: memoryview, call: RequestContext) -> list[Item] | PendingResponse | None:
        if len(frame) > COPIED_BYTES_MAX:
            return None
        request = read_join(bytes(frame), call.version, PROTOCOLS_AT_ONCE)
        if request is None:
            return None
        pending = PendingJoin(call, request.member_id, refusal)
        response = decide(request, call, pending)
        if isinstance(response, PendingJoin):
            return response
        pending.response = response
        return [pending.encoded()]

    return serve


def syncs(
    decide: Callable[[GroupSync, RequestContext, Parked], Any], refusal: Refusal
) -> FastRoute:
    """As `joins`."""

    def serve(frame: memoryview, call: RequestContext) -> list[Item] | PendingResponse | None:
        if len(frame) > COPIED_BYTES_MAX:
            return None
        request = read_sync(bytes(frame), call.version, ASSIGNMENTS_AT_ONCE)
        if request is None:
            return None
        pending = PendingSync(call, request.member_id, refusal)
        response = decide(request, call, pending)
        if isinstance(response, PendingSync):
            return response
        return [_synced(call.version, call.correlation_id, response)]

    return serve


def _synced(version: int, correlation_id: int, response: SyncGroupResponse) -> bytes:
    answer = answer_sync(version, correlation_id, response)
    return answer or response_frame(_SYNC_GROUP, version, correlation_id, response)
