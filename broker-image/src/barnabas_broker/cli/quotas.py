"""`barnabas quotas`: list, set and remove client quotas."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import click

from barnabas_broker.cli.admin import call
from barnabas_broker.cli.client import Connection, connection_options
from barnabas_broker.cli.errors import CommandError, InputError
from barnabas_broker.cli.output import done, output_option, print_json, print_table, results_option
from barnabas_broker.cli.properties import parse_assignments
from barnabas_kafka.client import QuotaEntity, alter_quotas, describe_quotas

Command = Callable[..., Any]
Parts = dict[str, str | None]
"""Types and names of an entity; None is the default."""

TYPES: Final = ("user", "client-id", "ip")
DEFAULT_SHOWN: Final = "(default)"


def entity_options(command: Command) -> Command:
    """Options that say whose quotas are meant."""
    for kind in reversed(TYPES):
        command = click.option(
            f"--default-{kind}", is_flag=True, help=f"Those without quotas of their {kind}."
        )(command)
        command = click.option(f"--{kind}", help=f"The {kind} of that name.")(command)
    return command


@click.group()
def quotas() -> None:
    """List, set and remove client quotas."""


@quotas.command("list")
@entity_options
@output_option
@connection_options
def list_(connection: Connection, output: str, **options: Any) -> None:
    """List quotas: all, or those of entities with these parts."""
    parts = _parts(options)
    found = call(connection, describe_quotas(parts))
    rows = [
        {**_row(entity), "quota": name, "value": value}
        for entity, values in sorted(found.items(), key=lambda item: _order(item[0]))
        for name, value in sorted(values.items())
    ]
    if output == "json":
        print_json(
            [
                {"entity": dict(sorted(entity)), "quotas": dict(sorted(values.items()))}
                for entity, values in sorted(found.items(), key=lambda item: _order(item[0]))
            ]
        )
    elif rows:
        print_table(list(rows[0]), [list(row.values()) for row in rows])
    else:
        click.echo("There are no such quotas.")


@quotas.command("set")
@entity_options
@click.argument("rates", nargs=-1, required=True, metavar="NAME=VALUE...")
@click.option("--validate-only", is_flag=True, help="Have a broker check it, set nothing.")
@results_option
@connection_options
def set_(
    connection: Connection, rates: tuple[str, ...], validate_only: bool, **options: Any
) -> None:
    """Set quotas, such as producer_byte_rate=1048576; others of the entity stay."""
    values = {name: number(name, value) for name, value in parse_assignments(rates, "set").items()}
    parts = _named_parts(options)
    change(connection, parts, values, validate_only=validate_only)
    verb = "Could set" if validate_only else "Set"
    result = {"entity": dict(parts), "quotas": values, "set": not validate_only}
    done(f"{verb} the quotas of {entity_text(parts)}.", result)


@quotas.command()
@entity_options
@click.argument("names", nargs=-1, metavar="[NAME]...")
@results_option
@connection_options
def remove(connection: Connection, names: tuple[str, ...], **options: Any) -> None:
    """Remove quotas of these names, or all of the entity."""
    parts = _named_parts(options)
    there = of_entity(connection, parts)
    if missing := [name for name in names if name not in there]:
        raise CommandError(f"{entity_text(parts)} has no {', '.join(missing)}")
    removed = names or tuple(there)
    if not removed:
        raise CommandError(f"{entity_text(parts)} has no quotas")
    change(connection, parts, dict.fromkeys(removed))
    result = {"entity": dict(parts), "removed": sorted(removed)}
    done(f"Removed {', '.join(sorted(removed))} of {entity_text(parts)}.", result)


def change(
    connection: Connection,
    parts: Parts,
    values: Mapping[str, float | None],
    *,
    validate_only: bool = False,
) -> None:
    """Set quotas of one entity, and remove those that are None; CommandError where refused."""
    entity: QuotaEntity = frozenset(parts.items())
    results = call(connection, alter_quotas({entity: values}, validate_only=validate_only))
    for error in results.errors.values():
        raise CommandError(str(error), code=error.code)


def of_entity(connection: Connection, parts: Parts) -> Mapping[str, float]:
    """The quotas of just this entity."""
    found = call(connection, describe_quotas(parts, strict=True))
    return found.get(frozenset(parts.items()), {})


def number(name: str, text: str) -> float:
    """The value of a quota; InputError for what is no number."""
    try:
        return float(text)
    except ValueError:
        raise InputError(f"Cannot parse quota configuration value for {name}: {text}") from None


def entity_text(parts: Mapping[str, str | None]) -> str:
    """An entity in words."""
    named = ((kind, parts[kind]) for kind in TYPES if kind in parts)
    return ", ".join(
        f"the default {kind}" if name is None else f"{kind} '{name}'" for kind, name in named
    )


def _parts(options: Mapping[str, Any]) -> Parts:
    return dict(_given(options))


def _given(options: Mapping[str, Any]) -> Iterator[tuple[str, str | None]]:
    for kind in TYPES:
        option = kind.replace("-", "_")
        name, is_default = options[option], options[f"default_{option}"]
        if name is not None and is_default:
            raise InputError(f"--{kind} and --default-{kind} exclude each other")
        if name is not None or is_default:
            yield kind, name


def _named_parts(options: Mapping[str, Any]) -> Parts:
    parts = _parts(options)
    if not parts:
        raise InputError("say whose quotas: --user, --client-id, --ip or a default of these")
    return parts


def _row(entity: QuotaEntity) -> dict[str, str]:
    parts = dict(entity)
    return {
        kind: (DEFAULT_SHOWN if parts[kind] is None else str(parts[kind])) if kind in parts else ""
        for kind in TYPES
    }


def _order(entity: QuotaEntity) -> tuple[tuple[bool, bool, str], ...]:
    """By user, client id and address; what is named before defaults."""
    parts = dict(entity)
    return tuple(
        (kind not in parts, parts.get(kind) is None, parts.get(kind) or "") for kind in TYPES
    )
