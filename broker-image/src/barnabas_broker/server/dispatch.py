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
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

from barnabas_broker.log.files import FileSlice
from barnabas_broker.security.authorizer import Authorizer
from barnabas_broker.security.principals import ANONYMOUS, Principal
from barnabas_broker.server import handlers as handlers_package
from barnabas_broker.server.call import Call, Quotas
from barnabas_broker.server.handler import Handler, UnanswerableError
from barnabas_broker.server.handlers.api_versions import unsupported_version_response
from barnabas_broker.server.outbound import Item
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.protocol import codec, registry
from barnabas_kafka.protocol.headers import decode_request_header
from barnabas_kafka.protocol.registry import ApiKey
from barnabas_kafka.settings import broker as keys

if TYPE_CHECKING:
    from barnabas_broker.server.broker import Broker

log = logging.getLogger(__name__)

HEAD: Final = struct.Struct(">hhi")  # API key, version, correlation id
SIZE_AND_CORRELATION: Final = struct.Struct(">ii")


@dataclass(frozen=True, slots=True)
class Caller:
    """Who is at the other end of a connection."""

    listener: str
    client_host: str
    principal: Principal


@dataclass(frozen=True, slots=True)
class Route:
    """An API as it is served here."""

    handler: Handler
    api: registry.Api


@dataclass(frozen=True, slots=True)
class Reply:
    """A response that is still to come, and what is needed to encode it then."""

    route: Route
    call: Call
    future: "asyncio.Future[Any]"


def collect_handlers() -> list[Handler]:
    """The `HANDLER` of every module under `server/handlers/`, by API key."""
    modules = (
        importlib.import_module(f"{handlers_package.__name__}.{module.name}")
        for module in pkgutil.iter_modules(handlers_package.__path__)
    )
    return sorted((module.HANDLER for module in modules), key=lambda handler: handler.api_key)


class Dispatcher:
    """Routes the requests of all sessions of one broker."""

    def __init__(
        self,
        broker: "Broker",
        handlers: Iterable[Handler],
        *,
        authorizer: Authorizer,
        quotas: Quotas,
        clock_ms: Callable[[], int],
    ) -> None:
        self._broker = broker
        self._routes = {
            int(handler.api_key): Route(handler, registry.api(handler.api_key))
            for handler in handlers
        }
        self._authorizer = authorizer
        self._quotas = quotas
        self._clock_ms = clock_ms
        self.request_bytes_max = broker.settings[keys.SOCKET_REQUEST_MAX_BYTES]

    def caller(self, listener: str, client_host: str) -> Caller:
        """The identity of a new connection, before any authentication."""
        return Caller(listener, client_host, ANONYMOUS)

    def serve(self, frame: memoryview, caller: Caller) -> list[Item] | Reply | None:
        """Serve one request frame (without its size).

        Returns what to send, a `Reply` to wait for, or None where the request has no response.
        Raises DecodeError for malformed requests, UnanswerableError where the connection must end.
        """
        if len(frame) < HEAD.size:
            raise codec.DecodeError(f"a request of {len(frame)} bytes has no room for its header")
        api_key, version, correlation_id = HEAD.unpack_from(frame)
        route = self._routes.get(api_key)
        if route is None:
            raise UnanswerableError(f"API key {api_key} (version {version}) is not served here")
        versions = route.handler.versions
        if not versions.min <= version <= versions.max:
            if api_key == ApiKey.API_VERSIONS:
                return [
                    _frame(route.api, 0, correlation_id, unsupported_version_response(versions))
                ]
            raise UnanswerableError(f"{route.api.name} version {version} is not served here")
        header, body = decode_request_header(frame)
        request, _ = codec.decode_from(route.api.request, frame, version, body)
        call = Call(
            api_key=api_key,
            version=version,
            correlation_id=correlation_id,
            client_id=header.client_id,
            principal=caller.principal,
            listener=caller.listener,
            client_host=caller.client_host,
            now_ms=self._clock_ms(),
            authorizer=self._authorizer,
            quotas=self._quotas,
            broker=self._broker,
        )
        try:
            answer = route.handler.handle(request, call)
        except Exception as error:  # The boundary between one request and the broker's life.
            answer = _failure(route, call, error)
        if answer is None:
            return None
        if isinstance(answer, asyncio.Future):
            return Reply(route, call, answer)
        return _encoded(route, call, answer)

    def encode(self, reply: Reply, future: "asyncio.Future[Any]") -> list[Item]:
        """What to send for a reply whose future is done; raises as `serve` does."""
        error = future.exception()
        if error is not None:
            return _encoded(reply.route, reply.call, _failure(reply.route, reply.call, error))
        answer = future.result()
        return [] if answer is None else _encoded(reply.route, reply.call, answer)


def _failure(route: Route, call: Call, error: BaseException) -> Any:
    """The response that carries `error` for a whole request.

    Raises UnanswerableError for an API whose responses have no place for it.
    """
    if isinstance(error, UnanswerableError):
        raise error
    if isinstance(error, KafkaError):
        code, message = error.code, error.message
    else:
        log.error(
            "serving %s version %d for %s failed",
            route.api.name,
            call.version,
            call.client_host,
            exc_info=error,
        )
        code = ErrorCode.UNKNOWN_SERVER_ERROR
        message = "the broker failed to serve this request; its log says why"
    response = route.api.response()
    if not hasattr(response, "error_code"):
        raise UnanswerableError(
            f"{route.api.name} failed with {code.name} and cannot say so"
        ) from error
    response.error_code = code
    if hasattr(response, "error_message"):
        response.error_message = message
    return response


def _encoded(route: Route, call: Call, response: Any) -> list[Item]:
    try:
        if call.api_key == ApiKey.FETCH:
            return _fetch_items(route.api, call, response)
        return [_frame(route.api, call.version, call.correlation_id, response)]
    except codec.EncodeError as error:
        log.exception("the response to %s version %d is wrong", route.api.name, call.version)
        raise UnanswerableError(f"{route.api.name} could not be answered") from error


def _frame(api: registry.Api, version: int, correlation_id: int, response: Any) -> bytes:
    """Size, response header and body of one response."""
    body = codec.encode(response, version)
    if api.response_header_version(version):
        return SIZE_AND_CORRELATION.pack(len(body) + 5, correlation_id) + b"\0" + body
    return SIZE_AND_CORRELATION.pack(len(body) + 4, correlation_id) + body


def _fetch_items(api: registry.Api, call: Call, response: Any) -> list[Item]:
    """A Fetch response as bytes and slices of files; the slices are never copied here."""
    # The only records that are not bytes are slices of ours.
    parts = cast(list[Item], codec.encode_parts(response, call.version))
    header = b"\0" if api.response_header_version(call.version) else b""
    size = 4 + len(header) + sum(map(_length, parts))
    return [SIZE_AND_CORRELATION.pack(size, call.correlation_id) + header, *parts]


def _length(item: Item) -> int:
    return item.length if isinstance(item, FileSlice) else len(item)
