"""The table of suites, the quick and most telling ones first, and what each of them runs and needs.

A suite is a list of steps (checkers with an exit status) or one run of pytest. `clients` covers
`pip-clients`: where the whole suite can run, its part is not run a second time.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

PYTHON: Final = ".venv/bin/python"
PLUGIN: Final = "tests.run_report"


class Kind(StrEnum):
    """What a suite's failures can mean; only one kind may have a second chance."""

    CHECK = "check"
    UNIT = "unit"
    SIMULATOR = "simulator"
    PROCESSES = "processes"


@dataclass(frozen=True, slots=True)
class Step:
    """A command whose exit status is its verdict."""

    name: str
    command: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Tests:
    """One run of pytest; paths may be patterns."""

    __test__ = False  # Tells pytest that this is no class of tests.

    paths: tuple[str, ...]
    ignored: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    python: str = PYTHON

    def command(self, root: Path, events: Path) -> tuple[str, ...]:
        """The command that runs all of them and writes what happens to `events`."""
        ignored = (f"--ignore={path}" for path in expanded(root, self.ignored))
        return (*self._start(events), *expanded(root, self.paths), *ignored)

    def alone(self, node_id: str, events: Path) -> tuple[str, ...]:
        """The command that runs one test by its node id."""
        return (*self._start(events), node_id)

    def _start(self, events: Path) -> tuple[str, ...]:
        report = ("-p", PLUGIN, f"--run-events={events}")
        return (self.python, "-m", "pytest", *report, *self.options)


@dataclass(frozen=True, slots=True)
class Preparation:
    """A command for suites to come: it runs in the background from the start of the run."""

    name: str
    command: tuple[str, ...]
    limit_minutes: float = 20.0


@dataclass(frozen=True, slots=True)
class Suite:
    """One row: what runs, what it shows, what it needs and how long it may take.

    `limit_minutes` ends a hang; `budget_minutes` is the suite's share of a whole run's time.
    """

    name: str
    shows: str
    kind: Kind
    limit_minutes: float
    budget_minutes: float
    steps: tuple[Step, ...] = ()
    tests: Tests | None = None
    needs: tuple[str, ...] = ()
    prepared_by: tuple[str, ...] = ()
    covers: tuple[str, ...] = ()
    evidence: str = ""
    """Where its tests leave evidence of failures, a directory for each test."""


def expanded(root: Path, paths: Iterable[str]) -> list[str]:
    """The paths, with patterns replaced by the files that match."""
    found: list[str] = []
    for path in paths:
        if "*" in path:
            found += sorted(str(match.relative_to(root)) for match in root.glob(path))
        else:
            found.append(path)
    return found


def _python(name: str, *arguments: str) -> Step:
    # Unbuffered, as its output goes through a pipe to the user.
    return Step(name, (PYTHON, "-u", "-m", *arguments))


CHECKS: Final = (
    _python("tidy", "tools.tidy"),
    Step("ruff check", (".venv/bin/ruff", "check", ".")),
    Step("ruff format", (".venv/bin/ruff", "format", "--check", ".")),
    Step("import-linter", (".venv/bin/lint-imports",)),
    _python("generated documents", "tools.gen_docs", "--check"),
    _python("generated CRDs", "tools.gen_crds", "--check"),
    _python("generated manifests", "tools.render_manifests", "--check"),
    Step("mypy", (".venv/bin/mypy",)),
)

PREPARATIONS: Final = (
    # Every release of Apache Kafka, so that no test's time limit meets a download.
    Preparation("releases", (PYTHON, "-m", "tests.clients.releases")),
    # Its scenarios build them again, from Docker's cache.
    Preparation("images", (PYTHON, "-m", "e2e.images"), limit_minutes=30.0),
    Preparation("spark", ("make", "spark"), limit_minutes=30.0),
    Preparation("site", ("make", ".venv-docs/.synced")),
)

# Two files at a time: most tests of processes wait for one of them. Each file in one process, so
# that what its tests share is set up once. The files keep the order of collection, in which
# tests/conftest.py puts those first that take longest.
SIDE_BY_SIDE: Final = ("-n", "2", "--dist", "loadfile", "--no-loadscope-reorder")
CLIENTS: Final = ("tests/clients",)
FAULTS: Final = ("tests/faults",)
QUICKSTARTS: Final = ("tests/quickstarts",)
CLUSTER: Final = ("tests/cluster",)
ORACLE: Final = (
    "tests/oracle",
    "tests/*/*/test_against_apache.py",
    "tests/fuzz/test_guided.py",
)
SPARK: Final = ("tests/pipelines/spark",)
# The files of tests/clients that need nothing but the broker and what pip brings.
PIP_CLIENTS: Final = tuple(
    f"tests/clients/test_{name}.py"
    for name in (
        "confluent_kafka", "confluent_admin", "aiokafka", "kafka_python", "groups",
        "consumer_protocol", "transactions", "transactional_copy", "compaction", "advertised",
        "framing", "pipelining", "produce_checks", "fetch_rules", "stopping", "kill", "moves",
        "hostile", "kill_under_load",
    )
)  # fmt: skip
# One test there runs tools of Apache Kafka without the marker `jvm`.
_APACHES_TOOLS: Final = (
    "tests/clients/test_transactions.py::test_apaches_tools_read_what_is_coordinated"
)
_APACHE: Final = ("java", "mvn")

SUITES: Final = (
    Suite(
        "check",
        "formatting, lint, layers, generated files, types",
        Kind.CHECK,
        limit_minutes=8,
        budget_minutes=2,
        steps=CHECKS,
    ),
    Suite(
        "docs",
        "spelling, and the documentation site builds without a warning",
        Kind.CHECK,
        limit_minutes=3,
        budget_minutes=0.5,
        steps=(Step("site", ("make", "docs")),),
        prepared_by=("site",),
    ),
    Suite(
        "simulator",
        "clusters of the broker's cores in virtual time, with faults",
        Kind.SIMULATOR,
        limit_minutes=8,
        budget_minutes=4,
        steps=(_python("simulator", "simulator"),),
    ),
    Suite(
        "unit",
        "every module by itself and in its process",
        Kind.UNIT,
        limit_minutes=15,
        budget_minutes=6,
        tests=Tests(
            ("tests",),
            ignored=(*CLIENTS, *QUICKSTARTS, *FAULTS, *CLUSTER, *ORACLE, *SPARK),
            options=SIDE_BY_SIDE,
        ),
    ),
    Suite(
        "pip-clients",
        "confluent-kafka, aiokafka, kafka-python and bare requests against a broker process",
        Kind.PROCESSES,
        limit_minutes=18,
        budget_minutes=9,
        tests=Tests(
            PIP_CLIENTS,
            options=(
                "-m",
                "not jvm and not go and not soak",
                f"--deselect={_APACHES_TOOLS}",
                *SIDE_BY_SIDE,
            ),
        ),
    ),
    Suite(
        "clients",
        "all clients, Java's, Go's and kcat among them, against a broker process",
        Kind.PROCESSES,
        limit_minutes=26,
        budget_minutes=11,
        tests=Tests(CLIENTS, options=SIDE_BY_SIDE),
        needs=(*_APACHE, "kcat", "go", "redis-server", "gcc", "strace", "zsh", "fish"),
        prepared_by=("releases",),
        covers=("pip-clients",),
    ),
    Suite(
        "quickstarts",
        "the quickstarts, as printed: Python, Java, Go, Node.js and kcat",
        Kind.PROCESSES,
        limit_minutes=8,
        budget_minutes=3,
        tests=Tests(QUICKSTARTS),
        needs=(*_APACHE, "kcat", "go", "npm"),
    ),
    Suite(
        "cluster",
        "several brokers on ZooKeeper that are killed, frozen and cut off",
        Kind.PROCESSES,
        limit_minutes=18,
        budget_minutes=12,
        tests=Tests(CLUSTER),
        needs=("root", *_APACHE, "gcc", "mkfs.ext4", "xfs_io"),
        prepared_by=("releases",),
    ),
    Suite(
        "kind",
        "images, operator and brokers on Kubernetes in Docker",
        Kind.PROCESSES,
        limit_minutes=30,
        budget_minutes=13,
        tests=Tests(("e2e",)),
        needs=("docker", "kind", "helm", "kubectl"),
        prepared_by=("images",),
        evidence=".cache/e2e",
    ),
    Suite(
        "faults",
        "broker processes on full, slow and failing disks and after power failures",
        Kind.PROCESSES,
        limit_minutes=12,
        budget_minutes=3,
        tests=Tests(FAULTS, options=SIDE_BY_SIDE),
        needs=("root", "gcc", "mkfs.ext4", "xfs_io"),
    ),
    Suite(
        "oracle",
        "Apache Kafka's programs on our broker and files, ours on theirs; guided fuzzing",
        Kind.PROCESSES,
        limit_minutes=26,
        budget_minutes=13,
        tests=Tests(ORACLE, options=SIDE_BY_SIDE),
        needs=_APACHE,
        prepared_by=("releases",),
    ),
    Suite(
        "pipelines",
        "pipelines on a real Spark",
        Kind.PROCESSES,
        limit_minutes=14,
        budget_minutes=7,
        tests=Tests(SPARK, python=".venv-spark/bin/python"),
        needs=("java",),
        prepared_by=("spark",),
    ),
)
