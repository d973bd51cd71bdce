"""Requests of this broker to the active controller, which may be this broker itself."""

from collections.abc import Callable
from typing import TypeVar

from barnabas_broker.cluster.image import NO_CONTROLLER, MetadataImage
from barnabas_broker.server.peers.peers import Peers, UnreachableError
from barnabas_kafka.protocol.schema import Request, Response

Answer = TypeVar("Answer", bound=Response)


class ControllerClient:
    """A way to the controller that the image names. `close` when done with it."""

    def __init__(self, peers: Peers, image: Callable[[], MetadataImage]) -> None:
        self._peers = peers
        self._image = image

    async def ask(self, request: Request, kind: type[Answer], *, timeout_s: float) -> Answer:
        """The controller's answer; raises PeerError, and EncodeError as `Peers.send` does."""
        controller = self._image().controller_id
        if controller == NO_CONTROLLER:
            raise UnreachableError("no controller is known")
        return await self._peers.send(controller, request, kind, timeout_s=timeout_s)

    def close(self) -> None:
        """End the connection."""
        self._peers.close()
