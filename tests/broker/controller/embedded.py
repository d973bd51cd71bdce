"""A controller on an embedded store in a directory, as a broker has it, without sockets or logs."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from types import GeneratorType
from typing import TYPE_CHECKING, Any, cast

from barnabas_broker.cluster.image import BrokerRegistration, Endpoint, MetadataImage
from barnabas_broker.controller.controller import Controller
from barnabas_broker.controller.requests import CreatedTopic
from barnabas_broker.controller.topics import NewTopic
from barnabas_broker.log.directories import LogDirectories
from barnabas_broker.replica.context import ReplicationContext
from barnabas_broker.replica.manager import ReplicaManager
from barnabas_broker.security.acls import AclOperation, ResourcePattern, ResourceType
from barnabas_broker.security.authorizer import AllowAll, Authorizer
from barnabas_broker.security.principals import ANONYMOUS, Principal
from barnabas_broker.server.control.controller_thread import ControllerThread
from barnabas_broker.server.requests.handler import Handle
from barnabas_broker.server.requests.request_context import RequestContext
from barnabas_broker.zk.embedded import EmbeddedStore
from barnabas_kafka.protocol.schema import Message
from barnabas_kafka.settings.broker import BrokerSettings

if TYPE_CHECKING:
    from barnabas_broker.server.requests.broker_services import BrokerServices

BROKER_ID = 1
NOW_MS = 1_700_000_000_000
PLAIN = Endpoint("PLAINTEXT", "plain.example", 9092, "PLAINTEXT")
SECURE = Endpoint("SECURE", "secure.example", 9093, "SSL")


def finished(answer: Any) -> Any:
    """What a handler's answer comes to without anybody else's turn: a response or a future."""
    while isinstance(answer, GeneratorType):
        try:
            while True:
                next(answer)
        except StopIteration as end:
            answer = end.value
    return answer


def no_replicas(broker_id: int) -> ReplicaManager:
    """The replicas of a broker that has no log directory."""

    def never(_: object) -> Any:
        raise AssertionError("there is no log")

    return ReplicaManager(
        broker_id,
        LogDirectories([], {}, ()),
        rules_for=never,
        clock_ms=lambda: NOW_MS,
        flush_soon=never,
        context=ReplicationContext(lambda: NOW_MS),
    )


@dataclass
class Embedded:
    """What handlers use of a broker: its id, its controller, and the image."""

    directory: Path
    given: dict[str, str] = field(default_factory=dict)
    id: int = BROKER_ID

    def __post_init__(self) -> None:
        self.replicas = no_replicas(self.id)
        self.start()

    def start(self) -> None:
        """Open the store and take over, as a broker does at start."""
        self.store = EmbeddedStore.open(self.directory, now_ms=NOW_MS)
        self.controller = Controller(
            self.store,
            broker_id=self.id,
            settings=BrokerSettings.from_mapping({"broker.id": str(self.id), **self.given}),
            random=Random(7),
        )
        self.controller.start(cluster_id=None, now_ms=NOW_MS)
        registration = BrokerRegistration(self.id, (PLAIN, SECURE), rack="here")
        self.controller.register(registration, now_ms=NOW_MS)

    def restart(self) -> None:
        """Stop and start again on the same directory."""
        self.controller.close()
        self.start()

    @property
    def image(self) -> MetadataImage:
        """The cluster as it is now."""
        return self.controller.image

    @property
    def settings(self) -> BrokerSettings:
        """The settings in effect."""
        return self.controller.settings

    def ask(self, handle: Handle, request: Message, call: RequestContext) -> Any:
        """The handler's answer, waited for as a session does."""

        async def serve() -> Any:
            governed = Governed(self, asyncio.get_running_loop())
            call.broker = cast("BrokerServices", governed)
            try:
                answer = finished(handle(request, call))
                while isinstance(answer, asyncio.Future):
                    answer = finished(await answer)
                return answer
            finally:
                await governed.controller.stop()

        return asyncio.run(serve())

    def create(self, *new: NewTopic | str, validate_only: bool = False) -> list[CreatedTopic]:
        """Create topics; a bare name stands for a topic with the broker's defaults."""
        topics = [NewTopic(name=each) if isinstance(each, str) else each for each in new]
        return self.controller.create_topics(
            topics, validate_only=validate_only, principal=ANONYMOUS, now_ms=NOW_MS
        )

    def delete(self, *names: str) -> None:
        """Delete topics that exist."""
        answers = self.controller.delete_topics(names, principal=ANONYMOUS, now_ms=NOW_MS)
        assert all(answer.granted for answer in answers)

    def call(
        self,
        version: int,
        *,
        listener: str = "PLAINTEXT",
        authorizer: Authorizer | None = None,
    ) -> RequestContext:
        """A request of that version in the hands of its handler."""
        return RequestContext(
            api_key=-1,
            version=version,
            correlation_id=1,
            client_id="test",
            principal=ANONYMOUS,
            listener=listener,
            client_host="127.0.0.1",
            now_ms=NOW_MS,
            authorizer=authorizer or AllowAll(),
            broker=cast("BrokerServices", self),
        )


class Governed:
    """The same broker with its controller in a thread, for as long as one request takes."""

    def __init__(self, embedded: Embedded, loop: asyncio.AbstractEventLoop) -> None:
        self.id = embedded.id
        self.replicas = embedded.replicas
        self.controller = ControllerThread(embedded.controller, loop=loop, clock_ms=lambda: NOW_MS)

    @property
    def image(self) -> MetadataImage:
        """The cluster as the event loop knows it."""
        return self.controller.image

    @property
    def settings(self) -> BrokerSettings:
        """The settings as the event loop knows them."""
        return self.controller.settings


class Denying:
    """An authorizer that says no to some operations, on some resources or on all of a type.

    `asked` is what it was asked, in order.
    """

    def __init__(self, *denied: tuple[AclOperation, ResourceType, str | None]) -> None:
        self.denied: Sequence[tuple[AclOperation, ResourceType, str | None]] = denied
        self.asked: list[tuple[AclOperation, ResourceType, str]] = []
        self.audited: list[bool] = []

    def authorize(
        self,
        principal: Principal,
        host: str,
        operation: AclOperation,
        resource: ResourcePattern,
        *,
        audited: bool = True,
    ) -> bool:
        """No to what is listed."""
        self.asked.append((operation, resource.type, resource.name))
        self.audited.append(audited)
        return not any(
            (operation, resource.type) == (each[0], each[1]) and each[2] in (None, resource.name)
            for each in self.denied
        )

    def authorize_by_type(
        self, principal: Principal, host: str, operation: AclOperation, kind: ResourceType
    ) -> bool:
        """No where it is listed for all of the type."""
        self.asked.append((operation, kind, "any"))
        return (operation, kind, None) not in self.denied
