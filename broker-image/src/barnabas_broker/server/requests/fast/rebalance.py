"""The short ways of JoinGroup and SyncGroup, from frame to answer.

What a group decides is the same whichever way it is asked (`Shard.join`, `Shard.sync`). These only
read and answer without message objects, and wait without a future: a rebalance of a large group is
little else. What is malformed, not allowed or not to be answered by this broker goes the general
way from its beginning, for nothing has been done about it before.
"""

import logging
from typing import TYPE_CHECKING, Final

from barnabas_broker.coordinator.group.joining import Join
from barnabas_broker.coordinator.group.members import Client
from barnabas_broker.security.authorizer import Authorizer
from barnabas_broker.server.requests.fast.reading_rights import ReadingRights
from barnabas_broker.server.requests.handler import UnanswerableError
from barnabas_broker.server.requests.handlers.join_group import refusal as join_refusal
from barnabas_broker.server.requests.handlers.sync_group import PROTOCOL_SINCE
from barnabas_broker.server.requests.handlers.sync_group import refusal as sync_refusal
from barnabas_broker.server.requests.pending_responses import Answers, PendingResponse
from barnabas_broker.server.transport.outbound import Item
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.protocol import codec, registry
from barnabas_kafka.protocol.headers import encode_response_header
from barnabas_kafka.protocol.messages.join_group import JoinGroupResponse
from barnabas_kafka.protocol.messages.sync_group import SyncGroupResponse
from barnabas_kafka.protocol.plain_rebalance import (
    answer_join,
    answer_sync,
    read_join,
    read_sync,
)
from barnabas_kafka.protocol.registry import ApiKey
from barnabas_kafka.protocol.schema import Response

if TYPE_CHECKING:
    from barnabas_broker.server.requests.broker_services import BrokerServices
    from barnabas_broker.server.requests.dispatch import Caller

log = logging.getLogger(__name__)

PROTOCOLS_AT_ONCE: Final = 100
ASSIGNMENTS_AT_ONCE: Final = 10_000
"""Of what a request names; those with more go the general way."""

COPIED_BYTES_MAX: Final = 1 << 20
"""Larger requests go the general way, where no more of them is copied than members keep."""

_JOIN_GROUP: Final = registry.api(ApiKey.JOIN_GROUP)
_SYNC_GROUP: Final = registry.api(ApiKey.SYNC_GROUP)


class ParkedJoin(PendingResponse):
    """A JoinGroup request that waits for the others of its group."""

    __slots__ = ("_member_id",)

    def __init__(self, answers: Answers, version: int, correlation_id: int, member_id: str) -> None:
        super().__init__(answers, version, correlation_id)
        self._member_id = member_id

    def refusal(self, error: KafkaError) -> object:
        """The response where what was decided does not count."""
        return join_refusal(error, self._member_id)

    def encoded(self) -> bytes:
        """The response as it is sent."""
        answer = answer_join(self.version, self.correlation_id, self.response)
        return answer or _declared(_JOIN_GROUP, self.version, self.correlation_id, self.response)


class ParkedSync(PendingResponse):
    """A SyncGroup request that waits for the leader of its group."""

    __slots__ = ()

    def refusal(self, error: KafkaError) -> object:
        """The response where what was decided does not count."""
        return sync_refusal(error)

    def encoded(self) -> bytes:
        """The response as it is sent."""
        return _synced(self.version, self.correlation_id, self.response)


def _synced(version: int, correlation_id: int, response: SyncGroupResponse) -> bytes:
    answer = answer_sync(version, correlation_id, response)
    return answer or _declared(_SYNC_GROUP, version, correlation_id, response)


def _declared(api: registry.Api, version: int, correlation_id: int, response: Response) -> bytes:
    """A response as the declared codec writes it."""
    header = encode_response_header(correlation_id, api.response_header_version(version))
    body = header + codec.encode(response, version)
    return len(body).to_bytes(4, "big") + body


class PlainRebalances:
    """Serves what is ordinary, and leaves the rest alone."""

    __slots__ = ("_answers", "_broker", "_rights")

    def __init__(self, broker: "BrokerServices", authorizer: Authorizer, answers: Answers) -> None:
        self._broker = broker
        self._rights = ReadingRights(authorizer)
        self._answers = answers

    def join(
        self, frame: memoryview, version: int, correlation_id: int, caller: "Caller", now_ms: int
    ) -> list[Item] | PendingResponse | None:
        """What to send, or who waits for it; None for what the general way has to look at.

        Raises UnanswerableError for any bug: what the group has made of the request is not known
        then, so that nothing may be tried again.
        """
        if len(frame) > COPIED_BYTES_MAX:
            if len(frame) > self._broker.groups.join_bytes_max:
                # Before it is copied: that alone takes milliseconds, in which nobody is served.
                refused = JoinGroupResponse(error_code=ErrorCode.GROUP_MAX_SIZE_REACHED)
                return [_declared(_JOIN_GROUP, version, correlation_id, refused)]
            return None
        request = read_join(bytes(frame), version, PROTOCOLS_AT_ONCE)
        if request is None or not self._may_speak(request.group_id, caller):
            return None
        waiter = ParkedJoin(self._answers, version, correlation_id, request.member_id)
        client = Client(request.client_id, f"/{caller.client_host}")
        try:
            held = self._broker.groups.held(request.group_id)
        except KafkaError:
            return None
        try:
            join = Join(request, version, client, waiter, request.protocols)
            self._broker.groups.perform(held, held.shard.join(join, now_ms))
            return waiter if waiter.response is None else [waiter.encoded()]
        except Exception as error:  # The boundary between one request and the broker's life.
            raise _unanswerable("JoinGroup", version, caller) from error

    def sync(
        self, frame: memoryview, version: int, correlation_id: int, caller: "Caller", now_ms: int
    ) -> list[Item] | PendingResponse | None:
        """As `join`."""
        if len(frame) > COPIED_BYTES_MAX:
            return None
        request = read_sync(bytes(frame), version, ASSIGNMENTS_AT_ONCE)
        if request is None or not self._may_speak(request.group_id, caller):
            return None
        if version >= PROTOCOL_SINCE and None in (request.protocol_type, request.protocol_name):
            return None
        groups = self._broker.groups
        try:
            held = groups.held(request.group_id)
        except KafkaError:
            return None
        try:
            known = groups.assignment(held, request)
            if known is not None:
                return [_synced(version, correlation_id, known)]
            waiter = ParkedSync(self._answers, version, correlation_id)
            groups.perform(held, held.shard.sync(request, waiter, now_ms))
            return waiter if waiter.response is None else [waiter.encoded()]
        except Exception as error:  # The boundary between one request and the broker's life.
            raise _unanswerable("SyncGroup", version, caller) from error

    def _may_speak(self, group_id: str, caller: "Caller") -> bool:
        """Whether there can be such a group, and the caller may read in it."""
        return bool(group_id) and self._rights.of_group(caller, group_id)


def _unanswerable(api: str, version: int, caller: "Caller") -> UnanswerableError:
    log.exception("Request failed: %s version %d from %s", api, version, caller.client_host)
    return UnanswerableError(f"{api} failed and cannot say so")
