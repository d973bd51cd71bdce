"""The failing disk itself: what a process under it meets, inside its tree and outside."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.disk import FaultyDisk

#: Runs each line of its input and answers with the result, or the name of the error.
_PUPPET = """
import errno, os, shutil, sys, time
for line in sys.stdin:
    try:
        answer = repr(eval(line))
    except OSError as error:
        answer = errno.errorcode[error.errno]
    print(answer, flush=True)
"""


class Puppet:
    """A Python process on the failing disk that evaluates what it is told."""

    def __init__(self, disk: FaultyDisk) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", _PUPPET],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | disk.environment,
        )

    def ask(self, expression: str) -> str:
        """The value of a Python expression in that process, or the error it ends with."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(expression + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def open(self, path: Path) -> int:
        return int(self.ask(f"os.open({str(path)!r}, os.O_RDWR | os.O_CREAT)"))

    def end(self) -> None:
        self.process.communicate()


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[FaultyDisk]:
    tree = tmp_path / "tree"
    tree.mkdir()
    with FaultyDisk(tree) as faulty:
        yield faulty


@pytest.fixture
def puppet(disk: FaultyDisk) -> Iterator[Puppet]:
    started = Puppet(disk)
    yield started
    started.end()


def test_without_a_fault_it_only_counts(disk: FaultyDisk, puppet: Puppet) -> None:
    """Calls go through, and writes and syncs of the tree are counted."""
    fd = puppet.open(disk.prefix / "a")
    assert puppet.ask(f"os.pwrite({fd}, b'abc', 0), os.fsync({fd})") == "(3, None)"
    assert (disk.prefix / "a").read_bytes() == b"abc"
    assert (disk.faults.writes, disk.faults.syncs) == (1, 1)


def test_a_full_disk_takes_what_fits_and_no_more(disk: FaultyDisk, puppet: Puppet) -> None:
    """The write that meets the end is short, the next fails, until there is room again."""
    fd = puppet.open(disk.prefix / "a")
    disk.fill(room=5)
    assert puppet.ask(f"os.pwrite({fd}, b'12345678', 0)") == "5"
    assert puppet.ask(f"os.pwrite({fd}, b'678', 5)") == "ENOSPC"
    assert puppet.ask(f"os.writev({fd}, [b'', b'678'])") == "ENOSPC"
    assert puppet.ask(f"os.statvfs({str(disk.prefix)!r}).f_bavail") == "0"
    disk.heal()
    assert puppet.ask(f"os.pwrite({fd}, b'678', 5)") == "3"


def test_a_write_of_several_parts_is_cut_too(disk: FaultyDisk, puppet: Puppet) -> None:
    """Of a vector only the start is written when there is room for no more."""
    fd = puppet.open(disk.prefix / "a")
    disk.fill(room=2)
    assert puppet.ask(f"os.pwritev({fd}, [b'', b'abc', b'def'], 0)") == "2"
    assert (disk.prefix / "a").read_bytes() == b"ab"


def test_each_kind_of_call_fails_on_its_own(disk: FaultyDisk, puppet: Puppet) -> None:
    """Reading, syncing and changing have an error each, and leave the others alone."""
    fd = puppet.open(disk.prefix / "a")
    disk.faults.read_errno = errno.EIO
    assert puppet.ask(f"os.pread({fd}, 1, 0)") == "EIO"
    assert puppet.ask(f"os.pwrite({fd}, b'x', 0)") == "1"
    disk.heal()
    disk.faults.sync_errno = errno.EIO
    assert puppet.ask(f"os.fdatasync({fd})") == "EIO"
    assert puppet.ask(f"os.pread({fd}, 1, 0)") == "b'x'"
    disk.heal()
    disk.faults.change_errno = errno.EIO
    path = str(disk.prefix / "b")
    assert puppet.ask(f"os.open({path!r}, os.O_RDWR | os.O_CREAT)") == "EIO"
    assert puppet.ask(f"os.rename({str(disk.prefix / 'a')!r}, {path!r})") == "EIO"
    assert puppet.ask(f"os.ftruncate({fd}, 0)") == "EIO"
    assert puppet.ask(f"os.fsync({fd})") == "None"


def test_a_slow_sync_takes_that_much_longer(disk: FaultyDisk, puppet: Puppet) -> None:
    """A sync ends no sooner than it was told to."""
    fd = puppet.open(disk.prefix / "a")
    disk.faults.sync_delay_ms = 30
    took = puppet.ask(f"[time.monotonic(), os.fsync({fd}), time.monotonic()]")
    before, _, after = eval(took)
    assert after - before >= 0.03


def test_the_rest_of_the_machine_is_left_alone(
    disk: FaultyDisk, puppet: Puppet, tmp_path: Path
) -> None:
    """Directories beside the tree work, also where their names begin alike."""
    disk.break_down()
    for other in (tmp_path / "a", tmp_path / "tree-beside"):
        fd = puppet.open(other)
        assert puppet.ask(f"os.pwrite({fd}, b'x', 0), os.fsync({fd}), os.pread({fd}, 1, 0)") == (
            "(1, None, b'x')"
        )
