"""The snapshot files of a partition."""

from pathlib import Path

from barnabas_broker.log.producer_state import ProducerEntry
from barnabas_broker.log.snapshots import Snapshots


def read_back(directory: Path) -> Snapshots:
    return Snapshots(directory, [path.name for path in directory.iterdir()])


def with_snapshots(tmp_path: Path, *offsets: int) -> Snapshots:
    snapshots = read_back(tmp_path)
    for offset in offsets:
        snapshots.write(offset, [ProducerEntry(offset, 0)])
    return snapshots


def test_snapshots_are_found_again(tmp_path: Path) -> None:
    """By their names, in order."""
    with_snapshots(tmp_path, 30, 10, 20)
    snapshots = read_back(tmp_path)
    assert snapshots.offsets == [10, 20, 30]
    assert snapshots.latest == 30


def test_the_newest_that_serves_is_read(tmp_path: Path) -> None:
    """At or below the offset; a damaged one is removed and the one before it read."""
    snapshots = with_snapshots(tmp_path, 10, 20, 30)
    snapshots.path(20).write_bytes(b"damaged")
    found = snapshots.newest_at_most(29)
    assert found is not None
    offset, entries = found
    assert (offset, entries[0].producer_id) == (10, 10)
    assert snapshots.offsets == [10, 30]
    assert snapshots.newest_at_most(9) is None


def test_snapshots_outside_the_log_go(tmp_path: Path) -> None:
    """They speak of records that are not there."""
    snapshots = with_snapshots(tmp_path, 10, 20, 30, 40)
    assert snapshots.remove_above(30)
    assert not snapshots.remove_above(30)
    snapshots.remove_at_most(10)
    assert read_back(tmp_path).offsets == [20, 30]


def test_strays_go_but_the_newest_stays(tmp_path: Path) -> None:
    """A snapshot is kept for each segment's base, and the last one whatever it is."""
    snapshots = with_snapshots(tmp_path, 10, 15, 20, 33)
    snapshots.remove_strays([10, 20])
    assert read_back(tmp_path).offsets == [10, 20, 33]


def test_a_deleted_segments_snapshot_is_renamed(tmp_path: Path) -> None:
    """To be unlinked with the segment's files."""
    snapshots = with_snapshots(tmp_path, 10, 20)
    (path,) = snapshots.mark_deleted(10)
    assert path.name == f"{10:020d}.snapshot.deleted"
    assert path.exists()
    assert snapshots.mark_deleted(15) == []
    assert snapshots.offsets == [20]
    snapshots.remove_above(-1)
    assert snapshots.latest is None
