"""The embedded store: what survives which crash, and what is refused."""

import errno
import logging
import os
from pathlib import Path

import pytest

from barnabas_broker.zk.embedded import FILE_NAME, RESERVE_LEAST, RESERVE_NAME, EmbeddedStore
from barnabas_broker.zk.store import (
    Check,
    CoordinationError,
    CoordinationStore,
    Create,
    Delete,
    SetData,
)
from barnabas_zookeeper.errors import BadVersionError, NoNodeError
from tests.broker.descriptors import none_left


def write(directory: Path) -> list[bytes]:
    """Make a store with a snapshot and three transactions; returns the lines of its file."""
    store = EmbeddedStore.open(directory, now_ms=1)
    store.commit(
        [Create("/a", b"\xff\x00 no text"), Create("/a/b", "Kafka über Käse".encode())], now_ms=1
    )
    store.close()
    store = EmbeddedStore.open(directory, now_ms=2)
    store.commit([SetData("/a", b"2", 0)], now_ms=2)
    store.commit([Create("/a/n_", None, sequential=True)], now_ms=3)
    store.commit([Delete("/a/b"), Create("/c", b"")], now_ms=4)
    store.close()
    return (directory / FILE_NAME).read_bytes().splitlines(keepends=True)


def state(store: EmbeddedStore, path: str = "/") -> dict[str, bytes | None]:
    """Every znode with its data."""
    found = {path: store.get(path)[0]}
    for child in store.children(path):
        found |= state(store, f"{path.rstrip('/')}/{child}")
    return found


AFTER_EACH = [
    {"/": None, "/a": b"\xff\x00 no text", "/a/b": "Kafka über Käse".encode()},
    {"/": None, "/a": b"2", "/a/b": "Kafka über Käse".encode()},
    {"/": None, "/a": b"2", "/a/b": "Kafka über Käse".encode(), "/a/n_0000000001": None},
    {"/": None, "/a": b"2", "/a/n_0000000001": None, "/c": b""},
]


def test_committed_znodes_survive_a_restart(tmp_path: Path) -> None:
    """Data of all kinds, versions and counters come back."""
    write(tmp_path)
    store = EmbeddedStore.open(tmp_path, now_ms=5)
    assert state(store) == AFTER_EACH[-1]
    assert store.get("/a")[1].version == 1
    created = store.commit([Create("/a/n_", sequential=True)], now_ms=5)
    assert created.paths == ("/a/n_0000000002",)
    store.close()


def test_a_journal_cut_at_any_byte_gives_the_last_whole_transaction(tmp_path: Path) -> None:
    """A crash while a line is written loses that transaction, which nobody was told of, alone."""
    lines = write(tmp_path)
    snapshot = len(b"".join(lines[:-3]))
    whole = b"".join(lines)
    ends = [snapshot + len(b"".join(lines[-3 : len(lines) - 3 + n])) for n in range(4)]
    for length in range(snapshot, len(whole) + 1):
        (tmp_path / FILE_NAME).write_bytes(whole[:length])
        store = EmbeddedStore.open(tmp_path, now_ms=9)
        committed = max(n for n, end in enumerate(ends) if end <= length)
        assert state(store) == AFTER_EACH[committed], f"cut at {length}"
        # What comes after the cut is appended to a clean end.
        store.commit([Create("/later")], now_ms=9)
        store.close()
        store = EmbeddedStore.open(tmp_path, now_ms=9)
        assert store.exists("/later") is not None
        store.close()


def test_a_garbled_last_line_is_dropped_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A file system may write the end of a line before its beginning."""
    lines = write(tmp_path)
    torn = b"\0" * (len(lines[-1]) - 5) + lines[-1][-5:]
    (tmp_path / FILE_NAME).write_bytes(b"".join(lines[:-1]) + torn)
    with caplog.at_level(logging.WARNING):
        store = EmbeddedStore.open(tmp_path, now_ms=9)
    assert state(store) == AFTER_EACH[2]
    assert "Incomplete transaction dropped" in caplog.text
    store.close()


def test_damage_anywhere_else_refuses_to_start(tmp_path: Path) -> None:
    """No crash changes a byte in the middle; reading over it would lose topics silently."""
    whole = b"".join(write(tmp_path))
    last = len(whole.splitlines(keepends=True)[-1])
    for position in range(0, len(whole) - last, 7):
        damaged = bytearray(whole)
        damaged[position] ^= 0x01
        (tmp_path / FILE_NAME).write_bytes(damaged)
        with pytest.raises(CoordinationError, match=r"is damaged \(line \d+: ") as caught:
            EmbeddedStore.open(tmp_path, now_ms=9)
        assert "\n" not in str(caught.value)
        # The evidence is left as it was.
        assert (tmp_path / FILE_NAME).read_bytes() == damaged


@pytest.mark.parametrize("gone", [0, 1, -2])
def test_a_missing_line_refuses_to_start(tmp_path: Path, gone: int) -> None:
    """Neither the header nor a znode nor a transaction between others can be done without."""
    lines = write(tmp_path)
    del lines[gone]
    (tmp_path / FILE_NAME).write_bytes(b"".join(lines))
    with pytest.raises(CoordinationError, match="is damaged"):
        EmbeddedStore.open(tmp_path, now_ms=9)


def test_a_file_that_ends_inside_its_snapshot_refuses_to_start(tmp_path: Path) -> None:
    """A snapshot is renamed into place when complete, so half of one is damage."""
    lines = write(tmp_path)
    (tmp_path / FILE_NAME).write_bytes(b"".join(lines[:2]))
    with pytest.raises(CoordinationError, match="ends inside its snapshot"):
        EmbeddedStore.open(tmp_path, now_ms=9)


def test_an_empty_file_refuses_to_start(tmp_path: Path) -> None:
    """A new store has no file; one without content has lost it."""
    (tmp_path / FILE_NAME).touch()
    with pytest.raises(CoordinationError, match="the file is empty"):
        EmbeddedStore.open(tmp_path, now_ms=9)


def test_a_crash_before_the_rename_leaves_the_old_file_in_force(tmp_path: Path) -> None:
    """A snapshot that was being written when the power went is overwritten by the next one."""
    write(tmp_path)
    (tmp_path / FILE_NAME).with_suffix(".tmp").write_bytes(b"half a snapsh")
    store = EmbeddedStore.open(tmp_path, now_ms=9)
    assert state(store) == AFTER_EACH[-1]
    assert not (tmp_path / FILE_NAME).with_suffix(".tmp").exists()
    store.close()


def test_ephemeral_znodes_end_with_the_process(tmp_path: Path) -> None:
    """A broker that is not running is not registered, even if it was killed."""
    store = EmbeddedStore.open(tmp_path, now_ms=1)
    store.commit([Create("/ids"), Create("/ids/1", ephemeral_owner=store.session)], now_ms=1)
    # The process is killed here: nothing is closed in order.
    again = EmbeddedStore.open(tmp_path, now_ms=2)
    assert again.children("/ids") == []
    store.close()
    again.close()


def test_a_refused_transaction_is_not_written(tmp_path: Path) -> None:
    """A restart must not find what the caller was told did not happen."""
    store = EmbeddedStore.open(tmp_path, now_ms=1)
    store.commit([Create("/a")], now_ms=1)
    before = (tmp_path / FILE_NAME).read_bytes()
    with pytest.raises(BadVersionError):
        store.commit([Create("/b"), SetData("/a", b"", 9)], now_ms=1)
    assert (tmp_path / FILE_NAME).read_bytes() == before
    with pytest.raises(NoNodeError):
        store.get("/b")
    store.close()


def test_a_closed_store_takes_no_writes(tmp_path: Path) -> None:
    """After an error nobody may go on as if nothing had happened."""
    store = EmbeddedStore.open(tmp_path, now_ms=1)
    store.close()
    with pytest.raises(CoordinationError, match="is closed"):
        store.commit([Create("/a")], now_ms=1)


def test_a_full_disk_stops_the_store_for_good(tmp_path: Path) -> None:
    """Whether a failed write will be read again is unknown, so no more are taken."""
    store = EmbeddedStore.open(tmp_path, now_ms=1)
    full = os.open("/dev/full", os.O_WRONLY)
    os.dup2(full, store._descriptor)
    os.close(full)
    for _ in range(2):
        with pytest.raises(CoordinationError, match="No space left on device"):
            store.commit([Create("/a")], now_ms=1)
    store.close()
    again = EmbeddedStore.open(tmp_path, now_ms=2)
    assert again.exists("/a") is None
    again.close()


def test_a_full_disk_changes_nothing_and_heals(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """First the reserve is used up, then commits are refused as if they had never been."""
    store = EmbeddedStore.open(tmp_path, now_ms=1)
    store.commit([Create("/a")], now_ms=1)
    before = (tmp_path / FILE_NAME).read_bytes()
    assert (tmp_path / RESERVE_NAME).stat().st_blocks * 512 >= RESERVE_LEAST

    def full(descriptor: int, data: memoryview) -> int:
        os.pwrite(descriptor, data[:5], os.fstat(descriptor).st_size)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        for path in ("/b", "/c"):
            with pytest.raises(CoordinationError, match="No space left on device"):
                store.commit([Create(path)], now_ms=1)
            assert store.exists(path) is None
        assert not (tmp_path / RESERVE_NAME).exists()
        assert (tmp_path / FILE_NAME).read_bytes() == before
    store.commit([Create("/b")], now_ms=2)
    assert (tmp_path / RESERVE_NAME).exists()
    store.close()
    again = EmbeddedStore.open(tmp_path, now_ms=3)
    assert again.children("/") == ["a", "b"]
    again.close()


def test_without_descriptors_commits_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Right after a full disk, when the reserve is to be held again, and while the disk is full."""
    store = EmbeddedStore.open(tmp_path, now_ms=1)

    def full(descriptor: int, data: memoryview) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with none_left():
        with monkeypatch.context() as patch:
            patch.setattr(os, "write", full)
            with pytest.raises(CoordinationError, match="No space left on device"):
                store.commit([Create("/a")], now_ms=1)
        assert store.exists("/a") is None
        store.commit([Create("/b")], now_ms=2)
    assert "Failed to lock the coordination data again" in caplog.text
    store.commit([Create("/c")], now_ms=3)
    assert (tmp_path / RESERVE_NAME).exists()
    store.close()
    again = EmbeddedStore.open(tmp_path, now_ms=4)
    assert again.children("/") == ["b", "c"]
    again.close()


def test_an_unreadable_file_is_one_clear_line(tmp_path: Path) -> None:
    """A user who gets in the broker's way reads what and where, without a traceback."""
    (tmp_path / FILE_NAME).mkdir()
    with pytest.raises(CoordinationError, match=rf"{FILE_NAME}: Is a directory"):
        EmbeddedStore.open(tmp_path, now_ms=1)


def test_the_port_serves_the_embedded_store(tmp_path: Path) -> None:
    """What is written through the port is read through it."""
    store: CoordinationStore = EmbeddedStore.open(tmp_path, now_ms=1)
    committed = store.commit([Create("/a", b"x"), Check("/a", 0)], now_ms=1)
    assert (committed.paths, store.get("/a")[0], store.children("/")) == (("/a", "/a"), b"x", ["a"])
    assert store.exists("/b") is None
    store.close()
