"""Steps of a controller, some of which fail."""

import pytest

from barnabas_broker.controller.steps import Steps
from barnabas_broker.zk.store import CoordinationError
from barnabas_kafka.errors import ErrorCode, KafkaError


def fail(error: Exception) -> None:
    """A step that does."""
    raise error


def test_a_step_that_fails_does_not_end_the_rest() -> None:
    """The first failure is kept for whoever retries."""
    done: list[str] = []
    steps = Steps()
    steps.take("brokers", lambda: fail(ValueError("first")))
    steps.take("topics", lambda: fail(KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)))
    steps.take("moves", lambda: done.append("moves"))
    assert done == ["moves"]
    with pytest.raises(ValueError, match="first"):
        steps.raise_first()
    Steps().raise_first()


@pytest.mark.parametrize("error", [CoordinationError("away"), KafkaError(ErrorCode.NOT_CONTROLLER)])
def test_what_nothing_can_succeed_after(error: Exception) -> None:
    """Without a connection, or under another controller, no step is taken any more."""
    with pytest.raises(type(error)):
        Steps().take("brokers", lambda: fail(error))
