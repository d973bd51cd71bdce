"""A call: what a handler learns about who asks, and how it asks whether it may."""

from pathlib import Path

from barnabas_broker.security.acls import CLUSTER_NAME, AclOperation, ResourceType
from barnabas_broker.server.call import QuotaKind

from ..controller.embedded import Denying, Embedded


def test_the_authorizer_is_asked_about_the_resource_that_is_meant(tmp_path: Path) -> None:
    """One topic may be hidden while others are not; the cluster is a resource of its own."""
    denying = Denying(
        (AclOperation.READ, ResourceType.TOPIC, "secret"),
        (AclOperation.ALTER, ResourceType.CLUSTER, CLUSTER_NAME),
    )
    call = Embedded(tmp_path).call(0, authorizer=denying)
    assert call.allowed(AclOperation.READ, ResourceType.TOPIC, "open")
    assert not call.allowed(AclOperation.READ, ResourceType.TOPIC, "secret")
    assert call.allowed_on_cluster(AclOperation.DESCRIBE)
    assert not call.allowed_on_cluster(AclOperation.ALTER)


def test_authorised_operations_are_a_bit_field(tmp_path: Path) -> None:
    """What the caller may not do has its bit cleared (KIP-430)."""
    denying = Denying((AclOperation.WRITE, ResourceType.TOPIC, None))
    embedded = Embedded(tmp_path)
    allowed = embedded.call(0).allowed_operations(ResourceType.TOPIC, "a")
    without = embedded.call(0, authorizer=denying).allowed_operations(ResourceType.TOPIC, "a")
    assert allowed - without == 1 << AclOperation.WRITE


def test_without_quotas_nobody_waits(tmp_path: Path) -> None:
    """The quotas of a broker on which none are set."""
    assert Embedded(tmp_path).call(0).throttle_ms(QuotaKind.PRODUCE, 1e12) == 0
