"""The context of one request: its principal, its client, and the services of its handler."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

from barnabas_broker.security.acls import (
    CLUSTER_NAME,
    OPERATIONS_OF,
    AclOperation,
    ResourcePattern,
    ResourceType,
    operation_bits,
)
from barnabas_broker.security.authorizer import AllowAll, Authorizer
from barnabas_broker.security.principals import Principal
from barnabas_kafka.errors import KafkaError

if TYPE_CHECKING:  # The bundle imports what handlers are made of; handlers only name its type.
    import asyncio

    from barnabas_broker.controller.controller import Controller
    from barnabas_broker.server.requests.broker_services import BrokerServices
    from barnabas_broker.server.requests.client_quotas import MutationQuota, Usage

NOTHING_COUNTS: Final = nullcontext()

Result = TypeVar("Result")
Answer = TypeVar("Answer")


@dataclass(slots=True)
class RequestContext:
    """The circumstances of one request; its body is the handler's other argument."""

    api_key: int
    version: int
    correlation_id: int
    client_id: str | None
    principal: Principal
    listener: str  # name of the listener that the request came in on
    client_host: str
    now_ms: int  # arrival, wall clock, milliseconds since the epoch
    authorizer: Authorizer
    broker: "BrokerServices"
    usage: "Usage | None" = None
    """What it uses of quotas; None while no quota exists."""
    served: Any = ()
    """What the API's fast route has done of it before it left the rest to the handler."""
    refused: KafkaError | None = None
    """The error of what the fast route began behind that and could not finish."""
    request: Any = None
    """What was asked, where an error of all of it is answered item by item (`error_responses`)."""
    followed: bool = False
    """Whether something has come on its connection behind it, while it waits for its answer."""
    hurry: Callable[[], None] | None = None
    """Has it answered where it need not wait any longer once it is `followed`."""
    listen: Callable[[], None] | None = None
    """Has its connection read on, where that stopped while there was nothing to hurry."""
    denied: set[tuple[AclOperation, ResourceType, str]] | None = None
    """Denials that are audited: a question may be asked again, and is audited once."""

    def identify(self, client_id: str | None) -> None:
        """Take note of the client's id, which is read later than the rest of the header."""
        self.client_id = client_id
        if self.usage is not None:
            self.usage.client_id = client_id

    def hurry_by(self, hurry: Callable[[], None]) -> None:
        """From now on it need not wait any longer once it is `followed`."""
        self.hurry = hurry
        if self.listen is not None:
            self.listen()

    def follow(self) -> None:
        """Something has come behind it."""
        self.followed = True
        if self.hurry is not None:
            self.hurry()

    def working(self) -> AbstractContextManager[None]:
        """Within it something is done for the request, which counts for quotas (`Usage.working`).

        A handler needs it where it works on beyond its answer, in a task or a thread of its own.
        """
        return NOTHING_COUNTS if self.usage is None else self.usage.working()

    def allowed(
        self,
        operation: AclOperation,
        resource_type: ResourceType,
        name: str,
        *,
        audited: bool = True,
    ) -> bool:
        """Whether the caller may perform `operation` on the resource of that type and name.

        Not `audited` is what only leaves something out, or is one of two ways to be allowed.
        """
        if type(self.authorizer) is AllowAll:  # To name the resource costs more than the question.
            return True
        question = operation, resource_type, name
        denied = self.denied
        allowed = self.authorizer.authorize(
            self.principal,
            self.client_host,
            operation,
            ResourcePattern(resource_type, name),
            audited=audited and (denied is None or question not in denied),
        )
        if audited and not allowed:
            if denied is None:
                denied = self.denied = set()
            denied.add(question)
        return allowed

    def allowed_on_cluster(self, operation: AclOperation, *, audited: bool = True) -> bool:
        """Whether the caller may perform `operation` on the cluster."""
        return self.allowed(operation, ResourceType.CLUSTER, CLUSTER_NAME, audited=audited)

    def allowed_on_any(self, operation: AclOperation, resource_type: ResourceType) -> bool:
        """Whether the caller may perform `operation` on some resource of that type."""
        return self.authorizer.authorize_by_type(
            self.principal, self.client_host, operation, resource_type
        )

    def allowed_operations(self, resource_type: ResourceType, name: str) -> int:
        """The KIP-430 bit field of everything the caller may do to a resource."""
        return operation_bits(
            operation
            for operation in OPERATIONS_OF[resource_type]
            if self.allowed(operation, resource_type, name, audited=False)
        )

    def ask_controller(
        self, work: "Callable[[Controller], Result]", answer: Callable[[Result], Answer]
    ) -> "asyncio.Future[Answer]":
        """Have the controller do work for this client (`ControllerThread.ask_for_client`)."""
        client = self.principal, self.client_host
        return self.broker.controller.ask_for_client(work, answer, client=client)

    def mutation_quota(self, *, strict_since: int) -> "MutationQuota | None":
        """What this request may change of topics (KIP-599), None for as much as it wants.

        From version `strict_since` on it is refused what is beyond its quota, before that the
        client is throttled afterwards.
        """
        if self.usage is None:
            return None
        return self.usage.mutation_quota(strict=self.version >= strict_since)
