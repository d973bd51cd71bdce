"""The `barnabas` command: its verbs, each imported only when it is called.

Other distributions add verbs: entry points of the group `barnabas.commands` name click commands.
They are looked up only for a verb that is not one of ours, and for the overview.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from barnabas_broker.cli.errors import (
    CommandError,
    missing_package,
    number_too_large,
)
from barnabas_broker.cli.program import as_program, ended_by_signals

if TYPE_CHECKING:
    from importlib.metadata import EntryPoints

PLUGINS = "barnabas.commands"
# Of `barnabas local`, which is a plugin; docker compose has some at the top level.
OF_LOCAL = ("up", "down", "status")


class Verb(NamedTuple):
    """Where a command lives, and what the overview says of it without importing it."""

    module: str
    attribute: str
    help: str


class LazyGroup(click.Group):
    """A group that knows its commands by name and imports one when it is asked for."""

    def __init__(self, *args: Any, verbs: Mapping[str, Verb], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._verbs = verbs

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Our names in the order of the table, then those of other distributions."""
        return [*self._verbs, *sorted(_plugins().names - self._verbs.keys())]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command; an absent client library is an error with the way out in it."""
        for name in (cmd_name, *_other_number(cmd_name)):
            if (verb := self._verbs.get(name)) is not None:
                return _command(getattr(import_module(verb.module), verb.attribute), name)
        for plugin in _plugins().select(name=cmd_name):
            return _command(plugin.load(), cmd_name)
        return None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or name those that are spelt alike: click knows only loaded ones.

        `help COMMAND` is `COMMAND --help`, as of kubectl and rpk.
        """
        if args[0] == "help":
            args = [*args[1:], "--help"]
        if args == ["--help"]:
            click.echo(ctx.get_help(), color=ctx.color)
            ctx.exit()
        try:
            name, command, rest = super().resolve_command(ctx, args)
            return (command.name if command is not None else name), command, rest
        except click.UsageError:
            from difflib import get_close_matches

            near = get_close_matches(args[0], self.list_commands(ctx))
            near += [f"local {name}" for name in OF_LOCAL if name == args[0]]
            if args[0].startswith("-") or not near:
                raise
        names = ", ".join(map(repr, near))
        which = f"one of {names}" if len(near) > 1 else names
        raise click.UsageError(f"No such command {args[0]!r}. Did you mean {which}?", ctx)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the overview from the table: help should be quick too."""
        rows = [(name, verb.help) for name, verb in self._verbs.items()]
        for name in self.list_commands(ctx)[len(rows) :]:
            try:
                command = self.get_command(ctx, name)
            except ImportError as error:  # Half an installation must not hide the other verbs.
                rows.append((name, f"(not available: {error})"))
            else:
                rows.append((name, command.get_short_help_str(limit=80) if command else ""))
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def main(self, args: Sequence[str] | None = None, *others: Any, **options: Any) -> Any:
        """Run the command as a program."""
        with as_program(args):
            return super().main(args, *others, **options)

    def make_context(self, *arguments: Any, **options: Any) -> click.Context:
        """Read the arguments; the overview and completion take their time."""
        with ended_by_signals():
            return super().make_context(*arguments, **options)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; name the package that brings what it could not import."""
        try:
            with ended_by_signals():
                return super().invoke(ctx)
        except OverflowError as error:
            raise number_too_large(error) from None
        except ModuleNotFoundError as error:
            if (missing := missing_package(error)) is None:
                raise
            raise CommandError(f"this command needs {missing}: pip install {missing}") from None


def _print_version(context: click.Context, _option: click.Parameter, asked: bool) -> None:
    """Print the version and how this installation was built, and exit."""
    if asked:
        from barnabas_broker import __version__
        from barnabas_broker.cli.version import built_as

        click.echo(f"barnabas {__version__} ({built_as()})")
        context.exit()


def _other_number(name: str) -> tuple[str, ...]:
    """`topic` is `topics`, and the other way round."""
    return (f"{name}s", name.removesuffix("s"))


def _plugins() -> EntryPoints:
    # The look-up costs a start of the broker, which needs none, more than anything but click.
    from importlib.metadata import entry_points

    return entry_points(group=PLUGINS)


def _command(loaded: object, name: str) -> click.Command:
    if not isinstance(loaded, click.Command):
        raise TypeError(f"{name} names a {type(loaded).__name__}, not a command")
    return loaded


def _verb(module: str, attribute: str, text: str) -> Verb:
    return Verb(f"barnabas_broker.cli.{module}", attribute, text)


VERBS = {
    "broker": _verb("broker", "broker", "Run a broker."),
    "topics": _verb("topics", "topics", "Create, list, describe, alter and delete topics."),
    "configs": _verb("configs", "configs", "Describe and alter settings of topics and brokers."),
    "acls": _verb("acls", "acls", "List, add, remove and explain access rules."),
    "quotas": _verb("quotas", "quotas", "List, set and remove client quotas."),
    "tokens": _verb("tokens", "tokens", "Create, list, renew and expire delegation tokens."),
    "pki": _verb("pki", "pki", "Create an authority and certificates for development."),
    "produce": _verb("produce", "produce", "Send lines as records."),
    "consume": _verb("consume", "consume", "Print the records of a topic."),
    "groups": _verb(
        "groups.command", "groups", "Describe consumer groups, and set where they go on."
    ),
    "transactions": _verb(
        "transactions", "transactions", "Show transactions, and abort one that hangs."
    ),
    "offsets": _verb("offsets", "offsets", "Look up offsets: first, next, or by time."),
    "log-dirs": _verb(
        "log_dirs", "log_dirs", "Describe log directories, and move partitions between them."
    ),
    "brokers": _verb(
        "brokers",
        "brokers",
        "List brokers, and ask whether they may be restarted.",
    ),
    "reassign": _verb(
        "reassign.command",
        "reassignment",
        "Move partitions to other brokers, and plan what to move.",
    ),
    "elect-leaders": _verb(
        "elect_leaders",
        "elect_leaders",
        "Elect preferred leaders, or any where there are none.",
    ),
    "cluster": _verb(
        "cluster", "cluster", "Show what a cluster consists of, and whether it is healthy."
    ),
    "cluster-id": _verb("cluster_id", "cluster_id", "Print the id of the cluster."),
    "dump-log": _verb("dump_log", "dump_log", "Show what is in the files of a data directory."),
    "perf": _verb("perf.command", "perf", "Measure how fast a cluster is."),
    "zk": _verb("zk", "zk", "Look at znodes, and at the members of the ensemble."),
    "zookeeper": _verb(
        "zookeeper", "zookeeper", "Run a ZooKeeper for development, or a member of Apache's."
    ),
    "completion": _verb(
        "completion", "completion", "Print the script with which a shell completes commands."
    ),
    "version": _verb("version", "version", "Show which versions these are."),
}

EPILOG = (
    "Exit codes: 0 done, 1 the operation failed, 2 wrong usage or a wrong setting, 130 Ctrl-C. "
    "Client commands find their broker with -b or in BARNABAS_BOOTSTRAP, and their TLS and SASL "
    "with --command-config or in BARNABAS_COMMAND_CONFIG. --local or BARNABAS_LOCAL has "
    "both of a cluster of `barnabas local`."
)


@click.group(
    cls=LazyGroup,
    verbs=VERBS,
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Show the version, and whether its inner loops are compiled.",
)
def main() -> None:
    """A Kafka-compatible broker, and tools for it and for any other Kafka."""
