"""Delays metadata requests until the controller's first UpdateMetadata has been received.

A broker listens before it registers, because the controller must be able to connect. Until the
first UpdateMetadata its metadata cache is empty, and some admin clients hang when a response lists
no brokers. Kafka's brokers in KRaft mode enable request processing that late
(`BrokerServer.startup`).
"""

from asyncio import Future
from collections.abc import Callable
from typing import Final, TypeVar

from barnabas_broker.cluster.image import NO_CONTROLLER
from barnabas_broker.server.requests.request_context import RequestContext
from barnabas_kafka.errors import ErrorCode, KafkaError

TIMEOUT_S: Final = 10.0
"""Longest delay of a request; below the clients' default `request.timeout.ms`, 30 s."""

Answer = TypeVar("Answer")


def after_first_metadata(
    call: RequestContext, answer: Callable[[], Answer]
) -> "Future[Answer] | None":
    """Return a future of `answer()` after the first metadata, None if it has been received.

    After `TIMEOUT_S` the future raises KafkaError REQUEST_TIMED_OUT. A response without an error
    field is then replaced by the end of the connection: clients go on to another broker, while
    some admin clients never ask again after a response that lists no brokers.
    """
    if call.broker.image.controller_id != NO_CONTROLLER:
        return None
    received = call.broker.controller.metadata_received
    if received.done():
        return None
    loop = received.get_loop()
    answered: Future[Answer] = loop.create_future()

    def time_out() -> None:
        if not answered.done():
            text = "this broker has not received metadata from a controller yet"
            answered.set_exception(KafkaError(ErrorCode.REQUEST_TIMED_OUT, text))

    def come(_: object) -> None:
        if answered.done():
            return
        try:
            answered.set_result(answer())
        except Exception as error:  # The dispatcher handles it like any error of a handler.
            answered.set_exception(error)

    def gone(_: object) -> None:
        timer.cancel()
        received.remove_done_callback(come)

    timer = loop.call_later(TIMEOUT_S, time_out)
    received.add_done_callback(come)
    answered.add_done_callback(gone)
    return answered
