"""Internal topics, created by the first request that needs them."""

from asyncio import Future

from barnabas_broker.controller.requests import CreatedTopic
from barnabas_broker.server.requests.auto_creation import auto_create
from barnabas_broker.server.requests.request_context import RequestContext


def with_internal_topic(name: str, call: RequestContext) -> str | Future[str | None] | None:
    """See to it that a topic is there; gives None, or why it could not be created."""
    if name in call.broker.image.topics:
        return None

    def answer(created: list[CreatedTopic]) -> str | None:
        outcome = created[0].outcome
        return None if outcome.granted else f"{name} is not created: {outcome.message}"

    return auto_create([name], call, answer)
