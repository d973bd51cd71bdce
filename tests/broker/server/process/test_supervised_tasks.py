"""No background task ends unheard: it begins again, and says that it is down while it cannot."""

import asyncio
import threading
import urllib.error
import urllib.request
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import pytest

from barnabas_broker.log.directory import DirectoryState
from barnabas_broker.log.health import Reserve
from barnabas_broker.server.node.broker_server import BrokerServer
from barnabas_broker.server.process import supervised_tasks as module
from barnabas_broker.server.process.supervised_tasks import Background, background
from barnabas_broker.zk.store import CoordinationError
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.settings.broker import BrokerSettings
from tests.broker.server.running import running_node
from tests.waiting import ANSWER, seconds, wait_for, wait_for_async

OF_A_BROKER_ALONE = {
    "ISR expiration",
    "applying metadata",
    "checkpoints",
    "giving memory back",
    "high watermark check",
    "high watermark checkpoints",
    "recovery point checkpoints",
    "log cleaner",
    "looking for flushes",
    "looking for room",
    "removing files",
    "retention",
    "bounding producers",
    "watching clients",
}


class OfItsOwnError(Exception):
    """What a task meets that nobody foresaw."""


def ready(node: BrokerServer) -> tuple[int, str]:
    """What the probe is told."""
    assert node.admin is not None
    try:
        with urllib.request.urlopen(f"{node.admin.url}/ready", timeout=seconds(ANSWER)) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def scrape(node: BrokerServer) -> str:
    """All metrics."""
    assert node.admin is not None
    with urllib.request.urlopen(f"{node.admin.url}/metrics", timeout=seconds(ANSWER)) as answer:
        found: bytes = answer.read()
    return found.decode()


async def kill_all() -> Background:
    """Have what each task waits for fail."""
    found = background()
    for task in found.tasks:
        waits_for = task._fut_waiter  # type: ignore[attr-defined]
        waits_for.set_exception(OfItsOwnError(f"met by {task.get_name()}"))
    return found


def test_each_task_of_a_broker_survives_an_error(tmp_path: Path) -> None:
    """It has failed once, is heard of, and goes on."""
    with running_node(tmp_path, {"barnabas.admin.listener": "127.0.0.1:0"}) as node:
        loop = node.broker.controller._loop
        found = asyncio.run_coroutine_threadsafe(kill_all(), loop).result(seconds(ANSWER))
        names = {task.get_name() for task in found.tasks}
        assert names == OF_A_BROKER_ALONE
        wait_for("the errors", lambda: dict(found.failures), until=lambda it: it.keys() >= names)
        wait_for("who is down", lambda: dict(found.down), until=lambda down: not down)
        assert {task.get_name() for task in found.tasks} == names
        reported = scrape(node)
        for name in names:
            assert f'barnabas_background_task_failures_total{{task="{name}"}} 1.0' in reported
            assert f'barnabas_background_task_down{{task="{name}"}} 0.0' in reported
        assert ready(node)[0] == 200


def test_a_failed_task_is_reported(tmp_path: Path) -> None:
    """By the probe and the metrics, with its error, until it has come back."""
    mended = asyncio.Event()

    async def work() -> None:
        if not mended.is_set():
            raise OfItsOwnError("cannot")
        await asyncio.get_running_loop().create_future()

    async def begin() -> asyncio.Task[None]:
        return background().keep("digging", work)

    with running_node(tmp_path, {"barnabas.admin.listener": "127.0.0.1:0"}) as node:
        loop = node.broker.controller._loop
        task = asyncio.run_coroutine_threadsafe(begin(), loop).result(seconds(ANSWER))
        wait_for("the probe's no", lambda: ready(node), until=lambda it: it[0] == 503)
        assert "digging is down: cannot" in ready(node)[1]
        assert 'barnabas_background_task_down{task="digging"} 1.0' in scrape(node)
        loop.call_soon_threadsafe(mended.set)
        wait_for("the probe's yes", lambda: ready(node), until=lambda it: it[0] == 200)
        loop.call_soon_threadsafe(task.cancel)


@pytest.mark.parametrize("over", [True, False])
def test_one_of_two_tasks_of_a_name_that_is_up_again_does_not_hide_the_other(
    tmp_path: Path, over: bool
) -> None:
    """Changes of the ISR, say, of which each partition has one; nor does one that is over."""
    wrong = {"first", "second"}

    async def work(which: str) -> None:
        if which in wrong:
            raise OfItsOwnError(f"the {which} cannot")
        if not over:
            await asyncio.get_running_loop().create_future()

    async def begin() -> list[asyncio.Task[None]]:
        return [background().keep("digging", partial(work, it)) for it in ("first", "second")]

    with running_node(tmp_path, {"barnabas.admin.listener": "127.0.0.1:0"}) as node:
        loop = node.broker.controller._loop
        tasks = asyncio.run_coroutine_threadsafe(begin(), loop).result(seconds(ANSWER))
        both = "digging is down: the first cannot (and 1 more)"
        wait_for("both", lambda: ready(node)[1], until=lambda said: both in said)
        loop.call_soon_threadsafe(wrong.discard, "first")
        other = "digging is down: the second cannot\n"
        wait_for("the other", lambda: ready(node), until=lambda it: it[1] == other)
        assert ready(node)[0] == 503
        assert 'barnabas_background_task_down{task="digging"} 1.0' in scrape(node)
        loop.call_soon_threadsafe(wrong.clear)
        wait_for("the probe's yes", lambda: ready(node), until=lambda it: it[0] == 200)
        for task in tasks:
            loop.call_soon_threadsafe(task.cancel)


def test_clients_are_watched_while_a_disk_hangs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Slow senders are ended, and new limits heeded, whatever a look at directories waits for."""
    hangs, mended = threading.Event(), threading.Event()

    def probe(_directory: DirectoryState, _reserve: Reserve) -> None:
        hangs.set()
        assert mended.wait(seconds(ANSWER))

    with running_node(tmp_path) as node:
        monkeypatch.setattr(DirectoryState, "probe", probe)
        try:
            assert hangs.wait(seconds(ANSWER))
            settings = BrokerSettings.from_mapping({"max.connections": "7"})
            node.broker.controller.settings = settings
            wait_for(
                "the limits", lambda: node.socket_server.settings, until=lambda it: it is settings
            )
        finally:
            mended.set()


@pytest.mark.parametrize("error", [OfItsOwnError("twice"), asyncio.CancelledError("by another")])
def test_a_supervised_task_is_restarted_after_an_error(error: BaseException) -> None:
    """Until it returns; an awaited future that somebody cancelled is an error like others."""
    failing = [error, error]

    async def scenario() -> None:
        async def work() -> None:
            if failing:
                raise failing.pop()

        them = Background()
        await them.keep("digging", work)
        assert (them.failures["digging"], them.down, failing) == (2, {}, [])

    asyncio.run(scenario())


def test_a_repeated_turn_is_repeated_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where one failed, the next does not wait as long as between turns; a cancelled one ends."""
    monkeypatch.setattr(module, "FIRST_PAUSE_S", 0.001)

    async def scenario() -> None:
        turns: list[int] = []

        async def work() -> None:
            turns.append(len(turns))
            if len(turns) < 3:
                raise OfItsOwnError

        them = Background()
        task = them.every("digging", lambda: 0.001 if not turns else 3600, work)
        await wait_for_async("the turns", lambda: list(turns), until=lambda it: len(it) == 3)
        assert (them.failures["digging"], them.down) == (2, {})
        task.cancel()
        await asyncio.wait({task})
        assert task.cancelled()
        assert not them.tasks

    asyncio.run(scenario())


def test_a_lost_ensemble_or_controller_is_logged_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Each task that needs it is postponed and neither down nor failed; a bug is both."""
    monkeypatch.setattr(module, "FIRST_PAUSE_S", 0.001)
    lost = CoordinationError("ZooKeeper cannot be reached")
    caused = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
    caused.__cause__ = lost
    errors: list[Exception] = [lost, caused, KafkaError(ErrorCode.NOT_CONTROLLER)]

    async def scenario() -> None:
        them = Background()

        def failing(found: list[Exception]) -> Callable[[], Awaitable[None]]:
            async def work() -> None:
                if found:
                    raise found.pop(0)

            return work

        await them.keep("kept", failing([*errors]))
        seen = [*errors]
        task = them.every("repeated", lambda: 0.001, failing(seen))
        await wait_for_async("no error", lambda: list(seen), until=lambda it: not it)
        await wait_for_async("success", lambda: set(them.postponed), until=lambda it: not it)
        assert (them.failures, them.down) == ({}, {})
        await them.keep("buggy", failing([lost, OfItsOwnError("a bug"), lost]))
        assert them.failures == {"buggy": 1}
        task.cancel()
        await asyncio.wait({task})

    asyncio.run(scenario())
    postponed = [it for it in caplog.records if it.message.startswith("Task postponed")]
    assert [(it.levelname, it.message.partition(";")[0]) for it in postponed] == [
        ("WARNING", f"Task postponed: {name}") for name in ("kept", "repeated", "buggy")
    ]
    failed = [it for it in caplog.records if it.levelname == "ERROR"]
    assert [it.exc_info is not None for it in failed] == [True]


def test_a_one_shot_task_is_not_restarted(caplog: pytest.LogCaptureFixture) -> None:
    """Its error is told, once."""

    async def scenario() -> None:
        async def work() -> None:
            raise OfItsOwnError("in between")

        them = Background()
        task = them.once("a look", work())
        await asyncio.wait({task})
        assert them.failures["a look"] == 1
        assert not them.down

    asyncio.run(scenario())
    assert "a look failed" in caplog.text
    assert "in between" in caplog.text


def test_a_short_task_is_cancelled_silently_only_on_request() -> None:
    """Cancelled is not what a task is whose awaited future somebody else has cancelled."""

    async def scenario() -> None:
        them = Background()
        for number in range(2):
            waits_for = asyncio.get_running_loop().create_future()

            async def work(future: asyncio.Future[None] = waits_for) -> None:
                await future

            task = them.once("a look", work())
            await asyncio.sleep(0)
            if number:
                task.cancel()
            else:
                waits_for.cancel()
            await asyncio.wait({task})
        assert them.failures["a look"] == 1

    asyncio.run(scenario())
