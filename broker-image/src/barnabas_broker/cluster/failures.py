"""Failure isolation: an error with one of several items is that item's, and the others go on.

A request, a metadata update or a background task handles many partitions, groups or topics. Kafka
answers the error of one item with a code of its own, UNKNOWN_SERVER_ERROR for an unexpected one
(`ReplicaManager`, `Errors.forException`), and serves the rest.
"""

import logging
from collections.abc import Callable, Iterable, Iterator
from typing import Generic, NamedTuple, TypeVar

from barnabas_kafka.errors import ErrorCode, KafkaError

log = logging.getLogger(__name__)

Item = TypeVar("Item")
Result = TypeVar("Result")


class Failed(NamedTuple, Generic[Item]):
    """An item that failed."""

    item: Item
    error: KafkaError
    cause: Exception

    @property
    def expected(self) -> bool:
        """Whether a peer, a disk or the operating system caused it; else it is a defect."""
        return isinstance(self.cause, KafkaError | OSError)


def refusal(error: Exception, doing: str, subject: object) -> KafkaError:
    """The error to answer for one of several items. Logs an unexpected one with its traceback."""
    if isinstance(error, KafkaError):
        return error
    if isinstance(error, OSError):
        log.error("%s of %s failed: %s", doing, subject, error)
        return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error))
    log.error("%s of %s failed", doing, subject, exc_info=error)
    return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)


def logged_refusal(error: Exception, doing: str, subject: object) -> KafkaError:
    """As `refusal`, where no response carries the error: an expected one is logged, too."""
    if isinstance(error, KafkaError):
        log.error("%s of %s failed: %s", doing, subject, error)
    return refusal(error, doing, subject)


def each_isolated(
    items: Iterable[Item],
    do: Callable[[Item], object],
    doing: str,
    *,
    name: Callable[[Item], object] = lambda item: item,
) -> list[Failed[Item]]:
    """Call `do` for every item, whatever one raises; returns those that failed.

    Every failure is logged; `name` is how the log calls an item.
    """
    failed = []
    for item in items:
        try:
            do(item)
        except Exception as error:  # The boundary between one item and the others.
            failed.append(Failed(item, logged_refusal(error, doing, name(item)), error))
    return failed


def chain_isolated(
    items: Iterable[Item],
    give: Callable[[Item], Iterable[Result]],
    doing: str,
    *,
    name: Callable[[Item], object] = lambda item: item,
) -> Iterator[Result]:
    """The result of `give` for every item, whatever one raises; as `each_isolated`."""
    for item in items:
        try:
            yield from give(item)
        except Exception as error:  # The boundary between one item and the others.
            logged_refusal(error, doing, name(item))


def call_isolated(steps: Iterable[Callable[[], object]], doing: str, subject: object) -> None:
    """Call every step of something, whatever one raises."""
    each_isolated(steps, lambda step: step(), doing, name=lambda _: subject)
