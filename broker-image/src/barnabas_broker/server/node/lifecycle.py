"""The life of a broker process: what starts in which order, and what stops in which.

Start: lock and read the log directories, open the coordination data, open every log, bind the
listeners, register, run for controller, take leadership, and only then accept connections; a client
that can connect finds everything there, as far as this broker decides it. A stop that is asked for
meanwhile (`stop_signals`) ends the start where it is. Stop: have others lead what this broker
leads, and then the reverse: accept no client, answer or end the connected ones, flush, mark the
shutdown clean, unlock.
"""

import asyncio
import gc
import json
import logging
import os
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, Final

from barnabas_broker.log.directories import LogDirectoryError
from barnabas_broker.server.control.supervision import Supervision
from barnabas_broker.server.node.broker_server import BrokerServer
from barnabas_broker.server.process import logs, stop_signals
from barnabas_broker.server.process.fatal_fault import assertions_are_checked, halt_on_violation
from barnabas_broker.server.process.startup import StartupError
from barnabas_broker.server.process.task_dump import dump_on_sigquit
from barnabas_broker.zk.store import CoordinationError
from barnabas_broker.zk.znodes import MalformedZnodeError
from barnabas_kafka.settings import broker as keys
from barnabas_kafka.settings.broker import BrokerSettings

log = logging.getLogger(__name__)

SWITCH_S = 0.0001
"""How long another thread may keep the interpreter from the event loop, which needs it back after
every call of the system: a dozen times for a record that is produced and fetched. Python's own 5 ms
would be several times what a request takes; less than this is what switching takes."""

GARBAGE_THRESHOLDS = (1000, 10, 1000)
"""Full collections visit every object, and with the hundreds of thousands of objects of a large
request that stops the loop for tenths of a second. Requests are freed without the
collector, so that they may be a hundred times as rare as Python has them."""

_START_TIME: Final = 22 - 3
"""The field of /proc/PID/stat, of those after the command's name."""


def run_broker(
    settings: BrokerSettings,
    *,
    ready_file: Path | None = None,
    supervision: Supervision | None = None,
) -> int:
    """Run a broker until SIGTERM or SIGINT; returns the exit code of the process.

    What keeps the broker from starting or going on is one line on standard error and the code 1.
    """
    logs.configure(settings[keys.BARNABAS_LOG_FORMAT])
    if not assertions_are_checked():
        logs.last_words("cannot start: Python skips assertions; unset PYTHONOPTIMIZE, omit -O")
        return 1
    sys.setswitchinterval(SWITCH_S)
    gc.set_threshold(*GARBAGE_THRESHOLDS)
    try:
        with (
            asyncio.Runner(loop_factory=loop_factory()) as runner,
            halt_on_violation(runner.get_loop()),
        ):
            node = BrokerServer(settings, supervision=supervision, began_s=_began_s())
            fault = runner.run(_run(node, ready_file))
    except (StartupError, LogDirectoryError, CoordinationError, MalformedZnodeError) as error:
        logs.last_words(f"cannot start: {error}")
        return 1
    if fault is not None:
        logs.last_words(f"cannot go on: {fault}")
        return 1
    return 0


def _began_s() -> float:
    """When this process began, by the monotonic clock: before Python and our modules were loaded.

    Now, where the system does not say (`/proc/self/stat` and CLOCK_BOOTTIME are Linux's).
    """
    now_s = time.monotonic()
    try:
        ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[_START_TIME])
        age_s = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError, AttributeError):
        return now_s
    return now_s - max(0.0, age_s)


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop where it is installed: its TLS costs a fifth of asyncio's."""
    try:
        import uvloop
    except ImportError:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory


async def _run(
    node: BrokerServer, ready_file: Path | None
) -> CoordinationError | LogDirectoryError | None:
    """Run until a stop signal; returns the error that stopped the broker, if one did."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    stop_signals.call_on_stop(loop, stop.set)
    dump_on_sigquit(loop)
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
        failed = asyncio.ensure_future(node.log_dirs_failed())
        await asyncio.wait({stopping, failed}, return_when=asyncio.FIRST_COMPLETED)
        log.info("Shutting down")
        if not failed.done():
            await node.hand_over()
    finally:
        stopping.cancel()
        try:
            await node.stop()
        finally:
            stop_signals.ignore()
    if failed.done():
        return failed.result()
    log.info("Shut down cleanly")
    failed.cancel()
    return None


async def _before(stopping: asyncio.Future[Any], work: Coroutine[None, None, None]) -> bool:
    """Run `work` to its end; on a stop signal cancel it and return False."""
    task: asyncio.Future[Any] = asyncio.ensure_future(work)
    await asyncio.wait({stopping, task}, return_when=asyncio.FIRST_COMPLETED)
    if task.done():
        task.result()
        return True
    task.cancel()
    await asyncio.wait({task})
    return False


def _write_ready_file(path: Path, node: BrokerServer) -> None:
    """Write the ready file atomically: clients can connect, and where."""
    ready: dict[str, object] = {
        "pid": os.getpid(),
        "cluster_id": node.broker.image.cluster_id,
        "broker_id": node.broker.id,
        "listeners": {
            endpoint.listener: f"{endpoint.host}:{endpoint.port}"
            for endpoint in node.broker.image.brokers[node.broker.id].endpoints
        },
    }
    if node.admin is not None:
        ready["admin"] = node.admin.url
    with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False) as temporary:
        json.dump(ready, temporary)
    Path(temporary.name).replace(path)
