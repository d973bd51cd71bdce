"""The short way of a Heartbeat request, from frame to answer.

Heartbeats are what a coordinator hears most, and a rebalance begins with one of each member. What
the group says is the same whichever way it is asked (`handlers.heartbeat.beat`); the short way only
reads and answers without a message object. What is malformed or not allowed goes the general way.
"""

import logging
from typing import TYPE_CHECKING, Final

from barnabas_broker.security.authorizer import Authorizer
from barnabas_broker.server.requests.fast.reading_rights import ReadingRights
from barnabas_broker.server.requests.handlers.heartbeat import beat
from barnabas_broker.server.transport.outbound import Item
from barnabas_kafka.protocol.plain_heartbeat import answer, read

if TYPE_CHECKING:
    from barnabas_broker.server.requests.broker_services import BrokerServices
    from barnabas_broker.server.requests.dispatch import Caller

log = logging.getLogger(__name__)

FRAME_BYTES_AT_ONCE: Final = 64 << 10
"""Larger requests are not ordinary, whatever they hold: they are not even copied to be read."""


class PlainHeartbeats:
    """Serves what is ordinary, and leaves the rest alone."""

    __slots__ = ("_broker", "_rights")

    def __init__(self, broker: "BrokerServices", authorizer: Authorizer) -> None:
        self._broker = broker
        self._rights = ReadingRights(authorizer)

    def serve(
        self, frame: memoryview, version: int, correlation_id: int, caller: "Caller", now_ms: int
    ) -> list[Item] | None:
        """What to send, or None for a request that the general way has to look at."""
        if len(frame) > FRAME_BYTES_AT_ONCE:
            return None
        request = read(bytes(frame), version)
        if request is None or not self._rights.of_group(caller, request.group_id):
            return None
        try:
            return [answer(version, correlation_id, beat(request, self._broker.groups))]
        except Exception:  # The boundary between one request and the broker's life.
            log.exception(
                "Request failed: Heartbeat version %d from %s", version, caller.client_host
            )
            return None
