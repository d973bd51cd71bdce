"""The BROKER_LOGGER resource: levels of this process's loggers under Kafka's names."""

import logging
from collections.abc import Iterator

import pytest

from barnabas_broker.controller.configs import AlterOperation, ConfigChange
from barnabas_broker.controller.loggers import alter_levels, level_name, logger_levels
from barnabas_kafka.errors import ErrorCode, KafkaError

NAME = "barnabas_broker.tests.loggers"


@pytest.fixture(autouse=True)
def logger() -> Iterator[logging.Logger]:
    """A logger of our own, without a level before and after."""
    logger = logging.getLogger(NAME)
    root = logging.getLogger().level
    yield logger
    logger.setLevel(logging.NOTSET)
    logging.getLogger().setLevel(root)


def test_levels_have_kafkas_names() -> None:
    """Numbers between two levels count as the lower one."""
    levels = [logging.CRITICAL, logging.ERROR, 35, logging.INFO, logging.DEBUG, 5, 1]
    names = ["FATAL", "ERROR", "WARN", "INFO", "DEBUG", "TRACE", "TRACE"]
    assert [level_name(level) for level in levels] == names


def test_every_logger_is_shown_with_the_level_in_effect() -> None:
    """A logger without a level of its own has that of the ones above it."""
    logging.getLogger().setLevel(logging.ERROR)
    assert logger_levels()["root"] == "ERROR"
    assert logger_levels()[NAME] == "ERROR"


def test_a_level_is_set_and_unset(logger: logging.Logger) -> None:
    """Setting takes effect at once, unless only validated; deleting goes back."""
    change = ConfigChange(NAME, "TRACE")
    alter_levels([change], validate_only=True)
    assert logger.level == logging.NOTSET
    alter_levels([change], validate_only=False)
    assert logger.isEnabledFor(5)
    alter_levels([ConfigChange(NAME, None, AlterOperation.DELETE)], validate_only=False)
    assert logger.level == logging.NOTSET


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (ConfigChange("no.such.logger", "INFO"), ErrorCode.INVALID_CONFIG),
        (ConfigChange(NAME, "LOUD"), ErrorCode.INVALID_CONFIG),
        (ConfigChange(NAME, "info"), ErrorCode.INVALID_CONFIG),
        (ConfigChange("root", None, AlterOperation.DELETE), ErrorCode.INVALID_REQUEST),
        (ConfigChange(NAME, "INFO", AlterOperation.APPEND), ErrorCode.INVALID_REQUEST),
    ],
)
def test_changes_that_cannot_be_change_nothing(
    logger: logging.Logger, change: ConfigChange, code: ErrorCode
) -> None:
    """All or none: what is right beside a fault is not done either."""
    with pytest.raises(KafkaError) as caught:
        alter_levels([ConfigChange(NAME, "DEBUG"), change], validate_only=False)
    assert caught.value.code == code
    assert logger.level == logging.NOTSET
    assert "no.such.logger" not in logging.root.manager.loggerDict
