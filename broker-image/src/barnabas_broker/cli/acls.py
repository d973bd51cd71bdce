"""`barnabas acls`: list, add, remove and explain access rules."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import click

from barnabas_broker.cli.acl_plans import (
    CLUSTER_NAME,
    NAMED,
    Resource,
    Roles,
    Subjects,
    acls_of,
    filters_of,
    operation_of,
    operations_on,
)
from barnabas_broker.cli.admin import call
from barnabas_broker.cli.client import Connection, connection_options
from barnabas_broker.cli.errors import CommandError, InputError
from barnabas_broker.cli.output import (
    counted,
    done,
    output_option,
    print_json,
    print_table,
    results_option,
)
from barnabas_kafka.acls import AclResourceType, PatternType
from barnabas_kafka.client.security import Acl, AclFilter, create_acls, delete_acls, describe_acls

Command = Callable[..., Any]

RESOURCES: Final = {**NAMED, "user": AclResourceType.USER}


def about(*patterns: str) -> Callable[[Command], Command]:
    """Options that name resources, compared in one of these ways; the first is the default."""

    def decorate(command: Command) -> Command:
        command = click.option(
            "--pattern", type=click.Choice(patterns), default=patterns[0], show_default=True,
            help="How names are compared.",
        )(command)  # fmt: skip
        command = click.option("--cluster", is_flag=True, help="The cluster.")(command)
        for name in reversed(RESOURCES):
            option = "--" + name.replace("_", "-")
            command = click.option(option, name, multiple=True, metavar="NAME")(command)
        return command

    return decorate


def subjects(command: Command) -> Command:
    """Options that say who may or may not do what."""
    for name, text in (
        ("--allow", "A principal that is allowed, as User:name."),
        ("--deny", "A principal that is denied."),
        ("--host", "From where; any host by default."),
        ("--operation", "What; all by default."),
    ):
        command = click.option(name, multiple=True, help=text)(command)
    for name, text in (
        ("--producer", "What a producer needs on the topics and transactional ids."),
        ("--consumer", "What a consumer needs on the topics and groups."),
        ("--idempotent", "With --producer: also IdempotentWrite on the cluster."),
    ):
        command = click.option(name, is_flag=True, help=text)(command)
    return command


@click.group()
def acls() -> None:
    """List, add, remove and explain access rules."""


@acls.command("list")
@about("any", "literal", "prefixed", "match")
@click.option("--principal", help="Only those of this principal.")
@output_option
@connection_options
def list_(connection: Connection, output: str, **options: Any) -> None:
    """List rules; with --pattern match those that apply to the resources named."""
    filters = [each.filter() for each in _resources(options)] or [AclFilter()]
    found: dict[Acl, None] = {}
    for filter_ in filters:
        for acl in call(connection, describe_acls(filter_)):
            found[acl] = None
    who = options["principal"]
    _show([acl for acl in found if who in (None, acl.principal)], output)


@acls.command()
@about("literal", "prefixed")
@subjects
@results_option
@connection_options
def add(connection: Connection, **options: Any) -> None:
    """Add rules; those that are there already stay."""
    planned = [acl for acls in _planned(options).values() for acl in acls]
    if not planned:
        raise InputError("name the principals: --allow or --deny")
    results = call(connection, create_acls(planned))
    for acl, error in results.errors.items():
        click.echo(f"{_text(acl)}: {error}", err=True)
    if results.errors:
        raise CommandError(f"{len(results.errors)} of {len(planned)} rules were not added")
    done(f"Added {counted(len(planned), 'rule')}.", *map(_row, planned))


@acls.command()
@about("literal", "prefixed", "any", "match")
@subjects
@output_option
@connection_options
def remove(connection: Connection, output: str, **options: Any) -> None:
    """Remove rules, and show them; without --allow or --deny all of the resources named."""
    filters = [
        filter_
        for resource, acls in _planned(options).items()
        for filter_ in filters_of(resource, acls)
    ]
    results = call(connection, delete_acls(filters))
    _show([acl for removed in results.values.values() for acl in removed], output)
    if results.errors:
        raise CommandError(str(next(iter(results.errors.values()))))


@acls.command()
@about("literal")
@click.option("--principal", required=True, help="Who, as User:name.")
@click.option("--operation", required=True, help="What, as read.")
@click.option("--host", default="", help="From where; by default from a host of no ACL.")
@click.option(
    "--broker-config", type=click.Path(path_type=Path, dir_okay=False),
    help="A broker's settings, for super.users and allow.everyone.if.no.acl.found.",
)  # fmt: skip
@output_option
@connection_options
def explain(
    connection: Connection, output: str, *, broker_config: Path | None, **options: Any
) -> None:
    """Say whether a principal may do something, and by which rule or which are missing."""
    # What the broker decides by, which the other commands do without.
    from barnabas_broker.cli import acl_explanations as explanations

    settings = explanations.settings_of(broker_config)
    asked = explanations.questions(
        options["principal"],
        options["host"],
        operation_of(options["operation"]),
        _resources(options),
    )
    found = explanations.explained(connection, asked, settings)
    explanations.show(found, output, complete=broker_config is not None)


def _resources(options: dict[str, Any]) -> list[Resource]:
    pattern = PatternType[options["pattern"].upper()]
    found = [
        Resource(kind, name, pattern)
        for option, kind in RESOURCES.items()
        for name in options[option]
    ]
    if options["cluster"]:
        found.append(Resource(AclResourceType.CLUSTER, CLUSTER_NAME, PatternType.LITERAL))
    return found


def _planned(options: dict[str, Any]) -> dict[Resource, list[Acl]]:
    resources = _resources(options)
    if not resources:
        raise InputError("say what the rules are about: --topic, --group, --cluster or another")
    roles = Roles(
        producer=options["producer"],
        consumer=options["consumer"],
        idempotent=options["idempotent"],
    )
    if roles and options["operation"]:
        raise InputError("--producer and --consumer say the operations")
    if roles.idempotent and not roles.producer:
        raise InputError("--idempotent goes with --producer")
    operations = [operation_of(each) for each in options["operation"]]
    who = Subjects(
        allowed=options["allow"],
        denied=options["deny"],
        allowed_hosts=options["host"],
        denied_hosts=options["host"],
    )
    planned = acls_of(operations_on(resources, operations, roles), who)
    if not any(planned.values()) and (operations or roles or options["host"]):
        raise InputError("name the principals: --allow or --deny")
    return planned


def _row(acl: Acl) -> dict[str, str]:
    return {
        "resource": acl.resource_type.name,
        "name": acl.resource_name,
        "pattern": acl.pattern_type.name,
        "principal": acl.principal,
        "host": acl.host,
        "operation": acl.operation.name,
        "permission": acl.permission.name,
    }


def _show(found: list[Acl], output: str) -> None:
    rows = [_row(acl) for acl in sorted(found, key=_order)]
    if output == "json":
        print_json(rows)
    elif rows:
        print_table(list(rows[0]), [list(row.values()) for row in rows])
    else:
        click.echo("There are no such rules.")


def _order(acl: Acl) -> tuple[object, ...]:
    return (
        acl.resource_type, acl.resource_name, acl.pattern_type, acl.principal, acl.permission,
        acl.operation, acl.host,
    )  # fmt: skip


def _text(acl: Acl) -> str:
    return (
        f"{acl.permission.name} {acl.operation.name} to {acl.principal} on"
        f" {acl.resource_type.name} {acl.resource_name}"
    )
