"""A violated invariant ends the process of a broker, wherever it is found."""

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from barnabas_broker.server.process.fatal_fault import EXIT_CODE
from tests.waiting import START, seconds

BROKER = """
    import asyncio, logging, sys, threading
    from pathlib import Path
    from barnabas_broker.cli.broker import load_server
    from barnabas_broker.invariants import violated
    from barnabas_broker.server.node import lifecycle, broker_server as node
    from barnabas_kafka.settings.broker import BrokerSettings

    def check(mark=9, end=5):
        assert mark <= end, violated("the mark is within the log")

    def caught():
        try:
            check()
        except Exception:
            logging.error("swallowed")

    async def fail():
        match sys.argv[1]:
            case "loop":
                asyncio.get_running_loop().call_soon(check)
            case "task":
                asyncio.get_running_loop().create_task(asyncio.to_thread(check), name="checking")
            case "thread":
                threading.Thread(target=check).start()
            case "caught":
                asyncio.get_running_loop().call_soon(caught)

    begin = node.BrokerServer.start
    async def start(self):
        await begin(self)
        await fail()
    node.BrokerServer.start = start

    settings = {"listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": sys.argv[2]}
    settings["barnabas.log.format"] = sys.argv[3]
    sys.exit(lifecycle.run_broker(BrokerSettings(settings)))
"""


def run(*arguments: str, python: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    """A broker in a process of its own, which ends by itself."""
    return subprocess.run(
        [sys.executable, *python, "-c", textwrap.dedent(BROKER), *arguments],
        capture_output=True, text=True, check=False, timeout=seconds(START),
    )  # fmt: skip


@pytest.mark.parametrize("where", ["loop", "task", "thread", "caught"])
def test_the_process_ends_and_says_why(where: str, tmp_path: Path) -> None:
    """On the event loop, in threads and below an `except`: exit code 70, and the state is logged.

    The logs are not marked as closed in order: the next start is one after a crash.
    """
    ended = run(where, str(tmp_path / "data"), "text")
    assert ended.returncode == EXIT_CODE, ended.stderr
    said = "Encountered fatal fault: invariant violated: the mark is within the log"
    assert f"CRITICAL {said}" in ended.stderr
    assert "\n      mark = 9\n      end = 5" in ended.stderr
    assert "in check" in ended.stderr
    assert "Halting with exit code 70" in ended.stderr
    assert "Task dump: " in ended.stderr
    assert "swallowed" not in ended.stderr
    assert (tmp_path / "data" / "meta.properties").exists()
    assert not (tmp_path / "data" / ".kafka_cleanshutdown").exists()


def test_in_json_it_is_one_line(tmp_path: Path) -> None:
    """Where logs are collected as objects, the state belongs to the message."""
    ended = run("loop", str(tmp_path / "data"), "json")
    assert ended.returncode == EXIT_CODE, ended.stderr
    [line] = [each for each in ended.stderr.splitlines() if "Encountered fatal fault" in each]
    assert "mark = 9" in line


def test_a_broker_without_assertions_does_not_start(tmp_path: Path) -> None:
    """`python -O` leaves them out."""
    ended = run("loop", str(tmp_path / "data"), "text", python=("-O",))
    assert ended.returncode == 1
    assert "cannot start: Python skips assertions; unset PYTHONOPTIMIZE, omit -O" in ended.stderr
    assert not (tmp_path / "data").exists()
