"""Why a principal may, or may not, do something: the decision, and the rules that came close.

The decision is that of the broker's own `Rules`. A rule came close if one thing keeps it from
applying: it is about another principal, host, operation or resource of the type.
"""

from collections.abc import Iterable
from enum import Enum
from typing import NamedTuple

from barnabas_broker.security.acl_filters import AclFilter
from barnabas_broker.security.acl_rules import Decision, Rules, java_address, sufficient_for
from barnabas_broker.security.acl_settings import AuthorizerSettings
from barnabas_broker.security.acls import (
    WILDCARD,
    WILDCARD_PRINCIPAL,
    AclBinding,
    AclOperation,
    Entries,
    PatternType,
    Permission,
    ResourcePattern,
    ResourceType,
)


class Question(NamedTuple):
    """May `principal`, at `host`, do this to the resource? Without a host: at one of no rule."""

    principal: str
    host: str
    operation: AclOperation
    type: ResourceType
    name: str


class Difference(Enum):
    """What keeps a rule from applying."""

    PRINCIPAL = "principal"
    HOST = "host"
    OPERATION = "operation"
    RESOURCE = "resource"


class NearMiss(NamedTuple):
    """A rule that would apply but for one thing."""

    binding: AclBinding
    differs_in: Difference


class Explanation(NamedTuple):
    """The decision, and which rules came close."""

    decision: Decision
    near_misses: list[NearMiss]


def explain(
    bindings: Iterable[AclBinding], settings: AuthorizerSettings, question: Question
) -> Explanation:
    """The decision of a broker that has these rules and settings, and the reasons."""
    asked = question._replace(host=java_address(question.host))
    bindings = list(bindings)
    entries: dict[ResourcePattern, Entries] = {}
    for pattern, entry in bindings:
        entries[pattern] = entries.get(pattern, frozenset()) | {entry}
    rules = Rules(entries, super_users=settings.super_users, allow_without=settings.allow_without)
    near = [
        NearMiss(binding, differences[0])
        for binding in sorted(set(bindings))
        if len(differences := _differences(binding, asked)) == 1
    ]
    return Explanation(rules.decide(*asked), near)


def _differences(binding: AclBinding, asked: Question) -> list[Difference]:
    pattern, entry = binding
    about = AclFilter(
        asked.type, asked.name, PatternType.MATCH, None, None, AclOperation.ANY, Permission.ANY
    )
    sufficient: tuple[AclOperation, ...] = (asked.operation,)
    if entry.permission is Permission.ALLOW:
        sufficient = sufficient_for(asked.operation)
    applies = {
        Difference.PRINCIPAL: entry.principal in (asked.principal, WILDCARD_PRINCIPAL),
        Difference.HOST: entry.host in (asked.host, WILDCARD),
        Difference.OPERATION: entry.operation in (*sufficient, AclOperation.ALL),
        Difference.RESOURCE: about.covers(pattern),
    }
    if pattern.type is not asked.type:
        return list(Difference)
    return [each for each, holds in applies.items() if not holds]
