"""The authorizer of a broker without one."""

from barnabas_broker.security.acls import AclOperation, ResourcePattern, ResourceType
from barnabas_broker.security.authorizer import AllowAll
from barnabas_broker.security.principals import ANONYMOUS


def test_without_an_authorizer_everybody_may_do_everything() -> None:
    """Kafka's behaviour with an empty authorizer.class.name."""
    resource = ResourcePattern(ResourceType.CLUSTER, "kafka-cluster")
    assert AllowAll().authorize(ANONYMOUS, "10.0.0.1", AclOperation.ALTER, resource)
