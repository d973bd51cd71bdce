"""Answers that leave together."""

import asyncio
import socket
from dataclasses import dataclass
from typing import Any, cast

import pytest

from barnabas_broker.server.network.half_close import departed
from barnabas_broker.server.requests import pending_responses
from barnabas_broker.server.requests.pending_responses import Answers, PendingResponse
from barnabas_kafka.errors import KafkaError


class Waiting(PendingResponse):
    """One whose response is its number."""

    def refusal(self, error: KafkaError) -> object:
        return error.code

    def encoded(self) -> bytes:
        return b"%d" % self.correlation_id


class Connection:
    """What a session does with those that it is told of."""

    def __init__(self) -> None:
        self.answered: list[int] = []

    def answer(self, request: PendingResponse) -> None:
        """Note it, but for the second, on which it breaks."""
        if request.correlation_id == 1:
            raise ZeroDivisionError("a bug")
        self.answered.append(request.correlation_id)


async def _answered(count: int) -> tuple[list[int], list[object]]:
    """In which order that many are answered, and what the loop has to complain about."""
    answers, connection = Answers(), Connection()
    complaints: list[object] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: complaints.append(context["exception"]))
    for number in range(count):
        request = Waiting(answers, 0, number)
        request.session = cast(Any, connection)
        request.set_result(number)
    assert not connection.answered  # Not within the turn that answered them.
    for _ in range(2 * count):  # A pass of the loop for each, at most.
        await asyncio.sleep(0)
    return connection.answered, complaints


@pytest.mark.parametrize("turn_s", [0.0, 60.0])
def test_answers_leave_in_order_in_turns(turn_s: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """However long a turn is; one that breaks keeps no other from leaving."""
    monkeypatch.setattr(pending_responses, "TIME_SLICE_S", turn_s)
    answered, complaints = asyncio.run(_answered(5))
    assert answered == [0, 2, 3, 4]
    assert [type(complaint) for complaint in complaints] == [ZeroDivisionError]


def test_a_pending_response_without_a_session_is_read_directly() -> None:
    """Without a session nobody waits: whoever serves it looks at the response."""
    request = Waiting(Answers(), 0, 7)
    request.set_result(3)
    assert request.response == 3


@dataclass
class Watched:
    """One end of a connection, parked or not."""

    parked_fd: int | None


@pytest.mark.parametrize("unread", [b"", b"a request"])
def test_a_half_closed_connection_is_found(unread: bytes) -> None:
    """With what was sent before the end, and nobody else."""
    ours, theirs = socket.socketpair()
    stays, other = socket.socketpair()
    with ours, theirs, stays, other:
        connections = [
            Watched(stays.fileno()),
            Watched(ours.fileno()),
            Watched(None),
        ]
        theirs.sendall(unread)
        assert list(departed(connections)) == []
        theirs.shutdown(socket.SHUT_WR)
        assert list(departed(connections)) == [(connections[1], len(unread))]


def test_no_pending_responses_cost_nothing() -> None:
    """Nor is anybody found."""
    assert list(departed([Watched(None)])) == []
