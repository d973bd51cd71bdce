"""The audit log: denied operations and the deciding rule; with DEBUG also allowed ones.

One line for each refusal, in the words of Kafka's `kafka.authorizer.logger`. A client can cause
thousands of refusals a second, so that each principal and address has so many lines a second; how
many were left out is logged with its next line, or when it has been quiet for a second.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from barnabas_broker.printable import printable
from barnabas_broker.security.acl_rules import Decision
from barnabas_broker.security.acls import AclOperation, ResourcePattern, kafka_name
from barnabas_broker.security.principals import Principal

logger = logging.getLogger(__name__)

WINDOW_S: Final = 1.0
LINES_PER_WINDOW: Final = 10
"""Lines in a second about one principal at one address."""

SOURCES_MAX: Final = 1_000
"""Principals and addresses that are counted at a time; all others share one count."""

TEXT_MAX: Final = 256
"""Characters of a name that a line shows."""

_OTHERS: Final = ("any principal", "any host")


@dataclass(slots=True)
class _Window:
    began_s: float
    lines: int = 0
    left_out: int = 0


def shortened(text: str) -> str:
    """A name as a line shows it: in one line of bounded length, whatever a client has invented."""
    return printable(text if len(text) <= TEXT_MAX else f"{text[:TEXT_MAX]}...")


class AuditLog:
    """Logs decisions; `monotonic_s` is a clock that never goes back. For one thread."""

    def __init__(self, monotonic_s: Callable[[], float]) -> None:
        self._now_s: Final = monotonic_s
        self._windows: dict[tuple[str, str], _Window] = {}

    @property
    def logs_allowed(self) -> bool:
        """Whether what is allowed is logged, too."""
        return logger.isEnabledFor(logging.DEBUG)

    def note(
        self,
        principal: Principal,
        host: str,
        operation: AclOperation,
        resource: ResourcePattern,
        decision: Decision,
    ) -> None:
        """Log a decision, if there is room for another line about this principal and address."""
        source = shortened(str(principal)), shortened(host)
        if not decision.allowed and not self._has_room(source):
            return
        logger.log(
            logging.DEBUG if decision.allowed else logging.INFO,
            "Principal = %s is %s operation = %s from host = %s on resource = %s:%s:%s by %s",
            source[0],
            "Allowed" if decision.allowed else "Denied",
            kafka_name(operation),
            source[1],
            kafka_name(resource.type),
            resource.pattern.name,
            shortened(resource.name),
            shortened(str(decision.reason)),
        )

    def log_left_out(self) -> None:
        """Log how many lines were suppressed, of principals that have been quiet for a second."""
        now_s = self._now_s()
        for source, window in list(self._windows.items()):
            if now_s - window.began_s >= WINDOW_S:
                del self._windows[source]
                self._log_left_out(source, window.left_out)

    def _has_room(self, source: tuple[str, str]) -> bool:
        now_s = self._now_s()
        if source not in self._windows and len(self._windows) >= SOURCES_MAX:
            source = _OTHERS
        window = self._windows.get(source)
        if window is None:
            window = self._windows[source] = _Window(now_s)
        elif now_s - window.began_s >= WINDOW_S:
            self._log_left_out(source, window.left_out)
            window.began_s, window.lines, window.left_out = now_s, 0, 0
        if window.lines >= LINES_PER_WINDOW:
            window.left_out += 1
            return False
        window.lines += 1
        return True

    def _log_left_out(self, source: tuple[str, str], left_out: int) -> None:
        if left_out:
            logger.info(
                "Principal = %s from host = %s: %d more denials were not logged", *source, left_out
            )
