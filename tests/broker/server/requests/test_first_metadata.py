"""Requests about the cluster wait for the first metadata, and not for ever."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from barnabas_broker.cluster.image import MetadataImage
from barnabas_broker.server.requests import first_metadata
from barnabas_broker.server.requests.first_metadata import after_first_metadata
from barnabas_kafka.errors import ErrorCode, KafkaError


def call(received: asyncio.Future[None]) -> Any:
    """A call to a broker with this controller thread."""
    controller = SimpleNamespace(metadata_received=received)
    image = MetadataImage(cluster_id="c")
    return SimpleNamespace(broker=SimpleNamespace(controller=controller, image=image))


def test_later_metadata_requests_do_not_wait() -> None:
    """It is answered at once."""

    async def scenario() -> None:
        received = asyncio.get_running_loop().create_future()
        received.set_result(None)
        assert after_first_metadata(call(received), lambda: 1) is None

    asyncio.run(scenario())


def test_the_answer_is_made_when_the_metadata_is_there() -> None:
    """Not before; and who has gone in the meantime is no longer answered."""

    async def scenario() -> None:
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

    asyncio.run(scenario())


def test_an_error_of_the_answer_reaches_the_client() -> None:
    """As an error of any handler does."""

    async def scenario() -> None:
        received = asyncio.get_running_loop().create_future()
        failing = after_first_metadata(call(received), lambda: "".index("x"))
        assert failing is not None
        received.set_result(None)
        with pytest.raises(ValueError, match="substring"):
            await failing

    asyncio.run(scenario())


def test_without_a_controller_the_client_is_sent_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer without any broker makes some admin clients hang."""
    monkeypatch.setattr(first_metadata, "TIMEOUT_S", 0.0)

    async def scenario() -> None:
        received = asyncio.get_running_loop().create_future()
        waiting = after_first_metadata(call(received), lambda: "no brokers")
        assert waiting is not None
        with pytest.raises(KafkaError) as caught:
            await waiting
        assert caught.value.code is ErrorCode.REQUEST_TIMED_OUT

    asyncio.run(scenario())
