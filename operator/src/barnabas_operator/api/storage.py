"""Declarations that several resources share: claims and the resources of a container."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, ClassVar

from barnabas_operator.api.facts import (
    CPU,
    DURATION,
    QUANTITY,
    Between,
    Doc,
    Fewest,
    Longest,
    Rule,
)


class DeletionPolicy(StrEnum):
    """What becomes of the data when the resource is deleted."""

    RETAIN = "Retain"
    DELETE = "Delete"


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerResources:
    """Memory and CPU of a container."""

    memory: Annotated[
        str | None, Doc("Memory, as request and as limit."), QUANTITY, Longest(20)
    ] = None
    cpu: Annotated[str | None, Doc("CPU, as request; there is no limit."), CPU, Longest(20)] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A persistent volume claim of a given size."""

    size: Annotated[
        str,
        Doc("Size of the claim, such as 20Gi. Claims grow and never shrink."),
        QUANTITY,
        Longest(20),
        Fewest(1),
    ]
    storage_class: Annotated[
        str | None, Doc("StorageClass of the claim; the cluster's default if absent."), Longest(253)
    ] = None
    deletion_policy: Annotated[
        DeletionPolicy, Doc("Whether the claims outlive the resource (Retain) or go with it.")
    ] = DeletionPolicy.RETAIN


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizing:
    """What the size of a broker's disk depends on."""

    messages_per_day: Annotated[
        int, Doc("New messages per day, all topics together."), Between(1, 10**15)
    ]
    retention: Annotated[str, Doc("How long messages are kept."), DURATION, Longest(20)] = "7d"
    average_message_bytes: Annotated[
        int, Doc("Average size of key, value and headers together, in bytes."), Between(1, 10**9)
    ]
    replicas: Annotated[int, Doc("Copies of each message in the cluster."), Between(1, 9)] = 1
    compression_ratio: Annotated[
        float,
        Doc("Compressed size over plain size: 1 for no compression, 0.5 for half the size."),
        Between(0.01, 1),
    ] = 1.0
    partitions: Annotated[
        int,
        Doc("Partitions of all topics together; each keeps an active segment beyond retention."),
        Between(1, 10**6),
    ] = 1
    messages_per_batch: Annotated[
        int,
        Doc("Messages that producers put into a batch; its header of 61 bytes is shared by them."),
        Between(1, 10**6),
    ] = 100
    headroom: Annotated[
        float, Doc("Part of the disk that is to stay free, such as 0.2."), Between(0, 0.9)
    ] = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerStorage:
    """The claim of each broker: of a given size, or as large as the messages ask for."""

    RULES: ClassVar = (Rule("has(self.size) != has(self.sizing)", "give either size or sizing"),)

    size: Annotated[
        str | None, Doc("Size of each broker's claim, such as 100Gi."), QUANTITY, Longest(20)
    ] = None
    sizing: Annotated[
        Sizing | None, Doc("What to compute the size from; status shows the arithmetic.")
    ] = None
    storage_class: Annotated[
        str | None, Doc("StorageClass of the claim; the cluster's default if absent."), Longest(253)
    ] = None
    deletion_policy: Annotated[
        DeletionPolicy, Doc("Whether the claims outlive the cluster (Retain) or go with it.")
    ] = DeletionPolicy.RETAIN
