"""The states of a log directory: every transition, and what errors and free room mean."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from barnabas_broker.log.files import SyncError
from barnabas_broker.log.health import (
    DirectoryHealth,
    Finding,
    Health,
    Reserve,
    judge_error,
    lacks_room,
)

ONLINE, FULL, OFFLINE = Health
PATH = Path("/logs")


def error(number: int) -> OSError:
    return OSError(number, os.strerror(number))


@pytest.mark.parametrize(
    ("before", "finding", "after"),
    [
        (ONLINE, Finding.ROOM, ONLINE),
        (ONLINE, Finding.NO_ROOM, FULL),
        (ONLINE, Finding.LOW, FULL),
        (ONLINE, Finding.BROKEN, OFFLINE),
        (FULL, Finding.ROOM, ONLINE),
        (FULL, Finding.NO_ROOM, FULL),
        (FULL, Finding.LOW, FULL),
        (FULL, Finding.BROKEN, OFFLINE),
        (OFFLINE, Finding.ROOM, OFFLINE),
        (OFFLINE, Finding.NO_ROOM, OFFLINE),
        (OFFLINE, Finding.LOW, OFFLINE),
        (OFFLINE, Finding.BROKEN, OFFLINE),
    ],
)
def test_the_table(before: Health, finding: Finding, after: Health) -> None:
    """Room heals what is full and nothing else; nothing heals what is offline."""
    health = DirectoryHealth(PATH)
    if before is FULL:
        health.found(Finding.NO_ROOM, "")
    elif before is OFFLINE:
        health.found(Finding.BROKEN, "")
    heard: list[Health] = []
    health.on_change = lambda changed: heard.append(changed.state)
    health.found(finding, "why")
    assert health.state is after
    assert (health.readable, health.writable) == (after is not OFFLINE, after is ONLINE)
    assert heard == ([after] if after is not before else [])


def test_a_state_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    """However many writes meet the full disk, the log has one line."""
    health = DirectoryHealth(PATH)
    for _ in range(100):
        health.failed(error(errno.ENOSPC))
    assert len(caplog.records) == 1
    assert "/logs (No space left on device)" in caplog.text
    assert health.reason == "No space left on device"


@pytest.mark.parametrize(
    ("number", "finding"),
    [
        (errno.ENOSPC, Finding.NO_ROOM),
        (errno.EDQUOT, Finding.NO_ROOM),
        (errno.EIO, Finding.BROKEN),
        (errno.EROFS, Finding.BROKEN),
        (errno.ENOENT, Finding.BROKEN),
        (errno.EMFILE, None),
        (errno.ENOMEM, None),
    ],
)
def test_errors_are_judged(number: int, finding: Finding | None) -> None:
    """Lack of room, a broken device, or a process without means; a failed sync is always broken."""
    assert judge_error(error(number)) is finding
    assert lacks_room(error(number)) == (finding is Finding.NO_ROOM)
    failed_sync = SyncError(number, os.strerror(number))
    assert judge_error(failed_sync) is Finding.BROKEN
    assert not lacks_room(failed_sync)


def test_free_space_is_judged() -> None:
    """Between the two marks a directory stays what it is."""
    reserve = Reserve(keep=100, resume=200)
    judged = {free: reserve.judge(free) for free in (0, 99, 100, 199, 200, 10_000)}
    assert judged == {
        0: Finding.LOW,
        99: Finding.LOW,
        100: None,
        199: None,
        200: Finding.ROOM,
        10_000: Finding.ROOM,
    }
    assert Reserve(keep=100, resume=0).judge(100) is Finding.ROOM
    assert Reserve(keep=0, resume=0).judge(0) is None
