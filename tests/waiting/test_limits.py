"""A library's time limit that runs out shows what the processes under test did meanwhile."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from aiokafka.errors import KafkaTimeoutError
from confluent_kafka import KafkaError, KafkaException

from tests.waiting.facts import NotInTimeError
from tests.waiting.limits import SECTION, timed_out

pytest_plugins = ["pytester"]

CONFTEST = """
from tests.waiting.limits import LimitEvidence

def pytest_configure(config):
    config.pluginmanager.register(LimitEvidence())
"""
#: A worker that waits for ever, and a test whose library gives up on it.
HANGS = """
import pytest
from tests.waiting import wait_for, watch
from tests.waiting.test_facts import WORKER, start

@pytest.fixture
def worker(tmp_path):
    process = start(tmp_path, WORKER, str(tmp_path / "fact"), "lost")
    watch("worker", process.pid, tmp_path / "log", dumps=True)
    wait_for("the worker", (tmp_path / "fact.ready").exists)
    yield process
    process.kill()
    process.wait()

def test_hangs(worker):
    worker.wait(timeout=0.5)

def test_fails_for_another_reason():
    assert not "this"
"""


def raised_from(error: Exception, cause: Exception) -> Exception:
    """An error as it comes out of `raise error from cause`."""
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    "error",
    [
        TimeoutError(),
        subprocess.TimeoutExpired("kafka-topics.sh", 9),
        KafkaException(KafkaError(KafkaError._TIMED_OUT)),
        KafkaTimeoutError(),
        AssertionError("exit status 1: Timed out waiting for a node assignment"),
        raised_from(ValueError("no topic"), TimeoutError()),
    ],
    ids=lambda error: type(error).__name__,
)
def test_time_limits_of_libraries_are_seen(error: Exception) -> None:
    """Whatever its type, also as the cause of another error."""
    assert timed_out(error)


@pytest.mark.parametrize(
    "error",
    [None, AssertionError("1 != 2"), raised_from(NotInTimeError("timed out"), TimeoutError())],
)
def test_other_failures_need_no_evidence(error: Exception | None) -> None:
    """And a wait of ours has brought its own."""
    assert not timed_out(error)


def test_a_lost_wake_up_behind_a_library_s_limit_is_shown(pytester: pytest.Pytester) -> None:
    """The report of the test has a verdict, and the place where the worker waits for ever."""
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(HANGS)
    root = Path(__file__).parents[2]
    pytester.syspathinsert(root)
    result = pytester.runpytest("-p", "no:cacheprovider", "-p", "no:randomly")
    result.assert_outcomes(failed=2)
    text = result.stdout.str()
    assert text.count(SECTION) == 1
    assert "verdict: " in text
    assert "in the_wake_up_that_is_lost" in text
