"""The vocabulary of access rules: operations, resources and patterns, with Kafka's numbers.

Numbers travel in Describe/Create/DeleteAcls and, as bit positions, in the authorised-operations
fields of Metadata, DescribeCluster and DescribeGroups (KIP-430).
"""

from collections.abc import Iterable
from enum import IntEnum
from typing import NamedTuple, TypeVar

from barnabas_kafka.acls import AclOperation, AclPermission, AclResourceType, PatternType

__all__ = [
    "CLUSTER_NAME",
    "OPERATIONS_NOT_REQUESTED",
    "WILDCARD",
    "WILDCARD_PRINCIPAL",
    "AccessControlEntry",
    "AclBinding",
    "AclOperation",
    "Entries",
    "PatternType",
    "Permission",
    "ResourcePattern",
    "ResourceType",
    "from_code",
    "from_kafka_name",
    "kafka_name",
    "operation_bits",
]

ResourceType = AclResourceType
Permission = AclPermission


class ResourcePattern(NamedTuple):
    """A resource, or the set of resources that a rule covers."""

    type: ResourceType
    name: str
    pattern: PatternType = PatternType.LITERAL

    def __str__(self) -> str:
        return f"{kafka_name(self.type)}:{self.pattern.name}:{self.name}"


class AccessControlEntry(NamedTuple):
    """Allows or denies a principal an operation from a host; `principal` is as in `User:alice`."""

    principal: str
    host: str
    operation: AclOperation
    permission: Permission

    def __str__(self) -> str:
        return (
            f"{kafka_name(self.permission)} {kafka_name(self.operation)} to {self.principal}"
            f" from host {self.host}"
        )


class AclBinding(NamedTuple):
    """A rule: an entry, and what it is about."""

    pattern: ResourcePattern
    entry: AccessControlEntry

    def __str__(self) -> str:
        return f"{self.entry} on {self.pattern}"


Entries = frozenset[AccessControlEntry]
"""All that is said of one resource pattern."""

Member = TypeVar("Member", bound=IntEnum)


def kafka_name(member: IntEnum) -> str:
    """As znodes, tools and the audit log write it: `IdempotentWrite` for IDEMPOTENT_WRITE."""
    return "".join(word.capitalize() for word in member.name.split("_"))


def from_kafka_name(kind: type[Member], text: str) -> Member:
    """The member that is written so, in any case; the one of number 0 (UNKNOWN) for any other."""
    wanted = text.replace("_", "").upper()
    return next((each for each in kind if each.name.replace("_", "") == wanted), kind(0))


def from_code(kind: type[Member], code: int) -> Member:
    """The member of that number; the one of number 0 (UNKNOWN) where there is none."""
    return kind(code) if code in kind.__members__.values() else kind(0)


# The wildcards: every resource of a type, every principal and every host.
WILDCARD = "*"
WILDCARD_PRINCIPAL = "User:*"

# The one name that the cluster resource has.
CLUSTER_NAME = "kafka-cluster"

# The operations that mean something on each kind of resource (AclEntry.supportedOperations):
# these are the ones whose bits an authorised-operations field may carry.
OPERATIONS_OF: dict[ResourceType, tuple[AclOperation, ...]] = {
    ResourceType.TOPIC: (
        AclOperation.READ,
        AclOperation.WRITE,
        AclOperation.CREATE,
        AclOperation.DELETE,
        AclOperation.ALTER,
        AclOperation.DESCRIBE,
        AclOperation.DESCRIBE_CONFIGS,
        AclOperation.ALTER_CONFIGS,
    ),
    ResourceType.GROUP: (AclOperation.READ, AclOperation.DELETE, AclOperation.DESCRIBE),
    ResourceType.CLUSTER: (
        AclOperation.CREATE,
        AclOperation.ALTER,
        AclOperation.DESCRIBE,
        AclOperation.CLUSTER_ACTION,
        AclOperation.DESCRIBE_CONFIGS,
        AclOperation.ALTER_CONFIGS,
        AclOperation.IDEMPOTENT_WRITE,
    ),
    ResourceType.TRANSACTIONAL_ID: (AclOperation.WRITE, AclOperation.DESCRIBE),
    ResourceType.DELEGATION_TOKEN: (AclOperation.DESCRIBE,),
    ResourceType.USER: (AclOperation.CREATE_TOKENS, AclOperation.DESCRIBE_TOKENS),
}

# "Not asked for": the value of an authorised-operations field whose request flag was not set.
OPERATIONS_NOT_REQUESTED = -(2**31)


def operation_bits(operations: Iterable[AclOperation]) -> int:
    """The bit field of KIP-430: bit n set for the operation with number n."""
    bits = 0
    for operation in operations:
        bits |= 1 << operation
    return bits
