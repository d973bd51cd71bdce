"""Starts that find a partition twice, or half of a pair."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from barnabas_broker.log import move_record
from barnabas_broker.log.config import LogConfig
from barnabas_broker.log.directories import LogDirectoryError
from barnabas_broker.log.move_record import MoveRecord
from barnabas_kafka.errors import ErrorCode, KafkaError
from tests.broker.log.samples import NOW, TP, append, batch_of, fill, housekeep, open_directories


def pair(tmp_path: Path, *, old: int, new: int) -> tuple[Path, Path]:
    """Two directories with a partition of so many records each, the one a prefix of the other."""
    one, two = tmp_path / "one", tmp_path / "two"
    for count, path in ((old, one), (new, two)):
        logs = open_directories(path)
        fill(logs.create(TP, LogConfig(), None, NOW), count)
        logs.close(clean=False)
    return one, two


def note(old: Path, new: Path, *, switched: bool = False) -> None:
    move_record.write(new / "orders-3", MoveRecord(str(old), str(new), switched=switched))


def test_the_longer_copy_is_opened(tmp_path: Path) -> None:
    """The other goes, and the note; what the old directory knew of its beginning is kept."""
    one, two = pair(tmp_path, old=5, new=7)
    note(one, two)
    (one / "log-start-offset-checkpoint").write_text("0\n1\norders 3 2\n")
    logs = open_directories(one, two)
    kept = (two / "log-start-offset-checkpoint").read_text()
    assert "orders 3 2" in kept.splitlines(), "what the old directory said is lost with its copy"
    assert logs.logs[TP].directory.parent == two
    assert logs.logs[TP].log_start_offset == 2
    assert logs.logs[TP].log_end_offset == 7
    assert not (two / "orders-3" / move_record.NAME).exists()
    assert not (one / "orders-3").exists()
    housekeep(logs, NOW)
    assert not list(one.glob("orders-3*"))
    logs.close()
    open_directories(one, two).close()


def test_a_copy_that_is_no_longer_is_gone_on_with(tmp_path: Path) -> None:
    """It becomes a future replica again."""
    one, two = pair(tmp_path, old=5, new=5)
    note(one, two)
    move_record.write(one / "orders-3", MoveRecord(str(one), str(two)))
    logs = open_directories(one, two)
    assert logs.logs[TP].directory.parent == one
    home, path = logs.unfinished[TP]
    assert (home.path, path.exists(), path.name[-7:]) == (two, True, "-future")
    assert not (one / "orders-3" / move_record.NAME).exists()
    logs.close()


def test_two_copies_without_a_note_are_refused(tmp_path: Path) -> None:
    """Nobody can know which one is right; neither is touched."""
    one, two = pair(tmp_path, old=5, new=6)
    note(tmp_path / "three", two)
    with pytest.raises(LogDirectoryError, match="lies in both"):
        open_directories(one, two)
    (two / "orders-3" / move_record.NAME).unlink()
    with pytest.raises(LogDirectoryError, match="lies in both"):
        open_directories(one, two)


def test_a_copy_that_may_lack_records_is_not_opened(tmp_path: Path) -> None:
    """While the other disk is away; with it back the partition is there again."""
    one, two = pair(tmp_path, old=9, new=5)
    note(one, two)
    one.rename(tmp_path / "away")
    one.touch()  # A file where the directory should be: it cannot be used.
    logs = open_directories(one, two)
    assert TP not in logs.logs
    assert logs.unopened == {TP}
    logs.close()
    one.unlink()
    (tmp_path / "away").rename(one)
    logs = open_directories(one, two)
    assert logs.logs[TP].log_end_offset == 9
    logs.close()


def test_a_switched_copy_serves_alone_and_does_not_move_on(tmp_path: Path) -> None:
    """The old copy is away with its disk; when it comes back it goes, however long it is."""
    one, two = pair(tmp_path, old=5, new=5)
    note(one, two, switched=True)
    one.rename(tmp_path / "away")
    one.touch()
    logs = open_directories(one, two, tmp_path / "three")
    append(logs.logs[TP], batch_of())
    third = logs.find(str(tmp_path / "three"))
    assert third is not None
    with pytest.raises(KafkaError) as refused:
        logs.begin_move(TP, third)
    assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    logs.close()
    one.unlink()
    shutil.move(tmp_path / "away", one)
    logs = open_directories(one, two)
    assert logs.logs[TP].log_end_offset == 6
    assert logs.logs[TP].directory.parent == two
    assert not (one / "orders-3").exists()
    logs.close()
