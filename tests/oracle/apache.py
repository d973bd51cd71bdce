"""Apache Kafka itself, as the oracle: its jars, its broker with ZooKeeper, and its own tools.

The jars come from Maven Central through the ordinary ``mvn`` client and are cached by Maven; the
class path of a version is resolved once and remembered under ``.cache/apache/``. Every server is a
JVM bound to 127.0.0.1 with its files in one directory, and is stopped by the process id it was
started with.

    with ApacheKafka("3.9.1") as kafka:
        topics = "org.apache.kafka.tools.TopicCommand"
        run_tool(topics, "--bootstrap-server", kafka.bootstrap, "--list")

Tool classes moved between versions. 2.8.2: ``kafka.admin.*`` and ``kafka.tools.*``. 3.9.1: most
under ``org.apache.kafka.tools``, the console producer still ``kafka.tools.ConsoleProducer``. Of
0.8 there are the Scala clients, for programs of our own.
"""

from __future__ import annotations

import fcntl
import os
import random
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from tests.oracle import java_host
from tests.oracle.class_archive import ClassArchive
from tests.waiting import ATTEMPT_S, RUN, SETTLE, forget, seconds, wait_for, watch

CACHE: Final = Path(__file__).resolve().parents[2] / ".cache" / "apache"
DEFAULT_VERSION: Final = "3.9.1"
KRAFT_VERSION: Final = "4.1.0"
CLIENTS_ALONE: Final = "kafka-clients"
"""The artifact of releases whose brokers and tools are not run."""

BROKER_JVM_FLAGS: Final = (
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-XX:MaxInlineLevel=15",
    "-Djava.awt.headless=true",
)
"""What Kafka's start scripts pass to every JVM (the heap is added beside them)."""

QUICK_JVM_FLAGS: Final = (
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-Djava.awt.headless=true",
)
"""For a broker that a test starts: what it takes to start counts, its peak speed does not."""

TOOL_JVM_FLAGS: Final = java_host.FLAGS
"""For short-lived clients: start-up time matters, peak speed does not."""

_LOG4J: Final = """\
log4j.rootLogger={level}, stderr
log4j.appender.stderr=org.apache.log4j.ConsoleAppender
log4j.appender.stderr.target=System.err
log4j.appender.stderr.layout=org.apache.log4j.PatternLayout
log4j.appender.stderr.layout.ConversionPattern=[%d] %p %m (%c)%n
"""

_POM: Final = """\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>barnabas.oracle</groupId>
  <artifactId>classpath</artifactId>
  <version>1</version>
  <packaging>pom</packaging>
  <dependencies>
{dependencies}
  </dependencies>
</project>
"""


class OracleError(Exception):
    """Apache Kafka could not be resolved or started; the text ends with the tail of its log."""


def classpath(version: str = DEFAULT_VERSION, *, of: str = "") -> str:
    """The Java class path of Kafka's broker, clients, tools and ZooKeeper at `version`.

    Or `of` another artifact of Kafka, such as kafka-streams.
    Resolved with Maven on first use and remembered; resolved again when a remembered jar has gone.
    Safe to call from several processes at once. Raises OracleError when Maven fails.
    """
    name = f"{of}-{version}" if of else version
    remembered = CACHE / f"{name}.classpath"
    if found := _remembered(remembered):
        return found
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if found := _remembered(remembered):
            return found
        resolved = _resolve(version, of)
        partial = remembered.with_suffix(".partial")
        partial.write_text(resolved)
        partial.replace(remembered)
        return resolved


def java_command(
    main_class: str,
    *args: str,
    version: str = DEFAULT_VERSION,
    jvm_flags: Sequence[str] = TOOL_JVM_FLAGS,
    extra_classpath: Sequence[Path] = (),
) -> list[str]:
    """The command line that runs `main_class`, for callers that look after the process."""
    path = ":".join([*map(str, extra_classpath), classpath(version)])
    return ["java", *jvm_flags, _quiet(), "-cp", path, main_class, *args]


def run_tool(
    main_class: str,
    *args: str,
    version: str = DEFAULT_VERSION,
    of: str = "",
    input: str | None = None,  # noqa: A002 - the name subprocess.run gives it
    within: float = RUN,
) -> subprocess.CompletedProcess[str]:
    """Run one of Apache's command-line tools, or a source file, and return what it printed.

    The class path is the one of `classpath(version, of=of)`. Programs of one class path run in one
    JVM, one after the other (java_host.py). The exit code is not checked. After so many machine
    seconds the program is killed and subprocess.TimeoutExpired raised.
    """
    flags = (*TOOL_JVM_FLAGS, _quiet())
    host = java_host.java_host(classpath(version, of=of), flags)
    return host.run(main_class, *args, input=input or "", within=within)


_PORTS: Final = range(15000, 32000)
"""Below those the kernel gives to outgoing connections."""

_given_ports: Final[set[int]] = set()
"""What `free_port` gave: it may be bound later, or again after a restart."""


def free_port(row: int = 1) -> int:
    """A free port of 127.0.0.1, or the first of a `row` of them. No port is given twice.

    Processes of one test run that work side by side draw from ranges of their own.
    """
    mine = ports_of(os.environ.get("PYTEST_XDIST_WORKER", ""))
    for _ in range(200):
        port = random.choice(mine[: 1 - row] if row > 1 else mine)
        wanted = range(port, port + row)
        if not _given_ports.isdisjoint(wanted):
            continue
        with ExitStack() as probes:
            try:
                for each in wanted:
                    probes.enter_context(socket.socket()).bind(("127.0.0.1", each))
            except OSError:
                continue
            _given_ports.update(wanted)
            return port
    raise OracleError("no free port found on 127.0.0.1")


def ports_of(worker: str, workers: int = 8) -> range:
    """The part of the ports that is for one worker of pytest-xdist (`gw0`, `gw1`, ...).

    All of them where there is no worker, or where there are more workers than parts.
    """
    number = worker.removeprefix("gw")
    if not number.isdigit() or int(number) >= workers:
        return _PORTS
    size = len(_PORTS) // workers
    return _PORTS[int(number) * size : (int(number) + 1) * size]


class _JavaServer(ABC):
    """One JVM that serves on a port: started, awaited, and stopped by its own process id."""

    name = "server"

    def __init__(self, version: str, directory: Path | None) -> None:
        self.version = version
        self._owns_directory = directory is None
        self.directory = directory or Path(tempfile.mkdtemp(prefix=f"apache-{self.name}-"))
        self.directory.mkdir(parents=True, exist_ok=True)
        self.log_file = self.directory / f"{self.name}.log"
        self.port = free_port()
        self.host = "127.0.0.1"
        self.launcher: Sequence[str] = ()
        """A command that runs the one behind it, such as on another network."""
        self._process: subprocess.Popen[bytes] | None = None
        self._archive: ClassArchive | None = None

    @property
    def pid(self) -> int:
        """The process id of the running JVM; raises OracleError when it is not running."""
        if self._process is None:
            raise OracleError(f"{self.name} is not running")
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether the JVM has been started and has not ended."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> Self:
        """Start the JVM and wait until it serves; raises OracleError when it does not in time."""
        self.launch()
        try:
            self._await_ready()
        except BaseException:
            self.kill()
            raise
        return self

    def launch(self) -> None:
        """Start the JVM and return at once."""
        command = self._command()
        with self.log_file.open("ab") as log:
            # A session of its own: Ctrl-C in a terminal reaches only us, and we stop it in order.
            self._process = subprocess.Popen(
                [*self.launcher, *command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.directory,
                start_new_session=True,
            )
        watch(f"{self.name} {self.version}", self._process.pid, self.log_file, dumps=True)

    def stop(self, *, within: float = SETTLE) -> None:
        """SIGTERM, then SIGKILL where the JVM does not end in so many machine seconds."""
        if self._process is not None:
            forget(self._process.pid)
            if self._process.poll() is None:
                self._process.terminate()
                try:
                    self._process.wait(seconds(within))
                except subprocess.TimeoutExpired:
                    self._process.kill()
                    self._process.wait()
                else:
                    self._keep_classes()
            self._process = None

    def kill(self) -> None:
        """SIGKILL, as a crash would be."""
        if self._process is not None:
            forget(self._process.pid)
            if self._process.poll() is None:
                self._process.send_signal(signal.SIGKILL)
            self._process.wait()
            self._process = None

    def tail(self, lines: int = 30) -> str:
        """The last lines this server logged, over all its starts."""
        try:
            return "\n".join(self.log_file.read_text(errors="replace").splitlines()[-lines:])
        except FileNotFoundError:
            return "(no log)"

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self._discard()
            raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self.stop()
        finally:
            self._discard()

    def _discard(self) -> None:
        if self._owns_directory:
            shutil.rmtree(self.directory, ignore_errors=True)

    def _java(self, main_class: str, config: Path, *flags: str) -> list[str]:
        self._archive = ClassArchive(main_class, classpath(self.version))
        all_flags = (*flags, self._archive.flag())
        return java_command(main_class, str(config), version=self.version, jvm_flags=all_flags)

    def _keep_classes(self) -> None:
        if self._archive is not None:
            self._archive.keep()

    @abstractmethod
    def _command(self) -> list[str]:
        """What starts the JVM."""

    @abstractmethod
    def _answers(self, connection: socket.socket) -> bool:
        """Whether it serves whoever has connected."""

    def _await_ready(self) -> None:
        def settled() -> bool:
            return not self.running or self._probe()

        wait_for(f"{self.name} {self.version} to serve, or to end", settled, show=self.tail)
        if not self.running:
            raise OracleError(f"{self.name} {self.version} ended at start:\n{self.tail()}")

    def _connection(self) -> socket.socket:
        # ZooKeeper never answers what connects in the moment when it binds its port.
        return socket.create_connection((self.host, self.port), timeout=ATTEMPT_S)

    def _probe(self) -> bool:
        try:
            with self._connection() as connection:
                return self._answers(connection)
        except (OSError, EOFError):
            return False


class ZooKeeper(_JavaServer):
    """A standalone ZooKeeper server, the one the given Kafka version depends on, in a small heap.

    `connect` is what goes into ``zookeeper.connect``. Give `directory` to keep its data beyond the
    context; `overrides` are added to its configuration, `jvm_flags` to those of the JVM.
    """

    name = "zookeeper"

    def __init__(
        self,
        version: str = DEFAULT_VERSION,
        *,
        directory: Path | None = None,
        overrides: Mapping[str, str] | None = None,
        jvm_flags: Sequence[str] = (),
        heap: str = "128M",
    ) -> None:
        super().__init__(version, directory)
        self.overrides = dict(overrides or {})
        self.jvm_flags = tuple(jvm_flags)
        self.heap = heap

    @property
    def connect(self) -> str:
        """``host:port`` for clients."""
        return f"{self.host}:{self.port}"

    def _command(self) -> list[str]:
        config = self.directory / "zookeeper.properties"
        _write_properties(
            config,
            {
                "dataDir": str(self.directory / "data"),
                "clientPort": str(self.port),
                "clientPortAddress": self.host,
                "maxClientCnxns": "0",
                "admin.enableServer": "false",
                "4lw.commands.whitelist": "ruok,srvr",
                "tickTime": "2000",
            }
            | self.overrides,
        )
        flags = (f"-Xmx{self.heap}", "-XX:+UseSerialGC", "-Djava.awt.headless=true")
        main_class = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
        return self._java(main_class, config, *flags, *self.jvm_flags)

    def mode(self) -> str:
        """What it says to be: standalone, leader or follower; empty while it does not serve."""
        with self._connection() as connection:
            return self._mode(connection)

    def _answers(self, connection: socket.socket) -> bool:
        return bool(self._mode(connection))

    @staticmethod
    def _mode(connection: socket.socket) -> str:
        # To `ruok` it says that it is well some moments before it serves.
        connection.sendall(b"srvr")
        reported = b"".join(iter(lambda: connection.recv(4096), b"")).decode()
        return reported.partition("\nMode: ")[2].partition("\n")[0]


class OwnZooKeeper(ZooKeeper):
    """Our own ZooKeeper for development, in the place of Apache's."""

    def _command(self) -> list[str]:
        return [
            sys.executable, "-m", "barnabas_broker.cli", "zookeeper", "start",
            "--data-dir", str(self.directory / "data"), "--port", str(self.port),
            "--max-client-connections", "1000",
        ]  # fmt: skip


class ApacheKafka(_JavaServer):
    """One Apache Kafka broker in ZooKeeper mode, with the shipped server.properties.

    With the shipped JVM flags where it is `measured`, else with flags that start it quickly.
    Starts a ZooKeeper of its own unless the address of one is given. `overrides` are added to, and
    win over, the shipped settings. Give `directory` to keep logs and data beyond the context, or to
    start on data written before (the default log directory is ``<directory>/kafka-logs``). `stop`,
    `kill` and `start` may alternate: the ports stay the same.
    """

    name = "kafka"
    measured = False

    def __init__(
        self,
        version: str = DEFAULT_VERSION,
        *,
        directory: Path | None = None,
        zookeeper: str | None = None,
        overrides: Mapping[str, str] | None = None,
        jvm_flags: Sequence[str] = (),
        heap: str = "1G",
        broker_id: int = 0,
    ) -> None:
        super().__init__(version, directory)
        self.jvm_flags = tuple(jvm_flags)
        self.heap = heap
        self.zookeeper: ZooKeeper | None = None
        if zookeeper is None:
            self.zookeeper = ZooKeeper(version, directory=self.directory / "zookeeper")
        self.zookeeper_connect = zookeeper or (self.zookeeper.connect if self.zookeeper else "")
        self.settings = self._shipped(broker_id) | dict(overrides or {})
        self.log_dirs = tuple(Path(name) for name in self.settings["log.dirs"].split(","))

    @property
    def bootstrap(self) -> str:
        """``host:port`` of the PLAINTEXT listener."""
        return f"127.0.0.1:{self.port}"

    def start(self) -> Self:
        """Start ZooKeeper if it is ours and not running, then the broker; wait until it serves."""
        started_zookeeper = False
        if self.zookeeper is not None and not self.zookeeper.running:
            self.zookeeper.start()
            started_zookeeper = True
        try:
            return super().start()
        except BaseException:
            if started_zookeeper and self.zookeeper is not None:
                self.zookeeper.kill()
            raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self.stop()
        finally:
            if self.zookeeper is not None:
                self.zookeeper.stop()
            super().__exit__(kind, error, trace)

    def _shipped(self, broker_id: int) -> dict[str, str]:
        return {
            "broker.id": str(broker_id),
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port}",
            "zookeeper.connect": self.zookeeper_connect,
            # Shipped are 18 s, which a busy machine may take to begin.
            "zookeeper.connection.timeout.ms": "120000",
            "log.dirs": str(self.directory / "kafka-logs"),
            "num.network.threads": "3",
            "num.io.threads": "8",
            "socket.send.buffer.bytes": "102400",
            "socket.receive.buffer.bytes": "102400",
            "socket.request.max.bytes": "104857600",
            "num.partitions": "1",
            "num.recovery.threads.per.data.dir": "1",
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "log.retention.hours": "168",
            "log.retention.check.interval.ms": "300000",
            "group.initial.rebalance.delay.ms": "0",
        }

    def _command(self) -> list[str]:
        config = self.directory / "server.properties"
        _write_properties(config, self.settings)
        if self.measured:
            flags = (f"-Xmx{self.heap}", f"-Xms{self.heap}", *BROKER_JVM_FLAGS, *self.jvm_flags)
            return java_command("kafka.Kafka", str(config), version=self.version, jvm_flags=flags)
        return self._java(
            "kafka.Kafka", config, f"-Xmx{self.heap}", *QUICK_JVM_FLAGS, *self.jvm_flags
        )

    def _answers(self, connection: socket.socket) -> bool:
        return _knows_a_broker(connection)


class ApacheKRaft(_JavaServer):
    """An Apache Kafka 4 that is broker and controller, for what no broker with ZooKeeper does.

    Alone, or one of several whose `controllers` are given: the controller port of each node.
    With the shipped JVM flags where it is `measured`, else with flags that start it quickly.
    """

    name = "kraft"
    measured = False

    def __init__(
        self,
        version: str = KRAFT_VERSION,
        *,
        overrides: Mapping[str, str] | None = None,
        heap: str = "512M",
        node: int = 0,
        controllers: Mapping[int, int] | None = None,
    ) -> None:
        super().__init__(version, None)
        self.heap = heap
        ports = controllers or {node: free_port()}
        self.settings = {
            "process.roles": "broker,controller",
            "node.id": str(node),
            "controller.quorum.voters": ",".join(
                f"{voter}@127.0.0.1:{port}" for voter, port in ports.items()
            ),
            "controller.listener.names": "CONTROLLER",
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{ports[node]}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "log.dirs": str(self.directory / "kafka-logs"),
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "group.initial.rebalance.delay.ms": "0",
        } | dict(overrides or {})

    @property
    def bootstrap(self) -> str:
        """``host:port`` of the PLAINTEXT listener."""
        return f"127.0.0.1:{self.port}"

    def start(self) -> Self:
        """Format the directory, start the broker and wait until it serves."""
        config = self.directory / "server.properties"
        _write_properties(config, self.settings)
        cluster_id = "AAAAAAAAAAAAAAAAAAAAAQ"
        tool = ("kafka.tools.StorageTool", "format", "-t", cluster_id, "-c", str(config))
        done = run_tool(*tool, version=self.version)
        if done.returncode:
            raise OracleError(f"the directory cannot be formatted:\n{done.stdout}{done.stderr}")
        return super().start()

    def _command(self) -> list[str]:
        config = self.directory / "server.properties"
        if self.measured:
            flags = (f"-Xmx{self.heap}", f"-Xms{self.heap}", *BROKER_JVM_FLAGS)
            return java_command("kafka.Kafka", str(config), version=self.version, jvm_flags=flags)
        return self._java("kafka.Kafka", config, f"-Xmx{self.heap}", *QUICK_JVM_FLAGS)

    def _answers(self, connection: socket.socket) -> bool:
        return _knows_a_broker(connection)


@contextmanager
def brokers(
    count: int, version: str = DEFAULT_VERSION, *, overrides: Mapping[str, str] | None = None
) -> Iterator[list[ApacheKafka]]:
    """A cluster of `count` Apache brokers on one ZooKeeper, in small heaps."""
    with ZooKeeper(version) as zookeeper:
        started: list[ApacheKafka] = []
        try:
            for broker_id in range(count):
                broker = ApacheKafka(
                    version,
                    zookeeper=zookeeper.connect,
                    overrides=overrides,
                    heap="512M",
                    broker_id=broker_id,
                )
                started.append(broker.__enter__())
            yield started
        finally:
            for broker in reversed(started):
                broker.__exit__(None, None, None)


def _remembered(file: Path) -> str | None:
    try:
        text = file.read_text().strip()
    except FileNotFoundError:
        return None
    return text if text and all(Path(jar).exists() for jar in text.split(":")) else None


def _resolve(version: str, of: str = "") -> str:
    kafka = ("kafka_2.10",) if version.startswith("0.8.") else ("kafka_2.13", "kafka-tools")
    if of:
        kafka = (of,)
    wanted = [
        *(("org.apache.kafka", artifact, version) for artifact in kafka),
        # The broker's pom leaves the logging binding to the distribution.
        ("org.slf4j", "slf4j-reload4j", "1.7.36"),
        # SCRAM of releases before 2.0 uses what Java had until 11.
        *([("javax.xml.bind", "jaxb-api", "2.3.1")] if of == CLIENTS_ALONE else []),
    ]
    dependencies = "\n".join(
        f"    <dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId>"
        f"<version>{number}</version>"
        "<exclusions><exclusion><groupId>org.slf4j</groupId><artifactId>slf4j-log4j12</artifactId>"
        "</exclusion><exclusion><groupId>log4j</groupId><artifactId>log4j</artifactId></exclusion>"
        "</exclusions></dependency>"
        for group, artifact, number in wanted
    )
    with tempfile.TemporaryDirectory(prefix="apache-classpath-") as directory:
        pom = Path(directory) / "pom.xml"
        pom.write_text(_POM.format(dependencies=dependencies))
        output = Path(directory) / "classpath"
        done = subprocess.run(
            [
                *("mvn", "-B", "-q", "-f", str(pom)),
                *("dependency:build-classpath", f"-Dmdep.outputFile={output}"),
            ],
            capture_output=True,
            text=True,
            timeout=seconds(RUN),
            check=False,
        )
        if done.returncode != 0 or not output.exists():
            raise OracleError(f"Maven cannot resolve Kafka {version}:\n{done.stdout[-3000:]}")
        return output.read_text().strip()


def _quiet() -> str:
    return f"-Dlog4j.configuration=file:{_log4j('WARN')}"


def _log4j(level: str) -> Path:
    """A log4j configuration that writes `level` and above to stderr, kept in the cache."""
    file = CACHE / f"log4j-{level}.properties"
    if not file.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=CACHE, delete=False) as partial:
            partial.write(_LOG4J.format(level=level))
        Path(partial.name).replace(file)
    return file


def _write_properties(file: Path, settings: Mapping[str, str]) -> None:
    file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))


def _knows_a_broker(connection: socket.socket) -> bool:
    # Metadata v1 for all topics: ready once the controller has told the broker about itself.
    connection.sendall(struct.pack(">ihhihi", 14, 3, 1, 1, -1, -1))
    header = _receive_exactly(connection, 12)
    brokers: int = struct.unpack_from(">i", header, 8)[0]
    return brokers >= 1


def _receive_exactly(connection: socket.socket, size: int) -> bytes:
    received = b""
    while len(received) < size:
        more = connection.recv(size - len(received))
        if not more:
            raise EOFError("connection closed")
        received += more
    return received
