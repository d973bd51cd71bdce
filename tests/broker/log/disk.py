"""A disk for tests: it notes all that is done to it, and fails when it is told to.

``with using(Disk(root)) as disk:`` puts it in the place of ``os`` behind the data files. The calls
reach real files, so that everything runs as it does in a broker. On the side:

* ``disk.effects`` is each change in order, for :mod:`tests.broker.log.images`, which shows the
  disk as a killed process or a power cut would have left it after any of them;
* ``disk.fail("fsync", errno.EIO, path=".log")`` makes calls fail: from the nth on, once or for
  ever, after a short write; error None ends the process there (:class:`Crash`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from barnabas_broker.log import files
from tests.broker.log.images import Effect


class Crash(BaseException):
    """The process ended here; not an Exception, so that nothing on the way up handles it."""


@dataclass
class Fault:
    """What happens to calls named ``call`` on names that end with ``path``.

    The first ``after`` such calls pass, then ``times`` fail (None: all). A pwrite that fails first
    writes ``short`` bytes, in a call of its own that succeeds, as a full device does.
    """

    call: str
    error: int | None
    path: str = ""
    after: int = 0
    times: int | None = None
    short: int = 0

    def strikes(self, call: str, path: Path) -> bool:
        """True when this call is to fail; counts it."""
        if call != self.call or not str(path).endswith(self.path) or self.times == 0:
            return False
        if self.after:
            self.after -= 1
            return False
        return True

    def fail(self, path: Path) -> None:
        if self.times is not None:
            self.times -= 1
        if self.error is None:
            raise Crash(f"{self.call} {path}")
        raise OSError(self.error, os.strerror(self.error), str(path))


class Disk:
    """What is below ``root`` when this is made counts as durable; other paths are let through."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.faults: list[Fault] = []
        self.effects: list[Effect] = []
        self._numbers: dict[Path, int] = {}
        #: files and directories so far, which are numbered from 0
        self.nodes = 0
        self._open: dict[int, tuple[int, Path]] = {}
        self._adopt(root)
        self.effects += [Effect("sync", number) for number in range(self.nodes)]

    def fail(
        self,
        call: str,
        error: int | None,
        *,
        path: str = "",
        after: int = 0,
        times: int | None = None,
        short: int = 0,
    ) -> Fault:
        """Make calls fail from now on; `Fault` has the parameters. Ends with ``repair``."""
        fault = Fault(call, error, path, after, times, short)
        self.faults.append(fault)
        return fault

    def repair(self) -> None:
        """From now on everything works again."""
        self.faults.clear()

    def _adopt(self, path: Path) -> None:
        self._make(path, directory=path.is_dir())
        if path.is_dir():
            for child in sorted(path.iterdir()):
                self._adopt(child)
        else:
            self.effects.append(Effect("write", self._numbers[path], data=path.read_bytes()))

    def _make(self, path: Path, *, directory: bool = False) -> None:
        number = self._numbers[path] = self.nodes
        self.nodes += 1
        self.effects.append(Effect("directory" if directory else "file", number))
        if path != self.root:
            self.effects.append(Effect("link", self._numbers[path.parent], path.name, number))

    def _meet(self, call: str, path: Path) -> None:
        for fault in self.faults:
            if fault.strikes(call, path):
                fault.fail(path)

    # --- the calls of SystemCalls ------------------------------------------------------------

    def open(self, path: Path, flags: int, mode: int = 0o777, /) -> int:
        self._meet("open", path)
        fresh = not path.exists()
        fd = os.open(path, flags, mode)
        self._open.pop(fd, None)
        if path in self._numbers or path.parent in self._numbers:
            if fresh:
                self._make(path)
            elif flags & os.O_TRUNC:
                self.effects.append(Effect("truncate", self._numbers[path]))
            self._open[fd] = self._numbers[path], path
        return fd

    def close(self, fd: int, /) -> None:
        self._open.pop(fd, None)
        os.close(fd)

    def dup(self, fd: int, /) -> int:
        if fd in self._open:
            self._meet("dup", self._open[fd][1])
        copy = os.dup(fd)
        if fd in self._open:
            self._open[copy] = self._open[fd]
        return copy

    def pread(self, fd: int, length: int, position: int, /) -> bytes:
        if fd in self._open:
            self._meet("pread", self._open[fd][1])
        return os.pread(fd, length, position)

    def pwrite(self, fd: int, data: bytes | bytearray | memoryview, position: int, /) -> int:
        if fd not in self._open:
            return os.pwrite(fd, data, position)
        number, path = self._open[fd]
        for fault in self.faults:
            if fault.strikes("pwrite", path):
                if not fault.short:
                    fault.fail(path)
                data, fault.short = memoryview(data)[: fault.short], 0
                break
        written = os.pwrite(fd, data, position)
        self.effects.append(Effect("write", number, position=position, data=bytes(data[:written])))
        return written

    def ftruncate(self, fd: int, size: int, /) -> None:
        if fd in self._open:
            number, path = self._open[fd]
            self._meet("ftruncate", path)
            self.effects.append(Effect("truncate", number, position=size))
        os.ftruncate(fd, size)

    def fsync(self, fd: int, /) -> None:
        if fd in self._open:
            number, path = self._open[fd]
            self._meet("fsync", path)
            self.effects.append(Effect("sync", number))
            return  # the model says what is durable; no need to wait for a device
        os.fsync(fd)

    def rename(self, source: Path, target: Path, /) -> None:
        self._meet("rename", source)
        source.rename(target)
        if source not in self._numbers:
            return
        number, parents = self._numbers[source], self._numbers
        self.effects.append(
            Effect(
                "rename", parents[target.parent], target.name, number,
                source=(parents[source.parent], source.name),
            )
        )  # fmt: skip
        for path in [path for path in parents if path.is_relative_to(source)]:
            parents[target / path.relative_to(source)] = parents.pop(path)

    def unlink(self, path: Path, /) -> None:
        self._meet("unlink", path)
        path.unlink()
        self._unlinked(path)

    def mkdir(self, path: Path, /) -> None:
        self._meet("mkdir", path)
        path.mkdir()
        if path.parent in self._numbers:
            self._make(path, directory=True)

    def rmdir(self, path: Path, /) -> None:
        self._meet("rmdir", path)
        path.rmdir()
        self._unlinked(path)

    def _unlinked(self, path: Path) -> None:
        if self._numbers.pop(path, None) is not None:
            self.effects.append(Effect("unlink", self._numbers[path.parent], path.name))


class Hasty:
    """What `os` does, without waiting for a device: images are checked by the hundred."""

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def fsync(self, fd: int, /) -> None:
        """Done."""


@contextmanager
def using(disk: Disk) -> Iterator[Disk]:
    """Let every data file be made through ``disk``; files that are open stay with it."""
    before = files.system
    files.system = disk
    try:
        yield disk
    finally:
        files.system = before
