"""Clients that ask about the cluster before this broker has been told of it.

A broker listens before it registers, for the controller must reach it. Until the controller's
first UpdateMetadata it knows nobody, and an answer without brokers sends clients away for as long
as their back-off lasts, or for good. So they wait for that request, if not for ever: Kafka's
brokers in KRaft mode open their listeners that late (`BrokerServer.startup`).
"""

from asyncio import Future
from collections.abc import Callable
from typing import Final, TypeVar

from barnabas_broker.cluster.image import NO_CONTROLLER
from barnabas_broker.server.call import Call

PATIENCE_S: Final = 10.0
"""Shorter than clients wait for an answer (`request.timeout.ms`, 30 s)."""

Answer = TypeVar("Answer")


def after_first_metadata(call: Call, answer: Callable[[], Answer]) -> "Future[Answer] | None":
    """A future of what `answer` makes when the first metadata is there, None if it is already.

    After `PATIENCE_S` the answer is made of what there is.
    """
    if call.broker.image.controller_id != NO_CONTROLLER:
        return None
    introduced = call.broker.controller.introduced
    if introduced.done():
        return None
    loop = introduced.get_loop()
    answered: Future[Answer] = loop.create_future()

    def come(_: object = None) -> None:
        if answered.done():
            return
        try:
            answered.set_result(answer())
        except Exception as error:  # The dispatcher looks at it as at any handler's.
            answered.set_exception(error)

    def gone(_: object) -> None:
        timer.cancel()
        introduced.remove_done_callback(come)

    timer = loop.call_later(PATIENCE_S, come)
    introduced.add_done_callback(come)
    answered.add_done_callback(gone)
    return answered
