"""Those who wait for a coordinator: answered, refused, or gone."""

import asyncio

import pytest

from barnabas_broker.coordinator.waiting import Awaited, Parked
from barnabas_kafka.errors import ErrorCode, KafkaError

FAULT = KafkaError(ErrorCode.NOT_COORDINATOR)


class Waiting(Parked):
    """One that counts how often it was told that its answer is there."""

    times = 0

    def refusal(self, error: KafkaError) -> object:
        return error.code

    def there(self) -> None:
        self.times += 1


def test_a_parked_request_completes_with_its_response() -> None:
    """An answer, or what a refusal comes to; who has gone needs none."""
    answered, refused, gone = Waiting(), Waiting(), Waiting()
    assert not answered.done()
    answered.set_result("yes")
    refused.fail(FAULT)
    gone.cancel()
    assert [each.response for each in (answered, refused, gone)] == [
        "yes",
        ErrorCode.NOT_COORDINATOR,
        None,
    ]
    assert [each.times for each in (answered, refused, gone)] == [1, 1, 0]
    assert all(each.done() for each in (answered, refused, gone))


async def _futures() -> None:
    refused, failed = Awaited(), Awaited()
    refused.refuse, failed.refuse = lambda error: error.code, None
    refused.fail(FAULT)
    failed.fail(FAULT)
    assert await refused is ErrorCode.NOT_COORDINATOR
    with pytest.raises(KafkaError):
        await failed


def test_a_future_says_how_it_is_refused() -> None:
    """Where it does not say, it fails."""
    asyncio.run(_futures())
