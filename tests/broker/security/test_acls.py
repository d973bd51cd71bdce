"""The vocabulary of access rules."""

from barnabas_broker.security.acls import (
    OPERATIONS_OF,
    AclOperation,
    ResourceType,
    operation_bits,
)


def test_operations_are_bits_by_their_number() -> None:
    """KIP-430: what kafka-clients decodes as READ and WRITE."""
    assert operation_bits([]) == 0
    assert operation_bits([AclOperation.READ, AclOperation.WRITE]) == 0b11000


def test_the_bits_of_somebody_who_may_do_everything() -> None:
    """The numbers an Apache broker without an authorizer answers with."""
    assert operation_bits(OPERATIONS_OF[ResourceType.TOPIC]) == 3576
    assert operation_bits(OPERATIONS_OF[ResourceType.CLUSTER]) == 8096
    assert operation_bits(OPERATIONS_OF[ResourceType.GROUP]) == 328
