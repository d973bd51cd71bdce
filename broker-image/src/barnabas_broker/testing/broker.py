"""A broker process that lives as long as a test wants it to.

The broker is the real one, started through the same command line a person would use, in a directory
of its own and on a port the kernel chose. Nothing here knows pytest.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from barnabas_broker.testing.secured import Security

# A cold start takes a fraction of a second; a loaded CI machine is allowed a hundred times that.
STARTUP_TIMEOUT_S = 30.0
# Stopping flushes and closes every log. Longer than this means the broker hangs, and that is news.
STOP_TIMEOUT_S = 30.0
READY_POLL_S = 0.005
LOG_LINES_IN_FAILURE = 25

SettingValue = str | int | float | bool

# What differs from Kafka's defaults: one broker in a temporary directory is the whole cluster.
TEST_SETTINGS: Mapping[str, str] = {
    "listeners": "PLAINTEXT://127.0.0.1:0",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
}


class BrokerError(RuntimeError):
    """The broker did not start, or did not stop on request; carries its last log lines."""


class Broker:
    """One broker process: `with Broker() as kafka: connect(kafka.bootstrap_servers)`.

    `settings` are broker settings by their Kafka names, laid over `TEST_SETTINGS`. Without a
    `directory` a temporary one is made and removed again; a directory that is given is kept.

    A `secured` broker speaks SASL_SSL only, and has ACLs: `admin` may do everything, `alice` and
    `bob` what ACLs allow, and so those that `create_user` makes. `client_properties` has what a
    client needs, `java_properties` and `python_settings` the same for others.
    """

    def __init__(
        self,
        settings: Mapping[str, SettingValue] | None = None,
        *,
        directory: Path | None = None,
        startup_timeout_s: float = STARTUP_TIMEOUT_S,
        secured: bool = False,
    ) -> None:
        self._secured = secured
        self._security: Security | None = None
        self._requested = {name: _as_text(value) for name, value in (settings or {}).items()}
        self._temporary = directory is None
        self._directory = directory
        self._startup_timeout_s = startup_timeout_s
        self._process: subprocess.Popen[bytes] | None = None
        self._listeners: dict[str, str] = {}
        self.cluster_id = ""
        self.startup_s = 0.0

    # -- what a test asks of it

    @property
    def bootstrap_servers(self) -> str:
        """The address of the first listener as `host:port`, for any Kafka client."""
        if not self._listeners:
            raise BrokerError("the broker has not been started")
        return next(iter(self._listeners.values()))

    @property
    def host(self) -> str:
        """The host of the first listener."""
        return self.bootstrap_servers.rpartition(":")[0].strip("[]")

    @property
    def port(self) -> int:
        """The port of the first listener; those of all stay the same over a restart."""
        return int(self.bootstrap_servers.rpartition(":")[2])

    @property
    def listeners(self) -> dict[str, str]:
        """Every listener by name, as `host:port`."""
        return dict(self._listeners)

    @property
    def directory(self) -> Path:
        """The folder that holds the data, the settings file and the broker's output."""
        if self._directory is None:
            self._directory = Path(tempfile.mkdtemp(prefix="barnabas-"))
        return self._directory

    @property
    def log_dir(self) -> Path:
        """The first data directory, with one folder per partition."""
        return Path(self.settings["log.dirs"].split(",")[0])

    def client_properties(self, user: str = "admin") -> dict[str, str]:
        """All that a client of librdkafka needs to connect, as that user where it is secured."""
        own = {} if self.security is None else self.security.librdkafka(user)
        return {"bootstrap.servers": self.bootstrap_servers, **own}

    def java_properties(self, user: str = "admin") -> dict[str, str]:
        """The same for Java's clients and Kafka's tools."""
        own = {} if self.security is None else self.security.java(user)
        return {"bootstrap.servers": self.bootstrap_servers, **own}

    def python_settings(self, user: str = "admin") -> dict[str, Any]:
        """The same as keyword arguments of kafka-python and aiokafka."""
        own = {} if self.security is None else self.security.python(user)
        return {"bootstrap_servers": self.bootstrap_servers, **own}

    def create_user(
        self,
        name: str,
        *,
        produce: str | Iterable[str] = (),
        consume: str | Iterable[str] = (),
        group: str = "*",
    ) -> dict[str, str]:
        """Create a user that may use these topics, or give it further ACLs; as client_properties.

        It consumes in `group`, by default in any. Raises `BrokerError` unless the broker is
        secured, and `barnabas_kafka.client.ClientError` with the broker's reason.
        """
        if self.security is None:
            raise BrokerError("the broker has no users: Broker(secured=True) has")
        self.security.create_users(
            self.bootstrap_servers, [name],
            produce=_names(produce), consume=_names(consume), group=group,
        )  # fmt: skip
        return self.client_properties(name)

    def command_config(self, user: str = "admin") -> Path:
        """A file with them, for `--command-config` or BARNABAS_COMMAND_CONFIG."""
        file = self.directory / f"{user}.properties"
        _write_private(file, _properties_text(self.java_properties(user)))
        return file

    @property
    def security(self) -> Security | None:
        """Certificates and users, None for a broker without."""
        if self._secured and self._security is None:
            from barnabas_broker.testing.secured import Security  # Late: it needs cryptography.

            self.directory.mkdir(parents=True, exist_ok=True)
            self._security = Security(self.directory)
        return self._security

    @property
    def settings(self) -> dict[str, str]:
        """What the broker was started with: `TEST_SETTINGS` and what was asked for over them."""
        own = {} if self.security is None else self.security.settings()
        settings = {**TEST_SETTINGS, **own, **self._requested}
        if "log.dirs" not in settings:
            settings["log.dirs"] = settings.get("log.dir", str(self.directory / "data"))
        return settings

    @property
    def pid(self) -> int:
        """The process id of the running broker."""
        if self._process is None:
            raise BrokerError("the broker is not running")
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether the process is alive."""
        return self._process is not None and self._process.poll() is None

    def output(self) -> str:
        """Everything the broker has logged so far, over all its starts."""
        path = self.directory / "broker.log"
        return path.read_text(errors="replace") if path.exists() else ""

    # -- its life

    def start(self) -> Self:
        """Start the process and wait until it accepts connections; raise `BrokerError` if not."""
        if self.running:
            raise BrokerError("the broker is running already")
        self.directory.mkdir(parents=True, exist_ok=True)
        ready_file = self.directory / "ready.json"
        ready_file.unlink(missing_ok=True)
        config = self.directory / "server.properties"
        _write_private(config, _properties_text(self._settings_of_this_start()))
        began = time.monotonic()
        # -P: a module in the tests' folder must not shadow one the broker imports.
        command = [sys.executable, "-P", "-m", "barnabas_broker.cli", "broker", "start"]
        with (self.directory / "broker.log").open("ab") as log:
            process = subprocess.Popen(  # noqa: S603 - our own interpreter and our own module
                [*command, "--config", str(config), "--ready-file", str(ready_file)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        self._await_ready(process, ready_file, began + self._startup_timeout_s)
        self._process = process
        if self.security is not None:
            self.security.started(self.bootstrap_servers)
        self.startup_s = time.monotonic() - began
        return self

    def stop(self) -> None:
        """Stop the process cleanly and wait for it; a broker that is not running is no error."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End the process as a crash would: no flush, no clean-shutdown marker."""
        self._end(signal.SIGKILL)

    def restart(self, settings: Mapping[str, SettingValue] | None = None) -> Self:
        """Stop, then start on the same data and port, with `settings` over the earlier ones."""
        self.stop()
        self._requested |= {name: _as_text(value) for name, value in (settings or {}).items()}
        return self.start()

    def close(self) -> None:
        """Stop, and remove the directory if it was temporary."""
        try:
            self.stop()
        finally:
            if self._temporary and self._directory is not None:
                shutil.rmtree(self._directory, ignore_errors=True)

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # -- topics, so that no client library is needed for the simplest of fixtures

    def create_topic(
        self,
        name: str,
        *,
        partitions: int = -1,
        replication_factor: int = -1,
        config: Mapping[str, SettingValue] | None = None,
    ) -> str:
        """Create a topic and return its name; -1 takes the broker's default.

        Raises `barnabas_kafka.errors.KafkaError` with the broker's own reason.
        """
        from barnabas_broker.testing import topics  # Late: brings the protocol's message classes.

        topics.create(
            (self.host, self.port),
            name,
            partitions=partitions,
            replication_factor=replication_factor,
            config={key: _as_text(value) for key, value in (config or {}).items()},
            security=self.security,
        )
        return name

    def delete_topic(self, name: str) -> None:
        """Delete a topic; raises `barnabas_kafka.errors.KafkaError` with the broker's reason."""
        from barnabas_broker.testing import topics  # Late, for the same reason.

        topics.delete((self.host, self.port), name, security=self.security)

    # -- the machinery

    def _settings_of_this_start(self) -> dict[str, str]:
        """The settings, with the ports of an earlier start: clients find the broker again."""
        settings = self.settings
        listeners = [each.strip() for each in settings["listeners"].split(",")]
        for number, each in enumerate(listeners):
            before = self._listeners.get(each.partition("://")[0])
            if before is not None and each.endswith(":0"):
                listeners[number] = each.removesuffix("0") + before.rpartition(":")[2]
        settings["listeners"] = ",".join(listeners)
        return settings

    def _await_ready(
        self, process: subprocess.Popen[bytes], ready_file: Path, deadline: float
    ) -> None:
        """Wait for the ready file, which the broker writes in one step once it serves clients."""
        try:
            while not ready_file.exists():
                if process.poll() is not None:
                    what = f"the broker ended at start with exit code {process.returncode}"
                    raise BrokerError(self._explain(what))
                if time.monotonic() > deadline:
                    what = f"the broker was not ready within {self._startup_timeout_s:g} s"
                    raise BrokerError(self._explain(what))
                time.sleep(READY_POLL_S)
            ready = json.loads(ready_file.read_text())
        except BaseException:  # An interrupt must not leave a broker running.
            process.kill()
            process.wait()
            raise
        self._listeners = ready["listeners"]
        self.cluster_id = ready["cluster_id"]

    def _end(self, signal_number: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal_number)
        try:
            process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            text = self._explain(f"the broker did not stop within {STOP_TIMEOUT_S:g} s; killed")
            raise BrokerError(text) from None

    def _explain(self, what: str) -> str:
        lines = self.output().splitlines()[-LOG_LINES_IN_FAILURE:]
        return "\n  ".join([f"{what}; its last words:", *(lines or ["(it logged nothing)"])])


def _write_private(file: Path, text: str) -> None:
    """Write a file that may hold passwords."""
    file.touch(mode=0o600)
    file.write_text(text)


def _names(given: str | Iterable[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


def _as_text(value: SettingValue) -> str:
    """A setting as a properties file spells it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _properties_text(settings: Mapping[str, str]) -> str:
    """The settings as a Java properties file, in which a backslash escapes."""
    lines = (f"{key}={value}" for key, value in settings.items())
    return "".join(line.replace("\\", "\\\\").replace("\n", "\\n") + "\n" for line in lines)
