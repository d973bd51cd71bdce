"""`kafka-server-start`: a broker with a server.properties, in the foreground or behind."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import click

from barnabas_broker.cli.broker import given_settings, run_with
from barnabas_broker.cli.errors import CommandError
from barnabas_broker.cli.kafka import processes
from barnabas_broker.cli.kafka.tool import tool

KIND = "kafka"
READY_S = 60.0


@tool("kafka-server-start")
@click.argument("config", metavar="server.properties", type=click.Path(path_type=Path))
@click.option("--daemon", is_flag=True, help="Go on in the background; also -daemon.")
@click.option("--override", "overrides", multiple=True, metavar="NAME=VALUE",
              help="A setting over that of the file.")  # fmt: skip
@click.option("--name", hidden=True, help="What Kafka's script calls the process.")
@click.option("--loggc", is_flag=True, hidden=True)
def main(
    config: Path, daemon: bool, overrides: tuple[str, ...], name: str | None, loggc: bool
) -> None:
    """Run a broker until SIGTERM or Ctrl-C.

    With -daemon it goes on in the background: the command waits until the broker serves, and fails
    with what it said where it does not. Its log is kafkaServer.out in $LOG_DIR, or in logs.
    """
    given = given_settings(config, overrides)
    if not daemon:
        identity = given.get("broker.id") or given.get("node.id") or "-1"
        ready = os.environ.pop("BARNABAS_READY_FILE", None)
        file = processes.register(KIND, os.getpid(), identity)
        try:
            run_with(given, ready_file=Path(ready) if ready else None)
        finally:
            if file is not None:
                file.unlink(missing_ok=True)
    log = processes.log_directory() / "kafkaServer.out"
    with tempfile.TemporaryDirectory() as directory:
        ready_file = Path(directory) / "ready.json"
        command = [sys.executable, "-m", "barnabas_broker.cli.kafka.server_start", str(config)]
        command += [f"--override={each}" for each in overrides]
        os.environ["BARNABAS_READY_FILE"] = str(ready_file)
        began = log.stat().st_size if log.exists() else 0
        process = processes.launch(command, log)
        code = processes.ended_within(process, ready_file, READY_S)
        if code is not None:
            lines = log.read_bytes()[began:].decode(errors="replace").strip().splitlines()
            raise CommandError(f"the broker ended with {code}: {lines[-1] if lines else ''}")
        # The directory goes with the file in it, so this is the moment to ask.
        state = "serves" if ready_file.exists() else f"does not serve after {READY_S:g} s"
    click.echo(f"The broker {state}, process {process.pid}; its log is {log}.", err=True)


if __name__ == "__main__":
    main(prog_name="kafka-server-start")
