"""The question every handler asks before it acts: may this principal do this here?"""

from typing import Protocol

from barnabas_broker.security.acls import AclOperation, ResourcePattern
from barnabas_broker.security.principals import Principal


class Authorizer(Protocol):
    """Decides from rules it already holds: an answer never waits."""

    def authorize(
        self,
        principal: Principal,
        host: str,
        operation: AclOperation,
        resource: ResourcePattern,
    ) -> bool:
        """Whether `principal`, connected from `host`, may perform `operation` on `resource`."""
        ...


class AllowAll:
    """The authorizer of a broker whose `authorizer.class.name` is empty."""

    def authorize(
        self,
        principal: Principal,
        host: str,
        operation: AclOperation,
        resource: ResourcePattern,
    ) -> bool:
        """Yes to everything."""
        return True
