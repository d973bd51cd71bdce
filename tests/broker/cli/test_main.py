"""The command as a whole."""

import subprocess
import sys

import pytest

from barnabas_broker.cli.main import VERBS, main
from tests.broker.cli.conftest import Run, run_command


def test_help_lists_every_verb_without_importing_any() -> None:
    """Help is quick, and says what each verb is for and what the exit codes mean."""
    code = (
        "import sys; from barnabas_broker.cli.main import main\n"
        "try: main(['--help'], prog_name='barnabas')\n"
        "except SystemExit: pass\n"
        "print(sorted(n for n in sys.modules if n.startswith('barnabas_broker.cli.')))\n"
        "print({'confluent_kafka', 'rich'} & set(sys.modules))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    for name, verb in VERBS.items():
        assert name in out.stdout
        assert verb.help in out.stdout
    assert "Exit codes: 0 done" in out.stdout
    *_, modules, heavy = out.stdout.splitlines()
    assert modules == "['barnabas_broker.cli.errors', 'barnabas_broker.cli.main']"
    assert heavy == "set()"


@pytest.mark.parametrize("name", VERBS)
def test_every_verb_explains_itself(name: str) -> None:
    """The overview and the verb's own help begin with the same sentence."""
    assert VERBS[name].help in run_command(name, "--help").stdout


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
        "Error: this command needs confluent_kafka: pip install 'barnabas-broker[cli]'\n"
    )


def test_the_module_runs_like_the_script(run: Run) -> None:
    """`python -m barnabas_broker.cli` is for where the script is not on the path."""
    command = [sys.executable, "-m", "barnabas_broker.cli", "--help"]
    out = subprocess.run(command, capture_output=True, check=True, text=True)
    assert out.stdout.startswith("Usage: barnabas ")
    assert main.name == "main"
