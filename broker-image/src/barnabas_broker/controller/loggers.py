"""The levels of this process's loggers, as the BROKER_LOGGER resource shows and sets them.

Names of levels are Kafka's (log4j's): `FATAL` and `WARN` are Python's critical and warning, and
`TRACE`, which Python lacks, lies below debug (KIP-412, `RuntimeLoggerManager`).
"""

import logging
from collections.abc import Sequence

from barnabas_broker.controller.configs import AlterOperation, ConfigChange
from barnabas_kafka.errors import ErrorCode, KafkaError

ROOT = "root"
LEVELS = {
    "FATAL": logging.CRITICAL,
    "ERROR": logging.ERROR,
    "WARN": logging.WARNING,
    "INFO": logging.INFO,
    "DEBUG": logging.DEBUG,
    "TRACE": 5,
}


def level_name(level: int) -> str:
    """The name of the highest of Kafka's levels that is not above a numeric one."""
    return next((name for name, number in LEVELS.items() if number <= level), "TRACE")


def logger_levels() -> dict[str, str]:
    """The effective level of every logger there is, the root first."""
    levels = {ROOT: level_name(logging.getLogger().level)}
    for name, logger in sorted(logging.root.manager.loggerDict.items()):
        if isinstance(logger, logging.Logger):
            levels[name] = level_name(logger.getEffectiveLevel())
    return levels


def alter_levels(changes: Sequence[ConfigChange], *, validate_only: bool) -> None:
    """Set or unset levels, all or none.

    Raises KafkaError: INVALID_CONFIG for unknown loggers and levels, INVALID_REQUEST for
    operations that loggers do not have.
    """
    for change in changes:
        _check(change)
    if validate_only:
        return
    for change in changes:
        logger = _logger(change.name)
        if change.operation == AlterOperation.SET:
            logger.setLevel(LEVELS[change.value or ""])
        else:
            logger.setLevel(logging.NOTSET)


def _check(change: ConfigChange) -> None:
    if change.operation not in (AlterOperation.SET, AlterOperation.DELETE):
        name = AlterOperation(change.operation).name
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"{name} operation is not allowed for the BROKER_LOGGER resource",
        )
    _logger(change.name)
    if change.operation == AlterOperation.DELETE:
        if change.name == ROOT:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                "Removing the log level of the root logger is not allowed",
            )
    elif change.value not in LEVELS:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG,
            f"Cannot set the log level of {change.name} to {change.value} as it is not a "
            f"supported log level. Valid log levels are {', '.join(sorted(LEVELS))}",
        )


def _logger(name: str) -> logging.Logger:
    """A logger that exists: asking Python for one by a wrong name would make it."""
    if name == ROOT:
        return logging.getLogger()
    logger = logging.root.manager.loggerDict.get(name)
    if not isinstance(logger, logging.Logger):
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"Logger {name} does not exist!")
    return logger
