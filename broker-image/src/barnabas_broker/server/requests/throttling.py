"""Counts what a request has used once its response is known, and writes the throttle time there."""

import re
from typing import Any, Final

from barnabas_broker.security.acls import AclOperation
from barnabas_broker.server.requests.client_quotas import Usage
from barnabas_broker.server.requests.request_context import RequestContext
from barnabas_kafka.protocol import codec
from barnabas_kafka.protocol.registry import Api, ApiKey

EXEMPT: Final = frozenset(
    map(
        int,
        (
            ApiKey.LEADER_AND_ISR,
            ApiKey.STOP_REPLICA,
            ApiKey.UPDATE_METADATA,
            ApiKey.CONTROLLED_SHUTDOWN,
            ApiKey.WRITE_TXN_MARKERS,
            ApiKey.ALTER_PARTITION,
            ApiKey.ALLOCATE_PRODUCER_IDS,
        ),
    )
)
"""What brokers ask of each other; a client that may not ask it is not exempt."""

OF_BROKER: Final = re.compile(r"broker-\d+-to-controller")
"""The client ids by which brokers ask the controller."""

_CLUSTER_ACTION: Final = AclOperation.CLUSTER_ACTION
_PRODUCE: Final = int(ApiKey.PRODUCE)


def exempt_broker(call: RequestContext) -> bool:
    """Whether a broker asks the controller for one of its own clients, whose usage it counts.

    The controller would count it against the user of the brokers, which a quota of all users limits
    like any other, and throttle what else they ask of it. A client passes for a broker only where
    it may perform ClusterAction.
    """
    usage = call.usage
    if (
        usage is None
        or call.listener not in call.broker.settings.listeners_among_brokers
        or not OF_BROKER.fullmatch(call.client_id or "")
        or not call.allowed_on_cluster(_CLUSTER_ACTION, audited=False)
    ):
        return False
    usage.exempt()
    return True


def settle(api: Api, call: RequestContext, response: Any) -> Any:
    """The response with its throttle time, None where there is none.

    What is settled already, as fetches are, has its throttle time.
    """
    usage = call.usage
    if usage is None or usage.settled:
        return response
    _count(usage, call, answered=response is not None)
    return _throttled(api, call, response, usage.throttle_ms)


def settle_unanswered(call: RequestContext, *, left: bool) -> None:
    """Count a request that is not answered; `left`: because its client was quicker to leave.

    Its time counts then, or a client that never waits would have no limit. A Produce that wants no
    answer counts by its bytes alone, as in Kafka.
    """
    usage = call.usage
    if usage is not None and not usage.settled:
        _count(usage, call, answered=left)


def _count(usage: Usage, call: RequestContext, *, answered: bool) -> None:
    if call.api_key == _PRODUCE:
        usage.produced(answered=answered)
    elif call.api_key in EXEMPT and call.allowed_on_cluster(_CLUSTER_ACTION, audited=False):
        usage.exempt()
    else:
        usage.requested()


def _throttled(api: Api, call: RequestContext, response: Any, throttle_ms: int) -> Any:
    """The response with a throttle time, where it has a place for one."""
    if not throttle_ms or response is None:
        return response
    if type(response) is bytes:  # Encoded before, for others too.
        decoded, _ = codec.decode_from(api.response, memoryview(response), call.version, 0)
        if hasattr(decoded, "throttle_time_ms"):
            decoded.throttle_time_ms = throttle_ms
            return codec.encode(decoded, call.version)
    elif hasattr(response, "throttle_time_ms"):
        response.throttle_time_ms = throttle_ms
    return response
