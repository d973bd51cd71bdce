"""The brokers under measurement: Apache Kafka in ZooKeeper mode, and Barnabas.

A target runs one long-lived broker and, for start-up measurements, short-lived ones in directories
of their own (`fresh`). All use their default settings but COMMON_SETTINGS; `flush_settings` asks
the running broker what it flushes by, so that the report can show it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Final, Protocol, Self

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from benchmarks.errors import BenchmarkError
from tests.oracle.apache import ApacheKafka, free_port
from tests.waiting import SETTLE

START_DEADLINE: Final = 60.0
COMMON_SETTINGS: Final = {
    # Deleted topics free their space after a second instead of a minute, so that a long benchmark
    # does not pile up the data of all its runs.
    "log.segment.delete.delay.ms": "1000",
    # The default is three seconds and Apache's example settings say none: a large group that forms
    # without any rebalances once for each member.
    "group.initial.rebalance.delay.ms": "1000",
}
"""What differs from the default settings, on every broker alike."""

_INTERPRETER: Final = """
import os, sys
from barnabas_kafka.records.walk import COMPILED
walk = "compiled" if COMPILED else "interpreted"
print(f"Python {sys.version.split()[0]} of {os.path.realpath(sys.executable)}, record walk {walk}")
"""
"""A program that says which Python a broker runs on and whether the per-record code is compiled."""

FLUSH_KEYS: Final = (
    "log.flush.interval.messages",
    "log.flush.interval.ms",
    "log.flush.scheduler.interval.ms",
    "log.flush.offset.checkpoint.interval.ms",
)


class Endpoint(Protocol):
    """What a client connects to, and whose CPU time it costs."""

    @property
    def bootstrap(self) -> str:
        """``host:port``."""

    @property
    def pid(self) -> int:
        """Process id."""


class Broker(Endpoint, Protocol):
    """A broker process as the cases see it."""

    settings: dict[str, str]
    """Those beside the defaults, read at its start."""

    @property
    def running(self) -> bool:
        """Whether the process is there."""

    @property
    def directory(self) -> Path:
        """Where its data lie."""

    def start(self) -> object:
        """Start the process and wait until it serves."""

    def prepare(self) -> None:
        """Start what the broker needs beside itself, so that `launch` measures the broker alone."""

    def launch(self) -> None:
        """Start the process and return at once."""

    def stop(self) -> None:
        """Stop it cleanly, and what `prepare` started."""


class Setup(Protocol):
    """What a long-running broker has beside its usual settings."""

    def settings(self, plain: str) -> Mapping[str, str]:
        """What is set before it starts; `plain` is the address of its usual listener."""

    def complete(self, broker: Broker) -> None:
        """Do what takes a running broker."""


class Target(ABC):
    """One arm of the comparison: its long-running broker, and fresh ones on demand."""

    def __init__(self, name: str, label: str, root: Path) -> None:
        self.name = name
        self.label = label
        self.root = root
        self.setup: Setup | None = None
        self._broker: Broker | None = None
        self._fresh: list[Broker] = []

    @abstractmethod
    def describe(self) -> dict[str, str]:
        """Version, settings and what the broker says of its flushing, for the report."""

    @abstractmethod
    def _new(self, directory: Path) -> Broker:
        """A broker on an empty directory, not started."""

    @property
    def broker(self) -> Broker:
        """The long-running broker; raises BenchmarkError when there is none."""
        if self._broker is None:
            raise BenchmarkError(f"{self.label} is not running")
        return self._broker

    @contextmanager
    def fresh(self) -> Iterator[Broker]:
        """A broker of its own directory, not started; stopped and deleted afterwards."""
        broker = self._new(Path(tempfile.mkdtemp(prefix=f"{self.name}-fresh-", dir=self.root)))
        try:
            yield broker
        finally:
            _end(broker)

    def start(self) -> None:
        """Start the long-running broker, anew if it has died."""
        self.stop()
        broker = self._new(Path(tempfile.mkdtemp(prefix=f"{self.name}-", dir=self.root)))
        self._broker = broker
        try:
            if self.setup is not None:
                broker.settings.update(self.setup.settings(broker.bootstrap))
            broker.start()
            if self.setup is not None:
                self.setup.complete(broker)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Stop the long-running broker and delete its files."""
        if self._broker is not None:
            _end(self._broker)
            self._broker = None

    def alive(self) -> bool:
        """Whether the long-running broker's process is there."""
        return self._broker is not None and self._broker.running

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()


def _end(broker: Broker) -> None:
    try:
        broker.stop()
    finally:
        shutil.rmtree(broker.directory, ignore_errors=True)


class _ApacheBroker(ApacheKafka):
    """The oracle's broker; its ZooKeeper starts before it and outlives its restarts."""

    measured = True

    def prepare(self) -> None:
        """Start ZooKeeper."""
        if self.zookeeper is not None and not self.zookeeper.running:
            self.zookeeper.start()

    def stop(self, *, within: float = SETTLE) -> None:
        """Stop broker, then ZooKeeper."""
        super().stop(within=within)
        if self.zookeeper is not None:
            self.zookeeper.stop()


class Apache(Target):
    """Apache Kafka from Maven Central with the shipped server.properties and JVM flags."""

    def __init__(self, root: Path, *, version: str, heap: str, name: str = "apache") -> None:
        super().__init__(name, f"Apache Kafka {version}", root)
        if name != "apache":
            self.label += f" ({name})"
        self.version = version
        self.heap = heap

    def _new(self, directory: Path) -> Broker:
        return _ApacheBroker(
            self.version, directory=directory, heap=self.heap, overrides=COMMON_SETTINGS
        )

    def describe(self) -> dict[str, str]:
        """Version, heap and what the broker says of its flushing."""
        return {
            "version": self.version,
            "mode": "ZooKeeper",
            "heap": self.heap,
            **COMMON_SETTINGS,
            **flush_settings(self.broker.bootstrap),
        }


def _installed_environment() -> dict[str, str]:
    """Ours, with compiled modules kept, as every installation of the wheel or the image has them.

    Without, each start compiles every module again and that is what is measured.
    """
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


class _BarnabasBroker:
    """``barnabas broker start`` in a directory of its own, on a port chosen before."""

    def __init__(self, command: Path, directory: Path, settings: Mapping[str, str]) -> None:
        self.command = command
        self.directory = directory
        self.port = free_port()
        self.settings = {
            "log.dirs": str(directory / "logs"),
            "listeners": f"PLAINTEXT://{self.bootstrap}",
            **settings,
        }
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap(self) -> str:
        """``host:port``."""
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        """Process id; raises BenchmarkError when it does not run."""
        if self._process is None or self._process.poll() is not None:
            raise BenchmarkError(f"Barnabas is not running:\n{self._tail()}")
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether the process is there."""
        return self._process is not None and self._process.poll() is None

    def prepare(self) -> None:
        """Barnabas needs nothing beside itself."""

    def launch(self) -> None:
        """Start the process and return at once."""
        ready = self._ready_file
        ready.unlink(missing_ok=True)
        settings = [f"{key}={value}" for key, value in self.settings.items()]
        with (self.directory / "broker.log").open("ab") as log:
            self._process = subprocess.Popen(
                [
                    str(self.command),
                    *("broker", "start", "--ready-file", str(ready)),
                    *(word for setting in settings for word in ("--set", setting)),
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.directory,
                env=_installed_environment(),
                start_new_session=True,
            )

    def start(self) -> Self:
        """Start and wait for the file that says it accepts connections."""
        self.launch()
        give_up_at = time.monotonic() + START_DEADLINE
        while not self._ready_file.exists():
            _ = self.pid
            if time.monotonic() > give_up_at:
                self.stop()
                raise BenchmarkError(f"Barnabas not ready in {START_DEADLINE:g} s:\n{self._tail()}")
            time.sleep(0.01)
        return self

    def stop(self) -> None:
        """SIGTERM, then SIGKILL."""
        if self._process is None:
            return
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(20)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._process = None

    @property
    def _ready_file(self) -> Path:
        return self.directory / "ready.json"

    def _tail(self) -> str:
        log = self.directory / "broker.log"
        return "\n".join(log.read_text(errors="replace").splitlines()[-20:]) if log.exists() else ""


class Barnabas(Target):
    """Barnabas with its default settings, from the environment that `command` is installed in."""

    def __init__(
        self,
        root: Path,
        *,
        command: Path | None = None,
        name: str = "barnabas",
        settings: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(name, "Barnabas", root)
        self.settings = COMMON_SETTINGS | dict(settings or {})
        self.command = (command or Path(sys.executable).with_name("barnabas")).absolute()
        if not self.command.exists():
            raise BenchmarkError(f"{self.command} does not exist: run `make bench`")

    def _new(self, directory: Path) -> Broker:
        return _BarnabasBroker(self.command, directory, self.settings)

    def describe(self) -> dict[str, str]:
        """Version, interpreter and what the broker says of its flushing."""
        version = _first_line([str(self.command), "version"])
        interpreter = [str(self.command.with_name("python")), "-c", _INTERPRETER]
        return {
            "version": version,
            "interpreter": _first_line(interpreter),
            **self.settings,
            **flush_settings(self.broker.bootstrap),
        }


def _first_line(command: list[str]) -> str:
    """The first line that a program prints; empty if it prints none."""
    ran = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    return ran.stdout.partition("\n")[0]


def admin_client(bootstrap: str, **client: str) -> AdminClient:
    """An admin client that keeps its informational messages to itself."""
    return AdminClient({"bootstrap.servers": bootstrap, "log_level": 3, **client})


def flush_settings(bootstrap: str) -> dict[str, str]:
    """The broker's flush settings as it describes them itself."""
    admin = admin_client(bootstrap)
    broker_id = next(iter(admin.list_topics(timeout=10).brokers))
    resource = ConfigResource(ResourceType.BROKER, str(broker_id))
    try:
        entries = admin.describe_configs([resource], request_timeout=10)[resource].result(15)
    except KafkaException as error:
        return dict.fromkeys(FLUSH_KEYS, f"not answered: {error}")
    return {
        key: str(entries[key].value) if key in entries else "not described" for key in FLUSH_KEYS
    }
