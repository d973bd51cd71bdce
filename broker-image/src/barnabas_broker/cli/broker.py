"""`barnabas broker start`: a broker in the foreground; `broker ready`: whether one serves.

This module is on the way to every running broker, so it imports neither a client library nor a
table renderer: they would cost start-up time and memory for as long as the broker lives.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from barnabas_broker.cli.errors import InputError
from barnabas_broker.cli.pod import end_on_sigterm, expanded, from_file, rack_in, wait_for_rack
from barnabas_broker.cli.properties import parse_assignments
from barnabas_broker.cli.time_limits import Seconds
from barnabas_broker.server.process import stop_signals

if TYPE_CHECKING:
    from barnabas_broker.server.control.supervision import Supervision
    from barnabas_kafka.settings.broker import BrokerSettings


# Of `barnabas brokers`, which asks those that run; this module does not import it.
OF_BROKERS = ("list", "describe", "safe-to-restart", "caught-up")


class _OneBroker(click.Group):
    """The one pair of commands of which singular and plural are not the same."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] in OF_BROKERS:
            text = f"No such command {args[0]!r}. Did you mean 'barnabas brokers {args[0]}'?"
            raise click.UsageError(text, ctx)
        return super().resolve_command(ctx, args)


@click.group(cls=_OneBroker)
def broker() -> None:
    """Run a broker."""


@broker.command()
@click.option(
    "--config",
    type=click.Path(path_type=Path),
    help="A server.properties file.",
)
@click.option(
    "--set",
    "assignments",
    multiple=True,
    metavar="NAME=VALUE",
    help="One broker setting, over those of the file.",
)
@click.option(
    "--set-file",
    "files",
    multiple=True,
    metavar="NAME=FILE",
    help="One broker setting, whose value is in a file; after those of --set.",
)
@click.option("--strict", is_flag=True, help="Refuse settings that Kafka does not know.")
@click.option(
    "--ready-file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Written when clients can connect: pid, cluster id and listeners as JSON.",
)
@click.option(
    "--supervised",
    is_flag=True,
    help="With zookeeper.connect: have a second process end the broker's session if it dies.",
)
@click.option(
    "--from-pod",
    is_flag=True,
    help="Replace {NAME} and {NUMBER+NAME} in --set and --set-file by environment variables.",
)
@click.option(
    "--rack-file",
    "rack_files",
    multiple=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="Take broker.rack from the first of these files that is not empty.",
)
def start(
    config: Path | None,
    assignments: tuple[str, ...],
    files: tuple[str, ...],
    strict: bool,
    ready_file: Path | None,
    supervised: bool,
    from_pod: bool,
    rack_files: tuple[Path, ...],
) -> None:
    """Run a broker until SIGTERM or Ctrl-C.

    Without --config and log.dirs its data are in $XDG_STATE_HOME/barnabas-broker/data, or below
    ~/.local/state.

    Exits with 0 after a clean stop, at any point of the start too, 1 when it cannot start or go on
    (port in use, data directory locked or unwritable, wrong cluster id), 2 when a setting is wrong.
    """
    if from_pod:
        files = tuple(expanded(each, os.environ) for each in files)
    assignments = (*assignments, *map(from_file, files))
    if from_pod:
        assignments = tuple(expanded(each, os.environ) for each in assignments)
    if rack_files:
        if not (rack := rack_in(rack_files)):
            raise InputError(f"no rack in {' or '.join(map(str, rack_files))}")
        assignments = (*assignments, f"broker.rack={rack}")
    given = given_settings(config, assignments)
    notice = ""
    if config is None and (directory := default_data_directory(given)) is not None:
        given["log.dirs"] = directory
        notice = f"Data directory: {directory} (--set log.dirs=DIR for another)"
    run_with(
        given,
        notice=notice,
        strict=strict,
        ready_file=ready_file,
        supervised=supervised,
    )


@broker.command("wait-for-rack")
@click.argument(
    "files",
    nargs=-1,
    required=True,
    type=click.Path(dir_okay=False, path_type=Path),
)
def wait_for_rack_command(files: tuple[Path, ...]) -> None:
    """Wait until one of the files has the rack of this pod's node; for an init container.

    Exits with 0 then, and with 143 on SIGTERM, so that the broker does not start.
    """
    end_on_sigterm()
    if not rack_in(files):
        click.echo(f"waiting for the rack of this pod's node in {' or '.join(map(str, files))}")
    click.echo(f"rack: {wait_for_rack(files)}")


@broker.command()
@click.option(
    "-b",
    "--bootstrap-server",
    envvar="BARNABAS_BOOTSTRAP",
    default="localhost:9092",
    show_default=True,
    show_envvar=True,
    help="host:port of the broker.",
)
@click.option(
    "--timeout",
    "timeout_s",
    type=Seconds(),
    default=5.0,
    show_default=True,
    help="Seconds to wait for each step of the answer.",
)
def ready(bootstrap_server: str, timeout_s: float) -> None:
    """Say whether a broker serves clients; for probes.

    Exits with 0 when it answers, 1 when it does not.
    """
    from barnabas_broker.cli.ready import ask

    click.echo(f"ready: {ask(bootstrap_server, timeout_s)} APIs at {bootstrap_server}")


def run_with(
    given: Mapping[str, str],
    *,
    ready_file: Path | None,
    strict: bool = False,
    supervised: bool = False,
    notice: str = "",
) -> NoReturn:
    """Run a broker with these settings, and exit as it ended.

    Raises InputError, after reporting all others, where settings are wrong; else prints `notice`.
    """
    stop_signals.end_at_once()
    from barnabas_kafka.settings.broker import BrokerSettings
    from barnabas_kafka.settings.definitions import SettingError

    try:
        problems = BrokerSettings.problems(given, strict=strict)
    except SettingError as problem:
        raise InputError(str(problem)) from None
    if problems:
        *others, last = (InputError(str(problem)) for problem in problems)
        for other in others:
            other.show()
        raise last

    if notice:
        click.echo(notice, err=True)
    settings = BrokerSettings.from_mapping(given)
    supervision = _supervised(settings) if supervised else None
    # Only now: a wrong setting is reported without the server's imports.
    run_broker = load_server()

    raise SystemExit(run_broker(settings, ready_file=ready_file, supervision=supervision))


def default_data_directory(given: Mapping[str, str]) -> str | None:
    """A data directory of this user's; None where the settings name one, or the user has no home.

    Kafka's default is below /tmp, which a restart of the machine may empty; a server.properties
    without log.dirs means it all the same.
    """
    if "log.dirs" in given or "log.dir" in given:
        return None
    # Late: a broker with a given data directory starts without it.
    from barnabas_broker.cli.local_clusters import state_home

    try:
        return str(state_home() / "barnabas-broker" / "data")
    except RuntimeError:
        return None


def load_server() -> Callable[..., int]:
    """Import the server; returns `run_broker`.

    Hundreds of modules make no garbage, so that the collector is off meanwhile, and what they made
    lives as long as the process, so that it skips it afterwards.
    """
    gc.disable()
    from barnabas_broker.server.node.lifecycle import run_broker

    gc.freeze()
    gc.enable()
    return run_broker


def _supervised(settings: BrokerSettings) -> Supervision | None:
    """A supervisor, where there is a session with ZooKeeper to end."""
    from barnabas_kafka.settings import broker as keys

    if not settings[keys.ZOOKEEPER_CONNECT]:
        return None
    from barnabas_broker.server.control.supervision import Supervision

    return Supervision.begin(settings[keys.BARNABAS_LOG_FORMAT])


def given_settings(config: Path | None, assignments: tuple[str, ...]) -> dict[str, str]:
    """The file's settings with those of the command line over them; or InputError."""
    from barnabas_kafka.settings.definitions import SettingError
    from barnabas_kafka.settings.properties import parse_properties

    settings: dict[str, str] = {}
    if config is not None:
        try:
            data = config.read_bytes()
        except OSError as error:
            raise InputError(f"cannot read {config}: {error.strerror}") from None
        try:
            settings = parse_properties(data, origin=str(config))
        except SettingError as problem:
            raise InputError(str(problem)) from None
    return settings | parse_assignments(assignments, "--set")
