"""Questions about client quotas: what may be set for whom, and what is shown of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import product
from typing import Any, Final

from barnabas_kafka.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntryData,
    EntityData,
    OpData,
)
from barnabas_kafka.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from barnabas_kafka.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from barnabas_kafka.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from barnabas_kafka.protocol.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
)
from tests.oracle.sides import CREATE_MS, Side

Parts = Mapping[str, str | None]

EXACT, DEFAULT, SPECIFIED = 0, 1, 2
VALUES: Final = (
    0.0, 1.0, 1.5, 1.0000001, 1024.0, -1.0, 2.0**31, 2.0**53, 1e18, 1e19, 1e300, float("inf"),
    float("-inf"), 1e-9,
)  # fmt: skip
ENTITIES: Final[Mapping[str, Parts]] = {
    "a user": {"user": "alice"},
    "users": {"user": None},
    "a client": {"client-id": "app"},
    "clients": {"client-id": None},
    "a user's client": {"user": "alice", "client-id": "app"},
    "a user's clients": {"user": "alice", "client-id": None},
    "users' client": {"user": None, "client-id": "app"},
    "users' clients": {"user": None, "client-id": None},
    "an address": {"ip": "127.0.0.1"},
    "addresses": {"ip": None},
    "literal defaults": {"user": "<default>", "client-id": "<default>"},
    "strange names": {"user": "CN=a b,O=x/y~*+%", "client-id": "ü/<>"},
}
REFUSED: Final[Mapping[str, Parts]] = {
    "nothing": {},
    "an unknown type": {"group": "g"},
    "an unknown type beside a user": {"user": "alice", "group": "g"},
    "an empty user": {"user": ""},
    "an empty client": {"client-id": ""},
    "an empty address": {"ip": ""},
    "a user and an address": {"user": "alice", "ip": "127.0.0.1"},
    "a client and an address": {"client-id": "app", "ip": None},
    "no address": {"ip": "no such host."},
}
NAMES: Final = (
    "producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate",
    "connection_creation_rate", "SCRAM-SHA-256", "no_such_quota", "",
)  # fmt: skip


def _alter(
    *entries: tuple[Parts | Iterable[tuple[str, str | None]], Mapping[str, float | None]],
    validate_only: bool = False,
) -> AlterClientQuotasRequest:
    return AlterClientQuotasRequest(
        entries=[
            AlterClientQuotasRequestEntryData(
                entity=[
                    EntityData(entity_type=kind, entity_name=name)
                    for kind, name in (parts.items() if isinstance(parts, Mapping) else parts)
                ],
                ops=[
                    OpData(key=key, value=value or 0.0, remove=value is None)
                    for key, value in quotas.items()
                ],
            )
            for parts, quotas in entries
        ],
        validate_only=validate_only,
    )


def _describe(
    *components: tuple[str, int, str | None], strict: bool = False
) -> DescribeClientQuotasRequest:
    return DescribeClientQuotasRequest(
        components=[
            ComponentData(entity_type=kind, match_type=match_type, match=match)
            for kind, match_type, match in components
        ],
        strict=strict,
    )


def _ordered(answer: Any) -> Any:
    """In an order that does not depend on who gave it."""
    if answer is not None and answer.entries:
        for entry in answer.entries:
            entry.entity.sort(key=lambda part: part.entity_type)
            if hasattr(entry, "values"):
                entry.values.sort(key=lambda each: each.key)
        answer.entries.sort(key=lambda entry: str(entry.entity))
    return answer


def _keep(side: Side, label: str, request: Any, version: int = 1) -> None:
    """Ask, and keep the answer in order."""
    answer = side.wait(request, version, settled=lambda _: True)
    side.keep(label, answer if isinstance(answer, str) else _ordered(answer))


def _texts(side: Side, label: str, request: Any, version: int = 1) -> None:
    """As `_keep`, with the words of errors."""
    answer = side.wait(request, version, settled=lambda _: True)
    side.keep(label, answer if isinstance(answer, str) else _ordered(answer))
    if isinstance(answer, str):
        return
    reported = getattr(answer, "entries", None) or [answer]
    side.reported[f"{label}, words"] = [
        f"words: {text}" for each in reported if (text := getattr(each, "error_message", None))
    ] + [f"words: {text}" for text in [getattr(answer, "error_message", None)] if text]


def quotas_of_entities(side: Side) -> None:
    """Set for everyone that may have some, shown by all filters, changed and removed."""
    for label, parts in ENTITIES.items():
        rate = "connection_creation_rate" if "ip" in parts else "producer_byte_rate"
        _texts(side, f"{label} validated", _alter((parts, {rate: 5.0}), validate_only=True))
        _texts(side, f"{label} set", _alter((parts, {rate: 1e9})))
    _keep(side, "all", _describe())
    _keep(side, "all, version 0", _describe(), 0)
    names: Mapping[str, tuple[int, str | None]] = {
        "alice": (EXACT, "alice"), "app": (EXACT, "app"), "nobody": (EXACT, "nobody"),
        "literal": (EXACT, "<default>"), "default": (DEFAULT, None), "any": (SPECIFIED, None),
        "address": (EXACT, "127.0.0.1"),
    }  # fmt: skip
    for strict, (label, (match_type, match)), kind in product(
        (False, True), names.items(), ("user", "client-id", "ip")
    ):
        request = _describe((kind, match_type, match), strict=strict)
        _keep(side, f"{kind} {label}, strict {strict}", request)
    for strict, (one, first), (two, second) in product((False, True), names.items(), names.items()):
        request = _describe(("user", *first), ("client-id", *second), strict=strict)
        _keep(side, f"user {one}, client {two}, strict {strict}", request)
    _keep(side, "nothing, strict", _describe(strict=True))
    more = {"consumer_byte_rate": 7.0, "request_percentage": 12.5, "controller_mutation_rate": 0.5}
    _texts(side, "several", _alter((ENTITIES["a user"], more)))
    _keep(side, "several shown", _describe(("user", EXACT, "alice"), strict=True))
    gone = {"producer_byte_rate": None, "no_such_quota": None}
    _texts(side, "one removed, and one that is none", _alter((ENTITIES["a user"], gone)))
    _keep(side, "removed shown", _describe(("user", EXACT, "alice"), strict=True))
    for label, parts in ENTITIES.items():
        quotas = ("connection_creation_rate",) if "ip" in parts else NAMES[:4]
        _texts(side, f"{label} removed", _alter((parts, dict.fromkeys(quotas))))
    _keep(side, "none", _describe())


def quotas_that_cannot_be(side: Side) -> None:
    """Entities, names and values."""
    good = {"producer_byte_rate": 1e9}
    for label, parts in REFUSED.items():
        _texts(side, f"{label} refused", _alter((parts, good)))
        _texts(side, f"{label} among others", _alter((parts, good), ({"user": "bob"}, good)))
    for name, (label, parts) in product(NAMES, ENTITIES.items()):
        request = _alter((parts, {name: 1e9}), validate_only=True)
        _texts(side, f"{name!r} of {label}", request)
    for name, value in product(NAMES[:5], VALUES):
        parts = {"ip": "127.0.0.2"} if name == NAMES[4] else {"user": "values"}
        for validate_only in (True, False):
            request = _alter((parts, {name: value}), validate_only=validate_only)
            _texts(side, f"{name} {value}, validated only {validate_only}", request)
        kind = next(iter(parts))
        _keep(side, f"{name} {value} shown", _describe((kind, EXACT, parts[kind]), strict=True))
        _keep(side, f"{name} {value} removed", _alter((parts, {name: None})))
    _texts(side, "a type twice", _alter(([("user", "a"), ("user", "b")], good)))
    gone = {"producer_byte_rate": None}
    _texts(side, "removed again", _alter(*(({"user": name}, gone) for name in ("a", "b", "bob"))))
    _texts(side, "an entity twice", _alter(({"user": "c"}, good), ({"user": "c"}, good)))
    _texts(side, "nothing to do", _alter(({"user": "c"}, {"producer_byte_rate": None}),
                                         ({"client-id": "d"}, {})))  # fmt: skip
    _texts(side, "no entries", _alter())
    _keep(side, "left", _describe())


def filters_that_cannot_be(side: Side) -> None:
    """Parts named twice, of no kind, or compared in no way."""
    user, client_id, ip = (("user", EXACT, "a"), ("client-id", EXACT, "a"), ("ip", EXACT, "a"))
    cases: Mapping[str, list[tuple[str, int, str | None]]] = {
        "user twice": [user, user],
        "client twice": [client_id, client_id],
        "address twice": [ip, ip],
        "user and address": [user, ip],
        "client and address": [client_id, ("ip", DEFAULT, None)],
        "no kind": [("", EXACT, "a")],
        "unknown kind": [("group", EXACT, "a")],
        "unknown comparison": [("user", 3, None)],
        "negative comparison": [("user", -1, None)],
        "exactly nothing": [("user", EXACT, None)],
        "exactly empty": [("user", EXACT, "")],
        "a default with a name": [("user", DEFAULT, "a")],
        "any with a name": [("user", SPECIFIED, "a")],
    }
    for label, components in cases.items():
        for version in (0, 1):
            _texts(side, f"{label}, version {version}", _describe(*components), version)


def changes_of_topics_beyond_a_quota(side: Side) -> None:
    """The first overdraws the quota and is done; what follows is refused, or made to wait."""
    quota: Parts = {"user": "ANONYMOUS"}
    _keep(side, "set", _alter((quota, {"controller_mutation_rate": 0.001})))
    side.wait(
        _describe(("user", EXACT, "ANONYMOUS")), 1, settled=lambda answer: bool(answer.entries)
    )

    def create(name: str, *, validate_only: bool = False) -> CreateTopicsRequest:
        topic = CreatableTopic(name=name, num_partitions=3, replication_factor=1)
        return CreateTopicsRequest(
            topics=[topic], timeout_ms=CREATE_MS, validate_only=validate_only
        )

    def reported(label: str, request: Any, version: int) -> None:
        """By a connection of its own: the last one is muted."""
        side.hang_up()
        answer = side.wait(request, version, settled=lambda _: True)
        if not isinstance(answer, str):
            side.reported[f"{label}, throttled"] = getattr(answer, "throttle_time_ms", 0) > 0
            if hasattr(answer, "throttle_time_ms"):
                answer.throttle_time_ms = 0
        side.keep(label, answer)

    reported("validated", create("quota-a", validate_only=True), 7)
    reported("first", create("quota-a"), 7)
    reported("second", create("quota-b"), 7)
    reported("second, validated", create("quota-b", validate_only=True), 7)
    reported("second, strict first version", create("quota-b"), 6)
    for count, version in ((4, 3), (4, 2)):
        grown = CreatePartitionsTopic(name="quota-a", count=count, assignments=None)
        request = CreatePartitionsRequest(topics=[grown], timeout_ms=CREATE_MS)
        reported(f"grown, version {version}", request, version)
    reported("unknown deleted", DeleteTopicsRequest(
        topics=[DeleteTopicState(name="quota-none")], timeout_ms=CREATE_MS), 6)  # fmt: skip
    reported("deleted", DeleteTopicsRequest(
        topics=[DeleteTopicState(name="quota-a")], timeout_ms=CREATE_MS), 6)  # fmt: skip
    reported("deleted, version 5", DeleteTopicsRequest(
        topic_names=["quota-a"], timeout_ms=CREATE_MS), 5)  # fmt: skip
    reported("created by old clients", create("quota-c"), 5)
    reported("deleted by old clients", DeleteTopicsRequest(
        topic_names=["quota-a"], timeout_ms=CREATE_MS), 4)  # fmt: skip
    side.hang_up()
    _keep(side, "removed", _alter((quota, {"controller_mutation_rate": None})))


QUESTIONS: Final = (
    quotas_of_entities,
    quotas_that_cannot_be,
    filters_that_cannot_be,
    changes_of_topics_beyond_a_quota,
)
