"""The response that carries one error for a whole request (Kafka's `getErrorResponse`).

Most responses have an error code of their own, in some versions at least. Where there is none, or
clients look for more, each item of the request is answered with the error: `_ITEMS` says where the
items of a request are, and where their answers belong. A field that a version lacks is left out.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple, cast

from barnabas_broker.security.principals import ANONYMOUS
from barnabas_kafka.errors import KafkaError
from barnabas_kafka.ids import NO_EPOCH, NO_OFFSET
from barnabas_kafka.protocol.registry import Api, ApiKey
from barnabas_kafka.protocol.schema import VERSION_MAX, ArrayOf, Struct

ITSELF: Final = ""
"""Stands for an item of a request that has no fields, such as the number of a partition."""

_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


class Items(NamedTuple):
    """A list of a request, and the list of a response that answers it item by item.

    Without `answered`, the parts of each item are answered one level higher, and know what is
    `copied` from it. `copied` has fields of an answer and where in the item their values are;
    `fixed` those that say there is none. From the version after `last` on there are no answers.
    Items that are `distinct` have one answer where several would be the same.
    """

    asked: str
    answered: str | None
    copied: Mapping[str, str] = _NOTHING
    parts: "Items | None" = None
    fixed: Mapping[str, Any] = _NOTHING
    last: int = VERSION_MAX
    distinct: bool = False


class _Failure(NamedTuple):
    """An error as a version of an API says it."""

    error: KafkaError
    version: int

    def build(self, kind: type[Struct], values: Mapping[str, Any]) -> Struct:
        """A struct with the error and these values, as far as the version has such fields."""
        code = self.error.code
        said = {
            "error_code": code,
            "partition_error_code": code,
            "error_message": self.error.message,
            **values,
        }
        fields = kind.__fields__
        return kind(
            **{
                name: value
                for name, value in said.items()
                if name in fields
                and self.version in fields[name].versions
                and (value is not None or self.version in fields[name].nullable)
            }
        )

    def answer(
        self, items: Items, asked: Struct, response: Struct, carried: Mapping[str, Any]
    ) -> None:
        """Add an answer to the response for each of the items in `asked`."""
        for item in getattr(asked, items.asked) or ():
            copied = {
                name: item if source == ITSELF else getattr(item, source)
                for name, source in items.copied.items()
            }
            values = {**carried, **items.fixed, **copied}
            if items.answered is None:
                self.answer(cast(Items, items.parts), item, response, values)
                continue
            answers = type(response).__fields__[items.answered]
            if self.version not in answers.versions:
                return
            kind = cast(ArrayOf, answers.type).element
            answer = self.build(cast("type[Struct]", kind), values)
            listed = getattr(response, items.answered)
            if not (items.distinct and answer in listed):
                listed.append(answer)
            if items.parts is not None:
                self.answer(items.parts, item, answer, _NOTHING)


class _Shape(NamedTuple):
    """What an error response has beside its error: `fixed` values, and what depends on the request.

    That is answers to items, and the fields that are `copied`.
    """

    items: tuple[Items, ...] = ()
    fixed: Mapping[str, Any] = _NOTHING
    copied: tuple[str, ...] = ()


def needs_request(api_key: ApiKey) -> bool:
    """Whether an error response of an API depends on the request."""
    shape = _SHAPES.get(api_key)
    return shape is not None and bool(shape.items)


def error_response(api: Api, request: Any, version: int, error: KafkaError) -> Any:
    """The response; None where there is none, and the connection is closed instead.

    That is Produce with `acks=0`, and an API whose items are needed but whose request is None.
    """
    shape = _SHAPES.get(api.key, _Shape())
    failure = _Failure(error, version)
    copied = {name: getattr(request, name) for name in shape.copied if request is not None}
    response = failure.build(api.response, {**shape.fixed, **copied})
    if request is None and shape.items:
        whole = api.response.__fields__.get("error_code")
        return response if whole is not None and version in whole.versions else None
    if api.key is ApiKey.PRODUCE and not request.acks:
        return None
    for items in shape.items:
        if version <= items.last:
            failure.answer(items, request, response, _NOTHING)
    return response


def _same(*names: str) -> dict[str, str]:
    return dict(zip(names, names, strict=True))


_PARTITION: Final = _same("partition_index")
_NUMBER: Final = {"partition_index": ITSELF}
_NAME: Final = _same("name")
_RESOURCE: Final = _same("resource_type", "resource_name")

_NUMBERS: Final = Items("partition_indexes", "partitions", _NUMBER)
_PARTITIONS: Final = Items("partitions", "partitions", _PARTITION)
_OFFSETS: Final = _Shape((Items("topics", "topics", _same("name", "topic_id"), _PARTITIONS),))
_ALTERED: Final = _Shape((Items("resources", "responses", _RESOURCE),))
_STATES: Final = Items("partition_states", "partition_errors", _PARTITION)

_SHAPES: Final[Mapping[ApiKey, _Shape]] = {
    ApiKey.PRODUCE: _Shape(
        (
            Items(
                "topic_data",
                "responses",
                _same("name", "topic_id"),
                Items(
                    "partition_data",
                    "partition_responses",
                    _same("index"),
                    fixed={"base_offset": NO_OFFSET},
                ),
            ),
        )
    ),
    ApiKey.FETCH: _Shape(
        (
            Items(
                "topics",
                "responses",
                _same("topic", "topic_id"),
                Items(
                    "partitions",
                    "partitions",
                    {"partition_index": "partition"},
                    fixed={"high_watermark": NO_OFFSET},
                ),
                last=12,
            ),
        ),
        copied=("session_id",),
    ),
    ApiKey.LIST_OFFSETS: _Shape((Items("topics", "topics", _NAME, _PARTITIONS),)),
    ApiKey.METADATA: _Shape((Items("topics", "topics", _same("name", "topic_id")),)),
    ApiKey.LEADER_AND_ISR: _Shape(
        (
            Items(
                "ungrouped_partition_states",
                "partition_errors",
                _same("topic_name", "partition_index"),
            ),
            Items("topic_states", None, _same("topic_name"), _STATES),
            Items("topic_states", "topics", _same("topic_id"), _STATES),
        )
    ),
    ApiKey.STOP_REPLICA: _Shape(
        (
            Items(
                "ungrouped_partitions", "partition_errors", _same("topic_name", "partition_index")
            ),
            Items(
                "topics",
                None,
                {"topic_name": "name"},
                Items("partition_indexes", "partition_errors", _NUMBER),
            ),
            Items("topic_states", None, _same("topic_name"), _STATES),
        )
    ),
    ApiKey.OFFSET_COMMIT: _OFFSETS,
    ApiKey.OFFSET_FETCH: _Shape(
        (
            Items(
                "topics",
                "topics",
                _NAME,
                Items(
                    "partition_indexes",
                    "partitions",
                    _NUMBER,
                    fixed={"committed_offset": NO_OFFSET},
                ),
                last=1,
            ),
            Items("groups", "groups", _same("group_id")),
        )
    ),
    ApiKey.FIND_COORDINATOR: _Shape(
        (
            Items(
                "coordinator_keys",
                "coordinators",
                {"key": ITSELF},
                fixed={"node_id": -1, "port": -1},
            ),
        ),
        fixed={"node_id": -1, "port": -1},
    ),
    ApiKey.JOIN_GROUP: _Shape(fixed={"protocol_name": None}),
    ApiKey.DESCRIBE_GROUPS: _Shape((Items("groups", "groups", {"group_id": ITSELF}),)),
    ApiKey.CREATE_TOPICS: _Shape((Items("topics", "topics", _NAME),)),
    ApiKey.DELETE_TOPICS: _Shape(
        (
            Items("topics", "responses", _same("name", "topic_id")),
            Items("topic_names", "responses", {"name": ITSELF}),
        )
    ),
    ApiKey.DELETE_RECORDS: _Shape(
        (
            Items(
                "topics",
                "topics",
                _NAME,
                Items("partitions", "partitions", _PARTITION, fixed={"low_watermark": NO_OFFSET}),
            ),
        )
    ),
    ApiKey.INIT_PRODUCER_ID: _Shape(fixed={"producer_epoch": NO_EPOCH}),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: _Shape(
        (
            Items(
                "topics",
                "topics",
                _same("topic"),
                Items("partitions", "partitions", _same("partition")),
            ),
        )
    ),
    ApiKey.ADD_PARTITIONS_TO_TXN: _Shape(
        (
            Items(
                "v3_and_below_topics",
                "results_by_topic_v3_and_below",
                _NAME,
                Items("partitions", "results_by_partition", _NUMBER),
            ),
        )
    ),
    ApiKey.WRITE_TXN_MARKERS: _Shape(
        (
            Items(
                "markers",
                "markers",
                _same("producer_id"),
                Items("topics", "topics", _NAME, _NUMBERS),
            ),
        )
    ),
    ApiKey.TXN_OFFSET_COMMIT: _OFFSETS,
    ApiKey.CREATE_ACLS: _Shape((Items("creations", "results"),)),
    ApiKey.DELETE_ACLS: _Shape((Items("filters", "filter_results"),)),
    ApiKey.DESCRIBE_CONFIGS: _Shape((Items("resources", "results", _RESOURCE),)),
    ApiKey.ALTER_CONFIGS: _ALTERED,
    ApiKey.ALTER_REPLICA_LOG_DIRS: _Shape(
        (
            Items(
                "dirs",
                None,
                parts=Items(
                    "topics",
                    "results",
                    {"topic_name": "name"},
                    Items("partitions", "partitions", _NUMBER),
                ),
            ),
        )
    ),
    ApiKey.CREATE_PARTITIONS: _Shape((Items("topics", "results", _NAME),)),
    ApiKey.CREATE_DELEGATION_TOKEN: _Shape(
        fixed={
            "principal_type": ANONYMOUS.kind,
            "principal_name": ANONYMOUS.name,
            "token_requester_principal_type": ANONYMOUS.kind,
            "token_requester_principal_name": ANONYMOUS.name,
            "issue_timestamp_ms": -1,
            "expiry_timestamp_ms": -1,
            "max_timestamp_ms": -1,
        }
    ),
    ApiKey.DELETE_GROUPS: _Shape((Items("groups_names", "results", {"group_id": ITSELF}),)),
    ApiKey.ELECT_LEADERS: _Shape(
        (
            Items(
                "topic_partitions",
                "replica_election_results",
                _same("topic"),
                Items("partitions", "partition_result", {"partition_id": ITSELF}),
            ),
        )
    ),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: _ALTERED,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: _Shape(
        (Items("topics", "responses", _NAME, _PARTITIONS),)
    ),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: _Shape((Items("topics", "topics", _NAME, _NUMBERS),)),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: _Shape(fixed={"entries": None}),
    ApiKey.ALTER_CLIENT_QUOTAS: _Shape((Items("entries", "entries", _same("entity")),)),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: _Shape((Items("users", "results"),)),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: _Shape(
        (
            Items("deletions", "results", {"user": "name"}, distinct=True),
            Items("upsertions", "results", {"user": "name"}, distinct=True),
        )
    ),
    ApiKey.DESCRIBE_PRODUCERS: _Shape((Items("topics", "topics", _NAME, _NUMBERS),)),
    ApiKey.DESCRIBE_TRANSACTIONS: _Shape(
        (Items("transactional_ids", "transaction_states", {"transactional_id": ITSELF}),)
    ),
    ApiKey.CONSUMER_GROUP_DESCRIBE: _Shape((Items("group_ids", "groups", {"group_id": ITSELF}),)),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: _Shape((Items("topics", "topics", _NAME),)),
}
