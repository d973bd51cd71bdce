"""The admin client for programs without an event loop: the same calls, from any thread.

    with Admin(ClientConfig(bootstrap_servers="localhost:9092")) as admin:
        cluster = admin.call(describe_cluster())

The client lives in an event loop in a `ClientThread`, which starts with the first call. Clients of
many clusters may share one thread.
"""

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine, Iterable
from concurrent import futures
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import TracebackType
from typing import Any, Final, Self, TypeVar
from weakref import WeakSet

from barnabas_kafka.client.admin import AsyncAdmin
from barnabas_kafka.client.config import ClientConfig
from barnabas_kafka.client.errors import ClientClosedError
from barnabas_kafka.client.operation import Operation

logger = logging.getLogger(__name__)

GRACE_S: Final = 5.0
"""Beyond its deadline a call waits so long for the loop's thread, which ends it by then."""

RESOLVERS_MAX: Final = 64
"""Threads of one `ClientThread` that resolve names and call token providers, made as needed."""

T = TypeVar("T")


class ClientThread:
    """An event loop in a thread of its own."""

    def __init__(self) -> None:
        """The thread starts with the first call, and again should its loop ever end."""
        self._lock = threading.Lock()
        self._closed = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._clients: WeakSet[AsyncAdmin] = WeakSet()

    def loop(self) -> asyncio.AbstractEventLoop:
        """The running loop; raises ClientClosedError, or RuntimeError from inside the loop."""
        with self._lock:
            if self._closed:
                raise ClientClosedError("the client's thread is closed")
            if threading.current_thread() is self._thread:
                raise RuntimeError("a call would wait for the event loop that it runs in")
            if self._loop is None or self._thread is None or not self._thread.is_alive():
                if self._thread is not None:
                    logger.error("The admin client's event loop has ended; starting another one")
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(
                    target=self._serve,
                    args=(self._loop,),
                    name="kafka-admin-client",
                    daemon=True,
                )
                self._thread.start()
            return self._loop

    def close(self) -> None:
        """End what runs in the loop, and the thread. May be called again."""
        with self._lock:
            self._closed = True
            loop, thread = self._loop, self._thread
            self._loop = self._thread = None
        if loop is not None and thread is not None and thread.is_alive():
            loop.call_soon_threadsafe(loop.stop)
            thread.join(2 * GRACE_S)

    async def create(self, config: ClientConfig) -> AsyncAdmin:
        """A client in the loop, which is closed with it at the latest."""
        client = AsyncAdmin(config)
        self._clients.add(client)
        return client

    def _serve(self, loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        # Names are resolved in it: one that hangs must not delay the others.
        loop.set_default_executor(ThreadPoolExecutor(RESOLVERS_MAX, "kafka-admin-resolver"))
        try:
            loop.run_forever()
        finally:
            clients, self._clients = list(self._clients), WeakSet()
            loop.run_until_complete(_end_all(clients))
            loop.close()


class Admin:
    """An admin client that many threads may use. Close it, or use it as a context manager."""

    def __init__(self, config: ClientConfig, thread: ClientThread | None = None) -> None:
        """Nothing is connected before the first call. Raises ValueError for a bad address.

        A `thread` that is given is left open by `close`.
        """
        config.addresses()
        self._config = config
        self._thread = thread or ClientThread()
        self._owns_thread = thread is None
        self._lock = threading.Lock()
        self._closed = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._client: AsyncAdmin | None = None

    def call(self, operation: Operation[T], *, timeout_s: float | None = None) -> T:
        """See AsyncAdmin.call. Waits; must not be called from the client's own event loop."""
        limit_s = self._config.timeout_s if timeout_s is None else timeout_s
        client, loop = self._started()
        return _wait(loop, lambda: client.call(operation, timeout_s=limit_s), limit_s)

    def close(self) -> None:
        """End calls under way and close the connections. May be called again."""
        with self._lock:
            self._closed = True
            client, loop = self._client, self._loop
            self._client = self._loop = None
        if client is not None and loop is not None and not loop.is_closed():
            _wait(loop, client.close, 0.0)
        if self._owns_thread:
            self._thread.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _started(self) -> tuple[AsyncAdmin, asyncio.AbstractEventLoop]:
        """The client and the loop that it belongs to."""
        with self._lock:
            if self._closed:
                raise ClientClosedError("the client is closed")
            loop = self._thread.loop()
            if self._client is None or self._loop is not loop:
                self._client = _wait(loop, partial(self._thread.create, self._config), 0.0)
                self._loop = loop
            return self._client, loop


def _wait(
    loop: asyncio.AbstractEventLoop, start: Callable[[], Coroutine[Any, Any, T]], limit_s: float
) -> T:
    """The result of a coroutine in the loop."""
    future = asyncio.run_coroutine_threadsafe(start(), loop)
    try:
        return future.result(limit_s + GRACE_S)
    except futures.CancelledError:
        raise ClientClosedError("the client was closed") from None
    finally:
        future.cancel()


async def _end_all(clients: Iterable[AsyncAdmin]) -> None:
    """Close the clients, cancel what is left in the loop, and let it end."""
    for client in clients:
        await client.close()
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    if left:
        await asyncio.wait(left, timeout=GRACE_S)
    await asyncio.get_running_loop().shutdown_default_executor()
