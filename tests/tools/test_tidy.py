"""Each rule of tidy finds what it forbids and leaves alone what it allows."""

from pathlib import Path, PurePosixPath

import pytest

from tools import tidy
from tools.tidy import Finding, Source

CORE = "libs/kafka/src/barnabas_kafka/records/batch.py"
SERVER = "broker-image/src/barnabas_broker/server/background/background_tasks.py"
HANDLER = "broker-image/src/barnabas_broker/server/requests/handlers/fetch.py"
TEST = "tests/kafka/records/test_batch.py"
COMMAND = "broker-image/src/barnabas_broker/cli/topics.py"
SHELL = "broker-image/src/barnabas_broker/zk/session.py"
HEAD = '"""A module."""\n'


def rules(path: str, code: str) -> list[str]:
    """The names of the rules that a file breaks, mirrors left aside."""
    found = tidy.check([Source.parse(path, HEAD + code)], {})
    return [finding.rule for finding in found if finding.rule != "mirror"]


@pytest.mark.parametrize(
    ("path", "code", "rule"),
    [
        (CORE, "x = 1\n" * 700, "module-size"),
        (CORE, "def f():\n" + "    x = 1\n" * 70, "function-size"),
        (CORE, "def f(a, b, c, d, e, g): ...\n", "parameters"),
        (CORE, "# TODO: later\n", "note"),
        (CORE, "import time\nnow = time.time()\n", "clock"),
        (CORE, "print(1)\n", "print"),
        (SERVER, "asyncio.create_task(f())\n", "task"),
        (SERVER, "self._loop.create_task(f())\n", "task"),
        (SERVER, "from asyncio import ensure_future\nensure_future(f())\n", "task"),
        (CORE, "def f():\n    global x\n    x = 1\n", "global"),
        (CORE, "try:\n    f()\nexcept:\n    pass\n", "except"),
        (CORE, "try:\n    f()\nexcept Exception:\n    pass\n", "except"),
        (CORE, "import yaml\nyaml.safe_load(f'a: {b}')\n", "yaml"),
        (CORE, "from aiokafka import _core\n", "private"),
        (CORE, "from aiokafka._core import x\n", "private"),
        (CORE, "class LogState(Enum):\n    OPEN = 1\n", "state"),
        (CORE.replace("batch", "utils"), "", "file-name"),
        (HANDLER, "def handle(): ...\n", "handler"),
        (TEST, "def test_a():\n    assert x\n", "docstring"),
        (TEST, "import time\ntime.sleep(1)\n", "test"),
        (TEST, "import asyncio\nasyncio.sleep(0.1)\n", "test"),
        (TEST, "import pytest\npytest.skip('later')\n", "test"),
        (TEST, "import pytest\n@pytest.mark.skip\nclass A: ...\n", "test"),
        ("tests/oracle/apache.py", "import time\ntime.sleep(1)\n", "test"),
        (TEST, "subprocess.run(command, timeout=300)\n", "seconds"),
        (TEST, "admin.create_topics([new])[name].result(60)\n", "seconds"),
        (TEST, "DEADLINE_S: Final = 90.0\n", "seconds"),
        (TEST, "peers.send(7, request, timeout_s=60)\n", "seconds"),
        (TEST, "asyncio.wait_for(done, 60)\n", "seconds"),
        (TEST, "assert consumer.poll(60)\n", "seconds"),
        (TEST, "give_up_at = time.monotonic() + limit\n", "seconds"),
        ("e2e/quickstart.py", "wait_for('pods', ready, within_s=120)\n", "seconds"),
        (TEST, "patch('a')\n" * 4, "test"),
        (TEST, "mock.patch.object(a, 'b')\n" * 4, "test"),
    ],
)
def test_breaches_are_found(path: str, code: str, rule: str) -> None:
    """One breach, one finding."""
    assert rules(path, code) == [rule]


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("libs/kafka/src/barnabas_kafka/protocol/messages/fetch.py", "x = 1\n" * 900),
        (CORE, "def f(a, b, c, d, e, *, g): ...\n"),
        (CORE, "class A:\n    def f(self, a, b, c, d, e): ...\n"),
        (COMMAND, "@click.command()\ndef f(a, b, c, d, e, g): ...\n"),
        (CORE, "# TODO(#12): later\n"),
        (CORE, "x = '# TODO'\n"),
        ("broker-image/src/barnabas_broker/server/clock.py", "import time\nnow = time.time()\n"),
        ("tools/demo.py", "print(1)\n"),
        (SERVER, "background().once('flush', f())\n"),
        (HANDLER, "HANDLER = 1\nensure_future(f())\n"),
        (TEST, "asyncio.create_task(f())\n"),
        (CORE, "try:\n    f()\nexcept Exception:\n    raise\n"),
        (SHELL, "try:\n    f()\nexcept Exception:\n    g()\n"),
        (CORE, "from barnabas_kafka.records import _walk\nfrom . import _other\n"),
        (CORE, "class LogState(Enum):\n    OPEN = 1  # Takes records.\n"),
        (CORE, "class LogState(Enum):\n    # Takes none.\n    SHUT = 2\n"),
        (CORE, "class LogState(Enum):\n    OPEN = 1\n    'Takes records.'\n"),
        (HANDLER, "HANDLER = 1\ndef handle(): ...\n"),
        (TEST, "import asyncio\nasyncio.sleep(0)\n"),
        (TEST, "monkeypatch.setattr(demo, 'ROUNDS', 1)\n" * 4),
        ("tests/waiting/facts.py", "import time\ntime.sleep(1)\nasyncio.sleep(1)\n"),
        (TEST, "subprocess.run(command, timeout=seconds(RUN))\n"),
        (TEST, "producer.flush(seconds(ANSWER))\nadmin.poll(0)\nconsumer.consume(100, 0.1)\n"),
        (TEST, "peers.send(7, request, timeout_s=0.1)\nconsumer.poll(1)\n"),
        (TEST, "elapsed = time.monotonic() - began\n"),
        (TEST, "def test_a(a, b, c, d, e, f):\n    '''A behaviour.'''\n"),
    ],
)  # fmt: skip
def test_exceptions_are_allowed(path: str, code: str) -> None:
    """The rules know their exceptions."""
    assert rules(path, code) == []


@pytest.mark.parametrize("text", ["x = 1\n", '"""No sentence"""\n', '"""Half a\nsentence."""\n'])
def test_a_module_begins_with_a_sentence(text: str) -> None:
    """The first line alone says what the module is."""
    found = list(tidy.module_docstring(Source.parse(CORE, text)))
    assert [finding.rule for finding in found] == ["docstring"]


@pytest.mark.parametrize(
    ("path", "mirror"),
    [
        (CORE, TEST),
        ("tools/tidy.py", "tests/tools/test_tidy.py"),
        ("broker-image/src/barnabas_broker/log/files.py", "tests/broker/log/test_files.py"),
    ],
)
def test_mirrors(path: str, mirror: str) -> None:
    """A module's tests are found by its path."""
    assert tidy.mirror_of(PurePosixPath(path)) == PurePosixPath(mirror)


def test_a_module_with_behaviour_needs_its_mirror() -> None:
    """Missing mirrors are found; declarations and packages need none, and some modules
    are tested elsewhere."""
    behaviour = HEAD + "def f():\n    return 1\n"
    sources = [
        Source.parse(CORE, behaviour),
        Source.parse("libs/kafka/src/barnabas_kafka/ids.py", HEAD + "X = 1\n"),
        Source.parse("libs/kafka/src/barnabas_kafka/settings/keys/log.py", behaviour),
        Source.parse("tests/kafka/settings/test_definitions.py", HEAD),
        Source.parse("libs/kafka/src/barnabas_kafka/__init__.py", behaviour),
    ]
    assert [str(finding.path) for finding in tidy.mirror_tests(sources)] == [CORE]
    assert list(tidy.mirror_tests([*sources, Source.parse(TEST, HEAD)])) == []


@pytest.mark.parametrize(
    ("text", "count"),
    [("# A\n\n## B\n", 0), ("# A\n# B\n", 1), ("text\n", 1), ("# A\n```sh\n# note\n```\n", 0)],
)
def test_documents_have_one_title(text: str, count: int) -> None:
    """Comments inside fenced code are no titles."""
    assert len(list(tidy.one_title(PurePosixPath("docs/a.md"), text))) == count


def test_fragments_of_the_changelog_have_none() -> None:
    """They become part of a page."""
    assert list(tidy.one_title(PurePosixPath("changelog.d/a.added.md"), "text\n")) == []


def test_findings_are_sorted_and_readable() -> None:
    """A finding can be clicked in an editor, and comes in the order of the files."""
    sources = [Source.parse("tools/b.py", "x = 1\n"), Source.parse("tools/a.py", "x = 1\n")]
    found = tidy.check(sources, {})
    assert [str(finding) for finding in found] == [
        f"tools/{name}.py:1: docstring: say in a sentence what this module is" for name in "ab"
    ]
    assert isinstance(found[0], Finding)


def test_the_projects_files_are_those_of_git() -> None:
    """Caches and environments are left alone."""
    paths = tidy.tracked_files(tidy.ROOT)
    assert PurePosixPath("tools/tidy.py") in paths
    assert not any(path.parts[0] in (".venv", ".cache") for path in paths)
    assert Path(tidy.ROOT / "Makefile").exists()


def test_the_files_of_an_unpacked_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Outside of a clone, and on a machine without git; what runs have left is not among them."""
    for name in ("tools/a.py", "README.md", ".venv/b.py", "build/c.py", "tools/__pycache__/d.py"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    files = [PurePosixPath("README.md"), PurePosixPath("tools/a.py")]
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert tidy.tracked_files(tmp_path) == files
    monkeypatch.setenv("PATH", str(tmp_path))
    assert tidy.tracked_files(tmp_path) == files
