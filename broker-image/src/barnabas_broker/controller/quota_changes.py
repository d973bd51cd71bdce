"""Decides about AlterClientQuotas and DescribeClientQuotas (KIP-546).

The rules and messages are those of Kafka's ZkAdminManager. Faults are raised as KafkaError.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import IntEnum
from functools import partial
from typing import Final, NamedTuple

from barnabas_broker.cluster.quota_entity import (
    CLIENT_QUOTAS,
    CONNECTION_CREATION_RATE,
    CONSUMER_BYTE_RATE,
    DEFAULT,
    IP_QUOTAS,
    PRODUCER_BYTE_RATE,
    Default,
    Name,
    QuotaEntity,
)
from barnabas_broker.security.scram import ScramMechanism
from barnabas_kafka.errors import ErrorCode, KafkaError

USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"

EPSILON: Final = 1e-6
"""How far a number may be from a whole one, where that is asked for."""

LONGS: Final = (PRODUCER_BYTE_RATE, CONSUMER_BYTE_RATE)
LONG_MAX: Final = 2**63 - 1
INT_MAX: Final = 2**31 - 1

Parts = tuple[tuple[str, str | None], ...]
"""An entity as requests name it: types and names, None for the default."""


class QuotaChange(NamedTuple):
    """One quota in a request; `value` is None where it is to go."""

    name: str
    value: float | None


class QuotaAlteration(NamedTuple):
    """Changes of the quotas of one entity."""

    parts: Parts
    changes: Sequence[QuotaChange]


class Match(IntEnum):
    """How a part of an entity is compared."""

    EXACT = 0
    DEFAULT = 1
    SPECIFIED = 2


class Component(NamedTuple):
    """One part of a filter; the match as sent, known or not."""

    entity_type: str
    match_type: int
    match: str | None


def entity_of(parts: Parts) -> QuotaEntity:
    """The entity in a request; raises KafkaError INVALID_REQUEST."""
    if not parts:
        raise _invalid("Invalid empty client quota entity")
    named: dict[str, Name] = {}
    for entity_type, name in parts:
        if entity_type not in (USER, CLIENT_ID, IP):
            raise _invalid(f"Unhandled client quota entity type: {entity_type}")
        if name == "":
            raise _invalid(f"Empty {entity_type} not supported")
        named[entity_type] = DEFAULT if name is None else name
    if IP in named and len(named) > 1:
        raise _invalid(
            "Invalid quota entity combination, IP entity should not be used with user/client ID "
            "entity."
        )
    return QuotaEntity(named.get(USER), named.get(CLIENT_ID), named.get(IP))


def parts_of(entity: QuotaEntity) -> Parts:
    """The entity as responses name it."""
    named = ((USER, entity.user), (CLIENT_ID, entity.client_id), (IP, entity.ip))
    return tuple(
        (kind, None if isinstance(name, Default) else name)
        for kind, name in named
        if name is not None
    )


def altered(
    entity: QuotaEntity, config: Mapping[str, str], changes: Iterable[QuotaChange]
) -> dict[str, str]:
    """The settings of an entity, which has `config`, after the changes; raises KafkaError.

    Whatever is to go goes, SCRAM credentials of a user included, as in Kafka.
    """
    result = dict(config)
    for change in changes:
        if change.value is None:
            result.pop(change.name, None)
        else:
            result[change.name] = _text(entity, change.name, change.value)
    return result


def check_stored(entity: QuotaEntity, config: Mapping[str, str]) -> None:
    """Raise KafkaError unless these may be all the settings of an entity."""
    rate = config.get(CONNECTION_CREATION_RATE)
    if entity.ip is not None and rate is not None and int(rate) < 0:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)


def _text(entity: QuotaEntity, name: str, value: float) -> str:
    if name not in (CLIENT_QUOTAS if entity.ip is None else IP_QUOTAS):
        if entity.user is not None and any(name == each.wire_name for each in ScramMechanism):
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)  # A credential is no number.
        raise _invalid(f"Invalid configuration key {name}")
    if math.isnan(value):
        raise _invalid(f"Configuration {name} must be a number")
    if name in LONGS:
        return _whole(name, value, LONG_MAX, "LONG")
    if name in IP_QUOTAS:
        return _whole(name, value, INT_MAX, "INT")
    return "Infinity" if value == math.inf else "-Infinity" if value == -math.inf else repr(value)


def _whole(name: str, value: float, largest: int, kind: str) -> str:
    lowest = -largest - 1
    whole = largest if value >= largest else lowest if value <= lowest else int(value + EPSILON)
    if not abs(whole - value) <= EPSILON:
        raise _invalid(f"Configuration {name} must be a {kind} value")
    return str(whole)


def entity_filter(
    components: Sequence[Component], *, strict: bool
) -> Callable[[QuotaEntity], bool]:
    """What says whether a filter matches an entity; raises KafkaError."""
    asked: dict[str, Component] = {}
    for each in components:
        _check(each, asked)
        asked[each.entity_type] = each
    if IP in asked and len(asked) > 1:
        raise _invalid(
            "Invalid entity filter component combination, IP filter component should not be used "
            "with user or clientId filter component."
        )
    return partial(_matches_all, asked, strict)


def _check(component: Component, asked: Mapping[str, Component]) -> None:
    kind = component.entity_type
    if kind in asked:
        word = {USER: "user", CLIENT_ID: "client", IP: "ip"}[kind]
        raise _invalid(f"Duplicate {word} filter component entity type")
    if kind == "":
        raise _invalid("Unexpected empty filter component entity type")
    if kind not in (USER, CLIENT_ID, IP):
        message = f"Custom entity type '{kind}' not supported"
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, message)


def _matches_all(asked: Mapping[str, Component], strict: bool, entity: QuotaEntity) -> bool:
    if entity.ip is not None:
        named: dict[str, Name | None] = {IP: entity.ip}
        is_other = bool(asked) and IP not in asked
    else:
        named = {USER: entity.user, CLIENT_ID: entity.client_id}
        is_other = IP in asked
    return not is_other and all(
        _matches(asked[kind], name) if kind in asked else name is None or not strict
        for kind, name in named.items()
    )


def _matches(component: Component, name: Name | None) -> bool:
    match component.match_type:
        case Match.EXACT:
            return name == component.match
        case Match.DEFAULT:
            return name is DEFAULT
        case _:
            return name is not None


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, message)
