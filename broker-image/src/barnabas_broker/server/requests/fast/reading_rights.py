"""What the short ways of group requests ask the authorizer; nobody is asked where it allows all.

The answer is the same either way: to make a resource of a name for a question whose answer is known
is a large part of a request that takes some microseconds.
"""

from typing import TYPE_CHECKING, Final

from barnabas_broker.security.acls import AclOperation, ResourcePattern, ResourceType
from barnabas_broker.security.authorizer import AllowAll, Authorizer

if TYPE_CHECKING:
    from barnabas_broker.server.requests.dispatch import Caller

# Names of their own, because to look at a member of an enumeration costs.
_GROUP: Final = ResourceType.GROUP
_TOPIC: Final = ResourceType.TOPIC
_READ: Final = AclOperation.READ


class ReadingRights:
    """Who may read what."""

    __slots__ = ("_authorizer", "unlimited")

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer
        #: everybody may read everything, so that nobody need ask
        self.unlimited: Final = isinstance(authorizer, AllowAll)

    def of_group(self, caller: "Caller", group_id: str) -> bool:
        """Whether the caller may read in this group: take part in it, and commit offsets."""
        return self.unlimited or self._of(caller, ResourcePattern(_GROUP, group_id))

    def of_topic(self, caller: "Caller", name: str) -> bool:
        """Whether the caller may read this topic."""
        return self.unlimited or self._of(caller, ResourcePattern(_TOPIC, name))

    def _of(self, caller: "Caller", resource: ResourcePattern) -> bool:
        authorize = self._authorizer.authorize
        return authorize(caller.principal, caller.client_host, _READ, resource, log_if_denied=False)
