"""The life of a broker process: what starts in which order, and what stops in which.

Start: lock and read the log directories, open the coordination data, become controller, open
every log, bind the listeners, register, take leadership, and only then accept connections; a
client that can connect finds everything there. Stop is the reverse: nobody new, answer or end who
is there, flush, mark the shutdown clean, unlock.
"""

import asyncio
import json
import logging
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from barnabas_broker.log.directories import LogDirectoryError
from barnabas_broker.server.node import Node
from barnabas_broker.server.startup import StartupError
from barnabas_broker.zk.store import CoordinationError
from barnabas_broker.zk.znodes import MalformedZnodeError
from barnabas_kafka.settings.broker import BrokerSettings

log = logging.getLogger(__name__)

LOG_FORMAT = "[%(asctime)s] %(levelname)s %(message)s (%(name)s)"


def run_broker(settings: BrokerSettings, *, ready_file: Path | None = None) -> int:
    """Run a broker until SIGTERM or SIGINT; returns the exit code of the process.

    What keeps the broker from starting or going on is one line on standard error and the code 1.
    """
    logging.basicConfig(level=logging.INFO, format=LOG_FORMAT, stream=sys.stderr)
    try:
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            fault = runner.run(_run(settings, ready_file))
    except (StartupError, LogDirectoryError, CoordinationError, MalformedZnodeError) as error:
        sys.stderr.write(f"barnabas: cannot start: {error}\n")
        return 1
    if fault is not None:
        sys.stderr.write(f"barnabas: cannot go on: {fault}\n")
        return 1
    return 0


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop where it is installed: its TLS costs a fifth of asyncio's."""
    try:
        import uvloop
    except ImportError:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory


async def _run(settings: BrokerSettings, ready_file: Path | None) -> CoordinationError | None:
    """Run until told to stop; returns what made the broker stop by itself."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    node = Node(settings)
    stopping: asyncio.Future[Any] = asyncio.ensure_future(stop.wait())
    try:
        if not await _before(stopping, node.start()):
            return None
        if ready_file is not None:
            try:
                _write_ready_file(ready_file, node)
            except OSError as error:
                reason = f"cannot write {ready_file}: {error.strerror}"
                raise StartupError(reason) from error
        deposed = asyncio.ensure_future(node.deposed())
        await asyncio.wait({stopping, deposed}, return_when=asyncio.FIRST_COMPLETED)
        log.info("shutting down")
    finally:
        stopping.cancel()
        await node.stop()
    log.info("shut down cleanly")
    if deposed.done():
        return deposed.result()
    deposed.cancel()
    return None


async def _before(stopping: asyncio.Future[Any], work: Coroutine[None, None, None]) -> bool:
    """Do `work` to its end, unless the broker is told to stop: then end it and return False."""
    task: asyncio.Future[Any] = asyncio.ensure_future(work)
    await asyncio.wait({stopping, task}, return_when=asyncio.FIRST_COMPLETED)
    if task.done():
        task.result()
        return True
    task.cancel()
    await asyncio.wait({task})
    return False


def _write_ready_file(path: Path, node: Node) -> None:
    """Tell in one atomic step that clients can connect, and where."""
    ready = {
        "pid": os.getpid(),
        "cluster_id": node.broker.image.cluster_id,
        "broker_id": node.broker.id,
        "listeners": {
            endpoint.listener: f"{endpoint.host}:{endpoint.port}"
            for endpoint in node.broker.image.brokers[node.broker.id].endpoints
        },
    }
    with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False) as temporary:
        json.dump(ready, temporary)
    Path(temporary.name).replace(path)
