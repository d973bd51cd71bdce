"""`barnabas acls explain`: asks for the rules, decides as the broker does, and shows why."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import click

from barnabas_broker.cli.acl_plans import VALID, Resource
from barnabas_broker.cli.admin import AdminSession
from barnabas_broker.cli.client import Connection
from barnabas_broker.cli.errors import InputError
from barnabas_broker.cli.output import print_json, print_table
from barnabas_broker.security.acl_explanation import Explanation, NearMiss, Question, explain
from barnabas_broker.security.acl_settings import AuthorizerSettings, authorizer_settings
from barnabas_broker.security.acls import (
    AccessControlEntry,
    AclBinding,
    AclOperation,
    PatternType,
    Permission,
    ResourcePattern,
    ResourceType,
)
from barnabas_broker.security.principals import Principal
from barnabas_kafka.acls import AclOperation as Operation
from barnabas_kafka.client.security import Acl, AclFilter, describe_acls

UNKNOWN_SETTINGS: Final = (
    "Brokers do not show super.users and allow.everyone.if.no.acl.found: where the broker has set"
    " them, give its settings with --broker-config."
)


def settings_of(path: Path | None) -> AuthorizerSettings:
    """The authorizer's settings in a broker's properties file; raises InputError."""
    if path is None:
        return AuthorizerSettings()
    import javaproperties

    try:
        return authorizer_settings(javaproperties.loads(path.read_text(encoding="latin-1")))
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: {error}") from None


def questions(
    principal: str, host: str, operation: Operation, resources: Sequence[Resource]
) -> list[Question]:
    """One for each resource. Raises InputError where the operation means nothing there."""
    try:
        who = str(Principal.parse(principal))
    except ValueError as error:
        raise InputError(str(error)) from None
    if not resources:
        raise InputError("say on what: --topic, --group, --cluster or another")
    if operation is Operation.ALL:
        raise InputError("a broker is never asked about all operations; name one")
    for each in resources:
        if operation not in VALID[each.type]:
            allowed = ", ".join(it.name for it in VALID[each.type] if it is not Operation.ALL)
            raise InputError(f"{operation.name}: {each.type.name} only has {allowed}")
    return [
        Question(who, host, AclOperation(operation), ResourceType(each.type), each.name or "")
        for each in resources
    ]


def explained(
    connection: Connection, asked: Sequence[Question], settings: AuthorizerSettings
) -> list[tuple[Question, Explanation]]:
    """Each question, decided by the rules that the brokers have."""
    rules: dict[ResourceType, list[AclBinding]] = {}
    with AdminSession(connection) as session:
        for each in asked:
            if each.type not in rules:
                wanted = AclFilter(resource_type=_of_client(each.type))
                rules[each.type] = [_binding(acl) for acl in session.call(describe_acls(wanted))]
    return [(each, explain(rules[each.type], settings, each)) for each in asked]


def show(found: Iterable[tuple[Question, Explanation]], output: str, *, complete: bool) -> None:
    """Print verdicts and reasons; `complete`: the authorizer's settings were given."""
    found = list(found)
    if output == "json":
        print_json([_document(question, why) for question, why in found])
        return
    for question, why in found:
        verdict = "allowed" if why.decision.allowed else "denied"
        where = f" from host {question.host}" if question.host else ""
        click.echo(
            f"{question.operation.name} on {question.type.name} {question.name} is {verdict} to"
            f" {question.principal}{where}: {why.decision.reason}"
        )
        if why.near_misses and not why.decision.allowed:
            click.echo("ACLs that differ in one thing:")
            rows = [_row(each) for each in why.near_misses]
            print_table(list(rows[0]), [list(row.values()) for row in rows])
    if not complete and not all(why.decision.allowed for _, why in found):
        click.echo(UNKNOWN_SETTINGS, err=True)


def _document(question: Question, why: Explanation) -> dict[str, Any]:
    reason = why.decision.reason
    return {
        "resource": question.type.name,
        "name": question.name,
        "principal": question.principal,
        "host": question.host or None,
        "operation": question.operation.name,
        "allowed": why.decision.allowed,
        "reason": "acl" if isinstance(reason, AclBinding) else reason,
        "acl": _acl(reason) if isinstance(reason, AclBinding) else None,
        "near_misses": [_row(each) for each in why.near_misses],
    }


def _row(each: NearMiss) -> dict[str, str]:
    return {**_acl(each.binding), "differs_in": each.differs_in.value}


def _acl(binding: AclBinding) -> dict[str, str]:
    pattern, entry = binding
    return {
        "resource": pattern.type.name,
        "name": pattern.name,
        "pattern": pattern.pattern.name,
        "principal": entry.principal,
        "host": entry.host,
        "operation": entry.operation.name,
        "permission": entry.permission.name,
    }


def _of_client(kind: ResourceType) -> Any:
    from barnabas_kafka.acls import AclResourceType

    return AclResourceType(kind)


def _binding(acl: Acl) -> AclBinding:
    pattern = ResourcePattern(
        ResourceType(acl.resource_type), acl.resource_name, PatternType(acl.pattern_type)
    )
    entry = AccessControlEntry(
        acl.principal, acl.host, AclOperation(acl.operation), Permission(acl.permission)
    )
    return AclBinding(pattern, entry)
