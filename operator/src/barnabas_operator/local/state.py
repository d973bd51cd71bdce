"""What is remembered of a cluster between commands, and where it lies.

cluster.json            the record: resources as they were applied, ports, what is managed
cluster.damaged         one that could not be read, after a repair
client.properties       what `--local` reads: the address, or a link to the file of the admin
lock                    held while a command works here
broker-<id>/            server.properties, broker.pid, broker.log, ready.json
broker-<id>/data/       the broker's data directory
zookeeper/              zookeeper.pid, zookeeper.log, data/, where there are several brokers
pki/                    the development authority and what it issued to brokers; keys are private
users/<name>/           what clients of a user need, as its Secret on Kubernetes; private
zookeeper-<n>/          the same of a member of Apache's ensemble, with zoo.cfg, log4j.properties
pipelines/<name>/       pipeline.yaml, pipeline.pid, pipeline.log
pipelines/<name>/data/  what /data is in a pod
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from barnabas_operator.api.clusters import Security
from barnabas_operator.api.storage import DeletionPolicy
from barnabas_operator.local.processes import write_atomically
from barnabas_operator.plan.ledger import Ledger, LedgerEntry
from barnabas_operator.plan.user_ledger import FORMAT as USERS
from barnabas_operator.plan.user_ledger import UserLedger

VERSION: Final = 2
# Of a secured cluster: a version without security would start its brokers open.
SECURED_VERSION: Final = 3
_RECORD: Final = "cluster.json"
_DAMAGED: Final = "cluster.damaged"
_LOCK: Final = "lock"
_CLIENT: Final = "client.properties"
_OURS: Final = re.compile(
    rf"{_LOCK}|{_DAMAGED}|{_CLIENT}|broker-\d+|zookeeper(-\d+)?|pipelines|pki|users"
)


class LocalError(Exception):
    """What was asked for cannot be done; the text says what to do instead."""


class DamagedError(LocalError):
    """The record cannot be read; what lies beside it can."""


class BusyError(LocalError):
    """Another command is at work in the directory."""


@dataclass(frozen=True, slots=True)
class Port:
    """A listener's port: the one that the resource asks for, and the one that it has."""

    asked: int
    got: int


@dataclass(slots=True)
class BrokerRecord:
    """What is remembered of a broker: ports by listener, and how long it took to start."""

    ports: dict[str, Port] = field(default_factory=dict)
    startup_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberPorts:
    """The ports of a member of Apache's ensemble; 0 where none was chosen yet."""

    client: int = 0
    peer: int = 0
    election: int = 0


@dataclass(slots=True, kw_only=True)
class Record:
    """What is remembered of a cluster; `documents` are its resources with their status.

    `zookeeper` is the port of the ZooKeeper for development, `ensemble` what there is of Apache's,
    by the numbers of members. Where there is neither, the one broker keeps its data itself.
    """

    cluster: str
    file: str
    documents: Sequence[Mapping[str, Any]] = ()
    brokers: dict[int, BrokerRecord] = field(default_factory=dict)
    zookeeper: int | None = None
    ensemble: dict[int, MemberPorts] = field(default_factory=dict)
    ledger: Ledger = field(default_factory=dict)
    cluster_id: str = ""
    security: Security | None = None
    """What the cluster was created as; None before that."""
    users: UserLedger = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StateDirectory:
    """The directory of one cluster."""

    path: Path

    def broker(self, broker_id: int) -> Path:
        """The files of a broker."""
        return self.path / f"broker-{broker_id}"

    @property
    def zookeeper(self) -> Path:
        """The files of the coordination data's process."""
        return self.path / "zookeeper"

    def member(self, number: int) -> Path:
        """The files of a member of Apache's ensemble."""
        return self.path / f"zookeeper-{number}"

    def members(self) -> list[Path]:
        """The data directories that members of Apache's ensemble have made."""
        return sorted(self.path.glob("zookeeper-*/data"))

    def pipeline(self, name: str) -> Path:
        """The files of a pipeline."""
        return self.path / "pipelines" / name

    def pipelines(self) -> list[str]:
        """The names of pipelines that there were ever."""
        folder = self.path / "pipelines"
        return sorted(each.name for each in folder.iterdir()) if folder.is_dir() else []

    @property
    def client(self) -> Path:
        """What `--local` of the commands reads."""
        return self.path / _CLIENT

    @property
    def pki(self) -> Path:
        """The authority and what it issued."""
        return self.path / "pki"

    def user(self, name: str) -> Path:
        """What clients of a user need."""
        return self.path / "users" / name

    def users(self) -> list[str]:
        """The names of resources of users that there were ever."""
        folder = self.path / "users"
        return sorted(each.name for each in folder.iterdir()) if folder.is_dir() else []

    def load(self) -> Record | None:
        """The record; None if there is none. Raises LocalError."""
        path = self.path / _RECORD
        try:
            document = json.loads(path.read_text())
            version = document["version"]
            if version in (VERSION, SECURED_VERSION):
                return _record(document)
        except FileNotFoundError:
            self._check_strangers()
            return None
        except OSError as error:
            raise LocalError(f"cannot read {path}: {error.strerror}") from error
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            text = f"{path} is damaged ({error}); `barnabas local up FILE --repair` writes it again"
            raise DamagedError(f"{text} from the files beside it") from error
        known = f"{VERSION} and {SECURED_VERSION}"
        text = f"{path} was written by another version ({version}, this one knows {known})"
        raise LocalError(f"{text}; use that version, or another directory with --dir")

    def save(self, record: Record) -> None:
        """Write the record in one step."""
        secured = record.security is Security.SECURED
        document = {
            "version": SECURED_VERSION if secured else VERSION,
            "cluster": record.cluster,
            "file": record.file,
            "documents": list(record.documents),
            "brokers": {
                str(broker_id): {
                    "ports": {
                        name: {"asked": port.asked, "got": port.got}
                        for name, port in each.ports.items()
                    },
                    "startupSeconds": each.startup_s,
                }
                for broker_id, each in record.brokers.items()
            },
            "zookeeperPort": record.zookeeper,
            "ensemble": {str(number): asdict(each) for number, each in record.ensemble.items()},
            "ledger": {
                name: {
                    "resource": entry.resource,
                    "topicId": entry.topic_id,
                    "deletionPolicy": DeletionPolicy.DELETE.value,
                }
                for name, entry in record.ledger.items()
            },
            "clusterId": record.cluster_id,
            "security": record.security and record.security.value,
            "users": {name: USERS.write(entry) for name, entry in record.users.items()},
        }
        write_atomically(self.path / _RECORD, json.dumps(document, indent=1, default=str))

    def set_aside(self) -> Path | None:
        """Rename a record that cannot be read; returns what it is called then."""
        path = self.path / _RECORD
        if not path.exists():
            return None
        return path.rename(path.with_suffix(".damaged"))

    @contextmanager
    def held(self) -> Iterator[None]:
        """Be the only command at work here; raises BusyError, or LocalError if that cannot be.

        The lock ends with the process, however it ends. The directory is made.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self._check_strangers()
            lock = (self.path / _LOCK).open("w")
        except OSError as error:
            raise LocalError(f"cannot use {self.path}: {error.strerror}") from error
        with lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                text = f"another `barnabas local` is at work in {self.path}; try again after it"
                raise BusyError(text) from error
            yield

    def remove(self) -> None:
        """Remove everything of ours, data and all; what others put there stays."""
        places = ("broker-*", "zookeeper", "zookeeper-*", "pipelines", "pki", "users")
        ours = [folder for place in places for folder in self.path.glob(place)]
        for folder in ours:
            shutil.rmtree(folder, ignore_errors=True)
        for name in (_RECORD, _DAMAGED, _CLIENT, _LOCK):
            self.path.joinpath(name).unlink(missing_ok=True)
        if not any(self.path.iterdir()):
            self.path.rmdir()

    def _check_strangers(self) -> None:
        """A directory with other people's files is not taken for ours."""
        if not self.path.is_dir() or (self.path / _RECORD).exists():
            return
        strangers = sorted(
            each.name for each in self.path.iterdir() if not _OURS.fullmatch(each.name)
        )
        if strangers:
            text = f"{self.path} is no directory of `barnabas local`: there is {strangers[0]} in it"
            raise LocalError(f"{text}; name an empty or a new one with --dir")


def root() -> Path:
    """Where the directories of clusters are, by the XDG base directory specification."""
    given = os.environ.get("XDG_STATE_HOME", "")
    # The specification: a relative path is to be ignored.
    home = Path(given) if given.startswith("/") else Path.home() / ".local" / "state"
    return home / "barnabas"


def known_clusters() -> list[str]:
    """The names of the clusters that have a directory in the usual place."""
    return sorted(path.parent.name for path in root().glob(f"*/{_RECORD}"))


def _record(document: Mapping[str, Any]) -> Record:
    return Record(
        cluster=document["cluster"],
        file=document["file"],
        documents=document["documents"],
        brokers={
            int(broker_id): BrokerRecord(
                {name: Port(**port) for name, port in each["ports"].items()},
                each["startupSeconds"],
            )
            for broker_id, each in document["brokers"].items()
        },
        zookeeper=document["zookeeperPort"],
        ensemble={
            int(number): MemberPorts(**each)
            for number, each in document.get("ensemble", {}).items()
        },
        ledger={
            name: LedgerEntry(resource=entry["resource"], topic_id=entry.get("topicId", ""))
            for name, entry in document["ledger"].items()
            if DeletionPolicy(entry["deletionPolicy"]) is DeletionPolicy.DELETE
        },
        cluster_id=document["clusterId"],
        security=_security(document),
        users={name: USERS.read(entry) for name, entry in document.get("users", {}).items()},
    )


def _security(document: Mapping[str, Any]) -> Security | None:
    """What the cluster was created as; before it was recorded there were no secured ones here."""
    if "security" not in document:
        return Security.INSECURE if document["brokers"] else None
    return Security(document["security"]) if document["security"] else None
