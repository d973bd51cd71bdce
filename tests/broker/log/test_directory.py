"""One log directory: taking it, settling in, and leaving it marked clean."""

from pathlib import Path

import pytest

from barnabas_broker.log.directory import Checkpoint, DirectoryState, LogDirectoryError
from tests.broker.log.samples import CLUSTER


def settled(path: Path) -> DirectoryState:
    state = DirectoryState.take(path)
    state.settle(state.check_owner(broker_id=1, cluster_id=CLUSTER))
    return state


def test_a_new_directory_counts_as_clean(tmp_path: Path) -> None:
    """There is nothing to recover."""
    state = settled(tmp_path / "logs")
    assert state.clean
    state.lock.release()


def test_the_marker_is_read_once(tmp_path: Path) -> None:
    """A start that dies while loading must not look clean to the next one."""
    state = settled(tmp_path)
    (tmp_path / "t-0").mkdir()
    state.mark_clean(31)
    state.lock.release()
    first = settled(tmp_path)
    assert first.clean
    first.lock.release()
    second = settled(tmp_path)
    assert not second.clean
    second.lock.release()


def test_checkpoints_are_read_back(tmp_path: Path) -> None:
    """Those that are damaged are ignored: they only save work."""
    state = settled(tmp_path)
    content = {
        "recovery-point-offset-checkpoint": b"0\n1\nt 0 5\n",
        "log-start-offset-checkpoint": b"0\n0\n",
        "cleaner-offset-checkpoint": b"0\n1\nt 0 3\n",
        "replication-offset-checkpoint": b"garbage",
    }
    state.write(Checkpoint(1, content, frozenset()))
    state.lock.release()
    again = settled(tmp_path)
    assert again.recovery_points == {("t", 0): 5}
    assert again.log_starts == {}
    assert again.high_watermarks == {}
    assert again.cleaned == {("t", 0): 3}
    again.lock.release()


def test_a_wrong_owner_is_named_with_the_directory(tmp_path: Path) -> None:
    """One line for the operator."""
    settled(tmp_path).lock.release()
    state = DirectoryState.take(tmp_path)
    assert state.stored_broker_id == 1
    assert state.stored_cluster_id == CLUSTER
    with pytest.raises(LogDirectoryError, match=f"{tmp_path} cannot be used: .* broker 1"):
        state.check_owner(broker_id=2, cluster_id=CLUSTER)
    state.lock.release()
