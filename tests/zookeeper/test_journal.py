"""The journal's lines: how they read, and that they carry everything."""

import json
import os
import zlib
from pathlib import Path

import pytest

from barnabas_zookeeper import journal, journal_file
from barnabas_zookeeper.tree import (
    Acl,
    Check,
    CloseSession,
    Create,
    Delete,
    OpenSession,
    Operation,
    Session,
    SetAcl,
    SetData,
    Tree,
)


def test_a_transaction_is_one_readable_line_with_its_checksum() -> None:
    """An operator can read the file, and a program can check it."""
    operation = Create("/topics/a", b'{"version":3}')
    line = journal.encode_transaction([operation], zxid=4, now_ms=12)
    checksum, text = line.rstrip(b"\n").split(b" ", 1)
    assert line.endswith(b"\n")
    assert int(checksum, 16) == zlib.crc32(text)
    assert json.loads(text) == {
        "zxid": 4,
        "now": 12,
        "ops": [
            ["create", {"path": "/topics/a", "seq": False, "owner": 0, "data": '{"version":3}'}]
        ],
    }


def test_a_newline_in_data_does_not_end_the_line() -> None:
    """Data may hold anything; a record stays one line."""
    line = journal.encode_transaction([Create("/a", b"1\n2\r\n3")], zxid=1, now_ms=1)
    assert line.count(b"\n") == 1


def test_every_kind_of_operation_comes_back() -> None:
    """Replaying the lines gives the tree that committing the operations gave."""
    transactions: list[list[Operation]] = [
        [Create("/a", None), Create("/b", b""), Create("/c", b"\xff")],
        [Create("/a/s-", b"x", sequential=True), Create("/a/e", ephemeral_owner=3)],
        [SetData("/b", None), SetData("/c", b"text", 0), Check("/c", 1)],
        [Delete("/a/e", 0)],
        [OpenSession(7, Session(6000, b"secret")), OpenSession(8, Session(1, b""))],
        [Create("/mine", b"", ephemeral_owner=8, acl=(Acl(1, "digest", "me:x"),))],
        [SetAcl("/b", (Acl(31, "digest", "me:x"),), 0), CloseSession(8)],
    ]
    tree = Tree()
    lines = list(journal.encode_snapshot(tree))
    for number, operations in enumerate(transactions, start=1):
        tree.commit(operations, now_ms=number)
        lines.append(journal.encode_transaction(operations, zxid=number, now_ms=number))
    read = journal.decode(lines)
    assert not read.torn
    assert list(read.tree.save()) == list(tree.save())
    snapshot = journal.decode(journal.encode_snapshot(tree))
    assert list(snapshot.tree.save()) == list(tree.save())
    assert snapshot.tree.zxid == tree.zxid
    for each in (read.tree, snapshot.tree):
        assert each.open_sessions == tree.open_sessions == {7: Session(6000, b"secret")}


def record(value: object) -> bytes:
    """A line with a right checksum."""
    text = json.dumps(value).encode()
    return b"%08x %s\n" % (zlib.crc32(text), text)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ({"zxid": 3, "now": 1, "ops": []}, "transaction 3 follows transaction 0"),
        ({"zxid": 1, "now": 1, "ops": [["rename", {}]]}, "unknown operation 'rename'"),
        ({"zxid": 1, "now": 1, "ops": [["delete", {"path": "/a", "version": -1}]]}, "NoNodeError"),
        ({"zxid": 1, "now": 1, "ops": [["set", {"path": "/"}]]}, "version"),
        ([], "list indices"),
    ],
)
def test_intact_lines_that_make_no_sense_are_damage(value: object, reason: str) -> None:
    """A right checksum over wrong contents is a fault of a program, not of a crash."""
    lines = [*journal.encode_snapshot(Tree()), record(value)]
    with pytest.raises(journal.DamagedJournalError, match=reason):
        journal.decode(lines)


def test_a_file_of_another_format_is_refused() -> None:
    """A later release's file must not be misread."""
    lines = [record({"barnabas-znodes": 2, "zxid": 0, "nodes": 0})]
    with pytest.raises(journal.DamagedJournalError, match="format 2"):
        journal.decode(lines)


def test_snapshot_and_transactions_are_read_back(tmp_path: Path) -> None:
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
