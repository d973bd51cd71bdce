"""`zookeeper-server-start`: Apache ZooKeeper, where there is a Java and its jars."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import click

from barnabas_broker.cli.apache_zookeeper import server_command
from barnabas_broker.cli.errors import CommandError
from barnabas_broker.cli.kafka import processes
from barnabas_broker.cli.kafka.tool import tool
from barnabas_kafka.settings.properties import parse_properties

KIND = "zookeeper"


@tool("zookeeper-server-start")
@click.argument("config", metavar="zookeeper.properties",
                type=click.Path(exists=True, dir_okay=False, path_type=Path))  # fmt: skip
@click.option("--daemon", is_flag=True, help="Go on in the background; also -daemon.")
@click.option("--name", hidden=True)
def main(config: Path, daemon: bool, name: str | None) -> None:
    """Run Apache ZooKeeper with a configuration until SIGTERM or Ctrl-C."""
    try:
        command = server_command(config, os.environ)
    except CommandError as error:
        text = f"{error.message}; a broker without zookeeper.connect needs no ZooKeeper"
        raise CommandError(text) from None
    port = parse_properties(config.read_bytes(), origin=str(config)).get("clientPort", "2181")
    if daemon:
        process = processes.launch(command, processes.log_directory() / "zookeeper.out")
        processes.register(KIND, process.pid, port)
        click.echo(f"ZooKeeper was started, process {process.pid}.", err=True)
        return
    process = subprocess.Popen(command)  # noqa: S603 - the Java that was found
    file = processes.register(KIND, process.pid, port)
    try:
        code = process.wait()
    except KeyboardInterrupt:
        process.terminate()
        code = process.wait()
    finally:
        if file is not None:
            file.unlink(missing_ok=True)
    raise SystemExit(code)
