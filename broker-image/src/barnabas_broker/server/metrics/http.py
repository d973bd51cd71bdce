"""The admin port: metrics for Prometheus, and for probes whether the broker lives and serves.

It answers in a thread of its own, so that it can say that the broker's event loop does not.
"""

import asyncio
import json
import logging
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Future
from http import HTTPStatus
from typing import Any, Final, TypeVar

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric

from barnabas_broker.security.admin_access import AdminAccess
from barnabas_broker.server.metrics.http_thread import Answer, HttpThread, Question

log = logging.getLogger(__name__)

TIMEOUT_S: Final = 5
"""How long the broker's event loop may take to answer."""

JSON: Final = "application/json"

OPEN: Final = frozenset({"/live", "/ready"})
"""A kubelet has neither token nor certificate: its probes get yes or no without a reason."""

Verdict = tuple[bool, Mapping[str, object]]
"""Yes or no, and why."""

T = TypeVar("T")


class AdminServer(HttpThread):
    """The admin port of one broker. `open` it on the event loop; `close` it in a thread."""

    def __init__(
        self,
        address: tuple[str, int],
        *,
        collect: Callable[[], Coroutine[Any, Any, list[Metric]]],
        unready: Callable[[], str | None],
        checks: Mapping[str, Callable[[], Verdict]],
        stalled: Callable[[], str | None],
        recovery: Callable[[], Mapping[str, object]],
        access: AdminAccess,
    ) -> None:
        """Bind; raises OSError.

        On the loop, `collect` gathers what `/metrics` returns, `unready` gives the reason for which
        clients should stay away, if there is one, and `checks` answers paths with yes or no.
        In the port's thread, `stalled` says why a start makes no progress any more, and `recovery`
        how far it is.
        """
        super().__init__(
            address,
            self._admit,
            urgent=("/live", "/recovery"),
            tls=lambda: access.context,
            renew=access.renew if access.watches else None,
        )
        self._access = access
        self._stalled = stalled
        self._recovery = recovery
        self._broker_loop = asyncio.get_running_loop()
        self._collect = collect
        self._unready = unready
        self._checks = checks
        self._one_at_a_time = asyncio.Lock()
        self._process = CollectorRegistry()
        ProcessCollector(registry=self._process)
        PlatformCollector(registry=self._process)
        GCCollector(registry=self._process)

    # Called in the thread.

    async def _admit(self, question: Question) -> Answer:
        """Answer authorised clients, and all others only whether the broker is live and ready."""
        if self._access.allows(question.authorization, certified=question.certified):
            return await self._answer_to(question.path, question.accept)
        if question.path in OPEN:
            answer = await self._answer_to(question.path, question.accept)
            if answer.status == HTTPStatus.OK:
                return answer
            return answer._replace(body=b"no; authenticate to see the reason\n")
        text = b"this needs a bearer token, or a client certificate\n"
        return Answer(HTTPStatus.UNAUTHORIZED, text, challenge='Bearer realm="barnabas"')

    async def _answer_to(self, path: str, accept: str) -> Answer:
        """The answer to GET `path`; what takes the broker's time is asked by one at a time."""
        log.debug("GET %s", path)  # Probes come every few seconds, too many for INFO.
        try:
            match path:
                case "/live":
                    return await self._live()
                case "/recovery":
                    body = json.dumps(self._recovery()).encode()
                    return Answer(HTTPStatus.OK, body + b"\n", JSON)
                case "/ready":
                    return await self._ready()
            async with self._one_at_a_time:
                match path:
                    case "/metrics":
                        return await self._metrics(accept)
                    case other if other in self._checks:
                        return await self._check(self._checks[other])
                    case _:
                        known = ", ".join(
                            ("/metrics", "/live", "/ready", "/recovery", *self._checks)
                        )
                        return Answer(HTTPStatus.NOT_FOUND, f"there is {known}\n".encode())
        except TimeoutError:
            text = f"the event loop has not answered for {TIMEOUT_S} s\n"
            return Answer(HTTPStatus.SERVICE_UNAVAILABLE, text.encode())

    async def _live(self) -> Answer:
        await self._on_loop(_nothing)
        reason = self._stalled()
        if reason is None:
            return Answer(HTTPStatus.OK, b"live\n")
        return Answer(HTTPStatus.SERVICE_UNAVAILABLE, f"{reason}\n".encode())

    async def _metrics(self, accept: str) -> Answer:
        collecting = asyncio.run_coroutine_threadsafe(self._collect(), self._broker_loop)
        found = await asyncio.wait_for(asyncio.wrap_future(collecting), TIMEOUT_S)
        encode, content_type = choose_encoder(accept)

        def encoded() -> bytes:
            return encode(_Found([*found, *self._process.collect()]))

        # Beside this thread, which has probes to answer meanwhile.
        return Answer(HTTPStatus.OK, await asyncio.to_thread(encoded), content_type)

    async def _ready(self) -> Answer:
        reason = await self._on_loop(self._unready)
        if reason is None:
            return Answer(HTTPStatus.OK, b"ready\n")
        return Answer(HTTPStatus.SERVICE_UNAVAILABLE, f"{reason}\n".encode())

    async def _check(self, question: Callable[[], Verdict]) -> Answer:
        yes, body = await self._on_loop(question)
        status = HTTPStatus.OK if yes else HTTPStatus.SERVICE_UNAVAILABLE
        return Answer(status, json.dumps(body).encode() + b"\n", JSON)

    async def _on_loop(self, look: Callable[[], T]) -> T:
        """What `look` finds on the broker's event loop. Raises TimeoutError where that hangs."""
        found: Future[T] = Future()

        def work() -> None:
            if not found.set_running_or_notify_cancel():
                return  # The connection is closed.
            try:
                found.set_result(look())
            except Exception as error:  # The handler of the request reports it.
                found.set_exception(error)

        self._broker_loop.call_soon_threadsafe(work)
        return await asyncio.wait_for(asyncio.wrap_future(found), TIMEOUT_S)


class _Found(CollectorRegistry):
    """What was collected already, in the shape that the encoders take."""

    def __init__(self, families: list[Metric]) -> None:
        super().__init__()
        self._families = families

    def collect(self) -> Any:
        """The families."""
        return iter(self._families)


def _nothing() -> None:
    """That the event loop came to it is the answer."""
