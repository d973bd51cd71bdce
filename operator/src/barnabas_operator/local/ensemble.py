"""An ensemble of Apache ZooKeeper on this machine: one process a member, as by hand on one host.

Members differ in their ports and in their data directories, and count from 1. Each runs by
`barnabas zookeeper member`, which finds Java and the jars, and holds `myid` against the number.
Every member's configuration names the ports of all, so they are chosen before any is started; a
port that another process takes in between is found in the log, and others are chosen.

Clients find the usual ports where these are free. Those among members are any, kept for good:
members of two ensembles that meet on a port, while one's own is away, would take each other for
own, and follow the one with more transactions.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable, Container
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Final

from barnabas_operator.local import processes
from barnabas_operator.local.broker import is_free
from barnabas_operator.local.state import LocalError, MemberPorts, Record, StateDirectory
from barnabas_operator.local.zookeeper import (
    ABANDON_S,
    HOST,
    NAME,
    ZooKeeperFiles,
    answer,
    end,
    mode_at,
)
from barnabas_operator.names import ZOOKEEPER_PORT
from barnabas_operator.resources.config import EnsembleMember, zoo_cfg
from barnabas_operator.resources.objects import digest

ATTEMPTS: Final = 5
POLL_S: Final = 0.1
# Below the ports that kernels give to outgoing connections, and the NodePorts of Kubernetes.
PORTS: Final = range(15_000, 30_000)
PORTS_TRIED: Final = 100
LOG4J: Final = """\
log4j.rootLogger=INFO, stdout
log4j.appender.stdout=org.apache.log4j.ConsoleAppender
log4j.appender.stdout.layout=org.apache.log4j.PatternLayout
log4j.appender.stdout.layout.ConversionPattern=[%d] %p %m (%c)%n
# Each question of ours would be a line.
log4j.logger.org.apache.zookeeper.server.NIOServerCnxn=WARN
"""
_TAKEN: Final = "Address already in use"

Say = Callable[[str], None]


class _PortTakenError(Exception):
    """A port was free when it was chosen, and is no longer."""


@dataclass(frozen=True, slots=True)
class Member:
    """One member; `number` is N of its server.N."""

    number: int
    record: Record
    state: StateDirectory

    @property
    def name(self) -> str:
        """What it is called, for a person."""
        return f"ZooKeeper member {self.number}" if len(self.record.ensemble) > 1 else NAME

    @property
    def files(self) -> ZooKeeperFiles:
        """Where its files are."""
        return ZooKeeperFiles(self.state.member(self.number))

    @property
    def ports(self) -> MemberPorts:
        """Its ports."""
        return self.record.ensemble[self.number]

    @property
    def running(self) -> bool:
        """Whether its process lives."""
        entry = self.files.entry()
        return entry is not None and entry.running

    def ensure(self, *, say: Say, timeout_s: float) -> processes.Entry | None:
        """Bring the process to what it should be; returns it if it had to be started."""
        files, text = self.files, self._settings()
        files.directory.mkdir(parents=True, exist_ok=True)
        entry = files.entry()
        if entry is not None and entry.running:
            if entry.fingerprint == digest(text):
                return None
            say(f"restarting {self.name}: the ports of the ensemble have changed")
            end(files, name=self.name, timeout_s=timeout_s)
        elif entry is not None:
            say(processes.exit_message(self.name, files.log))
        processes.write_atomically(files.settings, text)
        files.directory.joinpath("log4j.properties").write_text(LOG4J)
        command = [
            sys.executable, "-P", "-m", "barnabas_broker.cli", "zookeeper", "member",
            str(files.settings), "--id", str(self.number),
        ]  # fmt: skip
        return processes.launch(
            command,
            directory=files.directory,
            log=files.log,
            pid_file=files.pid,
            fingerprint=digest(text),
        )

    def mode(self) -> str | None:
        """As what it serves; None where it does not, or another program is at its port."""
        here = f"dataDir={self.files.data}/version-2"
        if here not in answer(self.ports.client, b"conf").splitlines():
            return None
        return mode_at(self.ports.client)

    def _settings(self) -> str:
        members = [
            EnsembleMember(host=HOST, peer_port=each.peer, election_port=each.election)
            for each in self.record.ensemble.values()
        ]
        return zoo_cfg(
            self.record.cluster,
            members=members,
            data_directory=str(self.files.data),
            client_port=self.ports.client,
            client_address=HOST,
        )


def members(record: Record, state: StateDirectory) -> list[Member]:
    """Every member of the ensemble; none where there is no ensemble."""
    return [Member(number, record, state) for number in record.ensemble]


def addresses(record: Record) -> str:
    """Where clients reach the members, as in a connect string."""
    return ",".join(f"{HOST}:{ports.client}" for ports in record.ensemble.values())


def ensure(record: Record, state: StateDirectory, *, say: Say, deadline: float) -> None:
    """Have every member run and serve; raises LocalError where one does not come to."""
    every = members(record, state)
    for _ in range(ATTEMPTS):
        _choose_ports(every)
        started: dict[int, processes.Entry] = {}
        try:
            for member in every:
                timeout_s = max(deadline - time.monotonic(), ABANDON_S)
                entry = member.ensure(say=say, timeout_s=timeout_s)
                if entry is not None:
                    started[member.number] = entry
            modes = _await_service(every, started, deadline)
        except BaseException as error:  # An interrupt must not leave one half started.
            for number, entry in started.items():
                processes.abandon(entry, timeout_s=ABANDON_S)
                Member(number, record, state).files.pid.unlink(missing_ok=True)
            if isinstance(error, _PortTakenError):
                continue
            raise
        if started:
            leader = next((number for number, mode in modes.items() if mode == "leader"), None)
            summary = "one member" if leader is None else f"{len(modes)} members, {leader} leads"
            say(f"Apache ZooKeeper serves {addresses(record)}: {summary}")
        return
    raise LocalError(f"no ports are to be had for Apache ZooKeeper (logs in {state.path})")


def _choose_ports(every: list[Member]) -> None:
    """Choose ports for the members that do not run: those they had, if they are still free."""
    taken = {port for member in every if member.running for port in astuple(member.ports)}

    def first_free(*candidates: int) -> int:
        for port in (*candidates, *random.sample(PORTS, PORTS_TRIED)):
            if port and port not in taken and is_free(port):
                taken.add(port)
                return port
        raise LocalError("no free ports are found for Apache ZooKeeper")

    for member in every:
        if not member.running:
            had = member.ports
            member.record.ensemble[member.number] = MemberPorts(
                client=first_free(had.client, ZOOKEEPER_PORT - 1 + member.number),
                peer=first_free(had.peer),
                election=first_free(had.election),
            )


def _await_service(every: list[Member], started: Container[int], deadline: float) -> dict[int, str]:
    """Wait until all serve, so that there is a leader; returns the mode of each member."""
    modes: dict[int, str] = {}
    while True:
        for member in every:
            log = member.files.log
            if member.number in modes:
                continue
            if mode := member.mode():
                modes[member.number] = mode
            elif member.number in started and _TAKEN in log.read_text(errors="replace"):
                raise _PortTakenError
            elif not member.running:
                raise LocalError(f"{member.name} cannot start: {_why(log)} (log: {log})")
            elif time.monotonic() > deadline:
                text = f"{member.name} does not serve in time (--timeout; log: {log})"
                raise LocalError(text)
        if len(modes) == len(every):
            return modes
        time.sleep(POLL_S)


def _why(log: Path) -> str:
    """Why a member ended at its start: its last error, which a trace may follow."""
    lines = log.read_text(errors="replace").splitlines()
    errors = [line.strip() for line in lines if "ERROR" in line]
    return errors[-1] if errors else processes.last_words(log).removeprefix("Error: ")
