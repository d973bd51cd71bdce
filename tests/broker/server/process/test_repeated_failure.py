"""When a failure that goes on is logged."""

import logging
from collections.abc import Iterator

from barnabas_broker.server.process.repeated_failure import RepeatedFailure


def logged(failure: RepeatedFailure, attempts: int) -> Iterator[int]:
    """Those of so many attempts that are logged as a warning."""
    for _ in range(attempts):
        if failure.failed() == logging.WARNING:
            yield failure.attempts


def test_it_is_logged_seldom_and_for_ever() -> None:
    """Soon after its begin, and in each stretch of some minutes."""
    assert [*logged(RepeatedFailure(), 200)] == [1, 2, 4, 8, 16, 32, 64, 128, 192]


def test_the_first_after_a_success_is_logged() -> None:
    """It is another failure."""
    failure = RepeatedFailure()
    assert [*logged(failure, 7)] == [1, 2, 4]
    failure.over()
    assert [*logged(failure, 3)] == [1, 2]
