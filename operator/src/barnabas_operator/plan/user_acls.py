"""ACLs of a user: the roles and rules of a resource expanded, one ACL for each operation.

The roles are those of kafka-acls (`--producer`, `--consumer`) and of the documentation of Kafka
Streams.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from barnabas_operator.api.users import (
    CLUSTER_NAME,
    AclOperation,
    AclPermission,
    AclResourceType,
    PatternType,
    Role,
    RoleType,
    UserAuthorization,
)

_PRODUCER_TOPIC: Final = (AclOperation.WRITE, AclOperation.DESCRIBE, AclOperation.CREATE)
_TRANSACTIONAL_ID: Final = (AclOperation.WRITE, AclOperation.DESCRIBE)
_CONSUMER_TOPIC: Final = (AclOperation.READ, AclOperation.DESCRIBE)
_CONSUMER_GROUP: Final = (AclOperation.READ,)
# Repartition and changelog topics: created with settings of their own, purged and deleted.
_STREAMS_TOPIC: Final = (
    AclOperation.READ, AclOperation.WRITE, AclOperation.CREATE, AclOperation.DELETE,
    AclOperation.DESCRIBE, AclOperation.DESCRIBE_CONFIGS, AclOperation.ALTER_CONFIGS,
)  # fmt: skip
_STREAMS_GROUP: Final = (AclOperation.READ, AclOperation.DESCRIBE, AclOperation.DELETE)


@dataclass(frozen=True, slots=True, order=True, kw_only=True)
class Acl:
    """One ACL of a known user, in the words of the resource."""

    resource: AclResourceType
    name: str
    pattern: PatternType = PatternType.LITERAL
    host: str = "*"
    operation: AclOperation
    permission: AclPermission = AclPermission.ALLOW

    def __str__(self) -> str:
        name = f"{self.name}*" if self.pattern is PatternType.PREFIXED else self.name
        host = "" if self.host == "*" else f" from {self.host}"
        return f"{self.permission} {self.operation} on {self.resource} {name}{host}"


def acls_of(authorization: UserAuthorization | None) -> frozenset[Acl]:
    """The ACLs that a resource asks for. Raises ValueError for a role that lacks a name."""
    if authorization is None:
        return frozenset()
    wanted = {acl for role in authorization.roles for acl in _acls_of_role(role)}
    for rule in authorization.acls:
        resource = rule.resource
        if resource.type is AclResourceType.CLUSTER:
            name = CLUSTER_NAME
        else:
            name = _needed(resource.name, f"an ACL on a {resource.type} needs its name")
        wanted |= {
            Acl(
                resource=resource.type,
                name=name,
                pattern=resource.pattern_type,
                host=rule.host,
                operation=operation,
                permission=rule.permission,
            )
            for operation in rule.operations
        }
    return frozenset(wanted)


def _acls_of_role(role: Role) -> Iterator[Acl]:
    pattern = role.pattern_type or PatternType.LITERAL
    if role.type is RoleType.STREAMS:
        name = _needed(role.application_id, "role streams needs its applicationId")
        # The group is the application's name. Its topics and transactional ids have a dash after
        # that: without it `pay` would have those of `payments`, too.
        own, prefixed = f"{name}-", PatternType.PREFIXED
        yield from _on(AclResourceType.GROUP, name, PatternType.LITERAL, _STREAMS_GROUP)
        yield from _on(AclResourceType.TOPIC, own, prefixed, _STREAMS_TOPIC)
        yield from _on(AclResourceType.TRANSACTIONAL_ID, own, prefixed, _TRANSACTIONAL_ID)
        return
    topic = _needed(role.topic, f"role {role.type} needs its topic")
    if role.type is RoleType.PRODUCER:
        yield from _on(AclResourceType.TOPIC, topic, pattern, _PRODUCER_TOPIC)
        if role.transactional_id is not None:
            kind = AclResourceType.TRANSACTIONAL_ID
            yield from _on(kind, role.transactional_id, pattern, _TRANSACTIONAL_ID)
        return
    yield from _on(AclResourceType.TOPIC, topic, pattern, _CONSUMER_TOPIC)
    if role.group is not None:
        yield from _on(AclResourceType.GROUP, role.group, pattern, _CONSUMER_GROUP)


def _on(
    resource: AclResourceType,
    name: str,
    pattern: PatternType,
    operations: tuple[AclOperation, ...],
) -> Iterator[Acl]:
    for operation in operations:
        yield Acl(resource=resource, name=name, pattern=pattern, operation=operation)


def _needed(name: str | None, problem: str) -> str:
    """The API server checks it with CEL; a definition of another version may not."""
    if name is None:
        raise ValueError(f"spec.authorization: {problem}")
    return name
