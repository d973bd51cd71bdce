"""`barnabas broker start`: what a person sees who starts a broker."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from barnabas_broker.testing import Broker
from tests.waiting import ANSWER, START, forget, seconds, wait_for, watch

COMMAND = [sys.executable, "-m", "barnabas_broker.cli", "broker", "start"]
ANY_PORT = "listeners=PLAINTEXT://127.0.0.1:0"


def refused(*args: str) -> tuple[int, list[str]]:
    """Exit code and standard error of a start that must fail; only what is not log."""
    limit_s = seconds(START)
    out = subprocess.run(
        [*COMMAND, *args], capture_output=True, text=True, timeout=limit_s, check=False
    )
    assert "Traceback" not in out.stderr
    lines = [line for line in out.stderr.splitlines() if not line.startswith("[")]
    return out.returncode, lines


def settings(*assignments: str) -> list[str]:
    """`--set` for each of them."""
    return [word for assignment in assignments for word in ("--set", assignment)]


@contextmanager
def started(tmp_path: Path, *args: str) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    """A broker started on the command line, and its ready file's content."""
    ready = tmp_path / "ready.json"
    command = [*COMMAND, "--ready-file", str(ready), *args]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            watch("broker", process.pid)
            wait_for(
                "a ready file, or an exit code",
                lambda: (ready.exists(), process.poll()),
                until=lambda seen: seen != (False, None),
                within=START,
            )
            assert process.poll() is None
            yield process, json.loads(ready.read_text())
        finally:
            forget(process.pid)
            process.kill()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_says_what_it_is_and_stops_cleanly(tmp_path: Path, number: signal.Signals) -> None:
    """Version, cluster id, listeners and the settings that are not defaults are in the log."""
    given = settings(ANY_PORT, f"log.dirs={tmp_path / 'data'}", "num.partitions=7")
    with started(tmp_path, *given) as (process, ready):
        assert ready["pid"] == process.pid
        host, _, port = ready["listeners"]["PLAINTEXT"].partition(":")
        socket.create_connection((host, int(port)), seconds(ANSWER)).close()
        process.send_signal(number)
        _, log = process.communicate(timeout=seconds(START))
        assert process.returncode == 0
    assert ready["cluster_id"] in log
    assert "num.partitions = 7" in log
    assert "PLAINTEXT://127.0.0.1" in log
    assert "Barnabas" in log


def test_the_server_is_imported_without_looking_for_garbage() -> None:
    """There is none, and looking for it would be a twentieth of a start; later it is looked for."""
    code = (
        "import gc; from barnabas_broker.cli.broker import load_server\n"
        "looked = lambda: sum(each['collections'] for each in gc.get_stats())\n"
        "before = looked(); run_broker = load_server()\n"
        "print(looked() - before, gc.isenabled(), gc.get_freeze_count() > 10_000)\n"
        "print(run_broker.__module__)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert out.stdout.splitlines() == ["0 True True", "barnabas_broker.server.node.lifecycle"]


def test_the_command_line_wins_over_the_file(tmp_path: Path) -> None:
    """A properties file as Java reads it: comments, continuation lines, escapes."""
    config = tmp_path / "server.properties"
    data = tmp_path / "data"
    config.write_text(
        "# a comment\n! another\nnum.partitions=3\nbroker.id : 5\n"
        f"listeners=PLAINTEXT://\\\n   127.0.0.1:0\nlog.dirs={data}\n"
    )
    with started(tmp_path, "--config", str(config), "--set", "num.partitions=4") as (
        process,
        ready,
    ):
        process.terminate()
        _, log = process.communicate(timeout=seconds(START))
    assert ready["broker_id"] == 5
    assert "num.partitions = 4" in log
    assert "num.partitions = 3" not in log


@pytest.mark.parametrize(
    ("assignments", "lines"),
    [
        (["num.partitions=0"], ["Error: num.partitions=0: must be at least 1"]),
        (
            ["num.partitions=0", "log.retention.ms=soon"],
            [
                "Error: num.partitions=0: must be at least 1",
                "Error: log.retention.ms=soon: must be a whole number",
            ],
        ),
        (["num.partitions"], ["Error: --set takes NAME=VALUE, not 'num.partitions'"]),
    ],
)
def test_a_wrong_setting_is_code_2(assignments: list[str], lines: list[str]) -> None:
    """Key, value and what is allowed; all wrong ones at once."""
    assert refused(*settings(*assignments)) == (2, lines)


def test_unknown_settings_are_refused_only_if_asked(tmp_path: Path) -> None:
    """With the nearest known name; without --strict the broker starts and says so."""
    assert refused("--strict", "--set", "num.partitios=2") == (
        2,
        ["Error: num.partitios: unknown setting; did you mean num.partitions?"],
    )
    given = settings(ANY_PORT, f"log.dirs={tmp_path / 'data'}", "num.partitios=2")
    with started(tmp_path, *given) as (process, _):
        process.terminate()
        _, log = process.communicate(timeout=seconds(START))
    assert "num.partitios" in log
    assert "num.partitions" in log


def test_a_malformed_file_is_code_2(tmp_path: Path) -> None:
    """The file and the line are named."""
    config = tmp_path / "server.properties"
    config.write_text("num.partitions=1\nlog.dirs=\\uNOPE\n")
    code, lines = refused("--config", str(config))
    assert code == 2
    assert len(lines) == 1
    assert str(config) in lines[0]
    assert "line 2" in lines[0]


def test_a_file_that_cannot_be_read_is_code_2(tmp_path: Path) -> None:
    """One line, without a lecture on usage."""
    missing = tmp_path / "missing"
    expected = f"Error: cannot read {missing}: No such file or directory"
    assert refused("--config", str(missing)) == (2, [expected])
    expected = f"Error: cannot read {tmp_path}: Is a directory"
    assert refused("--config", str(tmp_path)) == (2, [expected])


def test_a_ready_file_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    """Whoever waits for it would wait for ever."""
    ready = tmp_path / "missing" / "ready.json"
    given = settings(ANY_PORT, f"log.dirs={tmp_path / 'data'}")
    code, lines = refused("--ready-file", str(ready), *given)
    assert (code, len(lines)) == (1, 1)
    assert str(ready) in lines[0]


def test_a_directory_with_rubbish_for_properties_is_one_line(tmp_path: Path) -> None:
    """Nobody knows whose it is, so nobody may write to it."""
    (tmp_path / "meta.properties").write_text("rubbish")
    code, lines = refused(*settings(ANY_PORT, f"log.dirs={tmp_path}"))
    assert (code, len(lines)) == (1, 1)
    assert "meta.properties" in lines[0]
    assert (tmp_path / "meta.properties").read_text() == "rubbish"


def test_an_address_of_another_machine_is_one_line(tmp_path: Path) -> None:
    """Neither a name nobody knows nor a host that is not this one can be listened on."""
    for host in ("no.such.host.invalid", "192.0.2.1"):
        given = settings(f"listeners=PLAINTEXT://{host}:0", f"log.dirs={tmp_path / host}")
        code, lines = refused(*given)
        assert (code, len(lines)) == (1, 1)
        assert host in lines[0]


def test_a_port_in_use_is_one_line(tmp_path: Path) -> None:
    """The commonest of all mistakes: a second broker on the same machine."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        given = settings(f"listeners=PLAINTEXT://{address}", f"log.dirs={tmp_path}")
        code, lines = refused(*given)
    assert code == 1
    assert len(lines) == 1
    assert address in lines[0]


def test_a_locked_directory_is_one_line(fresh_kafka_broker: Broker) -> None:
    """Two brokers on one directory would destroy it."""
    directory = fresh_kafka_broker.log_dir
    code, lines = refused(*settings(ANY_PORT, f"log.dirs={directory}"))
    assert code == 1
    assert len(lines) == 1
    assert str(directory) in lines[0]


def test_an_impossible_directory_is_one_line(tmp_path: Path) -> None:
    """A file where a directory should be, which no permission of root's gets round."""
    (tmp_path / "file").write_text("")
    code, lines = refused(*settings(ANY_PORT, f"log.dirs={tmp_path / 'file' / 'data'}"))
    assert code == 1
    assert len(lines) == 1
    assert str(tmp_path / "file") in lines[0]


def test_another_clusters_directory_is_one_line(kafka_broker_factory: object) -> None:
    """Its data would be served under the wrong name."""
    assert callable(kafka_broker_factory)
    broker: Broker = kafka_broker_factory()
    broker.stop()
    meta = broker.log_dir / "meta.properties"
    meta.write_text(meta.read_text().replace(broker.cluster_id, "AAAAAAAAAAAAAAAAAAAAAA"))
    code, lines = refused(*settings(ANY_PORT, f"log.dirs={broker.log_dir}"))
    assert code == 1
    assert len(lines) == 1
    assert "AAAAAAAAAAAAAAAAAAAAAA" in lines[0]
    assert broker.cluster_id in lines[0]


def test_the_default_data_directory_is_printed(tmp_path: Path) -> None:
    """In the user's state directory, and named: /tmp may be empty after a restart."""
    environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path / "state")}
    ready = tmp_path / "ready.json"
    command = [*COMMAND, "--ready-file", str(ready), "--set", ANY_PORT]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
        wait_for("a ready file", ready.exists, within=START)
        process.terminate()
        _, reported = process.communicate(timeout=seconds(ANSWER))
    directory = tmp_path / "state" / "barnabas-broker" / "data"
    assert reported.splitlines()[0] == (
        f"Data directory: {directory} (--set log.dirs=DIR for another)"
    )
    assert (directory / "meta.properties").exists()


def test_a_port_in_use_leaves_nothing_behind(tmp_path: Path) -> None:
    """It is noticed before a directory is made."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        code, lines = refused(*settings(
            f"listeners=PLAINTEXT://127.0.0.1:{port}", f"log.dirs={tmp_path / 'data'}"
        ))  # fmt: skip
    assert code == 1
    where = f"PLAINTEXT://127.0.0.1:{port}"
    reason = f"cannot listen on {where}: port {port} is in use by another program"
    assert lines == [f"barnabas: cannot start: {reason}"]
    assert not (tmp_path / "data").exists()
