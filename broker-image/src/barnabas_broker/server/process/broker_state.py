"""The state of a broker process (Kafka's `BrokerState`), readable from any thread."""

from enum import IntEnum


class BrokerState(IntEnum):
    """Kafka's states and the numbers that its BrokerState metric gives them."""

    NOT_RUNNING = 0  # Not started yet.
    STARTING = 1  # Registering and loading what is no log.
    RECOVERY = 2  # Loading and recovering logs.
    RUNNING = 3  # Clients are served; the controller's first state arrived or timed out.
    PENDING_CONTROLLED_SHUTDOWN = 6  # Leaders are being moved away before a stop.
    SHUTTING_DOWN = 7  # Stopping; clients are served no more.


class BrokerLifecycle:
    """The current state; written by the event loop, read by the admin port's thread."""

    __slots__ = ("state",)

    def __init__(self) -> None:
        self.state = BrokerState.NOT_RUNNING
