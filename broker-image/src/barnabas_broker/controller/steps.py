"""Steps that a controller takes one after the other, where a failed one does not end the rest."""

import logging
from collections.abc import Callable

from barnabas_broker.zk.store import CoordinationError
from barnabas_kafka.errors import ErrorCode, KafkaError

_log = logging.getLogger(__name__)


class Steps:
    """Takes steps and keeps the first failure for the caller that retries them."""

    def __init__(self) -> None:
        self._first: Exception | None = None

    def take(self, what: str, step: Callable[[], None]) -> None:
        """Do it; raises only what no further step could succeed after.

        That is CoordinationError: the connection is away. And KafkaError NOT_CONTROLLER: another
        controller has followed.
        """
        try:
            step()
        except CoordinationError:
            raise
        except Exception as error:
            if isinstance(error, KafkaError) and error.code is ErrorCode.NOT_CONTROLLER:
                raise
            _log.warning("Failed to read %s, retrying: %s", what, error, exc_info=True)
            self._first = self._first or error

    def raise_first(self) -> None:
        """Raise what failed first, if anything has."""
        if self._first is not None:
            raise self._first
