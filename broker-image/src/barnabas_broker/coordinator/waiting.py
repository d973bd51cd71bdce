"""Clients that wait for a response of a coordinator."""

import asyncio
from collections.abc import Callable
from typing import Any

from barnabas_kafka.errors import KafkaError


class Awaited(asyncio.Future[Any]):
    """A client that waits. It says how it is refused: a second future would cost as much again."""

    __slots__ = ("refuse",)

    refuse: Callable[[KafkaError], object] | None

    def fail(self, error: KafkaError) -> None:
        """Answer that the result is not committed."""
        if self.refuse is None:
            self.set_exception(error)
        else:
            self.set_result(self.refuse(error))


class Parked:
    """A waiting request without a future, which would cost as much as the decision it waits for.

    A large group is answered all at once. A subclass says how the client is refused, and what is
    done when its answer is `there`. It is no ABC: `isinstance` is asked for every answer, and of
    an ABC that takes several times longer.
    """

    __slots__ = ("_left", "response")

    def __init__(self) -> None:
        self.response: Any = None
        self._left = False

    def done(self) -> bool:
        """Whether it needs no answer any more: it has one, or its client has gone."""
        return self._left or self.response is not None

    def cancel(self) -> None:
        """Its client has gone."""
        self._left = True

    def result(self) -> Any:
        """The answer, None while there is none."""
        return self.response

    def set_result(self, response: object) -> None:
        """Answer it."""
        self.response = response
        self.there()

    def fail(self, error: KafkaError) -> None:
        """Answer that the result is not committed."""
        self.set_result(self.refusal(error))

    def refusal(self, error: KafkaError) -> object:
        """The response that says so."""
        raise NotImplementedError

    def there(self) -> None:
        """Its answer is there."""
        raise NotImplementedError
