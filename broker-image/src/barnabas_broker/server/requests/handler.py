"""What a handler module declares: the API it serves, in which versions, with which function.

Each module under `server/requests/handlers/` has one `HANDLER`. Dispatch collects them, and the
ApiVersions answer is derived from them: a version without a handler is never advertised.
"""

from asyncio import Future
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from barnabas_broker.server.requests.pending_responses import PendingResponse
from barnabas_broker.server.requests.request_context import RequestContext
from barnabas_broker.server.transport.outbound import Item
from barnabas_kafka.protocol.registry import ApiKey, VersionRange

if TYPE_CHECKING:  # The bundle holds handlers; they only name its type.
    from barnabas_broker.server.requests.broker_services import BrokerServices

__all__ = [
    "FastRoute", "FastRun", "Handle", "Handler", "UnanswerableError", "VersionRange",
    "among_others",
]  # fmt: skip

# Request and response classes differ per API. The registry pairs them with the key, so that the
# session always decodes what the handler expects; a type variable here would only hide that. The
# result is the response, a Future of it where the handler must wait for something, or None where
# the protocol has no response (Produce with acks=0). A handler that keeps encoded answers gives the
# bytes of the response's body, in the version asked for, instead of the response. What takes long
# for each of many things is a generator of the result (`server.process.cooperative_scheduler`), and
# so may be what a Future brings.
Handle = Callable[[Any, RequestContext], Any | Future[Any] | None]

FastRoute = Callable[[memoryview, RequestContext], bytes | list[Item] | PendingResponse | None]
"""Serves a frame without message objects where that can be done, by the checks of the handler.

Returns what to send, [] for nothing, or what waits for its response. None leaves the request to the
handler: nothing is done about it then, but for what the route has put into `call.served`. Bytes
alone are a small answer to what takes some microseconds, and may leave in a burst with others.
"""

FastRun = Callable[[memoryview, int, int, RequestContext], tuple[list[bytes], int] | None]
"""Serves several requests, sizes included, from the one at a position on, none of them larger than
so many bytes: their responses, and where the request behind them begins. None, with nothing done,
where they must be served one by one. The correlation id in `call` is none of theirs.
"""


@dataclass(frozen=True, slots=True)
class Handler:
    """One API as this broker serves it.

    `large` says that requests may name more things than are decoded at once: its handler works in
    turns, and does not keep what it was asked for longer than it works.
    """

    api_key: ApiKey
    versions: VersionRange
    handle: Handle
    large: bool = False
    offered: "Callable[[BrokerServices], bool] | None" = None
    """Whether the API is served at the moment; None: always. What is not is not advertised."""
    fast: FastRoute | None = None
    """See `requests.fast`; `barnabas.fast.path.enable` switches them off."""
    fast_run: FastRun | None = None
    too_large: Callable[[int, RequestContext], Any] | None = None
    """The response to a frame of so many bytes that is not even read; None where it is."""


def among_others(broker: "BrokerServices") -> bool:
    """For `offered`: whether other brokers may be members of the cluster."""
    return broker.controller.shared


class UnanswerableError(Exception):
    """No response to this request could be understood, or none exists: the connection must end."""
