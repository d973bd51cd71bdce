"""What ACLs allow, as Kafka's documents say it: every rule is looked at, nothing is indexed."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from barnabas_broker.security.acls import (
    AclBinding,
    AclOperation,
    PatternType,
    Permission,
    ResourceType,
)

OP = AclOperation
IMPLIES = {
    OP.READ: {OP.DESCRIBE},
    OP.WRITE: {OP.DESCRIBE},
    OP.DELETE: {OP.DESCRIBE},
    OP.ALTER: {OP.DESCRIBE},
    OP.ALTER_CONFIGS: {OP.DESCRIBE_CONFIGS},
}


def applies(rule: AclBinding, kind: ResourceType, name: str) -> bool:
    """Whether a rule is about a resource at all."""
    if rule.pattern.type is not kind:
        return False
    if rule.pattern.pattern is PatternType.PREFIXED:
        return name.startswith(rule.pattern.name)
    return rule.pattern.name in ("*", name)


def speaks_of(rule: AclBinding, who: str, host: str, operation: AclOperation) -> bool:
    """Whether it is about that principal, host and operation."""
    _, entry = rule
    covered = {entry.operation}
    if entry.permission is Permission.ALLOW:
        covered |= IMPLIES.get(entry.operation, set())
    at = entry.principal in (who, "User:*") and entry.host in (host, "*")
    return at and (entry.operation is OP.ALL or operation in covered)


def allows(
    rules: Sequence[AclBinding],
    asked: tuple[str, str, AclOperation, ResourceType, str],
    *,
    super_users: Collection[str] = (),
    without: bool = False,
) -> bool:
    """Whether who, at a host, may do an operation on the resource of a type and name."""
    who, host, operation, kind, name = asked
    applying = [rule for rule in rules if applies(rule, kind, name)]
    if who in super_users or not applying:
        return who in super_users or without
    said = {r.entry.permission for r in applying if speaks_of(r, who, host, operation)}
    return Permission.ALLOW in said and Permission.DENY not in said
