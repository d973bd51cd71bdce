"""A principal, a resource and a rule, for tests of authorization."""

from barnabas_broker.security.acls import (
    AccessControlEntry,
    AclOperation,
    Permission,
    ResourcePattern,
    ResourceType,
)
from barnabas_broker.security.principals import Principal

ALICE = Principal("User", "alice")
TOPIC = ResourcePattern(ResourceType.TOPIC, "orders")
READ = AclOperation.READ
MAY_READ = AccessControlEntry("User:alice", "*", READ, Permission.ALLOW)
HOST = "10.0.0.1"


class Clock:
    """Seconds that pass when told to."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s
