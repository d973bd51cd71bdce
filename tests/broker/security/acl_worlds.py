"""Random sets of rules and questions, small enough that they meet often."""

from __future__ import annotations

from random import Random

from barnabas_broker.security.acl_rules import Rules
from barnabas_broker.security.acls import (
    AccessControlEntry,
    AclBinding,
    AclOperation,
    Entries,
    PatternType,
    Permission,
    ResourcePattern,
    ResourceType,
)

WHO = ("User:a", "User:b", "Group:a", "User:*")
HOSTS = ("10.0.0.1", "10.0.0.2", "*")
KINDS = (ResourceType.TOPIC, ResourceType.GROUP)
NAMES = ("*", "a", "ab", "abc", "abd", "b", "ba")
OPERATIONS = tuple(AclOperation)[2:]


def binding(random: Random) -> AclBinding:
    """One rule."""
    kind = random.choice((PatternType.LITERAL, PatternType.PREFIXED))
    permission = Permission.ALLOW if random.random() < 0.7 else Permission.DENY
    operation = random.choice(OPERATIONS[:6] if random.random() < 0.7 else OPERATIONS)
    return AclBinding(
        ResourcePattern(random.choice(KINDS), random.choice(NAMES), kind),
        AccessControlEntry(random.choice(WHO), random.choice(HOSTS), operation, permission),
    )


def by_pattern(bindings: list[AclBinding]) -> dict[ResourcePattern, Entries]:
    """The same, as rules are kept."""
    grouped: dict[ResourcePattern, Entries] = {}
    for pattern, entry in bindings:
        grouped[pattern] = grouped.get(pattern, frozenset()) | {entry}
    return grouped


def question(random: Random) -> tuple[str, str, AclOperation, ResourceType, str]:
    """Who, where, what, on which resource."""
    return (
        random.choice(WHO[:3]),
        random.choice(HOSTS[:2]),
        random.choice(OPERATIONS[1:]),
        random.choice(KINDS),
        random.choice((*NAMES, "", "abcd")),
    )


def rules(bindings: list[AclBinding], super_users: list[str], *, without: bool) -> Rules:
    """The rules under test."""
    return Rules(by_pattern(bindings), super_users=super_users, allow_without=without)
