"""Principals, the vocabulary of access rules, and the broker without an authorizer."""

from __future__ import annotations

import pytest

from barnabas_broker.security.acls import (
    OPERATIONS_OF,
    AclOperation,
    ResourcePattern,
    ResourceType,
    operation_bits,
)
from barnabas_broker.security.authorizer import AllowAll
from barnabas_broker.security.principals import ANONYMOUS, Principal

# --- The vocabulary of access rules


def test_operations_are_bits_by_their_number() -> None:
    """KIP-430: what kafka-clients decodes as READ and WRITE."""
    assert operation_bits([]) == 0
    assert operation_bits([AclOperation.READ, AclOperation.WRITE]) == 0b11000


def test_operation_bits_of_a_super_user() -> None:
    """The numbers an Apache broker without an authorizer answers with."""
    assert operation_bits(OPERATIONS_OF[ResourceType.TOPIC]) == 3576
    assert operation_bits(OPERATIONS_OF[ResourceType.CLUSTER]) == 8096
    assert operation_bits(OPERATIONS_OF[ResourceType.GROUP]) == 328


# --- The authorizer of a broker without one


def test_without_an_authorizer_every_operation_is_allowed() -> None:
    """Kafka's behaviour with an empty authorizer.class.name."""
    resource = ResourcePattern(ResourceType.CLUSTER, "kafka-cluster")
    assert AllowAll().authorize(ANONYMOUS, "10.0.0.1", AclOperation.ALTER, resource)


# --- Principals: how identities are written


def test_a_principal_is_written_kind_colon_name() -> None:
    """As in ACLs and super.users; names may hold colons, commas and equals signs."""
    for text in ("User:alice", "User:CN=a,OU=b:c", "Group:x", "User:"):
        assert str(Principal.parse(text)) == text
    assert Principal.parse("User:ANONYMOUS") == ANONYMOUS


@pytest.mark.parametrize("text", ["", "alice", ":alice"])
def test_invalid_principals_are_refused(text: str) -> None:
    """A name without a kind is a mistake in a configuration file, not a user."""
    with pytest.raises(ValueError, match="written Kind:name"):
        Principal.parse(text)
