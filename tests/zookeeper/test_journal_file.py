"""The file of a tree: replaced in one step, appended to, read again."""

import os
from pathlib import Path

import pytest

from barnabas_zookeeper import journal, journal_file
from barnabas_zookeeper.tree import Create, Tree


def test_what_was_appended_is_read(tmp_path: Path) -> None:
    """A snapshot, a transaction after it, and a line that a crash cut off."""
    path = tmp_path / "tree.journal"
    tree = journal_file.read(path)
    assert len(tree) == 1
    descriptor = journal_file.replace(path, tree)
    tree.commit([Create("/a", b"x")], now_ms=1)
    line = journal.encode_transaction([Create("/a", b"x")], zxid=1, now_ms=1)
    journal_file.write(descriptor, line + b"0000")
    os.close(descriptor)
    assert list(journal_file.read(path).save()) == list(tree.save())
    assert [each.name for each in tmp_path.iterdir()] == ["tree.journal"]


def test_a_file_that_cannot_be_replaced_stays(tmp_path: Path) -> None:
    """The old content is there until the new one is complete, and no debris is left."""
    path = tmp_path / "tree.journal"
    os.close(journal_file.replace(path, Tree()))
    before = path.read_bytes()
    path.with_suffix(".tmp").mkdir()
    with pytest.raises(OSError, match="directory"):
        journal_file.replace(path, Tree())
    assert path.read_bytes() == before
