"""What roles and rules of a resource stand for."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas_operator.api.reading import read_user
from barnabas_operator.plan.user_acls import acls_of
from tests.operator import examples


def _acls(**authorization: Any) -> list[str]:
    spec = read_user(examples.user(authorization=authorization)).body.spec
    return sorted(str(acl) for acl in acls_of(spec.authorization))


def test_a_producer_is_that_of_kafka_acls() -> None:
    """Write, Describe and Create on the topic; with a transactional id Write and Describe on it."""
    role = {"type": "producer", "topic": "t", "transactionalId": "x"}
    assert _acls(roles=[role]) == [
        "allow Create on topic t", "allow Describe on topic t",
        "allow Describe on transactionalId x", "allow Write on topic t",
        "allow Write on transactionalId x",
    ]  # fmt: skip


def test_a_consumer_is_that_of_kafka_acls() -> None:
    """Names may be beginnings; one that assigns its partitions itself has no group."""
    role = {"type": "consumer", "topic": "t", "group": "g", "patternType": "prefixed"}
    assert _acls(roles=[role]) == [
        "allow Describe on topic t*", "allow Read on group g*", "allow Read on topic t*",
    ]  # fmt: skip
    assert len(_acls(roles=[{"type": "consumer", "topic": "t"}])) == 2


def test_a_streams_application_has_its_internal_names() -> None:
    """Its group, and what begins with its application.id and a dash: `pay` is not `payments`."""
    found = _acls(roles=[{"type": "streams", "applicationId": "pay"}])
    topics, ids = "topic pay-*", "transactionalId pay-*"
    assert {each.partition(" on ")[2] for each in found} == {topics, "group pay", ids}
    assert f"allow Create on {topics}" in found
    assert "allow Delete on group pay" in found
    assert f"allow Write on {ids}" in found


def test_delegation_tokens_are_resources() -> None:
    """One by its id, and those of another user by its principal, as kafka-acls has them."""
    rules = [
        {"resource": {"type": "delegationToken", "name": "id-1"}, "operations": ["Describe"]},
        {
            "resource": {"type": "user", "name": "User:billing"},
            "operations": ["CreateTokens", "DescribeTokens"],
        },
    ]
    assert _acls(acls=rules) == [
        "allow CreateTokens on user User:billing",
        "allow Describe on delegationToken id-1",
        "allow DescribeTokens on user User:billing",
    ]


def test_rules_are_one_acl_for_each_operation() -> None:
    """With host and permission; the cluster has a name of its own; the same ACL is there once."""
    rules = [
        {
            "resource": {"type": "topic", "name": "t"},
            "operations": ["Read", "All"],
            "host": "10.0.0.1",
            "permission": "deny",
        },
        {"resource": {"type": "cluster"}, "operations": ["Create"]},
        {"resource": {"type": "cluster"}, "operations": ["Create"]},
    ]
    assert _acls(acls=rules) == [
        "allow Create on cluster kafka-cluster", "deny All on topic t from 10.0.0.1",
        "deny Read on topic t from 10.0.0.1",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("authorization", "problem"),
    [
        ({"roles": [{"type": "producer"}]}, "role producer needs its topic"),
        ({"roles": [{"type": "streams"}]}, "role streams needs its applicationId"),
        ({"acls": [{"resource": {"type": "group"}, "operations": ["Read"]}]}, "needs its name"),
    ],
)
def test_acls_without_a_name_are_refused(authorization: dict[str, Any], problem: str) -> None:
    """A definition of another version may let it through."""
    with pytest.raises(ValueError, match=problem):
        _acls(**authorization)
