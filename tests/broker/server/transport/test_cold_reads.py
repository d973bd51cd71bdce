"""Reads of what has left the page cache, on real files of a real disk."""

import errno
import os
from pathlib import Path

import pytest

from barnabas_broker.log.files import DataFile
from barnabas_broker.server.transport import cold_reads
from tests.broker.server import page_cache


@pytest.fixture
def file(tmp_path: Path) -> DataFile:
    """Three megabytes, none of them in memory."""
    file = DataFile.create(tmp_path / "segment")
    file.append(os.urandom(3 << 20))
    page_cache.evict(file)
    return file


def test_written_data_is_in_the_page_cache(tmp_path: Path) -> None:
    """A consumer at the tail is served from what the producer left in the cache."""
    file = DataFile.create(tmp_path / "segment")
    content = os.urandom(300_000)
    file.append(content)
    assert cold_reads.in_memory(file.fd, 0, file.size)
    assert cold_reads.read_in_memory(file, 1000, 20_000) == content[1000:21_000]


def test_evicted_data_is_cold_until_read(file: DataFile) -> None:
    """Asking does not wait for the disk; a thread that reads does.

    All of the file is asked for: the disk may have read the beginning of it by the time that the
    kernel, which read ahead when it was asked, looks again.
    """
    assert not cold_reads.in_memory(file.fd, 0, file.size)
    cold_reads.bring_in(file, 0, file.size, file.size)
    assert page_cache.in_memory(file.fd, 0, file.size)
    assert cold_reads.in_memory(file.fd, 0, file.size)
    assert cold_reads.read_in_memory(file, 2 << 20, 5) == os.pread(file.fd, 5, 2 << 20)


def test_a_cold_slice_is_not_waited_for(file: DataFile) -> None:
    """None says that it has to be brought in first, be it for its last page alone."""
    assert cold_reads.read_in_memory(file, 0, file.size) is None
    page_cache.evict(file)
    cold_reads.bring_in(file, 0, 4096, 4096)
    assert cold_reads.read_in_memory(file, 0, file.size) is None


def test_a_file_that_ends_early_is_an_error(file: DataFile) -> None:
    """The client was told of more: only ending its connection is right."""
    with pytest.raises(OSError, match="below the end of a response whose header was sent"):
        cold_reads.bring_in(file, 2 << 20, 4 << 20, 4 << 20)


def test_file_systems_that_cannot_be_asked(file: DataFile, monkeypatch: pytest.MonkeyPatch) -> None:
    """There everything counts as in memory, and reads wait where they must."""

    def unsupported(*_: object) -> int:
        raise OSError(errno.EOPNOTSUPP, "not on this file system")

    monkeypatch.setattr(os, "preadv", unsupported)
    assert cold_reads.in_memory(file.fd, 0, file.size)
    assert cold_reads.read_in_memory(file, 7, 9) == os.pread(file.fd, 9, 7)
