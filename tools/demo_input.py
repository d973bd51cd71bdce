"""What the demonstration streams: the data this machine has anyway.

Nothing is generated. The package database is there on Debian and Alpine and their kin; the system's
tables and Python's own library are there wherever the demonstration can run at all.
"""

from __future__ import annotations

import itertools
import os
import sys
import sysconfig
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

Record = tuple[bytes, bytes]

# Enough to see throughput, little enough that the demonstration ends before anybody yawns.
LINES_MAX = 150_000
SOURCES_BYTES_MAX = 24 << 20
LARGE_FILES_MAX = 8
LARGE_FILE_BYTES_MIN = 1 << 20
LARGE_FILE_BYTES_MAX = 24 << 20
LARGE_BYTES_MAX = 64 << 20

PACKAGE_DATABASES = (
    (Path("/var/lib/dpkg/status"), b"Package: "),
    (Path("/lib/apk/db/installed"), b"P:"),
)
TABLES = ("services", "protocols", "passwd", "group", "hosts", "rpc", "mime.types", "shells")


@dataclass(frozen=True, slots=True)
class Stream:
    """One topic and what goes into it."""

    topic: str
    title: str
    records: list[Record]
    compression: str = "none"

    @property
    def size(self) -> int:
        """Bytes of all keys and values."""
        return sum(len(key) + len(value) for key, value in self.records)


def streams() -> list[Stream]:
    """Everything there is on this machine, each kind in its topic."""
    found = [
        Stream(topic, title, list(read()), compression)
        for topic, (title, read, compression) in kinds().items()
    ]
    return [stream for stream in found if stream.records]


def kinds() -> dict[str, tuple[str, Callable[[], Iterator[Record]], str]]:
    """Topic in manifests/examples/demo.yaml → what it holds, where from, and its compression."""
    return {
        "demo.packages": ("packages", packages, "zstd"),
        "demo.tables": ("system tables", tables, "none"),
        "demo.lines": ("lines of Python", lines, "lz4"),
        "demo.sources": ("Python files", sources, "none"),
        "demo.large": ("large files", large_files, "none"),
    }


def packages(databases: Iterable[tuple[Path, bytes]] = PACKAGE_DATABASES) -> Iterator[Record]:
    """The paragraphs of the package database, by the package's name."""
    for path, name_field in databases:
        if not path.is_file():
            continue
        for paragraph in path.read_bytes().split(b"\n\n"):
            for line in paragraph.splitlines():
                if line.startswith(name_field):
                    yield line.removeprefix(name_field).strip(), paragraph
                    break


def tables(directory: Path = Path("/etc")) -> Iterator[Record]:
    """The lines of the system's tables, by their first word."""
    for name in TABLES:
        path = directory / name
        try:
            content = path.read_bytes()
        except OSError:  # Which tables there are differs; one that is not there is not missed.
            continue
        for line in content.splitlines():
            if words := line.replace(b":", b" ").split():
                yield name.encode() + b"/" + words[0], line


def lines(library: Path | None = None) -> Iterator[Record]:
    """Lines of Python's library, by file: many small records, some of them empty."""
    return itertools.islice(_all_lines(library), LINES_MAX)


def sources(library: Path | None = None) -> Iterator[Record]:
    """Whole files of Python's library, by their path: records from nothing to half a megabyte."""
    room = SOURCES_BYTES_MAX
    for name, path in _library(library):
        content = path.read_bytes()
        room -= len(content)
        if room < 0:
            return
        yield name, content


def large_files(places: Iterable[Path] | None = None) -> Iterator[Record]:
    """Big files as single records, by their path: the interpreter and what it loads."""
    files = set(itertools.chain.from_iterable(map(_files_under, places or _program_folders())))
    sized = sorted(((path.stat().st_size, path) for path in files), reverse=True)
    fitting = [
        (size, path) for size, path in sized if LARGE_FILE_BYTES_MIN <= size <= LARGE_FILE_BYTES_MAX
    ]
    room = LARGE_BYTES_MAX
    for size, path in fitting[:LARGE_FILES_MAX]:
        if size <= room:
            room -= size
            yield os.fsencode(path), path.read_bytes()


def _program_folders() -> list[Path]:
    libraries = (Path(sysconfig.get_path(name)) for name in ("stdlib", "platlib"))
    return [Path(sys.executable).resolve().parent, *libraries]


def _files_under(place: Path) -> Iterator[Path]:
    """Readable ordinary files, without following links in circles."""
    for path in place.rglob("*"):
        if path.is_file() and not path.is_symlink() and os.access(path, os.R_OK):
            yield path


def _library(library: Path | None) -> Iterator[tuple[bytes, Path]]:
    """The Python files of a library, by default the standard one, in the order of their names."""
    root = library or Path(sysconfig.get_path("stdlib"))
    for path in sorted(root.rglob("*.py")):
        if "site-packages" not in path.parts and path.is_file():
            yield str(path.relative_to(root)).encode(), path


def _all_lines(library: Path | None) -> Iterator[Record]:
    for name, path in _library(library):
        for line in path.read_bytes().splitlines():
            yield name, line
