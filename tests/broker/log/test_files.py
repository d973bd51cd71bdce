"""Data files: whole appends, descriptors that outlive their segment, atomic replacement."""

import errno
import os
from pathlib import Path

import pytest

from barnabas_broker.log import files
from barnabas_broker.log.files import DataFile, FileSlice, replace_file


def test_appends_land_one_after_the_other(tmp_path: Path) -> None:
    """Each append returns where it starts, and the bytes are in the file at once."""
    file = DataFile.create(tmp_path / "a")
    assert file.append(b"abc") == 0
    assert file.append(memoryview(b"defg")) == 3
    assert (tmp_path / "a").read_bytes() == b"abcdefg"


def test_short_writes_are_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel may take less than it was given; the append goes on where it stopped."""
    real = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda fd, data, at: real(fd, data[:2], at))
    file = DataFile.create(tmp_path / "a")
    file.append(b"abcdefg")
    assert (tmp_path / "a").read_bytes() == b"abcdefg"


def test_a_failed_append_leaves_the_old_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk in the middle of an append leaves no torn batch behind."""
    file = DataFile.create(tmp_path / "a")
    file.append(b"whole")
    real = os.pwrite

    def full(fd: int, data: bytes, at: int) -> int:
        if at > 5:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(fd, data[:3], at)

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(OSError, match="No space"):
        file.append(b"torn in two")
    assert file.size == 5
    assert (tmp_path / "a").read_bytes() == b"whole"


def test_preallocated_files_count_only_what_was_written(tmp_path: Path) -> None:
    """Preallocation is sparse: the logical end starts at 0."""
    file = DataFile.create(tmp_path / "a", preallocate=4096)
    file.append(b"abc")
    assert file.size == 3
    assert (tmp_path / "a").stat().st_size == 4096
    assert file.read(0, 100) == b"abc"


def test_a_slice_keeps_its_file_readable_after_removal(tmp_path: Path) -> None:
    """Retention unlinks and drops the file; a sender that holds the slice reads on."""
    file = DataFile.create(tmp_path / "a")
    file.append(b"0123456789")
    part = FileSlice(file, 2, 4, 0)
    (tmp_path / "a").unlink()
    del file
    assert part.read() == b"2345"
    assert part.intact


def test_the_descriptor_goes_with_the_last_holder(tmp_path: Path) -> None:
    """No descriptor leaks, and none is closed while somebody may still send from it."""
    file = DataFile.create(tmp_path / "a")
    part = FileSlice(file, 0, 0, 0)
    fd = file.fd
    del file
    os.fstat(fd)
    del part
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(fd)


def test_truncation_takes_slices_across_the_cut_out_of_service(tmp_path: Path) -> None:
    """Bytes written after a truncation never pass for those a slice was made for."""
    file = DataFile.create(tmp_path / "a")
    file.append(b"0123456789")
    below, across = FileSlice(file, 0, 4, 0), FileSlice(file, 2, 6, 0)
    after = file.truncate(5)
    after.append(b"other bytes")
    assert below.intact
    assert not across.intact
    later = FileSlice(after, 4, 6, 0)
    assert later.intact
    after.truncate(3)
    assert not below.intact
    assert not later.intact


def test_replacement_is_whole_or_not_at_all(tmp_path: Path) -> None:
    """A replaced file has the new content, and no temporary file stays."""
    path = tmp_path / "checkpoint"
    replace_file(path, b"one")
    replace_file(path, b"two", durable=False)
    assert path.read_bytes() == b"two"
    assert [entry.name for entry in tmp_path.iterdir()] == ["checkpoint"]


def test_missing_files_need_no_sync_and_no_removal(tmp_path: Path) -> None:
    """Work planned for files that have gone meanwhile is no error."""
    files.sync_file(tmp_path / "gone")
    files.remove_files([tmp_path / "gone"])
