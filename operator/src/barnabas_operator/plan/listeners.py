"""What listeners ask for that would have no effect, by themselves and beside one another.

The API server checks a part of it with CEL rules; resources may be older than its rules, and what
two listeners say of one Service is compared here alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from barnabas_operator.api import GROUP
from barnabas_operator.api.clusters import KafkaCluster
from barnabas_operator.api.declarations import fields_of
from barnabas_operator.api.listeners import (
    ONE_POLICY,
    TWO_HOSTS,
    TYPES_OF_FIELD,
    Listener,
    ListenerBootstrap,
    ListenerBroker,
    ListenerConfiguration,
    ListenerType,
    filled,
    without_effect,
)
from barnabas_operator.names import labels

RESERVED_PREFIX: Final = f"{GROUP}/"


def listener_problems(cluster: KafkaCluster) -> Iterator[str]:
    """Every field of a listener that would be ignored, with what to do about it."""
    spec = cluster.spec
    for each in spec.listeners:
        where = f"spec.listeners: {each.name}"
        yield from (f"{where}: {problem}" for problem in _of_one(each))
    on_nodes = [each for each in spec.listeners if each.type is ListenerType.NODEPORT]
    if len({each.configuration.external_traffic_policy for each in on_nodes} - {None}) > 1:
        names = ", ".join(each.name for each in on_nodes)
        yield f"spec.listeners: {names}: {ONE_POLICY}"
    for ordinal in range(spec.brokers.replicas):
        for what in ("labels", "annotations"):
            if differing := _differing(on_nodes, what, ordinal):
                key, one, other = differing
                text = f"{one} and {other} have different values of {key} for broker {ordinal}"
                remedy = "give one: listeners of type nodeport share a broker's Service"
                yield f"spec.listeners: configuration.{what}: {text}; {remedy}"
                return


def _of_one(listener: Listener) -> Iterator[str]:
    for path, types in TYPES_OF_FIELD.items():
        if listener.type.value not in types and _has(listener, path):
            yield f"{without_effect(path)}; this one is {listener.type.value}"
    given = listener.configuration
    if listener.advertised_host is not None and given.advertised_host_template is not None:
        yield TWO_HOSTS
    yield from _reserved("configuration", given)
    if given.bootstrap is not None:
        yield from _reserved("configuration.bootstrap", given.bootstrap)
    for each in given.brokers:
        yield from _reserved(f"configuration.brokers: {each.broker}", each)


def _reserved(
    place: str, given: ListenerConfiguration | ListenerBootstrap | ListenerBroker
) -> Iterator[str]:
    """Labels and annotations by which the operator finds what is its own."""
    own = labels("", "")
    for name in given.labels:
        if name in own or name.startswith(RESERVED_PREFIX):
            yield f"{place}.labels: {name} is the operator's; remove it"
    for name in given.annotations:
        if name.startswith(RESERVED_PREFIX):
            yield f"{place}.annotations: {name} is the operator's; remove it"


def _has(value: Any, path: str) -> bool:
    """Whether something is given at a path of the resource."""
    name, _, rest = path.partition(".")
    if name.endswith("[]"):
        items = _read(value, name.removesuffix("[]"))
        return any(_has(each, rest) for each in items)
    found = _read(value, name)
    if rest:
        return found is not None and _has(found, rest)
    return bool(found) and found != ListenerConfiguration()


def _read(value: Any, name: str) -> Any:
    (field,) = (each for each in fields_of(type(value)) if each.name == name)
    return getattr(value, field.attribute)


def _differing(
    listeners: Sequence[Listener], what: str, ordinal: int
) -> tuple[str, str, str] | None:
    """A key that two listeners give different values on one Service, and their names."""
    known: dict[str, tuple[str, str]] = {}
    for each in listeners:
        given: Mapping[str, str] = getattr(each.configuration, what)
        own: Mapping[str, str] = getattr(each.configuration.of_broker(ordinal), what)
        for key, template in {**given, **own}.items():
            value = filled(template, ordinal)
            name, before = known.setdefault(key, (each.name, value))
            if before != value:
                return key, name, each.name
    return None
