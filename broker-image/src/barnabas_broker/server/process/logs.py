"""The broker's own log: one line an event on standard error, as text or as JSON.

Names of users and groups are the clients' to invent, and may have line breaks. So in text the lines
of a message are indented, but for the first: none looks like another event. Other characters that
cannot be printed are escaped.
"""

import logging
import sys
from types import TracebackType
from typing import Final

from barnabas_broker.printable import printable
from barnabas_kafka.settings.keys.own import JSON

_log = logging.getLogger(__name__)

_TEXT_FORMAT: Final = "[%(asctime)s] %(levelname)s %(message)s (%(name)s)"
_CONTINUED: Final = "\n    "


class _Text(logging.Formatter):
    """An event in one line, and further lines of its message and the trace of an error below it."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the name of logging
        record.message = _CONTINUED.join(map(printable, record.message.split("\n")))
        return super().formatMessage(record)


def configure(shape: str) -> None:
    """Send everything from INFO up to standard error, in that shape (`barnabas.log.format`).

    Levels can be changed while the broker runs: they are the settings of the BROKER_LOGGER
    resource (KIP-412).
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_json() if shape == JSON else _Text(_TEXT_FORMAT))
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    logging.captureWarnings(True)
    if shape == JSON:
        sys.excepthook = _log_uncaught


def last_words(reason: str) -> None:
    """Say why the process ends: a bare line for people, an object where those are collected."""
    if sys.excepthook is _log_uncaught:
        _log.critical("%s", reason)
    else:
        sys.stderr.write(f"barnabas: {reason}\n")


def _log_uncaught(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    _log.critical("Broker failed", exc_info=(kind, error, trace))


def _json() -> logging.Formatter:
    from pythonjsonlogger.json import JsonFormatter

    return JsonFormatter(
        "{levelname}{message}{name}",
        style="{",
        timestamp="time",
        rename_fields={"levelname": "level", "name": "logger"},
    )
