"""What a call of the client raises: one hierarchy, and what each error says about the request.

`BrokerError` is the answer of a broker. Everything else means that there is no answer: the request
may have been carried out all the same, unless the class says otherwise.
"""

from barnabas_kafka.errors import ErrorCode


class ClientError(Exception):
    """Base class of every error that the client raises."""

    @property
    def code(self) -> ErrorCode | None:
        """The broker's error code; None where no broker has answered."""
        return None

    @property
    def retriable(self) -> bool:
        """Whether the same call may succeed later."""
        return False


class BrokerError(ClientError):
    """A broker rejected the request, or one part of it."""

    def __init__(self, code: int, message: str | None = None) -> None:
        self._code = error_code(code)
        self.message = message or self._code.message
        super().__init__(f"{self._code.name}: {self.message}")

    @property
    def code(self) -> ErrorCode:
        """What the broker answered."""
        return self._code

    @property
    def retriable(self) -> bool:
        """As in Kafka's table of errors."""
        return self._code.retriable


class DisconnectError(ClientError):
    """No connection could be made, or it was lost before the response arrived."""

    @property
    def retriable(self) -> bool:
        """The broker may be back, at another address."""
        return True


class DeadlineExceededError(ClientError, TimeoutError):
    """The time for the call is over; the text ends with the last reason to try again."""

    @property
    def retriable(self) -> bool:
        """Another call has time of its own."""
        return True


class AuthenticationError(ClientError):
    """TLS or SASL failed. Nothing was sent, and trying again does not help."""


class UnsupportedVersionError(ClientError):
    """The broker knows no version of the request that can express it. Nothing was sent."""


class MalformedResponseError(ClientError):
    """The peer sent bytes that are no response: it is not a Kafka broker, or it is faulty."""


class ClientClosedError(ClientError):
    """The client has been closed."""


def error_code(code: int) -> ErrorCode:
    """The code, or UNKNOWN_SERVER_ERROR for a code that is newer than this table."""
    try:
        return ErrorCode(code)
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR


def check(code: int, message: str | None = None) -> None:
    """Raise BrokerError unless the code is NONE."""
    if code != ErrorCode.NONE:
        raise BrokerError(code, message)
