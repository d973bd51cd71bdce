"""Runs the command line in this process against a real broker."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from click.testing import CliRunner

from barnabas_broker.cli.main import main
from barnabas_broker.testing import Broker


@dataclass(frozen=True)
class Outcome:
    """What a command printed."""

    stdout: str
    stderr: str

    def json(self) -> Any:
        """Standard output as one JSON document."""
        return json.loads(self.stdout)

    def json_lines(self) -> list[Any]:
        """Standard output as JSON lines."""
        return [json.loads(line) for line in self.stdout.splitlines()]


Run = Callable[..., Outcome]


def run_command(
    *args: str, bootstrap: str | None = None, stdin: bytes = b"", fails: int = 0
) -> Outcome:
    """Run `barnabas` with these arguments; the exit code must be `fails`."""
    environment = {"BARNABAS_BOOTSTRAP": bootstrap}
    result = CliRunner().invoke(main, args, input=stdin, env=environment, prog_name="barnabas")
    text = f"{args} ended with {result.exit_code}\n{result.output}"
    assert result.exit_code == fails, text
    assert result.exception is None or isinstance(result.exception, SystemExit), text
    return Outcome(result.stdout, result.stderr)


@pytest.fixture
def run(kafka_broker: Broker) -> Run:
    """Run a client command against the session's broker."""

    def against_broker(*args: str, **kwargs: Any) -> Outcome:
        return run_command(*args, bootstrap=kafka_broker.bootstrap_servers, **kwargs)

    return against_broker
