"""Takes out of an installed pyspark what pipelines do not use: half of it.

    python tools/trim_spark.py .../site-packages/pyspark

Pipelines run Spark SQL and Structured Streaming. Hive and its metastore, machine learning, graphs,
YARN, the Scala shell and Spark Connect have no part in that, nor have native libraries for other
systems than this one.

The list is of what goes, so that a jar which a new version adds stays. Each line must meet
something: one that meets nothing is out of date and fails the build. Licences stay. Whether enough
is left is seen by the end-to-end tests, which run pipelines in the image.
"""

from __future__ import annotations

import platform
import shutil
import sys
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

UNUSED_JARS: Final = (
    # Hive: metastore, client, thrift server. Not hive-storage-api, which the ORC writer needs.
    "hive-beeline", "hive-cli", "hive-common", "hive-exec", "hive-jdbc", "hive-metastore",
    "hive-serde", "hive-service-rpc", "hive-shims", "spark-hive", "HikariCP", "ST4",
    "antlr-runtime", "commons-dbcp", "commons-pool-", "datanucleus", "derby", "javax.jdo",
    "jdo-api", "jpam", "jta", "libfb303", "libthrift", "opencsv", "stax-api", "super-csv",
    "transaction-api",
    # Machine learning and graphs.
    "JLargeArrays", "JTransforms", "arpack", "blas", "breeze", "cats-kernel", "lapack", "algebra",
    "spark-graphx", "spark-mllib", "spire",
    # The Scala shell and compiler, Spark Connect, declarative pipelines, YARN.
    "jline", "scala-compiler", "spark-repl", "spark-connect", "spark-pipelines", "spark-yarn",
    # High availability of Spark's own cluster manager.
    "curator", "zookeeper",
)  # fmt: skip
UNUSED_FOLDERS: Final = (
    "data", "examples", "jars/connect-repl", "ml", "mllib", "sbin", "testing",
)  # fmt: skip
# Jars that hold or are native libraries, and what in their names tells the system.
NATIVE_JARS: Final = ("rocksdbjni", "zstd-jni", "snappy-java", "lz4-java", "leveldbjni")
NATIVE_SUFFIXES: Final = (".so", ".jnilib", ".dylib", ".dll", ".a", ".sha1")
NATIVE_NETTY: Final = ("netty-tcnative-boringssl-static", "netty-transport-native")
SYSTEM_NAMES: Final = {
    "x86_64": ("x86_64", "amd64", "linux64", "x86-64"),
    "aarch64": ("aarch64", "aarch_64", "arm64"),
}
FOREIGN: Final = (
    "musl", "android", "osx", "darwin", "mac/", "windows", "win/", "win32", "win64", "freebsd",
    "sunos",
)  # fmt: skip


class TrimError(Exception):
    """The list does not fit this pyspark."""


def trim(spark: Path, machine: str) -> int:
    """Trim an installed pyspark for a machine (`uname -m`); returns the bytes gained."""
    before = _size(spark)
    names = SYSTEM_NAMES.get(machine)
    if names is None:
        raise TrimError(f"native libraries for {machine} are not known here")
    _remove_jars(spark / "jars", UNUSED_JARS)
    for folder in UNUSED_FOLDERS:
        if not (spark / folder).is_dir():
            raise TrimError(f"{folder} is no folder of this pyspark")
        shutil.rmtree(spark / folder)
    for jar in _starting_with(spark / "jars", NATIVE_NETTY):
        if _is_foreign(jar.name, names) and "unix-common" not in jar.name:
            jar.unlink()
    for jar in _starting_with(spark / "jars", NATIVE_JARS):
        _keep_native_libraries_of(jar, names)
    return before - _size(spark)


def _remove_jars(folder: Path, beginnings: Iterable[str]) -> None:
    for beginning in beginnings:
        met = list(_starting_with(folder, (beginning,)))
        if not met:
            raise TrimError(f"no jar begins with {beginning}")
        for jar in met:
            if not jar.name.startswith("hive-storage-api"):
                jar.unlink()


def _starting_with(folder: Path, beginnings: tuple[str, ...]) -> Iterator[Path]:
    return (path for path in sorted(folder.glob("*.jar")) if path.name.startswith(beginnings))


def _keep_native_libraries_of(jar: Path, names: tuple[str, ...]) -> None:
    """Write the jar anew without the native libraries of other systems."""
    slim = jar.with_suffix(".slim")
    with (
        zipfile.ZipFile(jar) as old,
        zipfile.ZipFile(slim, "w", zipfile.ZIP_DEFLATED) as new,
    ):
        kept = [entry for entry in old.infolist() if not _is_foreign_library(entry.filename, names)]
        if not any(entry.filename.endswith(".so") for entry in kept):
            raise TrimError(f"no native library of {jar.name} would be left")
        for entry in kept:
            new.writestr(entry, old.read(entry))
    slim.replace(jar)


def _is_foreign_library(name: str, names: tuple[str, ...]) -> bool:
    return name.endswith(NATIVE_SUFFIXES) and _is_foreign(name, names)


def _is_foreign(name: str, names: tuple[str, ...]) -> bool:
    lowered = name.lower()
    return not any(each in lowered for each in names) or any(each in lowered for each in FOREIGN)


def _size(folder: Path) -> int:
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file())


def main(arguments: list[str]) -> int:
    """Trim the pyspark that is named; returns the exit status."""
    if len(arguments) != 1:
        sys.stderr.write("usage: trim_spark.py PYSPARK_DIRECTORY\n")
        return 2
    try:
        gained = trim(Path(arguments[0]), platform.machine())
    except (TrimError, OSError) as error:
        sys.stderr.write(f"trim_spark: {error}\n")
        return 1
    print(f"{gained / 1e6:.0f} MB taken out of {arguments[0]}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
