"""`barnabas zookeeper`: one process that speaks its protocol, for development, or Apache's own."""

from __future__ import annotations

import asyncio
import logging
import signal
from pathlib import Path

import click

from barnabas_broker.cli.apache_zookeeper import become_member
from barnabas_broker.cli.errors import CommandError
from barnabas_zookeeper.server import Options, Server, ServerError

DEVELOPMENT = (
    "This is one process for development and tests: nothing of it is anywhere else. "
    "Production needs an ensemble of Apache ZooKeeper."
)


@click.group()
def zookeeper() -> None:
    """Run a ZooKeeper for development, or a member of Apache's."""


@zookeeper.command()
@click.option(
    "--data-dir",
    type=click.Path(file_okay=False, path_type=Path),
    required=True,
    help="Where the znodes are kept; made if need be.",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen at.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=2181,
    show_default=True,
    help="Port to listen at; 0 for any that is free.",
)
@click.option(
    "--tick-time",
    "tick_ms",
    type=click.IntRange(10, 60_000),
    default=2000,
    show_default=True,
    help="Milliseconds; sessions last between 2 and 20 of them.",
)
@click.option(
    "--max-client-connections",
    "connections",
    type=click.IntRange(1),
    default=60,
    show_default=True,
    help="Connections of one address.",
)
def start(data_dir: Path, host: str, port: int, tick_ms: int, connections: int) -> None:
    """Serve ZooKeeper clients until SIGTERM or Ctrl-C.

    What was acknowledged survives a crash of the process and of the machine; there is no other
    copy. Exits with 0 after a clean stop, 1 when it cannot start or go on.
    """
    logging.basicConfig(format="[%(asctime)s] %(levelname)s %(message)s", level=logging.INFO)
    options = Options(
        data_directory=data_dir,
        host=host,
        port=port,
        tick_ms=tick_ms,
        connections_per_address=connections,
    )
    try:
        asyncio.run(_run(options))
    except ServerError as error:
        raise CommandError(str(error)) from None


@zookeeper.command()
@click.argument("config", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--id",
    "number",
    type=click.IntRange(1, 255),
    required=True,
    help="Which member: N of server.N.",
)
def member(config: Path, number: int) -> None:
    """Become a member of an ensemble of Apache ZooKeeper, as CONFIG (a zoo.cfg) has it.

    An empty data directory gets its myid; one of another member is refused. Needs Java, and
    ZooKeeper's jars in $ZOOKEEPER_HOME/lib or from Debian's package.
    """
    become_member(config, number)


async def _run(options: Options) -> None:
    server = await Server.open(options)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, server.stop)
    click.echo(f"zookeeper: {options.host}:{server.port} serves {options.data_directory}")
    click.echo(DEVELOPMENT, err=True)
    try:
        await server.serve()
    finally:
        server.close()
