"""A broker process to test against: Barnabas's own command, or Apache Kafka in the same place."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Protocol, Self

from tests.oracle.apache import ApacheKafka, OracleError
from tests.waiting import SETTLE, START, NotInTimeError, forget, wait_for, watch

KIND: Final = os.environ.get("BROKER_UNDER_TEST", "barnabas")
HANDLERS_ONLY: Final = "barnabas-handlers"
"""Barnabas without its fast routes."""
_SETTINGS: Final = {"barnabas.fast.path.enable": "false"} if KIND == HANDLERS_ONLY else {}


class Broker(Protocol):
    """What tests may do with the broker under test; its data is in `log_dirs`."""

    log_dirs: tuple[Path, ...]

    @property
    def bootstrap(self) -> str: ...
    @property
    def pid(self) -> int: ...
    def start(self) -> Self: ...
    def stop(self, *, within: float = SETTLE) -> None: ...
    def kill(self) -> None: ...
    def tail(self, lines: int = 30) -> str: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


class Barnabas:
    """One `barnabas broker start`, on the same free port over its restarts."""

    def __init__(
        self,
        directory: Path,
        settings: Mapping[str, str] | None = None,
        environment: Mapping[str, str] | None = None,
        options: Sequence[str] = (),
    ) -> None:
        self.directory = directory
        self.directory.mkdir(parents=True, exist_ok=True)
        self.environment = dict(environment or {})
        self.options = options
        self.launcher: Sequence[str] = ()
        """A command that runs the one behind it, such as on another network."""
        self.program = Path(sys.executable).with_name("barnabas")
        self.settings = (
            {"log.dirs": str(directory / "kafka-logs")} | _SETTINGS | dict(settings or {})
        )
        self.log_dirs = tuple(Path(name) for name in self.settings["log.dirs"].split(","))
        self.log_file = directory / "broker.log"
        self._address = "127.0.0.1:0"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap(self) -> str:
        """``host:port`` of the PLAINTEXT listener, of the first one where there is none."""
        return self._address

    @property
    def pid(self) -> int:
        """The process id of the running broker."""
        assert self._process is not None, "the broker is not running"
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """How the broker ended, None while it runs."""
        return None if self._process is None else self._process.poll()

    def start(self) -> Self:
        """Start the broker and wait until it says that it serves."""
        ready = self.directory / "ready.json"
        ready.unlink(missing_ok=True)
        settings = {"listeners": f"PLAINTEXT://{self._address}"} | self.settings
        assignments = [f"--set={key}={value}" for key, value in settings.items()]
        command = [str(self.program), "broker", "start"]
        with self.log_file.open("ab") as log:
            self._process = subprocess.Popen(
                [
                    *self.launcher,
                    *command,
                    *self.options,
                    *assignments,
                    f"--ready-file={ready}",
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.directory,
                env=os.environ | self.environment,
                start_new_session=True,
            )
        watch(self.directory.name, self._process.pid, self.log_file, dumps=True)
        try:
            wait_for(
                "the broker's ready file, or its end",
                lambda: ready.exists() or self.exit_code is not None,
                within=START,
            )
        except NotInTimeError:
            self.kill()
            raise
        if self.exit_code is not None:
            forget(self._process.pid)
            raise RuntimeError(f"the broker did not start:\n{self.tail(6)}")
        listeners = json.loads(ready.read_text())["listeners"]
        self._address = listeners.get("PLAINTEXT") or next(iter(listeners.values()))
        return self

    def stop(self, *, within: float = SETTLE) -> None:
        """SIGTERM, then wait; a broker that does not end in time is an error."""
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            try:
                wait_for(
                    "the broker's end",
                    lambda: self.exit_code,
                    until=lambda code: code is not None,
                    within=within,
                )
            except NotInTimeError:
                self.kill()
                raise
            forget(self._process.pid)

    def kill(self) -> None:
        """SIGKILL, as a crash would be."""
        if self._process is not None and self._process.poll() is None:
            forget(self._process.pid)
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()

    def tail(self, lines: int = 30) -> str:
        """The last lines the broker logged."""
        return "\n".join(self.log_file.read_text(errors="replace").splitlines()[-lines:])

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()


class Apache(ApacheKafka):
    """Apache's broker, which after a kill cannot start before ZooKeeper forgets its session."""

    def __init__(self, directory: Path, settings: Mapping[str, str] | None = None) -> None:
        overrides = {"zookeeper.session.timeout.ms": "4000"} | dict(settings or {})
        super().__init__(directory=directory, overrides=overrides, heap="512M")

    def start(self) -> Self:
        """Start, and start again while the broker before is still registered."""
        for _ in range(5):
            try:
                return super().start()
            except OracleError as error:
                if "NodeExists" not in str(error):
                    raise
        return super().start()


def broker_under_test(directory: Path, settings: Mapping[str, str] | None = None) -> Broker:
    """The broker `BROKER_UNDER_TEST` names, not yet started, with its data in `directory`."""
    if KIND == "apache":
        return Apache(directory, settings)
    if KIND in ("barnabas", HANDLERS_ONLY):
        return Barnabas(directory, settings)
    raise ValueError(f"BROKER_UNDER_TEST={KIND}: none of barnabas, {HANDLERS_ONLY} and apache")
