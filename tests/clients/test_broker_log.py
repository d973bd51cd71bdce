"""What a broker process writes to standard error: its shape, and its levels at run time."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final
from urllib.request import urlopen

import pytest

from barnabas_broker.server.process.task_dump import END_OF_DUMP
from barnabas_kafka.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from tests.clients.brokers import Barnabas
from tests.clients.troubles import create, send, until_logged
from tests.clients.wire import Wire
from tests.oracle.apache import run_tool
from tests.waiting import ANSWER, RUN, seconds, wait_for

LOGGER: Final = "barnabas_broker.server.metrics.http"
BROKER_LOGGER: Final = 8
SET, DELETE = 0, 1

SetLevel = Callable[[Barnabas, str | None], None]


def by_our_tool(broker: Barnabas, level: str | None) -> None:
    """`kafka-configs.sh` of this distribution."""
    done = subprocess.run(
        [str(Path(sys.executable).parent / "kafka-configs.sh"), *options(broker, level)],
        capture_output=True,
        text=True,
        timeout=seconds(RUN),
        check=False,
    )
    assert done.returncode == 0, done.stderr


def by_apaches_tool(broker: Barnabas, level: str | None) -> None:
    """The class that Apache's script of that name runs."""
    done = run_tool("kafka.admin.ConfigCommand", *options(broker, level))
    assert done.returncode == 0, done.stderr
    assert "Completed updating config for broker-logger 0." in done.stdout


def by_request(broker: Barnabas, level: str | None) -> None:
    """IncrementalAlterConfigs, as a client's library sends it."""
    operation = DELETE if level is None else SET
    change = AlterableConfig(name=LOGGER, config_operation=operation, value=level)
    resource = AlterConfigsResource(
        resource_type=BROKER_LOGGER, resource_name="0", configs=[change]
    )
    request = IncrementalAlterConfigsRequest(resources=[resource])
    with Wire(broker.bootstrap) as client:
        (answer,) = client.ask(request, IncrementalAlterConfigsResponse, 1).responses
    assert answer.error_code == 0, answer.error_message


def options(broker: Barnabas, level: str | None) -> list[str]:
    """What both tools are told."""
    change = ["--delete-config", LOGGER] if level is None else ["--add-config", f"{LOGGER}={level}"]
    entity = ["--entity-type", "broker-loggers", "--entity-name", "0"]
    return ["--bootstrap-server", broker.bootstrap, "--alter", *entity, *change]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Barnabas]:
    """A broker that logs text, as it does without being told."""
    settings = {"broker.id": "0", "barnabas.admin.listener": "127.0.0.1:0"}
    with Barnabas(tmp_path_factory.mktemp("log"), settings) as started:
        yield started


def ask_whether_it_lives(broker: Barnabas) -> None:
    """What is worth a line at DEBUG only, written before the answer."""
    admin: str = json.loads((broker.directory / "ready.json").read_text())["admin"]
    with urlopen(f"{admin}/live", timeout=seconds(ANSWER)) as answer:
        assert answer.read() == b"live\n"


def debug_lines(broker: Barnabas) -> int:
    """How many lines the logger wrote at DEBUG."""
    lines = broker.log_file.read_text().splitlines()
    return sum(" DEBUG " in line and f"({LOGGER})" in line for line in lines)


@pytest.mark.parametrize("set_level", [by_our_tool, by_apaches_tool, by_request])
def test_levels_change_while_the_broker_runs(broker: Barnabas, set_level: SetLevel) -> None:
    """DEBUG lines come once they are asked for, and stop when they no longer are."""
    before = debug_lines(broker)
    ask_whether_it_lives(broker)
    assert debug_lines(broker) == before
    set_level(broker, "DEBUG")
    ask_whether_it_lives(broker)
    reported = debug_lines(broker)
    assert reported > before
    set_level(broker, None)
    ask_whether_it_lives(broker)
    assert debug_lines(broker) == reported


def test_sigquit_dumps_threads_and_tasks(broker: Barnabas) -> None:
    """`kill -3` shows where the broker's threads and tasks are; it serves on afterwards."""
    os.kill(broker.pid, signal.SIGQUIT)
    log = wait_for(
        "the task dump in the broker's log",
        broker.log_file.read_text,
        until=lambda text: END_OF_DUMP in text,
    )
    assert "Current thread 0x" in log
    assert "lifecycle.py" in log[log.index("Task dump: ") :]
    ask_whether_it_lives(broker)


def objects(broker: Barnabas) -> list[dict[str, str]]:
    """Each line of the log, parsed."""
    return [json.loads(line) for line in broker.log_file.read_text().splitlines()]


def test_every_line_is_json(tmp_path: Path) -> None:
    """From the first line to the last, warnings included."""
    broker = Barnabas(tmp_path, {"broker.id": "0", "barnabas.log.format": "json"})
    with broker:
        create(broker, "small", max_message_bytes="100")
        send(broker, "small", b"x" * 1000, acks=0)
        until_logged(broker, "acks=0 failed")
    lines = objects(broker)
    assert all({"time", "level", "logger", "message"} <= line.keys() for line in lines)
    assert lines[0]["message"].startswith("Barnabas ")
    assert lines[-1]["message"] == "Shut down cleanly"
    assert {"INFO", "WARNING"} <= {line["level"] for line in lines}


def test_a_startup_failure_is_logged_as_json(tmp_path: Path) -> None:
    """The last line says it; it is what somebody looks for in the collected logs."""
    settings = {"log.dirs": str(tmp_path / "shared"), "barnabas.log.format": "json"}
    with Barnabas(tmp_path / "first", settings):
        second = Barnabas(tmp_path / "second", settings)
        with pytest.raises(RuntimeError, match="did not start"):
            second.start()
    last = objects(second)[-1]
    assert last["level"] == "CRITICAL"
    assert last["message"].startswith("cannot start: ")
    assert "is in use: another broker holds the lock" in last["message"]
