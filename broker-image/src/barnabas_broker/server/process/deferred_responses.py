"""Answers that may still be pending, and functions of them that run when they arrive."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from barnabas_kafka.errors import KafkaError

Found = TypeVar("Found")
Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class DelayedFailure:
    """The response to a failed authentication, b"" for none, and when to send it."""

    frame: bytes
    future: "asyncio.Future[None]" = field(compare=False)


def then(
    found: Found | asyncio.Future[Found],
    answer: Callable[[Found], Answer],
    refuse: Callable[[KafkaError], Answer],
) -> Answer | asyncio.Future[Answer]:
    """`answer` of what was found, now or when it is there; `refuse` where a KafkaError comes."""
    if not isinstance(found, asyncio.Future):
        return answer(found)
    answered: asyncio.Future[Answer] = found.get_loop().create_future()

    def come(there: asyncio.Future[Found]) -> None:
        if answered.done():
            return
        if there.cancelled():
            answered.cancel()
            return
        try:
            answered.set_result(_made(there, answer, refuse))
        except Exception as error:  # The waiter of the answer reports it.
            answered.set_exception(error)

    # A task would do the same for twice the time, and a large group is answered all at once.
    found.add_done_callback(come)
    answered.add_done_callback(lambda given_up: given_up.cancelled() and found.cancel())
    return answered


def _made(
    there: asyncio.Future[Found],
    answer: Callable[[Found], Answer],
    refuse: Callable[[KafkaError], Answer],
) -> Answer:
    try:
        value = there.result()
    except KafkaError as error:
        return refuse(error)
    return answer(value)


def together(
    found: Sequence[Found | asyncio.Future[Found]], answer: Callable[[list[Found]], Answer]
) -> Answer | asyncio.Future[Answer]:
    """`answer` of all that was found, now or when the last of it is there."""
    there = [each for each in found if not isinstance(each, asyncio.Future)]
    if len(there) == len(found):
        return answer(there)
    return asyncio.ensure_future(_together(found, answer))


async def _together(
    found: Sequence[Found | asyncio.Future[Found]], answer: Callable[[list[Found]], Answer]
) -> Answer:
    return answer([await each if isinstance(each, asyncio.Future) else each for each in found])
