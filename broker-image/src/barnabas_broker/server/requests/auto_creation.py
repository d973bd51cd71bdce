"""Topics that a client's request creates.

The controller creates them. A broker that is not asks it to (Kafka's `AutoTopicCreationManager`),
and has its client ask again: the controller sends the topic to this broker a moment later.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from barnabas_broker.controller.internal import automatic_topic
from barnabas_broker.controller.requests import CreatedTopic, Outcome, admit_all
from barnabas_broker.server.peers.peers import PeerError
from barnabas_broker.server.peers.replication.leader_end_point import error_code
from barnabas_broker.server.requests.request_context import RequestContext
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.protocol.codec import EncodeError
from barnabas_kafka.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from barnabas_kafka.settings import broker as keys

if TYPE_CHECKING:
    from barnabas_broker.server.requests.client_quotas import MutationQuota

Answer = TypeVar("Answer")


def auto_create(
    names: Sequence[str], call: RequestContext, answer: Callable[[list[CreatedTopic]], Answer]
) -> "asyncio.Future[Answer]":
    """Have topics created with the settings that such topics get; gives what `answer` makes of it.

    A topic that another broker is to create is refused with UNKNOWN_TOPIC_OR_PARTITION until this
    one has received it.
    """
    broker = call.broker
    # Clients are not refused a topic that they only asked about, but throttled afterwards.
    quota = None if call.usage is None else call.usage.mutation_quota(strict=False)
    if broker.image.controller_id == broker.id:
        admit = admit_all if quota is None else quota.take
        return call.ask_controller(
            lambda controller: controller.auto_create(
                names, admit=admit, principal=call.principal, now_ms=call.now_ms
            ),
            answer,
        )

    async def elsewhere() -> Answer:
        return answer(await _ask_controller(names, call, quota))

    return asyncio.ensure_future(elsewhere())


async def _ask_controller(
    names: Sequence[str], call: RequestContext, quota: "MutationQuota | None"
) -> list[CreatedTopic]:
    settings = call.broker.settings
    wanted = [automatic_topic(name, settings) for name in names]
    timeout_ms = settings[keys.REQUEST_TIMEOUT_MS]
    request = CreateTopicsRequest(
        timeout_ms=timeout_ms,
        topics=[
            CreatableTopic(
                name=each.name,
                num_partitions=each.num_partitions,
                replication_factor=each.replication_factor,
                configs=[CreatableTopicConfig(name=key, value=text) for key, text in each.configs],
            )
            for each in wanted
        ],
    )
    try:
        response = await call.broker.link.ask(
            request, CreateTopicsResponse, timeout_s=timeout_ms / 1000
        )
    except (PeerError, EncodeError) as error:
        failed = KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, str(error))
        return [CreatedTopic(outcome=Outcome.refused(name, failed)) for name in names]
    known = call.broker.image.topics
    pending = KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "the controller is creating it")
    results = {topic.name: topic for topic in response.topics}
    # The controller was asked by this broker, and does not know for which client.
    partitions = sum(
        max(topic.num_partitions, 1)
        for topic in response.topics
        if topic.error_code == ErrorCode.NONE
    )
    if quota is not None and partitions:
        quota.take(partitions)
    answers = []
    for name in names:
        topic = results.get(name)
        outcome = Outcome(name)
        if name not in known:
            outcome = Outcome.refused(name, pending)
            if topic is not None and topic.error_code not in _CREATED:
                code = error_code(topic.error_code)
                outcome = Outcome(name, code, topic.error_message)
        answers.append(CreatedTopic(outcome=outcome))
    return answers


# While the controller changes, clients ask again as they do for a topic that is on its way.
_CREATED = frozenset({ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS, ErrorCode.NOT_CONTROLLER})
