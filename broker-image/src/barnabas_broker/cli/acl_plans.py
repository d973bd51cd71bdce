"""The ACLs of a command line: principals, hosts and operations on resources, or their roles.

The roles are those of Kafka's `AclCommand`: what a producer or a consumer needs at the least.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from barnabas_broker.cli.errors import InputError
from barnabas_kafka.acls import AclOperation, AclPermission, AclResourceType, PatternType
from barnabas_kafka.client.security import Acl, AclFilter

CLUSTER_NAME: Final = "kafka-cluster"
NAMED: Final = {
    "topic": AclResourceType.TOPIC,
    "group": AclResourceType.GROUP,
    "transactional_id": AclResourceType.TRANSACTIONAL_ID,
    "delegation_token": AclResourceType.DELEGATION_TOKEN,
}
"""The resources with names, by the parameter of the option that both tools have for them."""
Op = AclOperation

VALID: Final[Mapping[AclResourceType, tuple[AclOperation, ...]]] = {
    AclResourceType.TOPIC: (
        Op.READ, Op.WRITE, Op.CREATE, Op.DESCRIBE, Op.DELETE, Op.ALTER, Op.DESCRIBE_CONFIGS,
        Op.ALTER_CONFIGS, Op.ALL,
    ),
    AclResourceType.GROUP: (Op.READ, Op.DESCRIBE, Op.DELETE, Op.ALL),
    AclResourceType.CLUSTER: (
        Op.CREATE, Op.CLUSTER_ACTION, Op.DESCRIBE_CONFIGS, Op.ALTER_CONFIGS, Op.IDEMPOTENT_WRITE,
        Op.ALTER, Op.DESCRIBE, Op.ALL,
    ),
    AclResourceType.TRANSACTIONAL_ID: (Op.DESCRIBE, Op.WRITE, Op.ALL),
    AclResourceType.DELEGATION_TOKEN: (Op.DESCRIBE, Op.ALL),
    AclResourceType.USER: (Op.CREATE_TOKENS, Op.DESCRIBE_TOKENS, Op.ALL),
}  # fmt: skip
"""The operations that mean something on a resource."""

PRODUCER: Final[Mapping[AclResourceType, tuple[AclOperation, ...]]] = {
    AclResourceType.TOPIC: (Op.WRITE, Op.DESCRIBE, Op.CREATE),
    AclResourceType.TRANSACTIONAL_ID: (Op.WRITE, Op.DESCRIBE),
}
CONSUMER: Final[Mapping[AclResourceType, tuple[AclOperation, ...]]] = {
    AclResourceType.TOPIC: (Op.READ, Op.DESCRIBE),
    AclResourceType.GROUP: (Op.READ,),
}


@dataclass(frozen=True, slots=True)
class Resource:
    """What ACLs are about; the pattern type may be that of a filter."""

    type: AclResourceType
    name: str | None
    pattern: PatternType

    def __str__(self) -> str:
        return (
            f"ResourcePattern(resourceType={self.type.name}, name={self.name or '<any>'},"
            f" patternType={self.pattern.name})"
        )

    def filter(self) -> AclFilter:
        """Every ACL about it."""
        return AclFilter(
            resource_type=self.type, resource_name=self.name, pattern_type=self.pattern
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Subjects:
    """The principals that ACLs allow or deny, and their hosts; without hosts any host."""

    allowed: Sequence[str] = ()
    denied: Sequence[str] = ()
    allowed_hosts: Sequence[str] = ()
    denied_hosts: Sequence[str] = ()

    def __iter__(self) -> Iterator[tuple[str, str, AclPermission]]:
        for principals, hosts, permission in (
            (self.allowed, self.allowed_hosts, AclPermission.ALLOW),
            (self.denied, self.denied_hosts, AclPermission.DENY),
        ):
            for principal in principals:
                if not principal.partition(":")[1]:
                    raise InputError(f"a principal is written User:name, not {principal}")
                for host in hosts or ("*",):
                    yield principal.strip(), host.strip(), permission


@dataclass(frozen=True, slots=True, kw_only=True)
class Roles:
    """Whether operations are those of a role."""

    producer: bool = False
    consumer: bool = False
    idempotent: bool = False

    def __bool__(self) -> bool:
        return self.producer or self.consumer


def operation_of(text: str) -> AclOperation:
    """The operation called so, in any case, with or without underscores. Raises InputError."""
    wanted = text.strip().replace("_", "").upper()
    operations = [each for each in Op if each not in (Op.UNKNOWN, Op.ANY)]
    found = [each for each in operations if each.name.replace("_", "") == wanted]
    if not found:
        known = ", ".join(each.name for each in operations)
        raise InputError(f"there is no operation {text}, only {known}")
    return found[0]


def operations_on(
    resources: Sequence[Resource], operations: Iterable[AclOperation], roles: Roles
) -> dict[Resource, tuple[AclOperation, ...]]:
    """What is allowed or denied on each resource. Raises InputError where it means nothing."""
    wanted: dict[Resource, tuple[AclOperation, ...]] = {}
    if not roles:
        wanted = dict.fromkeys(resources, tuple(dict.fromkeys(operations)) or (Op.ALL,))
    for chosen, needs in ((roles.producer, PRODUCER), (roles.consumer, CONSUMER)):
        for resource in resources if chosen else ():
            if more := needs.get(resource.type):
                wanted[resource] = tuple(dict.fromkeys((*wanted.get(resource, ()), *more)))
    if roles.idempotent and roles.producer:
        cluster = Resource(AclResourceType.CLUSTER, CLUSTER_NAME, PatternType.LITERAL)
        wanted[cluster] = (Op.IDEMPOTENT_WRITE,)
    for resource, some in wanted.items():
        valid = VALID.get(resource.type, tuple(Op))
        if meaningless := [each.name for each in some if each not in valid]:
            allowed = ", ".join(each.name for each in valid)
            raise InputError(
                f"{meaningless[0]}: ResourceType {resource.type.name} only supports operations"
                f" {allowed}"
            )
    return wanted


def acls_of(
    operations: Mapping[Resource, Iterable[AclOperation]], subjects: Subjects
) -> dict[Resource, list[Acl]]:
    """The ACLs of each resource; none where no principal is named."""
    return {
        resource: [
            Acl(
                resource_type=resource.type,
                resource_name=resource.name or "",
                pattern_type=resource.pattern,
                principal=principal,
                host=host,
                operation=operation,
                permission=permission,
            )
            for operation in some
            for principal, host, permission in subjects
        ]
        for resource, some in operations.items()
    }


def filters_of(resource: Resource, acls: Sequence[Acl]) -> list[AclFilter]:
    """What deletes these ACLs of a resource, or without any, all."""
    if not acls:
        return [resource.filter()]
    return [replace(acl.filter(), resource_name=resource.name) for acl in acls]
