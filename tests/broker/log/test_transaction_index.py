"""The transaction index: 34 bytes per abort, and the search of read_committed fetches."""

import struct
from pathlib import Path

import pytest

from barnabas_broker.log.indexes import CorruptIndexError
from barnabas_broker.log.transaction_index import AbortedTransaction, TransactionIndex

FIRST = AbortedTransaction(1, 10, 20, 15)
SECOND = AbortedTransaction(2, 15, 30, 31)


def index_with(tmp_path: Path, *entries: AbortedTransaction) -> TransactionIndex:
    index = TransactionIndex(tmp_path / "0.txnindex", 0)
    index.load()
    for entry in entries:
        index.append(entry)
    return index


def test_the_file_appears_with_the_first_abort(tmp_path: Path) -> None:
    """Most segments never have one."""
    index = index_with(tmp_path)
    assert not index.exists
    index.append(FIRST)
    assert index.path.read_bytes() == struct.pack(">hqqqq", 0, 1, 10, 20, 15)


def test_entries_survive_a_restart(tmp_path: Path) -> None:
    """Each is written at once."""
    index_with(tmp_path, FIRST, SECOND)
    assert index_with(tmp_path).entries == [FIRST, SECOND]


def test_collecting_aborts_for_a_fetch(tmp_path: Path) -> None:
    """Those that overlap the range; complete once the stable offset passes its end."""
    index = index_with(tmp_path, FIRST, SECOND)
    assert index.collect(0, 12) == ([FIRST], True)
    assert index.collect(0, 16) == ([FIRST, SECOND], True)
    assert index.collect(21, 100) == ([SECOND], False)
    assert index.collect(31, 100) == ([], False)


def test_truncation_drops_markers_that_are_gone(tmp_path: Path) -> None:
    """An abort whose marker was cut is undecided again."""
    index_with(tmp_path, FIRST, SECOND).truncate_to(30)
    assert index_with(tmp_path).entries == [FIRST]


def test_reset_empties_a_file_that_was_never_loaded(tmp_path: Path) -> None:
    """Recovery builds the index from the log, not from what was there."""
    index_with(tmp_path, FIRST)
    index = TransactionIndex(tmp_path / "0.txnindex", 0)
    index.reset()
    assert index.path.read_bytes() == b""


@pytest.mark.parametrize(
    "data", [b"torn", struct.pack(">hqqqq", 9, 1, 1, 1, 1), struct.pack(">hqqqq", 0, 1, 1, 3, 1)]
)
def test_corrupt_files_are_noticed(tmp_path: Path, data: bytes) -> None:
    """Torn, of an unknown version, or about a time before the segment."""
    path = tmp_path / "5.txnindex"
    path.write_bytes(data)
    with pytest.raises(CorruptIndexError):
        TransactionIndex(path, 5).load()
