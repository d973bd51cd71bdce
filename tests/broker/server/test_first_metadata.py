"""Requests about the cluster wait for the first metadata, and not for ever."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from barnabas_broker.cluster.image import MetadataImage
from barnabas_broker.server import first_metadata
from barnabas_broker.server.first_metadata import after_first_metadata


def call(received: asyncio.Future[None]) -> Any:
    """A call to a broker with this controller thread."""
    controller = SimpleNamespace(metadata_received=received)
    image = MetadataImage(cluster_id="c")
    return SimpleNamespace(broker=SimpleNamespace(controller=controller, image=image))


def test_who_asks_later_does_not_wait() -> None:
    """It is answered at once."""

    async def story() -> None:
        received = asyncio.get_running_loop().create_future()
        received.set_result(None)
        assert after_first_metadata(call(received), lambda: 1) is None

    asyncio.run(story())


def test_the_answer_is_made_when_the_metadata_is_there() -> None:
    """Not before; and who has gone in the meantime is no longer answered."""

    async def story() -> None:
        known: list[str] = []
        received = asyncio.get_running_loop().create_future()
        waiting = after_first_metadata(call(received), lambda: list(known))
        gone = after_first_metadata(call(received), lambda: known.append("answered"))
        assert waiting is not None
        assert gone is not None
        gone.cancel()
        known.append("broker 1")
        received.set_result(None)
        assert await waiting == ["broker 1"]
        assert known == ["broker 1"]

    asyncio.run(story())


def test_without_a_controller_the_answer_is_made_of_what_there_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A client must hear something before it gives up; an error reaches it as any handler's."""
    monkeypatch.setattr(first_metadata, "PATIENCE_S", 0.0)

    async def story() -> None:
        received = asyncio.get_running_loop().create_future()
        waiting = after_first_metadata(call(received), lambda: "nothing yet")
        failing = after_first_metadata(call(received), lambda: "".index("x"))
        assert waiting is not None
        assert failing is not None
        assert await waiting == "nothing yet"
        with pytest.raises(ValueError, match="substring"):
            await failing

    asyncio.run(story())
