"""Filters of rules, against the examples of KIP-290."""

from __future__ import annotations

import pytest

from barnabas_broker.security.acl_filters import AclFilter
from barnabas_broker.security.acls import (
    AccessControlEntry,
    AclOperation,
    PatternType,
    Permission,
    ResourcePattern,
    ResourceType,
)

ANY, MATCH = PatternType.ANY, PatternType.MATCH
LITERAL, PREFIXED = PatternType.LITERAL, PatternType.PREFIXED
TOPIC = ResourceType.TOPIC


def filter_of(
    name: str | None = None,
    pattern: PatternType = ANY,
    *,
    kind: ResourceType = TOPIC,
    principal: str | None = None,
    host: str | None = None,
    operation: AclOperation = AclOperation.ANY,
    permission: Permission = Permission.ANY,
) -> AclFilter:
    """A filter that lets through what is not said."""
    return AclFilter(kind, name, pattern, principal, host, operation, permission)


@pytest.mark.parametrize(
    ("wanted", "pattern", "name", "covered"),
    [
        (("foo", LITERAL), LITERAL, "foo", True),
        (("foo", LITERAL), LITERAL, "*", False),
        (("foo", LITERAL), PREFIXED, "foo", False),
        ((None, LITERAL), LITERAL, "foo", True),
        ((None, LITERAL), PREFIXED, "foo", False),
        (("foo", ANY), PREFIXED, "foo", True),
        (("foo", ANY), PREFIXED, "fo", False),
        (("foo", ANY), LITERAL, "*", False),
        (("foo", MATCH), LITERAL, "*", True),
        (("foo", MATCH), LITERAL, "foo", True),
        (("foo", MATCH), LITERAL, "fo", False),
        (("foo", MATCH), PREFIXED, "fo", True),
        (("foo", MATCH), PREFIXED, "food", False),
        (("*", MATCH), LITERAL, "foo", False),
        ((None, MATCH), PREFIXED, "foo", True),
        (("foo", PatternType.UNKNOWN), LITERAL, "foo", False),
    ],
)
def test_which_patterns_are_meant(
    wanted: tuple[str | None, PatternType], pattern: PatternType, name: str, *, covered: bool
) -> None:
    """Exact names, all names, or the patterns that apply to a name."""
    assert filter_of(*wanted).covers(ResourcePattern(TOPIC, name, pattern)) is covered


def test_a_type_must_be_the_one_that_is_meant() -> None:
    """ANY is every type."""
    group = ResourcePattern(ResourceType.GROUP, "foo")
    assert not filter_of("foo").covers(group)
    assert filter_of("foo", kind=ResourceType.ANY).covers(group)


def test_which_entries_are_meant() -> None:
    """A field that is given must be equal: a filter's wildcard is no wildcard."""
    entry = AccessControlEntry("User:a", "*", AclOperation.ALL, Permission.ALLOW)
    assert filter_of().matches(entry)
    assert filter_of(principal="User:a", host="*").matches(entry)
    assert not filter_of(principal="User:*").matches(entry)
    assert not filter_of(host="10.0.0.1").matches(entry)
    assert not filter_of(operation=AclOperation.READ).matches(entry)
    assert not filter_of(permission=Permission.DENY).matches(entry)


def test_patterns_that_a_filter_names() -> None:
    """Only these are looked for in the store."""
    literal, prefixed = (ResourcePattern(TOPIC, "a", each) for each in (LITERAL, PREFIXED))
    assert filter_of("a", LITERAL).named_patterns() == (literal,)
    assert filter_of("a", ANY).named_patterns() == (literal, prefixed)
    assert filter_of("a", MATCH).named_patterns() == ()
    assert filter_of(None, LITERAL).named_patterns() == ()
    assert filter_of("a", LITERAL, kind=ResourceType.ANY).named_patterns() == ()
