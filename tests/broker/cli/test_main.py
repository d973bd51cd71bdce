"""The command as a whole."""

import os
import platform
import subprocess
import sys
from importlib import metadata
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path

import pytest
import yaml

from barnabas_broker import __version__
from barnabas_broker.cli.main import VERBS, main
from barnabas_broker.cli.version import built_as
from barnabas_broker.testing import Broker
from barnabas_kafka import compiled
from tests.broker.cli.conftest import Run, run_command


def test_help_lists_every_verb_without_importing_any() -> None:
    """Help is quick, and says what each verb is for and what the exit codes mean."""
    code = (
        "import sys; from barnabas_broker.cli.main import VERBS, main\n"
        "try: main(['--help'], prog_name='barnabas')\n"
        "except SystemExit: pass\n"
        "print([n for n in VERBS if VERBS[n].module in sys.modules])\n"
        "print({'confluent_kafka', 'rich'} & set(sys.modules))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    for name, verb in VERBS.items():
        assert name in out.stdout
        assert verb.help in out.stdout
    assert "Exit codes: 0 done" in out.stdout
    *_, modules, heavy = out.stdout.splitlines()
    assert modules == "[]"
    assert heavy == "set()"


def test_help_is_a_command_too() -> None:
    """As of kubectl and rpk: of everything, of a group and of a command."""
    for words in ((), ("topics",), ("topic", "create")):
        assert run_command("help", *words).stdout == run_command(*words, "--help").stdout


def test_a_broker_starts_without_what_only_others_need() -> None:
    """What takes part of a start's time and of a broker's memory is imported by who needs it."""
    code = (
        "import sys\n"
        "import barnabas_broker.cli.broker, barnabas_broker.cli.main\n"
        "import barnabas_broker.server.node.lifecycle\n"
        "others = {'confluent_kafka', 'javaproperties', 'kazoo', 'rich', 'xml'}\n"
        "others |= {'argparse', 'difflib', 'email', 'importlib.metadata', 're2', 'zipfile'}\n"
        "print(others & set(sys.modules))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert out.stdout.strip() == "set()"


@pytest.mark.parametrize("name", VERBS)
def test_every_verb_explains_itself(name: str) -> None:
    """The overview and the verb's own help begin with the same sentence."""
    assert VERBS[name].help in run_command(name, "--help").stdout


def test_half_an_installation_does_not_hide_the_other_verbs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A verb whose module is missing says so in the overview; the rest is there."""
    gone = EntryPoint("gone", "no_such_module:command", "barnabas.commands")
    monkeypatch.setattr("importlib.metadata.entry_points", EntryPoints([gone]).select)
    shown = run_command("--help").stdout
    assert "(not available: No module named 'no_such_module')" in shown
    assert VERBS["broker"].help in shown


def test_an_unknown_verb_is_wrong_usage() -> None:
    """Code 2, and no traceback."""
    assert "No such command" in run_command("frobnicate", fails=2).stderr


def test_without_the_client_library_the_way_out_is_named() -> None:
    """A broker may be installed without the extra; client commands then say so."""
    code = (
        "import sys; sys.modules['confluent_kafka'] = None\n"
        "from barnabas_broker.cli.main import main\n"
        "main(['topics', 'list'], prog_name='barnabas')"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False, text=True)
    assert out.returncode == 1
    assert out.stderr == (
        "Error: this command needs confluent-kafka: pip install confluent-kafka\n"
    )


def test_the_module_runs_like_the_script(run: Run) -> None:
    """`python -m barnabas_broker.cli` is for where the script is not on the path."""
    command = [sys.executable, "-m", "barnabas_broker.cli", "--help"]
    out = subprocess.run(command, capture_output=True, check=True, text=True)
    assert out.stdout.startswith("Usage: barnabas ")
    assert main.name == "main"


def test_other_distributions_add_verbs(tmp_path: Path) -> None:
    """An entry point of the group is a verb, in the overview too; ours need no looking up."""
    (tmp_path / "castle.py").write_text(
        "import click\n@click.command()\ndef klamm():\n    '''Ask for Klamm.'''\n"
        "    click.echo('Klamm is asleep')\n"
    )
    metadata = tmp_path / "castle-1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: castle\nVersion: 1\n")
    points = "[barnabas.commands]\nklamm = castle:klamm\nversion = castle:klamm\n"
    (metadata / "entry_points.txt").write_text(points)
    environment = dict(os.environ, PYTHONPATH=str(tmp_path))

    def barnabas(*args: str) -> str:
        command = [sys.executable, "-m", "barnabas_broker.cli", *args]
        out = subprocess.run(command, capture_output=True, check=True, text=True, env=environment)
        return out.stdout

    assert barnabas("klamm") == "Klamm is asleep\n"
    assert "Ask for Klamm." in barnabas("--help")
    assert "asleep" not in barnabas("version")


def test_the_id_alone_is_printed(run: Run, kafka_broker: Broker) -> None:
    """For scripts: nothing but the id."""
    assert run("cluster-id").stdout == f"{kafka_broker.cluster_id}\n"


def test_version_lists_all_components() -> None:
    """Our version first, then what it runs on."""
    first, *rest = run_command("version").stdout.splitlines()
    assert first == f"barnabas {__version__}"
    assert f"  python {platform.python_version()}" in rest
    versions = run_command("version", "--output", "json").json()
    assert versions["barnabas"] == __version__
    assert versions["build"] == built_as()
    assert versions["confluent-kafka"] == metadata.version("confluent-kafka")


def test_the_version_says_how_it_was_built(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker that is slow for want of a compiler shows it wherever its version is shown."""
    assert run_command("--version").stdout == f"barnabas {__version__} ({built_as()})\n"
    monkeypatch.setattr(compiled, "interpreted", lambda: compiled.MODULES)
    count = len(compiled.MODULES)
    assert built_as() == f"pure Python: {count} of {count} modules are not compiled"
    monkeypatch.setattr(compiled, "interpreted", lambda: ())
    assert built_as() == "compiled"


@pytest.mark.parametrize(
    ("typed", "reported"),
    [
        ("toipcs", "No such command 'toipcs'. Did you mean 'topics'?"),
        ("brokr", "No such command 'brokr'. Did you mean one of 'broker', 'brokers'?"),
        ("xyzzy", "No such command 'xyzzy'."),
    ],
)
def test_a_command_that_is_mistyped(typed: str, reported: str) -> None:
    """It names those that are spelt alike, which are not imported for it."""
    assert reported in run_command(typed, fails=2).stderr


@pytest.mark.parametrize(("typed", "command"), [("topic", "topics"), ("elect-leader", "elect-lea")])
def test_singular_and_plural(typed: str, command: str) -> None:
    """Nobody remembers which of the two it is."""
    assert f"Usage: barnabas {command}" in run_command(typed, "--help").stdout


def test_version_as_yaml() -> None:
    """The document of --output json, in the other format."""
    shown = run_command("version", "--output", "yaml").stdout
    assert yaml.safe_load(shown) == run_command("version", "--output", "json").json()
