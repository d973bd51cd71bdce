"""The note of a move, and the table of what a start does with it, row by row."""

from pathlib import Path

import pytest

from barnabas_broker.log import move_record
from barnabas_broker.log.move_record import MoveRecord, Verdict

OLD, NEW = Path("/disk1"), Path("/disk2")
NOTE = MoveRecord(str(OLD), str(NEW))
SWITCHED = MoveRecord(str(OLD), str(NEW), switched=True)


def test_a_note_is_read_as_it_was_written(tmp_path: Path) -> None:
    """And is gone when it is removed; removing none is no error."""
    assert move_record.read(tmp_path) is None
    for note in (NOTE, SWITCHED):
        move_record.write(tmp_path, note)
        assert move_record.read(tmp_path) == note
    move_record.remove(tmp_path)
    move_record.remove(tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"1", b'{"from": "/a"}', b"\xff"])
def test_an_invalid_move_record_is_ignored(tmp_path: Path, content: bytes) -> None:
    """No crash makes one; the partition is then one without a note."""
    (tmp_path / move_record.NAME).write_bytes(content)
    assert move_record.read(tmp_path) is None


@pytest.mark.parametrize(
    ("row", "note", "directory", "other_offline", "verdict"),
    [
        ("V1", None, OLD, True, Verdict.ONLY),
        ("V2", NOTE, OLD, False, Verdict.ONLY),
        ("V2", NOTE, NEW, False, Verdict.ONLY),
        ("V2", SWITCHED, NEW, False, Verdict.ONLY),
        ("V3", SWITCHED, NEW, True, Verdict.ONLY_KEEP_NOTE),
        ("V4", NOTE, NEW, True, Verdict.NONE),
        ("V4", NOTE, OLD, True, Verdict.NONE),
    ],
)
def test_one_copy(
    row: str, note: MoveRecord | None, directory: Path, other_offline: bool, verdict: Verdict
) -> None:
    """Rows V1 to V4."""
    assert move_record.judge_one(note, directory, other_offline=other_offline) is verdict, row


@pytest.mark.parametrize(
    ("row", "old_end", "new_end", "switched", "verdict"),
    [
        ("V5", (3, 100), (3, 100), True, Verdict.NEW),
        ("V6", (3, 100), (3, 101), False, Verdict.NEW),
        ("V6", (3, 100), (4, 90), False, Verdict.NEW),
        ("V6", (3, 100), (3, 100), False, Verdict.OLD),
        ("V6", (3, 100), (3, 99), False, Verdict.OLD),
        ("V6", (4, 90), (3, 100), False, Verdict.OLD),
    ],
)
def test_two_copies(
    row: str, old_end: tuple[int, int], new_end: tuple[int, int], switched: bool, verdict: Verdict
) -> None:
    """Rows V5 and V6."""
    assert move_record.judge_two(old_end, new_end, switched=switched) is verdict, row


def test_only_a_note_that_names_both_explains_two_copies() -> None:
    """Row V7: a note that was copied along with its directory explains nothing."""
    assert move_record.names_both(NOTE, OLD, NEW)
    assert not move_record.names_both(NOTE, NEW, OLD)
    assert not move_record.names_both(NOTE, Path("/disk3"), NEW)
    assert not move_record.names_both(None, OLD, NEW)


def test_each_side_knows_the_other() -> None:
    """The note is the same in both copies."""
    assert (NOTE.other(OLD), NOTE.other(NEW)) == (str(NEW), str(OLD))
