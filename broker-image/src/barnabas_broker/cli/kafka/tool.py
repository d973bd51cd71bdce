"""What makes a click command one of Kafka's tools: its syntax, its exit codes, its connection."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from barnabas_broker.cli.client import DEFAULT_TIMEOUT_S, Connection
from barnabas_broker.cli.errors import (
    FAILED,
    CommandError,
    missing_package,
    number_too_large,
)
from barnabas_broker.cli.kafka.arguments import Takes, normalise
from barnabas_broker.cli.program import as_program, ended_by_signals
from barnabas_broker.cli.properties import client_properties, java_properties, parse_assignments
from barnabas_broker.cli.zookeeper_client import OPTION, config_option, tool_credentials

Command = Callable[..., Any]


class Several(click.Option):
    """An option that takes every word up to the next option, as `--producer-props a=b c=d`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{**kwargs, "multiple": True})


class WrongUsage(click.UsageError):
    """Wrong usage, which for Kafka's tools is a failure as any other."""

    exit_code = FAILED


class Tool(click.Command):
    """One tool: Kafka's option syntax; whatever is wrong ends with 1, as Apache's tools do."""

    def main(self, args: Sequence[str] | None = None, *others: Any, **options: Any) -> Any:
        """Run the command as a program."""
        with as_program(args, wrong=FAILED):
            return super().main(args, *others, **options)

    def make_context(self, *arguments: Any, **options: Any) -> click.Context:
        """Read the arguments; --help is printed meanwhile."""
        with ended_by_signals():
            return super().make_context(*arguments, **options)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the arguments; exit code 1 where they are wrong, `--help` where there are none."""
        arguments, mended = normalise(args, self._takes(ctx))
        if mended:
            note(f"read {', '.join(mended)} with two plain dashes")
        try:
            return super().parse_args(ctx, arguments)
        except click.UsageError as error:
            raise WrongUsage(error.format_message(), ctx) from None

    def invoke(self, ctx: click.Context) -> Any:
        """Run the tool; name the package that brings what it could not import."""
        try:
            with ended_by_signals():
                return super().invoke(ctx)
        except OverflowError as error:
            raise CommandError(number_too_large(error).message) from None
        except CommandError as error:
            raise CommandError(error.message, code=error.code) from None
        except click.UsageError as error:
            raise WrongUsage(error.format_message(), ctx) from None
        except ModuleNotFoundError as error:
            if (missing := missing_package(error)) is None:
                raise
            raise CommandError(f"this command needs {missing}: pip install {missing}") from None

    def _takes(self, ctx: click.Context) -> dict[str, Takes]:
        """What every long option takes."""
        takes: dict[str, Takes] = {}
        for parameter in self.get_params(ctx):
            if isinstance(parameter, click.Option):
                kind = Takes.ONE
                if parameter.is_flag or parameter.count:
                    kind = Takes.NOTHING
                elif isinstance(parameter, Several):
                    kind = Takes.SEVERAL
                elif parameter._flag_needs_value:
                    kind = Takes.MAYBE_ONE
                takes |= {name: kind for name in parameter.opts if name.startswith("--")}
        return takes


def tool(name: str, cls: type[Tool] = Tool) -> Callable[[Command], Tool]:
    """Make a function the tool of that name; `cls` reads its arguments."""

    def decorate(function: Command) -> Tool:
        version = click.version_option(None, "--version", package_name="barnabas-broker")
        return click.command(
            name,
            cls=cls,
            context_settings={"help_option_names": ["--help", "-h"], "max_content_width": 100},
        )(version(function))

    return decorate


def refused(*names: str, why: str) -> Callable[[Command], Command]:
    """Options of Apache's tool that this one does not have: refused by name, with what to do."""

    def decorate(command: Command) -> Command:
        for name in names:
            command = click.option(
                name,
                is_flag=False,
                flag_value="",
                expose_value=False,
                hidden=True,
                callback=functools.partial(_refuse, why),
            )(command)
        return command

    return decorate


def _refuse(why: str, ctx: click.Context, parameter: click.Parameter, value: Any) -> None:
    if ctx.get_parameter_source(parameter.name or "") is ParameterSource.COMMANDLINE:
        error = click.UsageError(f"{parameter.opts[0]} is not supported: {why}", ctx)
        raise error


def connected(
    *aliases: str,
    zookeeper: bool = False,
    config: str | tuple[str, ...] = "--command-config",
    properties: str | None = None,
    from_properties: str | None = None,
    without_brokers: Callable[[dict[str, Any]], bool] | None = None,
) -> Callable[[Command], Command]:
    """Add the options that say which cluster; the tool is called with `connection`.

    `aliases` are older names of `--bootstrap-server`, `config` and `properties` the names that this
    tool has for a client properties file and for a single property. With `zookeeper` the brokers
    may be found there, and the tool is called with `zookeeper` too. `from_properties` names an
    option of the tool's own that has client properties. Where `without_brokers` says so of the
    options, --zookeeper is asked itself: `connection` is None, and the tool is called with
    `zookeeper_config`.
    """

    def decorate(command: Command) -> Command:
        @click.option(
            "--bootstrap-server", *aliases, "bootstrap", help="host:port of brokers, by commas."
        )
        @click.option(
            *((config,) if isinstance(config, str) else config),
            "client_config",
            type=click.Path(exists=True, dir_okay=False, path_type=Path),
            help="A client properties file (Java's names work).",
        )
        @functools.wraps(command)
        def with_connection(
            *args: Any,
            bootstrap: str | None,
            client_config: Path | None,
            zookeeper_config: Path | None = None,
            assignments: tuple[str, ...] = (),
            **kwargs: Any,
        ) -> Any:
            if without_brokers is not None:
                if kwargs.get("zookeeper") and without_brokers(kwargs):
                    return command(
                        *args, connection=None, zookeeper_config=zookeeper_config, **kwargs
                    )
                kwargs["zookeeper_config"] = None
            given = client_properties(client_config) if client_config else {}
            if from_properties is not None:
                words = kwargs.pop(from_properties)
                assignments = (*assignments, *words)
            given |= java_properties(
                parse_assignments(assignments, properties or f"--{from_properties}"), ""
            )
            connection = _connection(given, bootstrap, kwargs.get("zookeeper"), zookeeper_config)
            return command(*args, connection=connection, **kwargs)

        decorated: Command = with_connection
        if properties is not None:
            decorated = click.option(
                properties, "assignments", multiple=True, metavar="NAME=VALUE",
                help="A client property, over those of the file.",
            )(decorated)  # fmt: skip
        if zookeeper:
            decorated = config_option(decorated)
            decorated = click.option(
                "--zookeeper",
                help="host:port[,host:port][/chroot]: the brokers registered there are asked.",
            )(decorated)
        return decorated

    return decorate


def _connection(
    given: dict[str, str], bootstrap: str | None, zookeeper: str | None, config: Path | None
) -> Connection:
    """How to reach brokers with these properties: at the address given, or found in ZooKeeper."""
    address = given.pop("bootstrap.servers", None)
    address = bootstrap or _from_zookeeper(zookeeper, config) or address
    if not address:
        raise click.UsageError("Missing option '--bootstrap-server'.")
    return Connection(address, DEFAULT_TIMEOUT_S, given)


def _from_zookeeper(connect: str | None, config: Path | None) -> str | None:
    if not connect:
        if config is not None:
            raise click.UsageError(f"{OPTION} goes with --zookeeper.")
        return None
    from barnabas_broker.zk.registry import RegistryError, brokers_in

    try:
        found = brokers_in(connect, tool_credentials(config))
    except RegistryError as error:
        raise CommandError(str(error)) from None
    note(f"--zookeeper: asking the brokers registered there, --bootstrap-server {found}")
    return found


def absent(name: str, why: str) -> click.Command:
    """A tool of Apache's that is not here: refused by name, whatever its options, with the reason.

    Its name is on the PATH all the same: "not found" would send people to look for it.
    """

    @click.command(
        name,
        help=f"Not supported: {why}.",
        context_settings={
            "help_option_names": ["--help", "-h"],
            "ignore_unknown_options": True,
            "max_content_width": 100,
        },
    )
    @click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[ANYTHING]...")
    def command(words: tuple[str, ...]) -> None:
        command_line = f"{name} {' '.join(words)}".rstrip()
        raise CommandError(f"{command_line}: {name} is not supported: {why}")

    return command


def ignored_words(words: tuple[str, ...]) -> None:
    """Say that words which belong to no option are passed over, as Apache's tools do silently."""
    if words:
        note(f"ignored what belongs to no option: {' '.join(words)}")


def note(text: str) -> None:
    """Something the user should know, where no script looks for output."""
    click.echo(f"Note: {text}", err=True)
