"""`kafka-configs --entity-type users|clients|ips`: quotas, by Kafka's options and in its words."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Final

import click

from barnabas_broker.cli import quotas
from barnabas_broker.cli.admin import call
from barnabas_broker.cli.client import Connection
from barnabas_broker.cli.errors import CommandError
from barnabas_kafka.client import QuotaEntity, describe_quotas

Entity = dict[str, str | None]
"""Types and names as the options have them: "" is the default, None all of that type."""

USERS, CLIENTS, IPS = "users", "clients", "ips"
TYPES: Final = {USERS: "user", CLIENTS: "client-id", IPS: "ip"}
WORDS: Final = {"user": "user-principal", "client-id": "client-id", "ip": "ip"}

CLIENT_QUOTAS: Final = (
    "producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate",
)  # fmt: skip
IP_QUOTAS: Final = ("connection_creation_rate",)

SMALLEST_PLAIN: Final = 1e-3
LARGEST_PLAIN: Final = 1e7
"""Between these Java writes numbers without an exponent."""


def describe(connection: Connection, entity: Entity) -> None:
    """Show the quotas of entities that have parts of these types and no others."""
    found = call(connection, describe_quotas())
    for each in sorted(found, key=_order):
        if _matches(entity, dict(each)):
            values = ", ".join(f"{k}={java_double(v)}" for k, v in sorted(found[each].items()))
            click.echo(f"Quota configs for {_text(each)} are {values}")


def alter(
    connection: Connection, entity: Entity, additions: Mapping[str, str], removals: list[str]
) -> None:
    """Set and remove quotas of one entity."""
    known = IP_QUOTAS if IPS in entity else CLIENT_QUOTAS
    head = next(iter(entity))
    for names, verb in ((additions, "added"), (removals, "deleted")):
        if unknown := [name for name in names if name not in known]:
            raise CommandError(
                f"Only {'connection ' if IPS in entity else ''}quota configs can be {verb} for"
                f" '{IPS if IPS in entity else CLIENTS if CLIENTS in entity else head}' using"
                f" --bootstrap-server. Unexpected config names: {','.join(unknown)}"
            )
    values: dict[str, float | None] = {k: quotas.number(k, v) for k, v in additions.items()}
    parts = {TYPES[kind]: name or None for kind, name in entity.items()}
    if removals:
        there = quotas.of_entity(connection, parts)
        if missing := [name for name in removals if name not in there]:
            raise CommandError(f"Invalid config(s): {','.join(missing)}")
    quotas.change(connection, parts, values | dict.fromkeys(removals))
    name = entity[head]
    if name:
        click.echo(f"Completed updating config for {head[:-1]} {name}.")
    else:
        click.echo(f"Completed updating default config for {head} in the cluster.")


def _matches(entity: Entity, parts: Mapping[str, str | None]) -> bool:
    wanted = {TYPES[kind]: name for kind, name in entity.items()}
    return wanted.keys() == parts.keys() and all(
        name is None or (name or None) == parts[kind] for kind, name in wanted.items()
    )


def _order(entity: QuotaEntity) -> list[tuple[str, str]]:
    return sorted((kind, name or "") for kind, name in entity)


def _text(entity: QuotaEntity) -> str:
    parts = dict(entity)
    return ", ".join(
        f"the default {words}" if parts[kind] is None else f"{words} '{parts[kind]}'"
        for kind, words in WORDS.items()
        if kind in parts
    )


def java_double(value: float) -> str:
    """A number as Java writes it: `1.0E9` from ten million on."""
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or SMALLEST_PLAIN <= abs(value) < LARGEST_PLAIN:
        text = format(Decimal(repr(value)), "f")
        return text if "." in text else f"{text}.0"
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    rest = "".join(map(str, digits[1:])) or "0"
    return f"{'-' if sign else ''}{digits[0]}.{rest}E{len(digits) - 1 + int(exponent)}"
