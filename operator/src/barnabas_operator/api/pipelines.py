"""KafkaPipeline: records of topics, exactly once, in files."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, ClassVar, Final

from barnabas_operator.api.conditions import Condition, HeldGeneration
from barnabas_operator.api.facts import (
    DURATION,
    NAME,
    RESOURCE_NAME,
    Between,
    Doc,
    Fewest,
    Keyed,
    Longest,
    NoDefault,
    Pattern,
    Rule,
)
from barnabas_operator.api.pods import SecretReference
from barnabas_operator.api.references import SAME_CLUSTER
from barnabas_operator.api.storage import Claim, ContainerResources

# Spark wants a gibibyte for its JVM and some for Python beside it.
_RESOURCES: Final = ContainerResources(memory="1536Mi", cpu="250m")


class StartingOffsets(StrEnum):
    """Where a pipeline begins that has no checkpoint yet."""

    EARLIEST = "earliest"
    LATEST = "latest"


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where the records come from."""

    RULES: ClassVar = (
        Rule("self.topics == oldSelf.topics", "topics may not change: the checkpoint names them"),
    )

    topics: Annotated[
        tuple[str, ...],
        Doc("Names of topics in Kafka; the pipeline waits until all exist."),
        Fewest(1),
        Longest(100),
    ]
    starting_offsets: Annotated[
        StartingOffsets, Doc("Where to begin when there is no checkpoint yet.")
    ] = StartingOffsets.EARLIEST
    max_offsets_per_trigger: Annotated[
        int, Doc("At most so many records in a batch."), Between(1, 10**9)
    ] = 1_000_000
    fail_on_data_loss: Annotated[
        bool,
        Doc("Whether to stop when records were deleted before they were read, rather than go on."),
    ] = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ParquetSink:
    """Parquet files in a directory, one subdirectory per batch."""

    RULES: ClassVar = (
        Rule("self.path == oldSelf.path", "path may not change: the checkpoint belongs to it"),
    )

    path: Annotated[
        str,
        Doc("Absolute directory on the pipeline's volume, which is mounted at /data."),
        Pattern(r"^/[^\x00]*$", "an absolute path"),
        Longest(1024),
        Rule("!self.contains('..')", "path may not contain .."),
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sink:
    """Where the records go."""

    RULES: ClassVar = (Rule("has(self.parquet)", "give a sink: parquet"),)

    parquet: Annotated[ParquetSink | None, Doc("Parquet files.")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Trigger:
    """When a batch begins."""

    interval: Annotated[
        str,
        Doc("Time between the beginnings of batches, a second or more."),
        DURATION,
        Longest(20),
        Rule(
            "!self.matches('^(0+(ms|s|m|h|d))+$') && !self.matches('^[0-9]{1,3}ms$')",
            "interval must be a second or more",
        ),
    ] = "5s"


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineSpec:
    """The pipeline that is wanted."""

    RULES: ClassVar = (SAME_CLUSTER,)

    cluster: Annotated[
        str, Doc("Name of the KafkaCluster, in the same namespace."), NAME, Longest(40)
    ]
    user: Annotated[
        str | None,
        Doc(
            "Name of a KafkaUser of the cluster, in the same namespace: the pod reads the topics as"
            " this user, through the listener of its Secret. A secured cluster needs one; without"
            " it the pod uses the listener without authentication."
        ),
        RESOURCE_NAME,
        Longest(253),
    ] = None
    source: Annotated[Source, Doc("Where the records come from.")]
    sink: Annotated[Sink, Doc("Where the records go.")]
    trigger: Annotated[Trigger, Doc("When a batch begins.")] = Trigger()
    storage: Annotated[Claim, Doc("The claim for files and checkpoint, mounted at /data.")]
    resources: Annotated[ContainerResources, Doc("Memory and CPU of the pipeline's pod.")] = (
        _RESOURCES
    )
    version: Annotated[
        str | None,
        Doc(
            "Version of Barnabas whose image the pod runs, one that the operator knows. If absent"
            " the pipeline keeps the image that it was created with, whatever the operator runs."
        ),
        Longest(64),
    ] = None
    image: Annotated[
        str | None, Doc("Image of your own, instead of that of the version."), Longest(512)
    ] = None
    image_pull_secrets: Annotated[
        tuple[SecretReference, ...],
        Doc("Secrets with which the image is pulled."),
        Keyed(("name",)),
        NoDefault(),
        Longest(16),
    ] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineStatus:
    """The pipeline as it was last seen."""

    observed_generation: Annotated[int, Doc("The generation that this status is about.")] = 0
    conditions: Annotated[
        tuple[Condition, ...], Doc("Ready, Reconciling, Stalled, Warning."), Keyed(("type",))
    ] = ()
    phase: Annotated[
        str,
        Doc(
            "WaitingForCluster, WaitingForUser, WaitingForTopics, Starting, or as its pod reports:"
            " WaitingForAuthentication, WaitingForAuthorization, Running, Failed and others."
        ),
    ] = ""
    rows: Annotated[int, Doc("Rows written since its pod started.")] = 0
    rows_per_second: Annotated[float, Doc("Rows per second in the last batch.")] = 0.0
    lag: Annotated[int, Doc("Records that are not yet in files.")] = 0
    last_batch_id: Annotated[int, Doc("The last batch, -1 if there is none.")] = -1
    image: Annotated[str, Doc("Image that the pod runs or is updated to.")] = ""
    update_available: Annotated[
        str, Doc("What a newer operator would change, once the spec asks for it.")
    ] = ""
    held_generation: HeldGeneration = 0

    @property
    def is_of_an_earlier_operator(self) -> bool:
        """Whether an operator wrote this that did not remember the image in use."""
        return self.observed_generation > 0 and not self.image


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaPipeline:
    """Records of topics, exactly once, in files."""

    RULES: ClassVar = (
        Rule("size(self.metadata.name) <= 40", "metadata.name may have at most 40 characters"),
        Rule(
            "self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",
            "metadata.name becomes the name of a Service: small letters, digits and dashes",
        ),
    )

    spec: Annotated[PipelineSpec, Doc("The pipeline that is wanted.")]
    status: Annotated[PipelineStatus, Doc("The pipeline as it was last seen.")] = PipelineStatus()
