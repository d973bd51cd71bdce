"""Works out settings whose value depends on others: synonyms, defaults taken elsewhere, old limits.

`log.retention.ms` goes before `log.retention.minutes` and `log.retention.hours`, `log.dirs` before
`log.dir`, and so on: the rules of Kafka's `KafkaConfig`. Each function gets the parsed values by
name (None where neither given nor defaulted) and returns the value in effect.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from .declare import LONG_MAX

Values = Mapping[str, Any]

MINUTE_MS: Final = 60_000
HOUR_MS: Final = 60 * MINUTE_MS

# Settings that mean the same, the first given one in effect
# (`DynamicBrokerConfig.brokerConfigSynonyms`). `log.dirs` is not among them: Kafka shows it without
# its fallback.
SYNONYMS: Final[tuple[tuple[str, ...], ...]] = (
    ("log.roll.ms", "log.roll.hours"),
    ("log.roll.jitter.ms", "log.roll.jitter.hours"),
    ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
    ("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
)


# Two names of a broker's number; giving one gives the other (`KafkaConfig.populateSynonyms`).
TWINS: Final = (("broker.id", "node.id"), ("node.id", "broker.id"))


RENAMED: Final[Mapping[str, str]] = {
    "barnabas.careful.election": "barnabas.leader.recovery.election.enable",
    "barnabas.log.dirs.reserve.bytes": "barnabas.log.dirs.min.free.bytes",
}
"""Old names that are still read where the new one is not given; the broker warns of each."""


def with_twins(given: Mapping[str, str]) -> dict[str, str]:
    """What was given, each of two twins taking the other's value where it has none."""
    twins = {
        twin: given[name]
        for name, twin in (*TWINS, *RENAMED.items())
        if name in given and twin not in given
    }
    return {**given, **twins}


def synonyms_of(name: str) -> tuple[str, ...]:
    """The names that may give this setting its value, strongest first; at least the name itself."""
    return next((group for group in SYNONYMS if name in group), (name,))


def _first_given(values: Values, *names: str) -> Any:
    return next((values[name] for name in names if values[name] is not None), None)


def _log_dirs(values: Values) -> tuple[str, ...]:
    given = values["log.dirs"]
    chosen = (values["log.dir"],) if given is None else given
    return tuple(item for item in chosen if item)


def _roll_ms(values: Values) -> int:
    given: int | None = values["log.roll.ms"]
    return values["log.roll.hours"] * HOUR_MS if given is None else given


def _jitter_ms(values: Values) -> int:
    given: int | None = values["log.roll.jitter.ms"]
    return values["log.roll.jitter.hours"] * HOUR_MS if given is None else given


def _retention_ms(values: Values) -> int:
    """Milliseconds; every negative value means for ever and is shown as -1."""
    millis, minutes = values["log.retention.ms"], values["log.retention.minutes"]
    if millis is None:
        in_hours = values["log.retention.hours"] * HOUR_MS
        millis = in_hours if minutes is None else minutes * MINUTE_MS
    return max(-1, int(millis))


def _before_max_ms(values: Values) -> int:
    """The old single limit counts where the new one was left at its default."""
    given: int = values["log.message.timestamp.before.max.ms"]
    return given if given != LONG_MAX else int(values["log.message.timestamp.difference.max.ms"])


def _after_max_ms(values: Values) -> int:
    given: int = values["log.message.timestamp.after.max.ms"]
    return given if given != LONG_MAX else int(values["log.message.timestamp.difference.max.ms"])


def _mover_threads(values: Values) -> int:
    given: int | None = values["num.replica.alter.log.dirs.threads"]
    return len(_log_dirs(values)) if given is None else given


EFFECTIVE: Final[Mapping[str, Callable[[Values], Any]]] = {
    "log.dirs": _log_dirs,
    "log.roll.ms": _roll_ms,
    "log.roll.jitter.ms": _jitter_ms,
    "log.retention.ms": _retention_ms,
    "log.flush.interval.ms": lambda values: _first_given(
        values, "log.flush.interval.ms", "log.flush.scheduler.interval.ms"
    ),
    "log.message.timestamp.before.max.ms": _before_max_ms,
    "log.message.timestamp.after.max.ms": _after_max_ms,
    "num.replica.alter.log.dirs.threads": _mover_threads,
    "zookeeper.connection.timeout.ms": lambda values: _first_given(
        values, "zookeeper.connection.timeout.ms", "zookeeper.session.timeout.ms"
    ),
    "advertised.listeners": lambda values: _first_given(
        values, "advertised.listeners", "listeners"
    ),
    "inter.broker.listener.name": lambda values: _first_given(
        values, "inter.broker.listener.name", "security.inter.broker.protocol"
    ),
}
