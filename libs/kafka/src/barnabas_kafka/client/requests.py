"""A request of the protocol as an operation, for APIs without an operation of their own."""

from collections.abc import Callable
from typing import TypeVar

from barnabas_kafka.client.cluster import OneBroker, Target
from barnabas_kafka.client.errors import BrokerError
from barnabas_kafka.client.operation import (
    ONLY,
    Operation,
    Results,
    every,
    read_single,
    single,
)
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.registry import ApiKey
from barnabas_kafka.protocol.schema import Request, Response

R = TypeVar("R", bound=Response)


def send_request(
    request: Request,
    response: type[R],
    target: Target,
    *,
    error_code: Callable[[R], int] | None = None,
) -> Operation[R]:
    """The response to one request in the newest version that client and broker have in common.

    `error_code` gets the code of a response as a whole. After a retriable one, such as
    NOT_CONTROLLER, the client looks up the target again and retries; other codes are left to the
    caller, and so are codes of parts of the response.
    """

    return Operation(
        name=_name(request),
        keys=[ONLY],
        target=lambda _: target,
        request=lambda _: request,
        api_key=request.api_key,
        read=read_single(_reading(request, response, error_code)),
        finish=single,
    )


def send_to_brokers(
    request: Request, response: type[R], *, error_code: Callable[[R], int] | None = None
) -> Operation[Results[int, R]]:
    """The response of every live broker to one request, by its id; otherwise as `send_request`."""
    read = _reading(request, response, error_code)
    return Operation(
        name=_name(request),
        keys=None,
        target=OneBroker,
        request=lambda _: request,
        api_key=request.api_key,
        read=lambda ask, answer: {ask.broker: read(answer)},
        finish=every,
    )


def _name(request: Request) -> str:
    return ApiKey(request.api_key).name.replace("_", " ").lower()


def _reading(
    request: Request, response: type[R], error_code: Callable[[R], int] | None
) -> Callable[[R], R]:
    """Takes a response as it is, and raises what the client retries."""

    def read(answer: R) -> R:
        if not isinstance(answer, response):
            raise TypeError(f"{type(request).__name__} is not answered by {response.__name__}")
        code = ErrorCode.NONE if error_code is None else error_code(answer)
        if code != ErrorCode.NONE and (error := BrokerError(code)).retriable:
            raise error
        return answer

    return read
