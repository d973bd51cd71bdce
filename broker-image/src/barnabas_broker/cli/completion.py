"""`barnabas completion`, and the names of topics and groups that a shell completes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

import click
from click.shell_completion import get_completion_class

from barnabas_broker.cli.client import DEFAULT_ADDRESS, Connection, chosen_connection
from barnabas_broker.cli.errors import CommandError

SHELLS = ("bash", "zsh", "fish")
PROGRAM = "barnabas"
VARIABLE = "_BARNABAS_COMPLETE"
# A completion that takes longer is useless.
TIMEOUT_S = 2.0
# What click's scripts lack: a bare .zshrc does not load compdef, a description may have commas.
_MENDED: Final = {
    "zsh": (
        "    compdef ",
        "    (( $+functions[compdef] )) || { autoload -Uz compinit && compinit }\n    compdef ",
    ),
    "fish": ('string split ","', 'string split --max 1 ","'),
}


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> None:
    """Print the script with which a shell completes commands.

    Topics and groups are completed too, from the broker that -b, --local or a variable names.

    bash: eval "$(barnabas completion bash)" in ~/.bashrc. zsh: the same with zsh in ~/.zshrc.
    fish: barnabas completion fish > ~/.config/fish/completions/barnabas.fish
    """
    found = get_completion_class(shell)
    if found is None:
        raise CommandError(f"there is no completion for {shell}")
    # The script alone: click's own way asks for the shell's version, which need not be here.
    made = found(click.Command(PROGRAM), {}, PROGRAM, VARIABLE)
    script = made.source_template % made.source_vars()
    if shell in _MENDED:
        script = script.replace(*_MENDED[shell])
    click.echo(script)


def topic_names(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """The topics whose names begin so, from the broker that the command line names."""
    return _names(ctx, incomplete, _topics)


def group_names(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """The groups whose names begin so."""
    return _names(ctx, incomplete, _groups)


def _names(
    ctx: click.Context, incomplete: str, ask: Callable[[click.Context], Iterable[str]]
) -> list[str]:
    try:
        return sorted(name for name in ask(ctx) if name.startswith(incomplete))
    except Exception:
        return []


def _topics(ctx: click.Context) -> Iterable[str]:
    from barnabas_broker.cli.admin import AdminSession
    from barnabas_kafka.client import list_topics

    with AdminSession(_connection(ctx)) as session:
        topics = session.call(list_topics())
    return topics.keys()


def _groups(ctx: click.Context) -> Iterable[str]:
    from barnabas_broker.cli.admin import AdminSession
    from barnabas_kafka.client import list_groups

    with AdminSession(_connection(ctx)) as session:
        by_broker = session.call(list_groups()).values
    return [group.group_id for groups in by_broker.values() for group in groups]


def _connection(ctx: click.Context) -> Connection:
    given = ctx.params
    return chosen_connection(
        ctx.get_parameter_source,
        bootstrap=given.get("bootstrap_server") or DEFAULT_ADDRESS,
        file=given.get("command_config"),
        local=given.get("local_cluster"),
        assignments=given.get("assignments") or (),
        timeout_s=TIMEOUT_S,
    )
