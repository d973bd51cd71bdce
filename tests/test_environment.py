"""A machine's environment, locale, time zone, umask and signals do not reach the tests."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.environment import own
from tests.waiting import RUN, seconds

ROOT = Path(__file__).parents[1]
HOSTILE = {
    "BARNABAS_BOOTSTRAP": "nowhere:1",
    "CLASSPATH": "x",
    "COLUMNS": "20",
    "EXTRA_ARGS": "-x",
    "JAVA_HOME": "/nonexistent",
    "JAVA_TOOL_OPTIONS": "-Xnonsense",
    "KAFKA_HEAP_OPTS": "x",
    "KAFKA_OPTS": "-Djava.security.auth.login.config=/nonexistent",
    "LC_ALL": "tr_TR.UTF-8",
    "LOG_DIR": "/nonexistent",
    "NO_PROXY": "example.org",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONPATH": "/nonexistent",
    "TZ": "Asia/Kathmandu",
    "ZOOKEEPER_HOME": "/nonexistent",
}
TESTS = (
    "tests/broker/cli/kafka/test_server_start.py::test_no_jars_of_zookeeper",
    "tests/broker/cli/test_apache_zookeeper.py",
    "tests/broker/cli/test_broker.py::test_it_says_what_it_is_and_stops_cleanly",
    "tests/broker/cli/test_offsets.py::test_moments",
    "tests/operator/local/test_state.py",
)
"""They start and stop programs, look for Java and jars, read times and write files."""


def test_only_inputs_remain_in_the_environment() -> None:
    """The inputs of a run, HOME and the programs stay; loopback is never behind a proxy."""
    machine = HOSTILE | {"HOME": "/h", "PATH": "/nowhere", "BROKER_UNDER_TEST": "apache"}
    assert own(machine) == {
        "BROKER_UNDER_TEST": "apache",
        "HOME": "/h",
        "LC_ALL": "C.UTF-8",
        "NO_PROXY": "example.org,127.0.0.1,localhost",
        "PATH": "/nonexistent/bin:/nowhere",
        "TZ": "UTC",
        "no_proxy": "127.0.0.1,localhost",
    }


def test_a_second_time_changes_nothing() -> None:
    """Processes that the tests start may be tests, too."""
    assert own(own(HOSTILE)) == own(HOSTILE)


def test_java_stays_where_it_is(tmp_path: Path) -> None:
    """JAVA_HOME goes; its programs are on the path only where the path has no java."""
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.touch(0o755)
    machine = {"JAVA_HOME": "/home", "PATH": str(java.parent)}
    assert own(machine)["PATH"] == str(java.parent)


def test_tests_pass_on_a_strange_machine() -> None:
    """Those that meet the environment most, in one that each of them would break in."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *TESTS]
    done = subprocess.run(
        ["sh", "-c", """umask 077; trap '' INT QUIT; exec "$0" "$@" """, *command],
        cwd=ROOT,
        env=os.environ | HOSTILE,
        capture_output=True,
        text=True,
        timeout=seconds(RUN),
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
