"""The CustomResourceDefinitions of the declared resources."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from barnabas_operator.api import GROUP, VERSION
from barnabas_operator.api.clusters import KafkaCluster
from barnabas_operator.api.pipelines import KafkaPipeline
from barnabas_operator.api.schemas import schema_of
from barnabas_operator.api.topics import KafkaTopic
from barnabas_operator.api.users import KafkaUser


@dataclass(frozen=True, slots=True)
class Column:
    """A column of `kubectl get`; priority 1 is shown with -o wide only."""

    name: str
    type: str
    path: str
    priority: int = 0


@dataclass(frozen=True, slots=True)
class Definition:
    """A kind: its declaration, its names and its columns."""

    body: type
    plural: str
    short: str
    columns: tuple[Column, ...]

    @property
    def kind(self) -> str:
        """The kind's name."""
        return self.body.__name__


_READY = Column("Ready", "string", '.status.conditions[?(@.type=="Ready")].status')
_REASON = Column("Reason", "string", '.status.conditions[?(@.type=="Ready")].reason')
_MESSAGE = Column("Message", "string", '.status.conditions[?(@.type=="Ready")].message', 1)
_AGE = Column("Age", "date", ".metadata.creationTimestamp")
_CLUSTER = Column("Cluster", "string", ".spec.cluster")

# The short names begin with b: kc and kt are taken where another Kafka operator is installed.
CLUSTERS: Final = Definition(
    KafkaCluster,
    "kafkaclusters",
    "bkc",
    (
        _READY,
        _REASON,
        Column("Brokers", "integer", ".status.brokers.ready"),
        Column("ZooKeeper", "integer", ".status.zookeeper.ready"),
        Column("Bootstrap", "string", ".status.listeners[0].bootstrapServers"),
        _AGE,
        Column("Id", "string", ".status.clusterId", 1),
        Column("Storage", "string", ".status.storage.size", 1),
        _MESSAGE,
    ),
)
TOPICS: Final = Definition(
    KafkaTopic,
    "kafkatopics",
    "bkt",
    (
        _CLUSTER,
        Column("Topic", "string", ".status.topicName"),
        Column("Partitions", "integer", ".status.partitions"),
        Column("Replicas", "integer", ".status.replicas"),
        _READY,
        _REASON,
        _AGE,
        _MESSAGE,
    ),
)
USERS: Final = Definition(
    KafkaUser,
    "kafkausers",
    "bku",
    (
        _CLUSTER,
        Column("User", "string", ".status.username"),
        Column("Authentication", "string", ".spec.authentication.type"),
        Column("Secret", "string", ".status.secret"),
        _READY,
        _REASON,
        _AGE,
        _MESSAGE,
    ),
)
PIPELINES: Final = Definition(
    KafkaPipeline,
    "kafkapipelines",
    "bkp",
    (
        _CLUSTER,
        Column("Phase", "string", ".status.phase"),
        Column("Rows", "integer", ".status.rows"),
        Column("Rows/s", "number", ".status.rowsPerSecond"),
        Column("Lag", "integer", ".status.lag"),
        _READY,
        _AGE,
        _MESSAGE,
    ),
)
DEFINITIONS: Final = (CLUSTERS, TOPICS, USERS, PIPELINES)


def crd(definition: Definition) -> dict[str, Any]:
    """The CustomResourceDefinition of a kind."""
    schema = schema_of(definition.body)
    # The server fills these itself; naming them would make them ours to check.
    schema["properties"] = {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": {"type": "object"},
        **schema["properties"],
    }
    # Defaults in a status would be written by the creator of the object, before anything is known.
    _without_defaults(schema["properties"]["status"])
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{definition.plural}.{GROUP}",
            "labels": {"app.kubernetes.io/name": "barnabas"},
        },
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {
                "kind": definition.kind,
                "listKind": f"{definition.kind}List",
                "plural": definition.plural,
                "singular": definition.kind.lower(),
                "shortNames": [definition.short],
                "categories": ["barnabas"],
            },
            "versions": [
                {
                    "name": VERSION,
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "additionalPrinterColumns": [_column(each) for each in definition.columns],
                    "schema": {"openAPIV3Schema": schema},
                }
            ],
        },
    }


def _column(column: Column) -> dict[str, Any]:
    written: dict[str, Any] = {
        "name": column.name,
        "type": column.type,
        "jsonPath": column.path,
    }
    if column.priority:
        written["priority"] = column.priority
    return written


def _without_defaults(schema: dict[str, Any]) -> None:
    schema.pop("default", None)
    for each in schema.get("properties", {}).values():
        _without_defaults(each)
    if isinstance(schema.get("items"), dict):
        _without_defaults(schema["items"])
