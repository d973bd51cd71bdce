"""What a change of settings makes of those there are, and which changes are refused.

Pure: from the settings set so far and a request to the settings set afterwards. Values are
judged by `barnabas_kafka.settings`, here only that the request makes sense (Kafka's
`ConfigAdminManager`). Faults are raised as KafkaError.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.settings.definitions import Key, Kind

# Finds a setting by name, None for a name that is no setting.
KeyLookup = Callable[[str], Key[Any] | None]


class ConfigResource(IntEnum):
    """What settings are of, with the numbers of DescribeConfigs and AlterConfigs."""

    UNKNOWN = 0
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class AlterOperation(IntEnum):
    """What IncrementalAlterConfigs does to one setting (KIP-339)."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


_OPERATIONS = frozenset(int(operation) for operation in AlterOperation)


@dataclass(frozen=True, slots=True)
class ConfigChange:
    """One setting in a request to change some; `operation` as sent, known or not."""

    name: str
    value: str | None
    operation: int = AlterOperation.SET


def resource_of(number: int) -> ConfigResource:
    """The resource type of that number, UNKNOWN where there is none."""
    try:
        return ConfigResource(number)
    except ValueError:
        return ConfigResource.UNKNOWN


def check_changes(changes: Sequence[ConfigChange]) -> None:
    """Raise KafkaError INVALID_REQUEST for doubled names, missing values, unknown operations."""
    names = [change.name for change in changes]
    if len(set(names)) != len(names):
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")
    missing = [
        change.name
        for change in changes
        if change.value is None and change.operation != AlterOperation.DELETE
    ]
    if missing:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"Null value not supported for : {', '.join(missing)}"
        )
    for change in changes:
        if change.operation not in _OPERATIONS:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, f"Unknown operations type {change.operation}"
            )


def replaced(changes: Iterable[ConfigChange]) -> dict[str, str]:
    """AlterConfigs: what is sent is all there is afterwards."""
    return {change.name: change.value for change in changes if change.value is not None}


def incremented(
    current: Mapping[str, str], changes: Iterable[ConfigChange], lookup: KeyLookup
) -> dict[str, str]:
    """IncrementalAlterConfigs: each operation in turn.

    Raises KafkaError INVALID_CONFIG where values are added to or taken from a setting that is not
    a list.
    """
    result = dict(current)
    for change in changes:
        value = change.value or ""
        match AlterOperation(change.operation):
            case AlterOperation.SET:
                result[change.name] = value
            case AlterOperation.DELETE:
                result.pop(change.name, None)
            case AlterOperation.APPEND:
                present = _present(result, change, lookup)
                added = [item for item in _items(value) if item not in present]
                result[change.name] = ",".join(present + added)
            case AlterOperation.SUBTRACT:
                gone = _items(value)
                present = _present(result, change, lookup)
                result[change.name] = ",".join(item for item in present if item not in gone)
    return result


def _present(current: Mapping[str, str], change: ConfigChange, lookup: KeyLookup) -> list[str]:
    """The values of a list setting; where it is not set, those of its default."""
    key = lookup(change.name)
    if key is None:
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"Unknown config name: {change.name}")
    if key.kind is not Kind.LIST:
        verb = AlterOperation(change.operation).name.lower()
        raise KafkaError(
            ErrorCode.INVALID_CONFIG,
            f"Config value {verb} is not allowed for config key: {change.name}",
        )
    value = current.get(change.name)
    return _items((key.default_text or "") if value is None else value)


def _items(value: str) -> list[str]:
    return [item.strip() for item in value.split(",") if item.strip()]


def broker_key(name: str, *, broker_id: int) -> str:
    """The key among an image's `broker_configs` of a broker resource; empty for all brokers.

    Raises KafkaError INVALID_REQUEST unless `name` is empty or this broker's id.
    """
    if name == "":
        return name
    try:
        asked = int(name)
    except ValueError:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"Broker id must be an integer, but it is: {name}"
        ) from None
    if asked != broker_id:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"Unexpected broker id, expected {broker_id} or empty string, but received {name}",
        )
    return str(asked)
