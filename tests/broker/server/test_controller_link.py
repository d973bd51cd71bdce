"""The way to the controller, whoever that is."""

import asyncio

import pytest

from barnabas_broker.cluster.image import NO_CONTROLLER, Endpoint, MetadataImage
from barnabas_broker.server.controller_link import ControllerLink
from barnabas_broker.server.node import Node
from barnabas_broker.server.peers import Peers, UnreachableError
from barnabas_kafka.protocol.messages.metadata import MetadataRequest, MetadataResponse
from tests.waiting import ANSWER, seconds

from .running import port_of

ANSWER_S = seconds(ANSWER)


def test_the_controller_is_asked_that_the_image_names(node: Node) -> None:
    """And nobody where it names none."""
    endpoint = Endpoint("PLAINTEXT", "127.0.0.1", port_of(node))
    images = [MetadataImage(cluster_id="c", controller_id=0)]

    async def story() -> None:
        peers = Peers(lambda broker: endpoint if broker == 0 else None, client_id="test")
        link = ControllerLink(peers, lambda: images[-1])
        try:
            told = await link.ask(MetadataRequest(topics=[]), MetadataResponse, timeout_s=ANSWER_S)
            assert told.controller_id == 0
            images.append(MetadataImage(cluster_id="c", controller_id=NO_CONTROLLER))
            with pytest.raises(UnreachableError, match="nobody is known"):
                await link.ask(MetadataRequest(topics=[]), MetadataResponse, timeout_s=ANSWER_S)
        finally:
            link.close()

    asyncio.run(story())
