"""What is remembered, and directories that are not ours."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from barnabas_operator.api.clusters import Security
from barnabas_operator.local import state
from barnabas_operator.local.state import (
    BrokerRecord,
    BusyError,
    LocalError,
    MemberPorts,
    Port,
    Record,
    StateDirectory,
)
from barnabas_operator.plan.ledger import LedgerEntry
from tests.operator.local import laptop


@pytest.fixture
def directory(tmp_path: Path) -> StateDirectory:
    """A state directory that a command has made."""
    directory = StateDirectory(tmp_path / "state")
    with directory.held():
        return directory


def test_a_record_comes_back_as_it_was(directory: StateDirectory) -> None:
    """Resources, ports, the ledger of topics."""
    entry = LedgerEntry(resource="files")
    record = Record(
        cluster="quickstart",
        file="/somewhere/cluster.yaml",
        documents=[laptop.cluster()],
        brokers={0: BrokerRecord({"plain": Port(9092, 40000)}, 0.25), 1: BrokerRecord()},
        zookeeper=2181,
        ensemble={1: MemberPorts(client=2181, peer=20001, election=20002)},
        ledger={"files": entry},
        cluster_id="id",
    )
    assert directory.load() is None
    directory.save(record)
    assert directory.load() == record


@pytest.mark.parametrize(("security", "version"), [(Security.INSECURE, 2), (Security.SECURED, 3)])
def test_a_secured_cluster_is_not_for_versions_that_know_of_none(
    directory: StateDirectory, security: Security, version: int
) -> None:
    """They refuse its record; without the mode in it they would start its brokers plain."""
    record = Record(cluster="quickstart", file="/a.yaml", documents=[], security=security)
    directory.save(record)
    assert json.loads((directory.path / "cluster.json").read_text())["version"] == version
    assert directory.load() == record


def test_one_command_at_a_time(directory: StateDirectory) -> None:
    """Two would start two brokers."""
    with (
        directory.held(),
        pytest.raises(BusyError, match="another `barnabas local` is at work"),
        StateDirectory(directory.path).held(),
    ):
        pass


def test_a_directory_of_other_things_is_not_taken(tmp_path: Path) -> None:
    """A slip of --dir must not fill, or delete, somebody's home."""
    tmp_path.joinpath("thesis.tex").touch()
    strange = StateDirectory(tmp_path)
    for attempt in (strange.load, strange.held().__enter__):
        with pytest.raises(LocalError, match=r"there is thesis.tex in it; name an empty or a new"):
            attempt()


def test_a_record_that_cannot_be_read(directory: StateDirectory) -> None:
    """Damaged, or of a version to come: it says what to do."""
    path = directory.path / "cluster.json"
    for content in ("{", "[]", "{}", json.dumps({"version": 2}), json.dumps({"version": 3})):
        path.write_text(content)
        with pytest.raises(LocalError, match=r"is damaged .*; `barnabas local up FILE --rep"):
            directory.load()
    path.write_text(json.dumps({"version": 4}))
    with pytest.raises(LocalError, match=r"another version .*another directory with --dir"):
        directory.load()


def test_an_unusable_state_directory_is_reported(tmp_path: Path) -> None:
    """The system's reason is told."""
    tmp_path.joinpath("file").touch()
    with (
        pytest.raises(LocalError, match="cannot use"),
        StateDirectory(tmp_path / "file" / "state").held(),
    ):
        pass


def test_only_what_is_ours_is_removed(directory: StateDirectory) -> None:
    """The directory goes too, if there is nothing else in it."""
    directory.save(Record(cluster="a", file="f"))
    directory.broker(0).joinpath("data").mkdir(parents=True)
    note = directory.path / "note.txt"
    note.touch()
    directory.remove()
    assert list(directory.path.iterdir()) == [note]
    note.unlink()
    directory.remove()
    assert not directory.path.exists()


def test_the_usual_place_is_that_of_the_xdg_specification(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A relative XDG_STATE_HOME is to be ignored, as it says."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert state.root() == tmp_path / "barnabas"
    known = StateDirectory(state.root() / "known")
    with known.held():
        known.save(Record(cluster="known", file="f"))
    state.root().joinpath("unknown").mkdir()
    assert state.known_clusters() == ["known"]
    for relative in ("state", ""):
        monkeypatch.setenv("XDG_STATE_HOME", relative)
        assert state.root() == Path.home() / ".local" / "state" / "barnabas"
