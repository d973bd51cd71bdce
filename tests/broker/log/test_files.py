"""Data files: whole appends, descriptors that outlive their segment, atomic replacement."""

import ast
import errno
import os
from pathlib import Path

import pytest

from barnabas_broker.log import files
from barnabas_broker.log.files import DataFile, FileSlice, replace_file
from tests.broker.log.disk import Disk, using
from tests.broker.log.images import Loss, Machine


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


def test_there_is_one_door_to_the_disk() -> None:
    """No other module of the log opens, changes, renames or removes a file by itself."""
    modules = [path for path in Path(files.__file__).parent.glob("*.py") if path.stem != "files"]
    found = [
        f"{module.name}:{node.lineno}: {ast.unparse(node.func)}"
        for module in modules
        for node in ast.walk(ast.parse(module.read_text()))
        if isinstance(node, ast.Call) and _reaches_the_disk(ast.unparse(node.func))
    ]
    assert found == []


def _reaches_the_disk(call: str) -> bool:
    owner, _, name = call.rpartition(".")
    if owner in ("", "os", "shutil"):
        return call == "open" or (owner != "" and call != "shutil.disk_usage")
    if name in ("rename", "replace"):
        return owner.endswith(("path", "directory", "target"))
    return name in ("write_bytes", "write_text", "unlink", "mkdir", "rmdir", "touch")


def test_an_append_is_one_write(tmp_path: Path) -> None:
    """Nothing else reaches the system on the way of a produced batch."""
    with using(Disk(tmp_path)) as disk:
        file = DataFile.create(tmp_path / "a")
        before = len(disk.effects)
        file.append(b"0123456789")
        assert [effect.kind for effect in disk.effects[before:]] == ["write"]


def test_a_short_write_is_cut_back(tmp_path: Path) -> None:
    """A full device takes part of a batch; the file ends where it ended before."""
    with using(Disk(tmp_path)) as disk:
        file = DataFile.create(tmp_path / "a")
        file.append(b"whole")
        disk.fail("pwrite", errno.ENOSPC, short=3)
        with pytest.raises(OSError, match="No space left"):
            file.append(b"0123456789")
        disk.repair()
        assert (tmp_path / "a").read_bytes() == b"whole"
        assert file.append(b"next") == 5


def test_directories_are_made_durable_with_those_above(tmp_path: Path) -> None:
    """A data directory that is missing is made with its parents; its name outlives a power cut."""
    with using(Disk(tmp_path)) as disk:
        files.make_directory(tmp_path / "a" / "b")
        files.make_directory(tmp_path / "a" / "b")
    machine = Machine()
    for effect in disk.effects:
        machine.apply(effect)
    assert machine.image(Loss.NOTHING_BACK) == {"a": {"b": {}}}


def test_a_tree_is_removed_whole(tmp_path: Path) -> None:
    """Directories in directories too; a link is removed, not followed."""
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "file").write_bytes(b"x")
    (tmp_path / "kept").mkdir()
    (tmp_path / "a" / "link").symlink_to(tmp_path / "kept")
    files.remove_tree(tmp_path / "a")
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]
