"""JVMs that run one Java program after another, in the place of a JVM for each.

A test run calls some hundreds of small Java programs: Kafka's command-line tools, and clients of
our own. Most of what such a program takes is the start of its JVM. Here one JVM for each class path
runs them (``java/ToolHost.java``): it starts at the first call and ends with the Python process.

Each program has its own standard streams, exit code, system properties and static fields of its
main class. A program that hangs, ends its JVM or leaves threads behind costs the JVM, not the next
program. One that is to get signals, or to run beside another one, needs a JVM of its own.

Programs given as source are compiled on first use and kept under ``.cache/java``.
"""

from __future__ import annotations

import atexit
import fcntl
import hashlib
import os
import selectors
import struct
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Final

from tests.waiting import RUN, START, seconds
from tests.waiting.machine import Budget

CACHE: Final = Path(__file__).resolve().parents[2] / ".cache" / "java"
HOST: Final = Path(__file__).parent / "java" / "ToolHost.java"

#: For short-lived clients: start-up time matters, peak speed does not.
FLAGS: Final = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m")
#: How many JVMs there are at most; the one that was idle for longest ends for another one.
AT_MOST: Final = 3
#: How long an idle JVM has to end before it is killed.
GRACE_S: Final = 10.0
#: How long to wait for output before the budget is looked at again.
SLICE_S: Final = 1.0


class JavaError(Exception):
    """A program does not compile."""


def compiled(source: Path, classpath: str = "") -> Path:
    """The directory with the classes of a source file; compiles it unless that was done before."""
    digest = hashlib.sha256(f"{java_release()}\0{classpath}\0".encode() + source.read_bytes())
    name = f"{source.stem}-{digest.hexdigest()[:16]}"
    classes = CACHE / name
    if classes.exists():
        return classes
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / f"{source.stem}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not classes.exists():
            _compile(source, classpath, classes)
    return classes


def _compile(source: Path, classpath: str, classes: Path) -> None:
    # A rename publishes all classes at once.
    with tempfile.TemporaryDirectory(dir=CACHE, ignore_cleanup_errors=True) as partial:
        target = Path(partial) / "classes"
        command = ["javac", "-nowarn", "-proc:none", "-d", str(target)]
        command += ["-cp", classpath] if classpath else []
        done = subprocess.run(
            [*command, str(source)],
            capture_output=True,
            text=True,
            timeout=seconds(RUN),
            check=False,
        )
        if done.returncode != 0:
            raise JavaError(f"{source.name} does not compile:\n{done.stdout}{done.stderr}")
        target.rename(classes)


@cache
def java_release() -> str:
    """What `java -version` prints; other releases cannot use what one has compiled or archived."""
    asked = ["java", "-version"]
    return subprocess.run(
        asked, capture_output=True, text=True, timeout=seconds(START), check=True
    ).stderr


class JavaHost:
    """One JVM for the programs of a class path; `run` starts it where there is none."""

    def __init__(self, classpath: str, flags: Sequence[str] = FLAGS) -> None:
        self.classpath = classpath
        self.flags = tuple(flags)
        self._process: subprocess.Popen[bytes] | None = None
        self._one_at_a_time = threading.Lock()

    @property
    def pid(self) -> int | None:
        """The process id of the JVM, where there is one."""
        return self._process.pid if self._process else None

    def run(
        self,
        program: str,
        *args: str,
        input: str = "",  # noqa: A002 - the name subprocess.run gives it
        within: float = RUN,
    ) -> subprocess.CompletedProcess[str]:
        """Run a main class, or a source file `*.java`, to its end and return what it printed.

        After so many machine seconds the JVM is killed and subprocess.TimeoutExpired raised.
        """
        classes, main_class = "", program
        if program.endswith(".java"):
            classes = f"{compiled(Path(program), self.classpath)}/"
            main_class = Path(program).stem
        with self._one_at_a_time:
            return self._run([classes, input, main_class, *args], Budget(within))

    def close(self) -> None:
        """End the JVM; the next run starts another one."""
        with self._one_at_a_time:
            self._end()

    def _run(self, words: list[str], budget: Budget) -> subprocess.CompletedProcess[str]:
        process = self._started()
        command = words[2:]
        texts: dict[bytes, bytearray] = {kind: bytearray() for kind in (b"o", b"e", b"t")}
        code = None
        try:
            _send(process, words)
            for kind, content in _answers(process, budget):
                if kind == b"x":
                    (code,) = struct.unpack(">i", content)
                    break
                texts[kind] += content
        except TimeoutError:
            self._kill()
            raise subprocess.TimeoutExpired(
                command, budget.elapsed_s, bytes(texts[b"o"]), bytes(texts[b"e"])
            ) from None
        except BaseException:
            # What the program prints from here on belongs to no later run.
            self._kill()
            raise
        if code is None:
            code = process.wait()
        if process.poll() is not None or texts[b"t"]:
            self._end()
        return subprocess.CompletedProcess(command, code, _text(texts[b"o"]), _text(texts[b"e"]))

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is not None and self._process.poll() is not None:
            self._end()
        if self._process is None:
            path = ":".join(filter(None, [str(compiled(HOST)), self.classpath]))
            # Shutdown hooks of programs are run at the end of each; they are a field of this class.
            opened = "--add-opens=java.base/java.lang=ALL-UNNAMED"
            self._process = subprocess.Popen(
                ["java", *self.flags, opened, "-cp", path, "ToolHost"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                # Programs have streams of their own: here Java itself says that it is out of date.
                stderr=subprocess.DEVNULL,
                # Ctrl-C in a terminal reaches only us, and we end it in order.
                start_new_session=True,
            )
        return self._process

    def _end(self) -> None:
        if self._process is None:
            return
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(GRACE_S)
        self._kill()

    def _kill(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            assert process.stdin is not None
            assert process.stdout is not None
            process.kill()
            process.wait()
            process.stdout.close()
            with suppress(BrokenPipeError):
                process.stdin.close()


def _send(process: subprocess.Popen[bytes], words: Sequence[str]) -> None:
    encoded = [word.encode() for word in words]
    request = struct.pack(">i", len(encoded))
    request += b"".join(struct.pack(">i", len(each)) + each for each in encoded)
    assert process.stdin is not None
    # A thread of its own reads requests, so that this write does not block for long.
    # If it has ended, the read of its answers notices.
    with suppress(BrokenPipeError):
        process.stdin.write(request)
        process.stdin.flush()


def _answers(process: subprocess.Popen[bytes], budget: Budget) -> Iterator[tuple[bytes, bytes]]:
    """Frames until the JVM ends; raises TimeoutError."""
    assert process.stdout is not None
    descriptor = process.stdout.fileno()
    received = bytearray()
    with selectors.DefaultSelector() as selector:
        selector.register(descriptor, selectors.EVENT_READ)
        while True:
            # In slices: a machine that becomes busy spends the budget more slowly.
            if not selector.select(min(SLICE_S, max(0.0, budget.left()))):
                if budget.left() < 0:
                    raise TimeoutError
                continue
            more = os.read(descriptor, 1 << 16)
            if not more:
                return
            received += more
            while len(received) >= 5:
                kind, size = struct.unpack_from(">ci", received)
                if len(received) < 5 + size:
                    break
                content = bytes(received[5 : 5 + size])
                del received[: 5 + size]
                yield kind, content


def _text(received: bytearray) -> str:
    # As subprocess does with text=True.
    return received.decode().replace("\r\n", "\n").replace("\r", "\n")


_hosts: Final[dict[tuple[str, tuple[str, ...]], JavaHost]] = {}


def java_host(classpath: str, flags: Sequence[str] = FLAGS) -> JavaHost:
    """The JVM that all programs of this class path share."""
    key = (classpath, tuple(flags))
    host = _hosts.pop(key, None) or JavaHost(classpath, flags)
    _hosts[key] = host  # The last one is the one used last.
    while len(_hosts) > AT_MOST:
        _hosts.pop(next(iter(_hosts))).close()
    return host


@atexit.register
def _close_all() -> None:
    for host in _hosts.values():
        host.close()
