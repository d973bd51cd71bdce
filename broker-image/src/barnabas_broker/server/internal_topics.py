"""Topics that brokers keep for themselves, created when somebody first needs them."""

from asyncio import Future

from barnabas_broker.controller.requests import CreatedTopic
from barnabas_broker.server.auto_creation import auto_create
from barnabas_broker.server.call import Call


def with_internal_topic(name: str, call: Call) -> str | Future[str | None] | None:
    """See to it that a topic is there; gives None, or why it could not be created."""
    if name in call.broker.image.topics:
        return None

    def answer(created: list[CreatedTopic]) -> str | None:
        outcome = created[0].outcome
        return None if outcome.granted else f"{name} is not created: {outcome.message}"

    return auto_create([name], call, answer)
