"""What every reconcile is given: the ports, the images, and the time it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

from barnabas_operator.api.reading import Metadata
from barnabas_operator.brokers import Brokers, ClientTls, Endpoint
from barnabas_operator.ensemble import PLAIN, MemberAccess
from barnabas_operator.kube import Document, Kind, Kube
from barnabas_operator.plan.observed import Images
from barnabas_operator.progress import Progress
from barnabas_operator.reconcile.pass_warnings import PassWarnings
from barnabas_operator.restart_check import NO_ACCESS, AdminAccess, CheckResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Regarding:
    """The object that an event is about."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str

    @classmethod
    def of(cls, kind: Kind, meta: Metadata) -> Regarding:
        """A custom resource."""
        return cls(
            api_version=kind.api_version,
            kind=kind.kind,
            namespace=meta.namespace,
            name=meta.name,
            uid=meta.uid,
        )


class Recorder(Protocol):
    """Writes events on resources. Never raises for the API server."""

    def record(
        self, regarding: Regarding, *, action: str, reason: str, note: str, warning: bool = False
    ) -> None:
        """What was done, or has become so: `reason` is a word for programs, `note` for people."""
        ...


class NoRecorder:
    """Writes nothing."""

    def record(
        self, regarding: Regarding, *, action: str, reason: str, note: str, warning: bool = False
    ) -> None:
        """See Recorder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterCredentials:
    """The operator's credentials for the brokers of a cluster; none where that is not secured."""

    tls: ClientTls | None = None
    admin: AdminAccess = NO_ACCESS
    # Makes the host name of a broker's pod, which its certificate has; None asks its address.
    host: Callable[[str], str] | None = None
    member: MemberAccess = PLAIN
    """For members of the ensemble."""


NO_RECORDER: Final = NoRecorder()


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """The dependencies of a reconcile; `now` is RFC 3339, in seconds, as conditions have it."""

    kube: Kube
    brokers: Callable[[Endpoint], Brokers]
    progress: Callable[[str], Progress | None]
    # By the URL of a broker's admin port, and with what is shown to it.
    restart_check: Callable[[str, AdminAccess], CheckResult]
    in_sync: Callable[[str, AdminAccess], CheckResult]
    recovery: Callable[[str, AdminAccess], str]
    # By the address of an ensemble member, and how it is reached.
    ensemble_mode: Callable[[str, MemberAccess], str]
    images: Images
    now: str
    events: Recorder = NO_RECORDER
    # Of the cluster that is reconciled.
    warnings: PassWarnings = field(default_factory=PassWarnings)
    credentials: ClusterCredentials = field(default_factory=ClusterCredentials)
    # Where this operator runs.
    operator_namespace: str = "default"
    # Whether figures of a resource that change all the time may be written again, by its uid.
    figures_due: Callable[[str], bool] = lambda _: True
    # Called with the expiry of the certificates of a cluster (namespace, name), by their names.
    expiries: Callable[[str, str, Mapping[str, float]], None] = lambda *_: None
    # The same of the certificates of its KafkaUsers, by their names in Kafka.
    user_expiries: Callable[[str, str, Mapping[str, float]], None] = lambda *_: None
    # The KafkaTopics, KafkaUsers or KafkaPipelines of a namespace that name a cluster, from a cache
    # that may be late; None where they have to be listed.
    index: Callable[[Kind, str, str], list[Document] | None] = lambda *_: None
    # The namespaces that the operator watches; empty for all.
    watched: tuple[str, ...] = ()
    # Whether no other operator acts in a watched namespace; the same answer throughout a pass.
    acts_in: Callable[[str], bool] = lambda _: True
    # Counts a step of a plan by its type, and as `applied` or `refused`.
    count_step: Callable[[str, str], None] = lambda *_: None
    # Whether the KafkaTopic or KafkaUser of a uid was seen to go with another deletionPolicy than
    # Delete.
    retained: Callable[[str], bool] = lambda _: False

    def watches(self, namespace: str) -> bool:
        """Whether the operator acts in a namespace."""
        return (not self.watched or namespace in self.watched) and self.acts_in(namespace)
