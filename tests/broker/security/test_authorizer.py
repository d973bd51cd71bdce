"""The authorizer: cached decisions that a change ends at once, and the audit log."""

from __future__ import annotations

from barnabas_broker.security.acls import (
    ResourcePattern,
    ResourceType,
)
from barnabas_broker.security.authorizer import DECISIONS_MAX, NAME_MAX, AclAuthorizer
from tests.broker.security.examples import ALICE, HOST, MAY_READ, READ, TOPIC


def test_a_change_is_in_effect_at_once(authorizer: AclAuthorizer) -> None:
    """What was decided by the old rules is forgotten with them."""
    for entries, allowed in ((), False), ((MAY_READ,), True), ((), False):
        authorizer.publish(authorizer.rules.with_entries({TOPIC: frozenset(entries)}))
        for _ in range(2):
            assert authorizer.authorize(ALICE, HOST, READ, TOPIC) is allowed
            by_type = authorizer.authorize_by_type(ALICE, HOST, READ, ResourceType.TOPIC)
            assert by_type is allowed


def test_decisions_are_bounded(authorizer: AclAuthorizer) -> None:
    """Clients may ask about any number of names, and about long ones."""
    for number in range(DECISIONS_MAX + 10):
        name = ResourcePattern(ResourceType.TOPIC, f"t{number}")
        authorizer.authorize(ALICE, HOST, READ, name, audited=False)
    assert len(authorizer._current.decisions) <= DECISIONS_MAX
    long = ResourcePattern(ResourceType.GROUP, "g" * (NAME_MAX + 1))
    kept = len(authorizer._current.decisions)
    assert not authorizer.authorize(ALICE, HOST, READ, long)
    assert len(authorizer._current.decisions) == kept


def test_addresses_are_compared_as_java_writes_them(authorizer: AclAuthorizer) -> None:
    """A rule for `0:0:0:0:0:0:0:1` is about who comes from `::1`."""
    entry = MAY_READ._replace(host="0:0:0:0:0:0:0:1")
    authorizer.publish(authorizer.rules.with_entries({TOPIC: frozenset({entry})}))
    assert authorizer.authorize(ALICE, "::1", READ, TOPIC)
    assert not authorizer.authorize(ALICE, "::2", READ, TOPIC)
