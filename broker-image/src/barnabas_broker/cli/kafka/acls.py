"""`kafka-acls`: add, remove and list ACLs, in the words of Apache's `AclCommand`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
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
from barnabas_broker.cli.admin import AdminSession
from barnabas_broker.cli.client import Connection
from barnabas_broker.cli.errors import CommandError
from barnabas_broker.cli.kafka.tool import connected, refused, tool
from barnabas_kafka.acls import AclResourceType, PatternType
from barnabas_kafka.client.security import Acl, AclFilter, create_acls, delete_acls, describe_acls

Option = Callable[[Callable[..., Any]], Callable[..., Any]]

RESOURCES: Final = {**NAMED, "user_principal": AclResourceType.USER}
"""The options that name resources, by the name of the parameter."""

PATTERNS: Final = ("any", "match", "literal", "prefixed")


def several(name: str, text: str) -> Option:
    """An option that may be given more than once."""
    return click.option(name, multiple=True, help=text)


@tool("kafka-acls")
@click.option("--add", "action", flag_value="add", help="Add ACLs.")
@click.option("--remove", "action", flag_value="remove", help="Remove ACLs.")
@click.option("--list", "action", flag_value="list", help="List ACLs.")
@several("--topic", "A topic; * is every topic.")
@several("--group", "A consumer group; * is every group.")
@several("--transactional-id", "A transactional id; * is every one.")
@several("--delegation-token", "A delegation token; * is every one.")
@several("--user-principal", "A user whose delegation tokens are created or described.")
@click.option("--cluster", is_flag=True, help="The cluster.")
@click.option(
    "--resource-pattern-type",
    "pattern",
    type=click.Choice(PATTERNS, case_sensitive=False),
    default="literal",
    show_default=True,
    help="How names are compared; any and match are for --list and --remove.",
)
@several("--allow-principal", "Who is allowed, as User:name; User:* is every user.")
@several("--deny-principal", "Who is denied; that wins over what is allowed.")
@several("--allow-host", "From where the allowed principals; any host by default.")
@several("--deny-host", "From where the denied principals; any host by default.")
@several("--operation", "What is allowed or denied; All by default.")
@several("--principal", "With --list: only the ACLs of this principal.")
@click.option("--producer", is_flag=True, help="What a producer needs on the topics.")
@click.option("--consumer", is_flag=True, help="What a consumer needs on topics and group.")
@click.option("--idempotent", is_flag=True, help="With --producer: also IdempotentWrite.")
@click.option("--force", is_flag=True, help="Remove without asking.")
@refused("--authorizer", "--authorizer-properties", "--zk-tls-config-file",
         why="give --bootstrap-server: the broker keeps the ACLs")  # fmt: skip
@refused("--bootstrap-controller", why="there are no KRaft controllers; give --bootstrap-server")
@connected()
def main(connection: Connection, **options: Any) -> None:
    """Add, remove and list ACLs."""
    _check(options)
    resources = _resources(options)
    with AdminSession(connection) as session:
        if options["action"] != "list":
            _change(session, options, resources)
        _list(session, resources, options["principal"])


def _check(options: dict[str, Any]) -> None:
    role = options["producer"] or options["consumer"]
    denies = options["deny_principal"] or options["deny_host"]
    subjects = options["allow_principal"] or options["allow_host"] or denies
    listing = options["action"] == "list"
    pattern = options["pattern"].lower()
    faults = {
        "Command must include exactly one action: --list, --add, --remove.": not options["action"],
        "--list takes no principals, hosts or roles; --principal shows those of one": (
            listing and (subjects or role)
        ),
        "--principal goes with --list": options["principal"] and not listing,
        "--producer and --consumer say the operations, and deny nothing": (
            role and (options["operation"] or denies)
        ),
        "With --producer you must specify a --topic or --transactional-id": (
            options["producer"] and not (options["topic"] or options["transactional_id"])
        ),
        "--idempotent goes with --producer": options["idempotent"] and not options["producer"],
        "With --consumer you must specify a --topic and a --group and no --cluster option"
        " should be specified.": options["consumer"]
        and (
            not (options["topic"] and options["group"])
            or (options["cluster"] and not options["producer"])
        ),
        "A '--resource-pattern-type' value of any or match is not valid when adding ACLs.": (
            options["action"] == "add" and pattern in ("any", "match")
        ),
        "You must specify one of: --allow-principal, --deny-principal when trying to add ACLs.": (
            options["action"] == "add"
            and not (options["allow_principal"] or options["deny_principal"])
        ),
    }
    for text, wrong in faults.items():
        if wrong:
            raise click.UsageError(text)


def _resources(options: dict[str, Any]) -> list[Resource]:
    pattern = PatternType[options["pattern"].upper()]
    found = [
        Resource(kind, name.strip(), pattern)
        for option, kind in RESOURCES.items()
        for name in options[option]
    ]
    if options["cluster"]:
        found.append(Resource(AclResourceType.CLUSTER, CLUSTER_NAME, PatternType.LITERAL))
    if not found and options["action"] != "list":
        raise click.UsageError(
            "You must provide at least one resource: --topic <topic> or --cluster or --group"
            " <group> or --delegation-token <Delegation Token ID>"
        )
    return list(dict.fromkeys(found))


def _change(session: AdminSession, options: dict[str, Any], resources: list[Resource]) -> None:
    roles = Roles(
        producer=options["producer"],
        consumer=options["consumer"],
        idempotent=options["idempotent"],
    )
    subjects = Subjects(
        allowed=options["allow_principal"],
        denied=options["deny_principal"],
        allowed_hosts=options["allow_host"],
        denied_hosts=options["deny_host"],
    )
    operations = [operation_of(each) for each in options["operation"]]
    planned = acls_of(operations_on(resources, operations, roles), subjects)
    if options["action"] == "add":
        _add(session, planned)
    else:
        _remove(session, planned, force=options["force"])


def _add(session: AdminSession, planned: dict[Resource, list[Acl]]) -> None:
    for resource, acls in planned.items():
        click.echo(f"Adding ACLs for resource `{resource}`: \n {_lines(acls)} \n")
    results = session.call(create_acls([acl for acls in planned.values() for acl in acls]))
    if results.errors:
        raise CommandError(str(next(iter(results.errors.values()))))


def _remove(session: AdminSession, planned: dict[Resource, list[Acl]], *, force: bool) -> None:
    for resource, acls in planned.items():
        question = f"Are you sure you want to delete all ACLs for resource filter `{resource}`?"
        if acls:
            question = (
                f"Are you sure you want to remove ACLs: \n {_lines(acls)} \n from resource filter"
                f" `{resource}`?"
            )
        if not force and not _confirmed(f"{question} (y/n)"):
            continue
        results = session.call(delete_acls(filters_of(resource, acls)))
        if results.errors:
            raise CommandError(str(next(iter(results.errors.values()))))


def _confirmed(question: str) -> bool:
    click.echo(question)
    return sys.stdin.readline().strip().lower() == "y"


def _list(session: AdminSession, resources: list[Resource], principals: Sequence[str]) -> None:
    filters = [each.filter() for each in resources] or [AclFilter()]
    found: dict[Resource, dict[Acl, None]] = {}
    for filter_ in filters:
        for acl in session.call(describe_acls(filter_)):
            about = Resource(acl.resource_type, acl.resource_name, acl.pattern_type)
            found.setdefault(about, {})[acl] = None
    if not principals:
        _show(found)
    for principal in principals:
        click.echo(f"ACLs for principal `{principal}`")
        _show(found, principal)


def _show(found: dict[Resource, dict[Acl, None]], principal: str | None = None) -> None:
    for resource, acls in found.items():
        if shown := [acl for acl in acls if principal in (None, acl.principal)]:
            click.echo(f"Current ACLs for resource `{resource}`: \n {_lines(shown)} \n")


def _lines(acls: Iterable[Acl]) -> str:
    return "\n".join(
        f"\t(principal={acl.principal}, host={acl.host}, operation={acl.operation.name},"
        f" permissionType={acl.permission.name})"
        for acl in acls
    )
