"""The cores run where nothing of C can be imported, as under PyPy."""

import subprocess
import sys
from pathlib import Path
from typing import Final

from simulator.options import VARIANTS
from simulator.world import run
from tests.waiting import RUN, seconds

ROOT: Final = Path(__file__).parents[2]
SOURCES: Final = [
    str(ROOT / each) for each in ("", "broker-image/src", "libs/kafka/src", "libs/zookeeper/src")
]

PURE: Final = """
import sys
from importlib.machinery import SOURCE_SUFFIXES, FileFinder, SourceFileLoader

SOURCES = sys.argv[1:]

def ours(path):
    if not path.startswith(tuple(SOURCES)):
        raise ImportError(path)
    return FileFinder(path, (SourceFileLoader, SOURCE_SUFFIXES))

sys.path_hooks.insert(0, ours)
sys.path_importer_cache.clear()
sys.path[:0] = SOURCES
"""
"""Of our modules the sources are imported, never what was compiled of them."""

IMPORT_ALL: Final = """
from importlib import import_module
from pathlib import Path

for name in (
    "barnabas_kafka.protocol",
    "barnabas_kafka.settings",
    "barnabas_zookeeper",
    "barnabas_broker.cluster",
    "barnabas_broker.controller",
):
    (directory,) = map(Path, import_module(name).__path__)
    for path in sorted(directory.rglob("*.py")):
        parts = path.relative_to(directory).with_suffix("").parts
        if parts[-1] not in ("__init__", "__main__"):
            print(import_module(".".join((name, *parts))).__file__)
"""

RUN_ONE: Final = """
from simulator.options import VARIANTS
from simulator.world import run

for variant in ("fsync-strict", "fsync-transactions"):
    print(run(5, VARIANTS[variant]).trace)
"""


def without_extensions(program: str) -> list[str]:
    """What a program prints in an interpreter without third-party packages or our compiled ones."""
    # -S: no site-packages, and so no packages but our own.
    command = [sys.executable, "-I", "-S", "-c", PURE + program, *SOURCES]
    limit_s = seconds(RUN)
    finished = subprocess.run(command, capture_output=True, text=True, timeout=limit_s, check=False)
    assert finished.returncode == 0, finished.stderr
    return finished.stdout.splitlines()


def test_the_cores_are_imported_without_anything_compiled() -> None:
    """The protocol, the ZooKeeper, the image of the cluster, the controller: from their sources."""
    files = without_extensions(IMPORT_ALL)
    assert {Path(file).suffix for file in files} == {".py"}
    names = {Path(file).stem for file in files}
    assert {"codec", "plain_produce", "elections", "tree"} <= names


def test_a_schedule_is_the_same_without_anything_compiled() -> None:
    """Replication, elections, transactions, and all that surrounds them."""
    here = [run(5, VARIANTS[each]) for each in ("fsync-strict", "fsync-transactions")]
    assert without_extensions(RUN_ONE) == [str(outcome.trace) for outcome in here]
