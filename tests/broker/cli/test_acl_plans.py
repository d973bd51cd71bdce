"""Which ACLs a command line means."""

from __future__ import annotations

import pytest

from barnabas_broker.cli.acl_plans import (
    VALID,
    Resource,
    Roles,
    Subjects,
    acls_of,
    filters_of,
    operation_of,
    operations_on,
)
from barnabas_broker.cli.errors import InputError
from barnabas_broker.security.acls import OPERATIONS_OF, ResourceType
from barnabas_kafka.acls import AclOperation, AclPermission, AclResourceType, PatternType

TOPIC = Resource(AclResourceType.TOPIC, "t", PatternType.PREFIXED)
GROUP = Resource(AclResourceType.GROUP, "g", PatternType.LITERAL)
NO_ROLES = Roles()


def test_principals_times_hosts_times_operations() -> None:
    """Each combination is a rule; hosts belong to those that are allowed, or denied."""
    subjects = Subjects(
        allowed=["User:a", "User:b"], denied=["User:c"], denied_hosts=["10.0.0.1", "10.0.0.2"]
    )
    wanted = operations_on([TOPIC], [AclOperation.READ, AclOperation.WRITE], NO_ROLES)
    (acls,) = acls_of(wanted, subjects).values()
    assert len(acls) == 2 * (2 + 2)
    hosts = {(acl.principal, acl.host, acl.permission) for acl in acls}
    assert ("User:a", "*", AclPermission.ALLOW) in hosts
    assert ("User:c", "10.0.0.2", AclPermission.DENY) in hosts
    assert {acl.pattern_type for acl in acls} == {PatternType.PREFIXED}


def test_without_operations_it_is_all() -> None:
    """As in Kafka's tool."""
    assert operations_on([GROUP], [], NO_ROLES) == {GROUP: (AclOperation.ALL,)}


def test_producer_and_consumer_at_once() -> None:
    """What both need, each once."""
    wanted = operations_on([TOPIC, GROUP], [], Roles(producer=True, consumer=True))
    assert wanted == {
        TOPIC: (
            AclOperation.WRITE, AclOperation.DESCRIBE, AclOperation.CREATE, AclOperation.READ,
        ),
        GROUP: (AclOperation.READ,),
    }  # fmt: skip


def test_filters_without_rules_are_of_all_rules() -> None:
    """Removing without a principal removes everything about a resource."""
    (everything,) = filters_of(TOPIC, [])
    assert everything == TOPIC.filter()
    assert everything.principal is None


@pytest.mark.parametrize("text", ["Describe_Configs", "DescribeConfigs", "DESCRIBE_CONFIGS "])
def test_operations_in_any_spelling(text: str) -> None:
    """As Kafka's documents and tools write them."""
    assert operation_of(text) is AclOperation.DESCRIBE_CONFIGS


@pytest.mark.parametrize("text", ["any", "unknown", ""])
def test_unknown_operations_are_refused(text: str) -> None:
    """Neither is what only filters have."""
    with pytest.raises(InputError, match="there is no operation"):
        operation_of(text)


def test_operations_are_those_that_brokers_know() -> None:
    """On each resource."""
    for kind, valid in VALID.items():
        known = {int(each) for each in OPERATIONS_OF[ResourceType(kind)]}
        assert {int(each) for each in valid} == {*known, int(AclOperation.ALL)}
