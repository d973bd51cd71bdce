"""Why somebody may or may not: the broker's own decision, and the rules that came close."""

from __future__ import annotations

from random import Random

import pytest

from barnabas_broker.security.acl_explanation import Difference, Question, explain
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
from barnabas_broker.security.authorizer import AclAuthorizer
from barnabas_broker.security.principals import Principal
from tests.broker.security import acl_worlds as worlds

TOPIC, LITERAL, PREFIXED = ResourceType.TOPIC, PatternType.LITERAL, PatternType.PREFIXED
READ, DESCRIBE = AclOperation.READ, AclOperation.DESCRIBE
ALLOW, DENY = Permission.ALLOW, Permission.DENY


def test_the_verdict_is_the_authorizers() -> None:
    """Random rules, super users and questions; both outcomes in earnest."""
    random = Random(11)
    verdicts = []
    for _ in range(500):
        bindings = [worlds.binding(random) for _ in range(random.choice((0, 1, 2, 4, 8, 16)))]
        supers = random.sample(worlds.WHO[:3], random.choice((0, 0, 0, 1)))
        without = random.random() < 0.3
        rules = worlds.rules(bindings, supers, without=without)
        authorizer = AclAuthorizer(rules, monotonic_s=lambda: 0.0)
        settings = AuthorizerSettings(frozenset(supers), without)
        for _ in range(10):
            who, host, operation, kind, name = asked = Question(*worlds.question(random))
            found = explain(bindings, settings, asked)
            resource = ResourcePattern(kind, name)
            wanted = authorizer.authorize(Principal.parse(who), host, operation, resource)
            assert found.decision.allowed is wanted, (asked, bindings)
            verdicts.append(wanted)
            for binding, differs_in in found.near_misses:
                # With that one thing as asked for, the rule alone decides.
                mended = mend(binding, differs_in, asked)
                alone = explain([mended], AuthorizerSettings(), asked)
                assert alone.decision.reason == mended, (asked, binding, differs_in)
    assert min(verdicts.count(True), verdicts.count(False)) > len(verdicts) // 10


def mend(binding: AclBinding, differs_in: Difference, asked: Question) -> AclBinding:
    """The rule without what keeps it from applying."""
    pattern, entry = binding
    match differs_in:
        case Difference.PRINCIPAL:
            entry = entry._replace(principal=asked.principal)
        case Difference.HOST:
            entry = entry._replace(host=asked.host)
        case Difference.OPERATION:
            entry = entry._replace(operation=asked.operation)
        case Difference.RESOURCE:
            pattern = ResourcePattern(asked.type, asked.name)
    return AclBinding(pattern, entry)


def rule(
    name: str, principal: str = "User:alice", operation: AclOperation = READ, **more: str
) -> AclBinding:
    """One that allows."""
    entry = AccessControlEntry(principal, more.get("host", "*"), operation, ALLOW)
    return AclBinding(ResourcePattern(TOPIC, name), entry)


def test_acls_that_nearly_match() -> None:
    """One thing differs; two are too many."""
    close = {
        rule("orders", "User:bob"): Difference.PRINCIPAL,
        rule("orders", host="10.0.0.9"): Difference.HOST,
        rule("orders", operation=AclOperation.WRITE): Difference.OPERATION,
        rule("order"): Difference.RESOURCE,
    }
    far = [rule("order", "User:bob"), rule("order", host="10.0.0.9")]
    asked = Question("User:alice", "", READ, TOPIC, "orders")
    found = explain([*close, *far], AuthorizerSettings(), asked)
    assert not found.decision.allowed
    assert dict(found.near_misses) == close


def test_an_implied_operation_matches() -> None:
    """Read allows Describe."""
    binding = rule("orders")
    asked = Question("User:alice", "", DESCRIBE, TOPIC, "orders")
    assert explain([binding], AuthorizerSettings(), asked).decision.reason == binding


def test_the_settings_of_an_authorizer() -> None:
    """As a broker reads them."""
    given = {"super.users": "User:a; User:CN=b,O=c;", "allow.everyone.if.no.acl.found": "TRUE"}
    assert authorizer_settings(given) == (frozenset({"User:a", "User:CN=b,O=c"}), True)
    assert authorizer_settings({}) == (frozenset(), False)
    for wrong in ({"super.users": "alice"}, {"allow.everyone.if.no.acl.found": "maybe"}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            authorizer_settings(wrong)
