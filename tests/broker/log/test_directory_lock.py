"""The lock on a log directory."""

import subprocess
import sys
from pathlib import Path

import pytest

from barnabas_broker.log.directory_lock import AlreadyLockedError, DirectoryLock

TRY = """
import fcntl, os, sys
fd = os.open(sys.argv[1], os.O_RDWR)
try:
    fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
except OSError:
    sys.exit(3)
"""


def posix_lock_taken(path: Path) -> bool:
    """Whether another process finds the record lock held that Java's FileLock takes."""
    return subprocess.run([sys.executable, "-c", TRY, str(path)], check=False).returncode == 3


def test_other_processes_see_a_posix_lock(tmp_path: Path) -> None:
    """So an Apache broker and ours keep each other out."""
    lock = DirectoryLock(tmp_path)
    assert posix_lock_taken(tmp_path / ".lock")
    lock.release()
    assert not posix_lock_taken(tmp_path / ".lock")


def test_one_process_takes_a_directory_once(tmp_path: Path) -> None:
    """Also under another name for the same directory."""
    lock = DirectoryLock(tmp_path)
    (tmp_path / "sub").mkdir()
    with pytest.raises(AlreadyLockedError):
        DirectoryLock(tmp_path / "sub" / "..")
    lock.release()
    lock.release()
    DirectoryLock(tmp_path).release()


def test_a_refused_lock_leaves_the_holder_alone(tmp_path: Path) -> None:
    """Closing a descriptor of the file would drop a POSIX lock of the same process."""
    lock = DirectoryLock(tmp_path)
    with pytest.raises(AlreadyLockedError):
        DirectoryLock(tmp_path)
    assert posix_lock_taken(tmp_path / ".lock")
    lock.release()
