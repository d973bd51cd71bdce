"""From a frame to the handler that serves it, and from its answer to bytes.

The routes are collected from the handler modules once, at start; what is not among them is
neither advertised nor served. Two requests are special, both because a client cannot know
better when it sends them: ApiVersions in a version unknown here is answered in version 0 with
UNSUPPORTED_VERSION (KIP-511), and anything else unknown ends the connection, because no response
could be understood.
"""

import asyncio
import importlib
import logging
import pkgutil
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter_ns
from types import GeneratorType
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from barnabas_broker.log.files import FileSlice
from barnabas_broker.security.authorizer import Authorizer
from barnabas_broker.security.principals import ANONYMOUS, Principal
from barnabas_broker.server.process.fair_queue import flow_of
from barnabas_broker.server.requests import handlers as handlers_package
from barnabas_broker.server.requests.api_metrics import ApiMetrics, RequestMetrics
from barnabas_broker.server.requests.client_quotas import ClientQuotas, Usage
from barnabas_broker.server.requests.error_responses import error_response, needs_request
from barnabas_broker.server.requests.handler import Handler, UnanswerableError
from barnabas_broker.server.requests.handlers.api_versions import unsupported_version_response
from barnabas_broker.server.requests.large_requests import Ending, LargeRequests
from barnabas_broker.server.requests.pending_responses import PendingResponse
from barnabas_broker.server.requests.request_context import RequestContext
from barnabas_broker.server.requests.throttling import settle, settle_unanswered
from barnabas_broker.server.transport.outbound import Item
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.protocol import codec, registry
from barnabas_kafka.protocol.headers import decode_client
from barnabas_kafka.protocol.registry import ApiKey, VersionRange
from barnabas_kafka.settings import broker as keys

if TYPE_CHECKING:
    from barnabas_broker.server.process.deferred_responses import DelayedFailure
    from barnabas_broker.server.requests.broker_services import BrokerServices

log = logging.getLogger(__name__)

NOT_LIMITED: Final[Mapping[ApiKey, int]] = {}

HEAD: Final = struct.Struct(">hhi")  # API key, version, correlation id
SIZED_HEAD: Final = struct.Struct(">4xhh")  # The same up to the version, behind the size.
SIZE_AND_CORRELATION: Final = struct.Struct(">ii")
ELEMENTS_AT_ONCE: Final = 10_000
"""Elements of a request that is decoded while others wait: some ten milliseconds."""
_FETCH: Final = int(ApiKey.FETCH)  # An enum's member compares several times slower.
_PRODUCE: Final = int(ApiKey.PRODUCE)
_SASL_HANDSHAKE: Final = int(ApiKey.SASL_HANDSHAKE)
_METERED: Final = (_PRODUCE, _FETCH)
"""APIs whose fast routes say in their responses for how long the client is throttled. While there
are quotas of requests, the others are not taken."""
_MAY_WAIT: Final = frozenset(
    {
        ApiKey.FETCH, ApiKey.ALTER_PARTITION, ApiKey.LEADER_AND_ISR, ApiKey.STOP_REPLICA,
        ApiKey.UPDATE_METADATA,
    }
)  # fmt: skip
"""APIs whose large requests let the next one begin while they wait: for records, for ZooKeeper, or
for the disks of a broker that learns all it leads and follows."""

_AT_CONTROLLER: Final = frozenset(
    {
        ApiKey.CREATE_TOPICS, ApiKey.DELETE_TOPICS, ApiKey.CREATE_PARTITIONS, ApiKey.ALTER_CONFIGS,
        ApiKey.INCREMENTAL_ALTER_CONFIGS, ApiKey.ELECT_LEADERS, ApiKey.UPDATE_FEATURES,
        ApiKey.ALTER_PARTITION_REASSIGNMENTS, ApiKey.LIST_PARTITION_REASSIGNMENTS,
        ApiKey.ALTER_CLIENT_QUOTAS, ApiKey.CREATE_ACLS, ApiKey.DELETE_ACLS,
    }
)  # fmt: skip
"""APIs whose large requests wait for the controller or ZooKeeper, and for each other only."""


def _throttle_nothing(_throttle_ms: int) -> None:
    """The throttle of a caller without a connection."""


class Authenticator(Protocol):
    """What authenticates the client of a connection again (KIP-368)."""

    def reauthenticate(
        self, frame: memoryview, caller: "Caller"
    ) -> "bytes | list[Item] | DelayedFailure | None":
        """Serve a SaslHandshake of a client that is authenticated; None where it comes too soon."""
        ...


@dataclass(frozen=True, slots=True)
class Caller:
    """The client at the other end of a connection."""

    listener: str
    client_host: str
    principal: Principal
    authenticator: Authenticator | None = None
    """The SASL exchange that authenticated it, and may again; None without SASL."""
    throttle: Callable[[int], None] = _throttle_nothing
    """Stops reading from the connection for so many milliseconds."""


@dataclass(frozen=True, slots=True)
class Route:
    """An API as it is served here.

    The versions of its headers are looked up once, at start: `header_versions[version]` has that
    of the request and that of the response.
    """

    handler: Handler
    api: registry.Api
    header_versions: dict[int, tuple[int, int]]
    metrics: ApiMetrics
    keeps_request: bool
    """Whether an error response is made of the request."""

    @classmethod
    def to(cls, handler: Handler, requests: RequestMetrics) -> "Route":
        """The route to a handler, whose requests are counted among `requests`."""
        api = registry.api(handler.api_key)
        versions = range(handler.versions.min, handler.versions.max + 1)
        return cls(
            handler,
            api,
            {
                it: (api.request_header_version(it), api.response_header_version(it))
                for it in versions
            },
            requests.of(api.name),
            needs_request(handler.api_key),
        )


@dataclass(frozen=True, slots=True)
class Reply:
    """A response that is still to come, and what is needed to encode it then."""

    route: Route
    call: RequestContext
    began_ns: int  # of the performance counter
    future: "asyncio.Future[Any]"
    caller: Caller


def collect_handlers(newest: Mapping[ApiKey, int] = NOT_LIMITED) -> list[Handler]:
    """The `HANDLER` of every module under `server/requests/handlers/`, by API key.

    `newest` limits the versions in which some APIs are served.
    """
    modules = (
        importlib.import_module(f"{handlers_package.__name__}.{module.name}")
        for module in pkgutil.iter_modules(handlers_package.__path__)
    )
    handlers: Iterator[Handler] = (module.HANDLER for module in modules)
    limited = (
        replace(it, versions=VersionRange(it.versions.min, newest[it.api_key]))
        if it.api_key in newest
        else it
        for it in handlers
    )
    return sorted(limited, key=lambda handler: handler.api_key)


class Dispatcher:
    """Routes the requests of all sessions of one broker."""

    def __init__(
        self,
        broker: "BrokerServices",
        handlers: Iterable[Handler],
        *,
        authorizer: Authorizer,
        quotas: ClientQuotas,
        clock_ms: Callable[[], int],
    ) -> None:
        self._broker = broker
        self._long = LargeRequests(broker.heavy)
        is_fast = broker.settings[keys.BARNABAS_FAST_PATH_ENABLE]
        self._routes = {
            int(handler.api_key): Route.to(
                handler if is_fast else replace(handler, fast=None, fast_run=None), broker.requests
            )
            for handler in handlers
        }
        self._authorizer = authorizer
        self._quotas = quotas
        self._clock_ms = clock_ms
        self.request_bytes_max = broker.settings[keys.SOCKET_REQUEST_MAX_BYTES]

    def caller(self, listener: str, client_host: str) -> Caller:
        """The identity of a new connection, before any authentication."""
        return Caller(listener, client_host, ANONYMOUS)

    def serves(self, api_key: int, version: int) -> bool:
        """Whether requests of that version are served, and not merely known."""
        route = self._routes.get(api_key)
        return route is not None and version in route.header_versions

    def serve(
        self, frame: memoryview, caller: Caller
    ) -> "bytes | list[Item] | Reply | PendingResponse | DelayedFailure | None":
        """Serve one request frame (without its size).

        Returns what to send, what to wait for, or None where the request has no response. Bytes
        alone may be sent a little later, in a burst with others.
        Raises DecodeError for malformed requests, UnanswerableError where the connection must end.
        """
        if len(frame) < HEAD.size:
            raise codec.DecodeError(f"a request of {len(frame)} bytes has no room for its header")
        began_ns = perf_counter_ns()
        api_key, version, correlation_id = HEAD.unpack_from(frame)
        route = self._routes.get(api_key)
        header_versions = None if route is None else route.header_versions.get(version)
        if route is None or header_versions is None:
            return _unknown(route, api_key, version, correlation_id)
        if api_key == _SASL_HANDSHAKE and caller.authenticator is not None:
            outcome = caller.authenticator.reauthenticate(frame, caller)
            if outcome is not None:
                route.metrics.served(version, perf_counter_ns() - began_ns)
                return outcome
        # By position and in the order of the fields: naming ten arguments costs a third more.
        call = RequestContext(
            api_key,
            version,
            correlation_id,
            None,
            caller.principal,
            caller.listener,
            caller.client_host,
            self._clock_ms(),
            self._authorizer,
            self._broker,
        )
        if self._quotas.active:
            call.usage = Usage(
                self._quotas, caller.principal.name, None, size=len(frame), began_ns=began_ns
            )
        handler = route.handler
        refused = handler.too_large and handler.too_large(len(frame), call)
        if refused is not None:
            return self._finish(route, call, began_ns, refused, caller)
        fast = handler.fast
        if fast is not None and (api_key in _METERED or not self._quotas.request.enabled):
            try:
                items = fast(frame, call)
            except Exception as error:  # As in `_small`.
                _identify(route, call, frame)
                return self._finish(route, call, began_ns, _failure(route, call, error), caller)
            if items is not None:
                return _sent(items, route, call, began_ns, caller)
        client_id, body = decode_client(frame, 0, header_versions[0])
        call.identify(client_id)
        return self._finish(route, call, began_ns, self._handled(route, call, frame, body), caller)

    def _handled(self, route: Route, call: RequestContext, frame: memoryview, body: int) -> Any:
        """The handler's answer to a request whose body begins there, or a future of it."""
        try:
            request, _ = codec.decode_from(
                route.api.request, frame, call.version, body, ELEMENTS_AT_ONCE
            )
        except codec.TooManyElements:
            return self._large(route, call, frame[body:])
        return self._small(route, call, request)

    def serve_run(
        self, received: memoryview, position: int, caller: Caller
    ) -> tuple[bytes, int] | None:
        """Serve several requests at once, sizes included, from the one at `position` on.

        Returns the responses and where the next request begins; None where they must be served
        one by one, as always while there are quotas: the second may have to wait. Raises
        UnanswerableError where the connection must end.
        """
        if len(received) - position < SIZED_HEAD.size or self._quotas.active:
            return None
        api_key, version = SIZED_HEAD.unpack_from(received, position)
        route = self._routes.get(api_key)
        if route is None or route.handler.fast_run is None or version not in route.header_versions:
            return None
        began_ns = perf_counter_ns()
        call = RequestContext(
            api_key,
            version,
            0,
            None,
            caller.principal,
            caller.listener,
            caller.client_host,
            self._clock_ms(),
            self._authorizer,
            self._broker,
        )
        try:
            served = route.handler.fast_run(received, position, self.request_bytes_max, call)
        except Exception as error:  # As in `_small`; any of them may have failed.
            _failure(route, call, error)
            raise UnanswerableError(f"{route.api.name} failed, of several requests one") from error
        if served is None:
            return None
        responses, end = served
        route.metrics.served(version, perf_counter_ns() - began_ns, requests=len(responses))
        return b"".join(responses), end

    def encode(self, reply: Reply, future: "asyncio.Future[Any]") -> list[Item] | Reply:
        """What to send for a reply whose future is done, or the next one; raises as `serve`."""
        route, call = reply.route, reply.call
        if call.usage is not None:
            call.usage.go_on()
        try:
            answer = future.result()
            if type(answer) is GeneratorType:
                answer = self._long.begin(answer, _ending(route, call))
        except Exception as error:  # As in `serve`.
            answer = _failure(route, call, error)
        return self._finish(route, call, reply.began_ns, answer, reply.caller) or []

    def _finish(
        self, route: Route, call: RequestContext, began_ns: int, answer: Any, caller: Caller
    ) -> list[Item] | Reply | None:
        """Count what a request used, and encode its response; or wait for that."""
        usage = call.usage
        if isinstance(answer, asyncio.Future):
            if usage is not None:
                usage.pause()
                answer.add_done_callback(partial(_abandoned, call))
            return Reply(route, call, began_ns, answer, caller)
        if usage is not None:
            answer = settle(route.api, call, answer)
            if usage.throttle_ms:
                caller.throttle(usage.throttle_ms)
        encoded = None if answer is None else _encoded(route, call, answer)
        route.metrics.served(call.version, perf_counter_ns() - began_ns)
        return encoded

    def _small(self, route: Route, call: RequestContext, request: Any) -> Any:
        """The answer to a request, or a future of it."""
        try:
            answer = _handle(route, call, request)
            if type(answer) is GeneratorType:
                answer = self._long.begin(answer, _ending(route, call))
        except Exception as error:  # The boundary between one request and the broker's life.
            return _failure(route, call, error)
        return answer

    def _large(self, route: Route, call: RequestContext, body: memoryview) -> Any:
        """The answer to a request that names very many things, or a future of it."""
        if not route.handler.large:
            raise codec.DecodeError(
                f"{route.api.name} version {call.version} names more than {ELEMENTS_AT_ONCE} things"
            )

        def decode(copy: memoryview) -> Any:
            return codec.decode_from(route.api.request, copy, call.version, 0)[0]

        try:
            return self._long.large(
                body,
                flow_of(call.principal, call.client_host, len(body)),
                decode=decode,
                handle=partial(_handle, route, call),
                ending=_ending(route, call),
                may_wait=call.api_key in _MAY_WAIT,
                at_controller=call.api_key in _AT_CONTROLLER,
            )
        except KafkaError as error:  # There is no room for it.
            return _failure(route, call, error)


def _handle(route: Route, call: RequestContext, request: Any) -> Any:
    """What the handler makes of a request."""
    if route.keeps_request:
        call.request = request
    return route.handler.handle(request, call)


def _identify(route: Route, call: RequestContext, frame: memoryview) -> None:
    """Read what a failed fast route has read its own way; raises DecodeError."""
    client_id, body = decode_client(frame, 0, route.header_versions[call.version][0])
    call.identify(client_id)
    call.request, _ = codec.decode_from(
        route.api.request, frame, call.version, body, ELEMENTS_AT_ONCE
    )


def _sent(
    items: bytes | list[Item] | PendingResponse,
    route: Route,
    call: RequestContext,
    began_ns: int,
    caller: Caller,
) -> bytes | list[Item] | PendingResponse | None:
    """What came of a fast route, counted; or to be counted when it is answered."""
    if isinstance(items, PendingResponse):
        items.metrics, items.began_ns = route.metrics, began_ns
        return items
    if call.usage is not None and call.usage.throttle_ms:
        caller.throttle(call.usage.throttle_ms)
    route.metrics.served(call.version, perf_counter_ns() - began_ns)
    return items or None


def _unknown(route: Route | None, api_key: int, version: int, correlation_id: int) -> list[Item]:
    """The answer to a request of an API or version that is not served.

    Raises UnanswerableError but for ApiVersions, of which every client understands the refusal.
    """
    if route is None:
        raise UnanswerableError(f"API key {api_key} (version {version}) is not served here")
    if api_key != ApiKey.API_VERSIONS:
        raise UnanswerableError(f"{route.api.name} version {version} is not served here")
    return [
        response_frame(unsupported_version_response(route.handler.versions), 0, correlation_id, 0)
    ]


def _failure(route: Route, call: RequestContext, error: BaseException) -> Any:
    """The response that carries `error` for a whole request.

    Raises UnanswerableError where there is none.
    """
    if isinstance(error, UnanswerableError):
        settle_unanswered(call, left=False)
        raise error
    if isinstance(error, codec.DecodeError):
        raise UnanswerableError(str(error)) from error
    if isinstance(error, KafkaError):
        code, message = error.code, error.message
    else:
        log.error(
            "Request failed: %s version %d from %s",
            route.api.name,
            call.version,
            call.client_host,
            exc_info=error,
        )
        code = ErrorCode.UNKNOWN_SERVER_ERROR
        message = "the broker failed to serve this request; its log says why"
    route.metrics.failed(code)
    response = error_response(route.api, call.request, call.version, KafkaError(code, message))
    if response is None:
        raise UnanswerableError(
            f"{route.api.name} failed with {code.name}; its response has no error field"
        ) from error
    return response


def _abandoned(call: RequestContext, future: "asyncio.Future[Any]") -> None:
    """Count what a client used that left before its answer: what it sent may be done already."""
    if future.cancelled():
        settle_unanswered(call, left=True)


def _ending(route: Route, call: RequestContext) -> Ending:
    """What becomes of a response that took time slices: it is counted, and encoded in a thread."""
    return Ending(partial(settle, route.api, call), partial(_body, call), call.working)


def _body(call: RequestContext, response: Any) -> bytes | list[Item]:
    """The body of a response, for `_encoded` to make a frame of; may run in a thread."""
    if type(response) is bytes:
        return response
    if call.api_key == _FETCH:
        return _joined(cast(list[Item], codec.encode_parts(response, call.version)))
    return codec.encode(response, call.version)


def _joined(parts: list[Item]) -> list[Item]:
    """The same with whatever lies between two slices of files in one piece."""
    joined: list[Item] = []
    between: list[bytes] = []
    for part in parts:
        if isinstance(part, FileSlice):
            if between:
                joined.append(b"".join(between))
                between = []
            joined.append(part)
        else:
            between.append(cast(bytes, part))
    if between:
        joined.append(b"".join(between))
    return joined


def _encoded(route: Route, call: RequestContext, response: Any) -> list[Item]:
    try:
        return _items(route, call, response)
    except codec.EncodeError as error:
        failed = _failure(route, call, error)
    try:
        return _items(route, call, failed)
    except codec.EncodeError as error:
        log.exception("Failed to encode a response: %s version %d", route.api.name, call.version)
        raise UnanswerableError(f"{route.api.name} could not be answered") from error


def _items(route: Route, call: RequestContext, response: Any) -> list[Item]:
    version = call.version
    header_version = route.header_versions[version][1]
    if call.api_key == _FETCH:
        return _fetch_items(response, version, call.correlation_id, header_version)
    return [response_frame(response, version, call.correlation_id, header_version)]


def response_frame(response: Any, version: int, correlation_id: int, header_version: int) -> bytes:
    """Size, response header and body of one response."""
    body = response if type(response) is bytes else codec.encode(response, version)
    if header_version:
        return SIZE_AND_CORRELATION.pack(len(body) + 5, correlation_id) + b"\0" + body
    return SIZE_AND_CORRELATION.pack(len(body) + 4, correlation_id) + body


def _fetch_items(
    response: Any, version: int, correlation_id: int, header_version: int
) -> list[Item]:
    """A Fetch response as bytes and slices of files; the slices are never copied here."""
    # The only records that are not bytes are slices of ours.
    parts = cast(
        list[Item],
        response if type(response) is list else codec.encode_parts(response, version),
    )
    header = b"\0" if header_version else b""
    size = 4 + len(header) + sum(map(_length, parts))
    return [SIZE_AND_CORRELATION.pack(size, correlation_id) + header, *parts]


def _length(item: Item) -> int:
    return item.length if isinstance(item, FileSlice) else len(item)
