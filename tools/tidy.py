"""Checks what a formatter and a type checker cannot: sizes, words, layers of manner, mirror tests.

Every rule is a function from one parsed file (or from the whole tree) to findings, and each finding
names the rule and what to do instead. Exemptions stand in this file with their reason. `make check`
runs it; it prints findings as `path:line: rule: message` and exits with 1 if there are any.
"""

from __future__ import annotations

import ast
import gc
import io
import os
import re
import subprocess
import sys
import tokenize
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from tools import words
from tools.tested_in import TESTED_IN, TREES

ROOT: Final = Path(__file__).resolve().parent.parent

MODULE_LINES: Final = 700
FUNCTION_LINES: Final = 70
POSITIONAL_PARAMETERS: Final = 5
PATCHES_PER_TEST_FILE: Final = 3

OWN_PACKAGES: Final = {
    "barnabas_kafka", "barnabas_zookeeper", "barnabas_broker", "barnabas_operator",
    "barnabas_pipelines", "tools", "tests", "benchmarks", "e2e", "fuzz",
    "simulator",
}  # fmt: skip

# Tables, not code: as long as the facts they hold.
LONG_TABLES: Final = (
    "libs/kafka/src/barnabas_kafka/protocol/messages/",
    "libs/kafka/src/barnabas_kafka/settings/keys/",
)
# The modules that may ask for the time: everything else is told.
CLOCKS: Final = (
    "broker-image/src/barnabas_broker/server/",
    "broker-image/src/barnabas_broker/cli/",
    "broker-image/src/barnabas_broker/testing/",
    "broker-image/src/barnabas_broker/zk/session.py",
    "libs/kafka/src/barnabas_kafka/host_resolver.py",
    "libs/zookeeper/src/barnabas_zookeeper/server.py",
    "operator/src/barnabas_operator/answers.py",
    "operator/src/barnabas_operator/ensemble.py",
    "operator/src/barnabas_operator/handlers/controller.py",
    "operator/src/barnabas_operator/handlers/election.py",
    "operator/src/barnabas_operator/handlers/event_recorder.py",
    "operator/src/barnabas_operator/handlers/guard.py",
    "operator/src/barnabas_operator/handlers/health.py",
    "operator/src/barnabas_operator/handlers/metrics.py",
    "operator/src/barnabas_operator/handlers/operator.py",
    "operator/src/barnabas_operator/handlers/rate_limits.py",
    "operator/src/barnabas_operator/handlers/watches.py",
    "operator/src/barnabas_operator/local/",
    "pipelines/src/barnabas_pipelines/runner.py",
    "tests/", "tools/", "benchmarks/", "e2e/", "fuzz/", "simulator/",
)  # fmt: skip
# Shells at the edge, where any error becomes one line or one answer instead of a traceback:
# commands, the start of a process, the boundary between one request and the broker's life, a turn
# of housekeeping, and a wait that hands its error to whoever waits.
SHELLS: Final = (
    "libs/kafka/src/barnabas_kafka/client/transport.py",
    "broker-image/src/barnabas_broker/invariants.py",
    "/cli/", "/__main__.py", "/testing/",
    "operator/src/barnabas_operator/handlers/controller.py",
    "operator/src/barnabas_operator/handlers/watches.py",
    "broker-image/src/barnabas_broker/controller/active_controller.py",
    "broker-image/src/barnabas_broker/controller/steps.py",
    "broker-image/src/barnabas_broker/coordinator/runtime.py",
    "broker-image/src/barnabas_broker/server/peers/controller_channel_manager.py",
    "broker-image/src/barnabas_broker/coordinator/transaction/ending.py",
    "broker-image/src/barnabas_broker/server/peers/request_batcher.py",
    "broker-image/src/barnabas_broker/server/control/controller_thread.py",
    "broker-image/src/barnabas_broker/server/requests/dispatch.py",
    "broker-image/src/barnabas_broker/server/process/deferred_responses.py",
    "broker-image/src/barnabas_broker/server/requests/first_metadata.py",
    "broker-image/src/barnabas_broker/server/background/leader_balance.py",
    "broker-image/src/barnabas_broker/server/metrics/http.py",
    "broker-image/src/barnabas_broker/server/metrics/http_thread.py",
    "libs/kafka/src/barnabas_kafka/host_resolver.py",
    "broker-image/src/barnabas_broker/server/background/log_cleaner.py",
    "broker-image/src/barnabas_broker/server/background/log_mover.py",
    "broker-image/src/barnabas_broker/server/requests/fast/offset_commit.py",
    "broker-image/src/barnabas_broker/server/requests/fast/fetch.py",
    "broker-image/src/barnabas_broker/server/requests/fast/heartbeat.py",
    "broker-image/src/barnabas_broker/server/requests/fast/produce.py",
    "broker-image/src/barnabas_broker/server/requests/fast/rebalance.py",
    "broker-image/src/barnabas_broker/server/requests/fast/produce_runs.py",
    "broker-image/src/barnabas_broker/server/peers/replication/",
    "broker-image/src/barnabas_broker/server/process/cooperative_scheduler.py",
    "broker-image/src/barnabas_broker/zk/session.py",
    "broker-image/src/barnabas_broker/server/background/background_tasks.py",
    "broker-image/src/barnabas_broker/replica/delayed_fetch.py",
)  # fmt: skip
# Where tasks may be started without `server/process/supervised_tasks.py`, which logs and counts
# those that fail: whoever awaits one of these tasks is told its error. The coordinators' runtime
# lies below the server and catches whatever a load raises; the others are programs of their own.
STARTS_TASKS: Final = (
    "broker-image/src/barnabas_broker/server/process/supervised_tasks.py",
    "broker-image/src/barnabas_broker/coordinator/runtime.py",
    "broker-image/src/barnabas_broker/server/requests/auto_creation.py",
    "broker-image/src/barnabas_broker/server/peers/controlled_shutdown.py",
    "broker-image/src/barnabas_broker/server/requests/handlers/",
    "broker-image/src/barnabas_broker/server/requests/large_requests.py",
    "broker-image/src/barnabas_broker/server/process/deferred_responses.py",
    "broker-image/src/barnabas_broker/server/node/lifecycle.py",
    "broker-image/src/barnabas_broker/server/node/broker_server.py",
    "broker-image/src/barnabas_broker/server/peers/peers.py",
    "broker-image/src/barnabas_broker/server/peers/replication/alter_partition_manager.py",
    "broker-image/src/barnabas_broker/server/requests/add_partitions_to_txn_manager.py",
)
MAY_PRINT: Final = (
    "/cli/",
    "tools/",
    "benchmarks/",
    "tests/",
    "fuzz/",
    "simulator/",
    "docs/cookbook/",
    "e2e/images.py",
)
HANDLERS: Final = "broker-image/src/barnabas_broker/server/requests/handlers/"
NO_HANDLER: Final[frozenset[str]] = frozenset({"__init__.py"})

# Beside what begins with a dot.
LEFT_BY_RUNS: Final = {"build", "dist", "__pycache__"}
BANNED_FILES: Final = {"utils", "util", "common", "helpers", "helper", "misc"}
BANNED_CALLS: Final = {
    "time.time": "take now_ms as an argument",
    "time.time_ns": "take now_ms as an argument",
    "time.monotonic": "take now_ms as an argument",
    "datetime.utcnow": "use datetime.now(tz=UTC) in a shell",
    "datetime.datetime.utcnow": "use datetime.now(tz=UTC) in a shell",
}
# The one place that waits, in units of the machine's speed; every other test calls it.
MAY_WAIT: Final = ("tests/waiting/",)
TAKES_SECONDS: Final = {
    "timeout", "timeout_s", "startup_timeout_s", "request_timeout", "operation_timeout", "within",
    "within_s", "deadline_s",
}  # fmt: skip
WAITS_FOR_SECONDS: Final = {"result", "wait", "join", "flush", "settimeout"}
# A deadline of so many seconds or less is meant to run out.
MEANT_TO_RUN_OUT_S: Final = 1
_HOLDS_SECONDS = re.compile(r"(DEADLINE|PATIENCE|TIMEOUT|WITHIN|ANSWER)(_S)?$")
BANNED_IN_TESTS: Final = {
    "time.sleep": "wait for the condition, not for time",
    "pytest.skip": "let the test run or remove it",
    "pytest.xfail": "let the test run or remove it",
}
BANNED_MARKS: Final = {"pytest.mark.skip", "pytest.mark.skipif", "pytest.mark.xfail"}
_UNNUMBERED_NOTE = re.compile(r"\b(?:TODO|FIXME|XXX)\b(?!\(?#?\d)")
_TITLE = re.compile(r"^# \S")


@dataclass(frozen=True, slots=True)
class Finding:
    """One breach of one rule."""

    path: PurePosixPath
    line: int
    rule: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.rule}: {self.message}"


@dataclass(frozen=True, slots=True)
class Source:
    """A Python file: path from the root, text, syntax tree and all nodes of the tree."""

    path: PurePosixPath
    text: str
    tree: ast.Module
    nodes: tuple[ast.AST, ...]
    """All nodes of the tree: a dozen rules look at each."""

    @classmethod
    def parse(cls, path: PurePosixPath | str, text: str) -> Source:
        """Parse a text as the file of that path; raises SyntaxError."""
        tree = ast.parse(text)
        return cls(PurePosixPath(path), text, tree, tuple(ast.walk(tree)))

    def under(self, *places: str) -> bool:
        """Whether the file is one of the places, or in one of them."""
        path = "/" + str(self.path)
        return any(
            place in path if place[0] == "/" else path[1:].startswith(place) for place in places
        )

    @property
    def is_test(self) -> bool:
        """Whether the file holds tests."""
        return self.path.parts[0] == "tests"

    def finding(self, node: ast.AST | int, rule: str, message: str) -> Finding:
        """A finding at a node or line."""
        line = node if isinstance(node, int) else getattr(node, "lineno", 1)
        return Finding(self.path, line, rule, message)


Function = ast.FunctionDef | ast.AsyncFunctionDef


# --- sizes ----------------------------------------------------------------------------------------


def module_size(source: Source) -> Iterator[Finding]:
    """A module is small enough to be read at once."""
    lines = source.text.count("\n")
    if lines > MODULE_LINES and not source.under(*LONG_TABLES):
        yield source.finding(1, "module-size", f"{lines} lines, at most {MODULE_LINES}: split it")


def function_size(source: Source) -> Iterator[Finding]:
    """A function fits a screen, and its callers can tell its arguments apart."""
    for node in functions(source):
        lines = (node.end_lineno or node.lineno) - node.lineno + 1
        if lines > FUNCTION_LINES:
            message = f"{node.name} has {lines} lines, at most {FUNCTION_LINES}: split it"
            yield source.finding(node, "function-size", message)
        if _is_called_by_name(node):
            continue
        given = [*node.args.posonlyargs, *node.args.args]
        count = sum(argument.arg not in ("self", "cls") for argument in given)
        if count > POSITIONAL_PARAMETERS:
            message = f"{node.name} takes {count} positional parameters: make them keyword-only"
            yield source.finding(node, "parameters", message)


def functions(source: Source) -> Iterator[Function]:
    """Every function and method, nested ones included."""
    for node in source.nodes:
        if isinstance(node, Function):
            yield node


def _is_called_by_name(node: Function) -> bool:
    """Whether click or pytest calls the function, by the names of its options or fixtures."""
    decorators = [ast.unparse(decorator) for decorator in node.decorator_list]
    command = any("click." in text or ".command(" in text for text in decorators)
    fixture = any("pytest.fixture" in text for text in decorators)
    return command or fixture or node.name.startswith("test_")


# --- words ----------------------------------------------------------------------------------------


def message_words(source: Source) -> Iterator[Finding]:
    """Messages, names, docstrings and comments have the words of the field."""
    for found in (words.messages, words.names):
        for line, message in found(source.path, source.tree):
            yield source.finding(line, "words", message)
    for line, message in words.prose(source.path, source.text):
        yield source.finding(line, "words", message)


def module_docstring(source: Source) -> Iterator[Finding]:
    """A module says in its first sentence what it is."""
    docstring = ast.get_docstring(source.tree)
    if not docstring:
        yield source.finding(1, "docstring", "say in a sentence what this module is")
    elif docstring.splitlines()[0].rstrip()[-1] not in ".?!":
        yield source.finding(1, "docstring", "the first line is a sentence and ends like one")


def test_docstring(source: Source) -> Iterator[Finding]:
    """A test says which behaviour it shows."""
    if not source.is_test:
        return
    for node in functions(source):
        if node.name.startswith("test_") and not ast.get_docstring(node):
            yield source.finding(node, "docstring", f"say which behaviour {node.name} shows")


def documented_states(source: Source) -> Iterator[Finding]:
    """Each member of a state machine's enumeration says what holds in that state."""
    lines = source.text.splitlines()
    for node in source.nodes:
        if (
            not isinstance(node, ast.ClassDef)
            or not node.name.endswith("State")
            or not _is_enum(node)
        ):
            continue
        for position, member in enumerate(node.body):
            if isinstance(member, ast.Assign) and not _is_explained(node.body, position, lines):
                yield source.finding(member, "state", f"say when {node.name} is in this state")


def _is_enum(node: ast.ClassDef) -> bool:
    return any("Enum" in ast.unparse(base) for base in node.bases)


def _is_explained(body: list[ast.stmt], position: int, lines: list[str]) -> bool:
    """A comment on the line or above it, or a text below the member."""
    member = body[position]
    here = "\n".join(lines[member.lineno - 1 : member.end_lineno])
    above = lines[member.lineno - 2].strip()
    following = body[position + 1] if position + 1 < len(body) else None
    below = isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant)
    return "#" in here or above.startswith("#") or below


def unnumbered_notes(source: Source) -> Iterator[Finding]:
    """Work left to do has the number of an issue."""
    if not _UNNUMBERED_NOTE.search(source.text):  # Splitting into tokens is slow.
        return
    for token in tokenize.generate_tokens(io.StringIO(source.text).readline):
        if token.type == tokenize.COMMENT and _UNNUMBERED_NOTE.search(token.string):
            yield source.finding(
                token.start[0], "note", "give the number of the issue, or do it now"
            )


def file_name(source: Source) -> Iterator[Finding]:
    """A name says what is inside."""
    if source.path.stem in BANNED_FILES:
        yield source.finding(1, "file-name", "a helper belongs to the noun it helps")


# --- manner ---------------------------------------------------------------------------------------


def handlers(source: Source) -> Iterator[Finding]:
    """A handler file declares its API and versions, from which ApiVersions is derived."""
    if not source.under(HANDLERS) or source.path.name in NO_HANDLER:
        return
    names = {
        target.id
        for node in source.tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name)
    }
    if "HANDLER" not in names:
        yield source.finding(1, "handler", "declare HANDLER with the API and its versions")


def broad_excepts(source: Source) -> Iterator[Finding]:
    """Only a shell at the edge may catch whatever comes, and who tells it of one of several."""
    for node in source.nodes:
        if not isinstance(node, ast.ExceptHandler):
            continue
        if node.type is None:
            yield source.finding(node, "except", "name the exception")
        elif ast.unparse(node.type) in ("Exception", "BaseException"):
            reraises = any(
                isinstance(inner, ast.Raise) and inner.exc is None for inner in ast.walk(node)
            )
            reported = any(
                isinstance(inner, ast.Call)
                and ast.unparse(inner.func) in ("refusal", "logged_refusal")
                for inner in ast.walk(node)
            )
            if not (reraises or reported) and not source.under(*SHELLS):
                yield source.finding(
                    node, "except", "name the exception; only shells catch them all"
                )


def banned_calls(source: Source) -> Iterator[Finding]:
    """Clocks, prints and sleeps stay where they belong."""
    for node in source.nodes:
        if not isinstance(node, ast.Call):
            continue
        name = ast.unparse(node.func)
        if name in BANNED_CALLS and not source.under(*CLOCKS):
            yield source.finding(node, "clock", f"{name}: {BANNED_CALLS[name]}")
        if name == "print" and not source.under(*MAY_PRINT):
            yield source.finding(node, "print", "use the log, or click.echo in a command")
        if name.endswith("yaml.safe_load") and any(isinstance(a, ast.JoinedStr) for a in node.args):
            yield source.finding(node, "yaml", "build the object instead of its text")


def supervised_tasks(source: Source) -> Iterator[Finding]:
    """A broker's background tasks are started where their failures are logged and counted."""
    if not source.under("broker-image/src/") or source.under(*STARTS_TASKS):
        return
    for node in source.nodes:
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func).rpartition(".")[2]
            if name in ("create_task", "ensure_future"):
                yield source.finding(node, "task", f"{name}: start it with background()")


def global_statements(source: Source) -> Iterator[Finding]:
    """State lives in objects, not in modules."""
    for node in source.nodes:
        if isinstance(node, ast.Global):
            yield source.finding(node, "global", "keep the state in an object that is passed on")


def private_imports(source: Source) -> Iterator[Finding]:
    """A name with a leading underscore is its own distribution's business."""
    own = _distribution(source.path)
    for node in source.nodes:
        if not isinstance(node, ast.ImportFrom) or node.level or node.module is None:
            continue
        if node.module.split(".")[0] == own or node.module == "__future__":
            continue
        private = [
            a.name for a in node.names if a.name.startswith("_") and not a.name.startswith("__")
        ]
        parts = [part for part in node.module.split(".") if part.startswith("_")]
        for name in private + parts:
            yield source.finding(
                node, "private", f"{name} belongs to {node.module}: use what it offers"
            )


def _distribution(path: PurePosixPath) -> str:
    return next((part for part in path.parts if part in OWN_PACKAGES), "")


# --- tests ----------------------------------------------------------------------------------------


def honest_tests(source: Source) -> Iterator[Finding]:
    """Tests neither sleep nor skip, and use the real parts."""
    if not source.is_test:
        return
    patches = 0
    for node in source.nodes:
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            patches += "patch" in name.split(".")  # Mocks; monkeypatch may scale a constant.
            if name in BANNED_IN_TESTS and not source.under(*MAY_WAIT):
                yield source.finding(node, "test", f"{name}: {BANNED_IN_TESTS[name]}")
            if name != "asyncio.sleep" or source.under(*MAY_WAIT):
                continue
            if ast.unparse(node.args[0]) != "0":
                yield source.finding(node, "test", "asyncio.sleep: wait for the condition")
        elif isinstance(node, ast.Attribute) and ast.unparse(node) in BANNED_MARKS:
            yield source.finding(node, "test", "let the test run or remove it")
    if patches > PATCHES_PER_TEST_FILE:
        message = f"{patches} patches, at most {PATCHES_PER_TEST_FILE}: test the real parts"
        yield source.finding(1, "test", message)


def bare_seconds(source: Source) -> Iterator[Finding]:
    """A test's deadline grows with the machine: a bare number of seconds does not."""
    if not source.under("tests/", "e2e/") or source.under(*MAY_WAIT):
        return
    message = "a bare number of seconds: use wait_for or seconds of tests.waiting"
    for node in source.nodes:
        if isinstance(node, ast.Call):
            named = [it.value for it in node.keywords if it.arg in TAKES_SECONDS]
            method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
            given = node.args[:1] if method in WAITS_FOR_SECONDS else []
            if ast.unparse(node.func) == "asyncio.wait_for":
                given = node.args[1:2]
            if method == "poll" and len(node.args) == 1:
                given = node.args
            bare = any(map(_is_deadline, (*named, *given)))
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            holds = any(_HOLDS_SECONDS.search(ast.unparse(target)) for target in targets)
            bare = holds and _is_deadline(node.value)
        else:
            clock = node.left if isinstance(node, ast.BinOp) else None
            bare = isinstance(clock, ast.Call) and ast.unparse(clock.func).endswith("monotonic")
            bare = bare and isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add)
        if bare:
            yield source.finding(node, "seconds", message)


def _is_deadline(node: ast.expr | None) -> bool:
    number = node.value if isinstance(node, ast.Constant) else None
    return isinstance(number, int | float) and number > MEANT_TO_RUN_OUT_S


def mirror_tests(sources: list[Source]) -> Iterator[Finding]:
    """Each module with behaviour has its tests at the mirrored path, or where TESTED_IN says."""
    existing = {str(source.path) for source in sources}
    for source in sources:
        mirror = mirror_of(source.path)
        if mirror is None or not _has_behaviour(source):
            continue
        places = places_of_tests(source.path)
        if not any(path.startswith(places) for path in existing):
            yield source.finding(1, "mirror", f"expected a test file at {mirror}")


def places_of_tests(path: PurePosixPath) -> tuple[str, ...]:
    """Files and folders that may hold a module's tests, its mirror first."""
    mirror = mirror_of(path)
    elsewhere = [tests for place, tests in TESTED_IN.items() if str(path).startswith(place)]
    return (str(mirror), *elsewhere) if mirror else ()


def mirror_of(path: PurePosixPath) -> PurePosixPath | None:
    """Where the tests of a module belong, or None for what has no mirror."""
    if path.name in ("__init__.py", "__main__.py"):
        return None
    for tree, tests in TREES.items():
        if path.is_relative_to(tree):
            inside = path.relative_to(tree)
            return PurePosixPath(tests) / inside.parent / f"test_{inside.name}"
    return None


def _has_behaviour(source: Source) -> bool:
    """Declarations alone (constants, types, protocols of values) need no test of their own."""
    return any(len(node.body) > 1 or not ast.get_docstring(node) for node in functions(source))


# --- documents ------------------------------------------------------------------------------------


def one_title(path: PurePosixPath, text: str) -> Iterator[Finding]:
    """A document has one title; a fragment of the changelog has none, it becomes part of a page."""
    if path.parts[0] == "changelog.d":
        return
    titles = []
    fenced = False
    for number, line in enumerate(text.splitlines(), start=1):
        fenced ^= line.lstrip().startswith("```")
        if not fenced and _TITLE.match(line):
            titles.append(number)
    if len(titles) != 1:
        yield Finding(path, 1, "title", f"{len(titles)} titles, must be one (`# …`)")


def wording(path: PurePosixPath, text: str) -> Iterator[Finding]:
    """A page for users has the words of the field, and no paths of tests."""
    for line, message in words.findings(path, text):
        yield Finding(path, line, "words", message)


# --- running --------------------------------------------------------------------------------------

RULES: Final[tuple[Callable[[Source], Iterator[Finding]], ...]] = (
    module_size, function_size, message_words, module_docstring, test_docstring, documented_states,
    unnumbered_notes, file_name, handlers, broad_excepts, banned_calls, supervised_tasks,
    global_statements, private_imports, honest_tests, bare_seconds,
)  # fmt: skip


def check(sources: list[Source], documents: dict[PurePosixPath, str]) -> list[Finding]:
    """All findings, in the order of files and lines."""
    findings = [finding for source in sources for rule in RULES for finding in rule(source)]
    findings += mirror_tests(sources)
    for path, text in documents.items():
        findings.extend(one_title(path, text))
        findings.extend(wording(path, text))
    return sorted(findings, key=lambda finding: (str(finding.path), finding.line))


def tracked_files(root: Path) -> list[PurePosixPath]:
    """The files that belong to the project: those git knows or would add.

    In an unpacked archive, or without git, those that no run has left there.
    """
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    try:
        listing = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    except (FileNotFoundError, subprocess.CalledProcessError):
        paths = sorted(_unpacked_files(root))
    else:
        paths = sorted(set(listing.stdout.splitlines()))
    return [PurePosixPath(path) for path in paths if (root / path).is_file()]


def _unpacked_files(root: Path) -> Iterator[str]:
    for folder, folders, names in os.walk(root):
        folders[:] = [each for each in folders if each[0] != "." and each not in LEFT_BY_RUNS]
        yield from (str(Path(folder, name).relative_to(root)) for name in names)


def main() -> int:
    """Check the whole project; returns the exit status."""
    gc.disable()  # All trees live to the end: there is no garbage to look for.
    paths = tracked_files(ROOT)
    sources = [
        Source.parse(path, (ROOT / path).read_text(encoding="utf-8"))
        for path in paths
        if path.suffix == ".py"
    ]
    documents = {
        path: (ROOT / path).read_text(encoding="utf-8") for path in paths if path.suffix == ".md"
    }
    findings = check(sources, documents)
    for finding in findings:
        print(finding)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
