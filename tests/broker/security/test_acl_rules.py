"""Rules: what they allow, against a model that looks at each, and by Kafka's own examples."""

from __future__ import annotations

from random import Random

import pytest

from barnabas_broker.security.acl_rules import Rules, java_address
from barnabas_broker.security.acls import (
    AccessControlEntry,
    AclBinding,
    AclOperation,
    PatternType,
    Permission,
    ResourcePattern,
    ResourceType,
)
from tests.broker.security import acl_worlds as worlds
from tests.broker.security.acl_model import allows

CASES = 10_000
QUESTIONS_EACH = 20
TOPIC, ALICE, HERE = ResourceType.TOPIC, "User:alice", "10.0.0.1"
READ, WRITE = AclOperation.READ, AclOperation.WRITE
ALLOW, DENY = Permission.ALLOW, Permission.DENY
LITERAL, PREFIXED = PatternType.LITERAL, PatternType.PREFIXED


def compare(seed: int, cases: int) -> tuple[int, int]:
    """Put so many questions to both; how many were allowed, and how many refused."""
    random = Random(seed)
    allowed = 0
    for _ in range(cases // QUESTIONS_EACH):
        bindings = [worlds.binding(random) for _ in range(random.choice((0, 1, 2, 4, 8, 16)))]
        supers = random.sample(worlds.WHO[:3], random.choice((0, 0, 0, 1)))
        without = random.random() < 0.3
        rules = worlds.rules(bindings, supers, without=without)
        for _ in range(QUESTIONS_EACH):
            asked = worlds.question(random)
            wanted = allows(bindings, asked, super_users=supers, without=without)
            decision = rules.decide(*asked)
            assert decision.allowed is wanted, (asked, bindings, decision)
            allowed += wanted
    return allowed, cases - allowed


def test_rules_allow_what_the_model_allows() -> None:
    """Random rules and questions, both outcomes in earnest."""
    allowed, refused = compare(7, CASES)
    assert min(allowed, refused) > CASES // 10


@pytest.mark.soak
def test_rules_allow_what_the_model_allows_ten_times_as_often() -> None:
    """The same for 10^5 questions."""
    compare(8, 10 * CASES)


def test_changed_rules_equal_rules_built_from_scratch() -> None:
    """`with_entries` replaces, adds and removes patterns."""
    random = Random(9)
    for _ in range(50):
        before = [worlds.binding(random) for _ in range(6)]
        after = [worlds.binding(random) for _ in range(6)]
        old, new = worlds.by_pattern(before), worlds.by_pattern(after)
        changed = Rules(old).with_entries({**dict.fromkeys(old, frozenset()), **new})
        fresh = Rules(new)
        assert changed.entries == fresh.entries
        for _ in range(10):
            asked = worlds.question(random)
            assert changed.decide(*asked).allowed is fresh.decide(*asked).allowed


def rule(
    name: str,
    permission: Permission = ALLOW,
    *,
    pattern: PatternType = LITERAL,
    operation: AclOperation = WRITE,
    principal: str = ALICE,
    host: str = "*",
) -> AclBinding:
    """One rule about topics."""
    return AclBinding(
        ResourcePattern(TOPIC, name, pattern),
        AccessControlEntry(principal, host, operation, permission),
    )


@pytest.mark.parametrize(
    ("bindings", "allowed"),
    [
        ([], False),
        ([rule("a")], True),
        ([rule("*")], True),
        ([rule("a", pattern=PREFIXED)], True),
        ([rule("a", operation=READ)], False),
        ([rule("a", operation=AclOperation.ALL)], True),
        ([rule("a", principal="User:bob")], False),
        ([rule("a", principal="User:*")], True),
        ([rule("a", host="10.0.0.2")], False),
        ([rule("a"), rule("a", DENY)], False),
        ([rule("a"), rule("*", DENY)], False),
        ([rule("*"), rule("*", DENY)], False),
        ([rule("*"), rule("a", DENY, pattern=PREFIXED)], True),
        ([rule("a"), rule("b", DENY)], True),
        ([rule("ab"), rule("a", DENY, pattern=PREFIXED)], False),
        ([rule("ab", pattern=PREFIXED), rule("a", DENY, pattern=PREFIXED)], False),
        ([rule("a", pattern=PREFIXED), rule("ab", DENY, pattern=PREFIXED)], True),
        ([rule("a", pattern=PREFIXED), rule("a", DENY)], True),
        ([rule("a"), rule("a", DENY, principal="User:bob")], True),
        ([rule("a"), rule("a", DENY, operation=READ)], True),
        ([rule("a"), rule("a", DENY, operation=AclOperation.ALL)], False),
        ([rule("a"), rule("a", DENY, host="10.0.0.2")], True),
    ],
)
def test_any_topic_is_enough(bindings: list[AclBinding], allowed: bool) -> None:
    """KIP-679, by the cases of Kafka's AuthorizerTest: writing to any topic is asked about."""
    rules = worlds.rules(bindings, [], without=False)
    assert rules.decide_by_type(ALICE, HERE, WRITE, TOPIC).allowed is allowed


def test_any_topic_is_allowed_without_rules() -> None:
    """Only a rule that denies all topics denies any."""
    for bindings, allowed in (
        ([], True),
        ([rule("a", DENY)], True),
        ([rule("a", DENY, pattern=PREFIXED)], True),
        ([rule("*", DENY)], False),
    ):
        rules = worlds.rules(bindings, [], without=True)
        assert rules.decide_by_type(ALICE, HERE, WRITE, TOPIC).allowed is allowed


def test_a_super_user_may_do_everything() -> None:
    """Also what is denied."""
    rules = worlds.rules([rule("*", DENY, principal="User:*")], [ALICE], without=False)
    assert rules.decide(ALICE, HERE, WRITE, TOPIC, "a").allowed
    assert rules.decide_by_type(ALICE, HERE, WRITE, TOPIC).allowed
    assert not rules.decide("User:bob", HERE, WRITE, TOPIC, "a").allowed


def test_a_decision_names_its_rule() -> None:
    """As the audit log shows it."""
    rules = worlds.rules([rule("ab", DENY, pattern=PREFIXED)], [ALICE], without=False)
    denied = rules.decide("User:alice2", HERE, WRITE, TOPIC, "abc")
    assert str(denied.reason) == "no ACL that allows it"
    rules = worlds.rules([rule("ab", DENY, pattern=PREFIXED)], [], without=False)
    denied = rules.decide(ALICE, HERE, WRITE, TOPIC, "abc")
    assert str(denied.reason) == "Deny Write to User:alice from host * on Topic:PREFIXED:ab"


@pytest.mark.parametrize(
    ("host", "written"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("::1", "0:0:0:0:0:0:0:1"),
        ("2001:db8::ff00:42:8329", "2001:db8:0:0:0:ff00:42:8329"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("fe80::1%eth0", "fe80:0:0:0:0:0:0:1%eth0"),
        ("a:b", "a:b"),
        ("?", "?"),
    ],
)
def test_addresses_are_written_as_java_does(host: str, written: str) -> None:
    """Rules that were made for Apache's brokers name hosts so."""
    assert java_address(host) == written
