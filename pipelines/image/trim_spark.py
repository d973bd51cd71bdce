"""Takes out of an installed pyspark what a pipeline in one pod never loads: about half of it.

    python trim_spark.py SITE_PACKAGES/pyspark

Hive, machine learning, graphs, the shells, YARN, Kubernetes executors, Connect; and in jars with
native code, the code for other machines. Licences and notices stay. What is dropped is a list of
names in this file; whoever builds an image runs `python -m barnabas_pipelines selftest` after it.
"""

from __future__ import annotations

import platform
import re
import shutil
import sys
import zipfile
from pathlib import Path
from typing import Final

# Jars by the beginning of their names; what follows is a version.
JARS: Final = (
    # Hive and its stores.
    "hive-(?!storage-api)", "spark-hive", "derby", "datanucleus", "HikariCP", "commons-dbcp",
    "commons-pool-", "javax.jdo", "jdo-api", "jta", "transaction-api", "libthrift", "libfb303",
    "opencsv", "super-csv", "jpam", "ST4", "antlr-runtime", "stax-api", "javolution", "JLarge",
    "JTransforms", "json-1", "audience-annotations", "javassist", "xmlschema-core",
    # Machine learning, graphs.
    "spark-mllib", "spark-graphx", "breeze", "spire", "cats-kernel", "algebra", "arpack", "blas",
    "lapack",
    # Shells, compilers of Scala, Connect, declarative pipelines, the older streaming.
    "scala-compiler", "spark-repl", "jline", "spark-connect", "connect-repl", "spark-pipelines",
    "spark-streaming_", "java-diff-utils",
    # Other ways to run executors than threads of the driver.
    "spark-yarn", "spark-kubernetes", "kubernetes-", "volcano-", "vertx-", "zjsonpatch",
    "curator-", "zookeeper", "spark-network-yarn", "snakeyaml-engine",
)  # fmt: skip
PYTHON: Final = ("examples", "ml", "mllib", "pandas", "tests", "data", "pipelines")
# Native code in a jar: the folders or endings of machines that are not this one.
NATIVE_JARS: Final = ("rocksdbjni", "zstd-jni", "snappy-java", "lz4-java", "netty-", "leveldbjni")
NATIVE: Final = re.compile(r"\.(?:so|dll|jnilib|dylib|a)(?:\.\w+)?$")
MACHINES: Final = {
    "x86_64": re.compile(r"(?i)(?:x86_64|x86-64|amd64|linux64)"),
    "aarch64": re.compile(r"(?i)(?:aarch64|aarch_64|arm64)"),
}
OTHER_SYSTEMS: Final = re.compile(r"(?i)osx|darwin|mac|windows|win32|win64|\.dll|freebsd|aix|sunos")


def main(arguments: list[str]) -> int:
    """Trim the pyspark of that directory; returns the exit status."""
    if len(arguments) != 1 or not (Path(arguments[0]) / "jars").is_dir():
        sys.stderr.write("trim_spark.py: give the directory of an installed pyspark\n")
        return 2
    root = Path(arguments[0])
    before = size(root)
    drop_jars(root / "jars")
    for name in PYTHON:
        shutil.rmtree(root / name, ignore_errors=True)
    machine = MACHINES[platform.machine()]
    for jar in sorted((root / "jars").glob("*.jar")):
        if jar.name.startswith(NATIVE_JARS):
            drop_native(jar, machine)
    sys.stdout.write(f"pyspark: {before >> 20} MiB before, {size(root) >> 20} MiB after\n")
    return 0


def drop_jars(directory: Path) -> None:
    """Remove the jars on the list, and those with only the native code of other systems."""
    unwanted = re.compile("|".join(f"(?:{name})" for name in JARS))
    shutil.rmtree(directory / "connect-repl", ignore_errors=True)
    for jar in directory.glob("*.jar"):
        netty = re.search(r"(osx|windows)-(?:x86_64|aarch_64)|kqueue", jar.name)
        if unwanted.match(jar.name) or netty:
            jar.unlink()


def drop_native(jar: Path, machine: re.Pattern[str]) -> None:
    """Rewrite a jar without the libraries of other systems and machines, and of musl."""
    with zipfile.ZipFile(jar) as old:
        entries = [entry for entry in old.infolist() if _is_wanted(entry.filename, machine)]
        if len(entries) == len(old.infolist()):
            return
        partial = jar.with_suffix(".trimmed")
        with zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED) as new:
            for entry in entries:
                new.writestr(entry, old.read(entry))
    partial.replace(jar)


def size(root: Path) -> int:
    """Bytes of all files below."""
    return sum(path.stat().st_size for path in root.rglob("*") if path.is_file())


def _is_wanted(name: str, machine: re.Pattern[str]) -> bool:
    if not NATIVE.search(name):
        return True
    return bool(machine.search(name)) and not OTHER_SYSTEMS.search(name) and "musl" not in name


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
