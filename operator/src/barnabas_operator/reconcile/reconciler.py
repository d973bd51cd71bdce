"""One pass over a cluster and all that names it: cluster, topics, users, pipelines, in this order.

That is the unit of the operator's work. A resource that cannot be read gets the error as its status
and does not block the others.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any, Final, Protocol, TypeVar

from barnabas_operator.api.clusters import ClusterStatus, KafkaCluster
from barnabas_operator.api.conditions import READY, RECONCILING, Condition
from barnabas_operator.api.reading import (
    Resource,
    read_cluster,
    read_pipeline,
    read_topic,
    read_user,
)
from barnabas_operator.kube import (
    BUDGETS,
    CLAIMS,
    CLUSTERS,
    CONFIG_MAPS,
    PIPELINES,
    PODS,
    SECRETS,
    SERVICES,
    STATEFUL_SETS,
    TOPICS,
    USERS,
    Document,
    Kind,
    Kube,
    KubeError,
)
from barnabas_operator.names import CLUSTER, FIELD_MANAGER, MANAGED_BY
from barnabas_operator.plan.findings import Reason
from barnabas_operator.plan.ledger import Present
from barnabas_operator.plan.namespaces import cluster_namespace_of
from barnabas_operator.plan.passwords import SecretView
from barnabas_operator.plan.user_ledger import PresentUsers
from barnabas_operator.reconcile import kafka_users
from barnabas_operator.reconcile.apply import short
from barnabas_operator.reconcile.clusters import reconcile_cluster
from barnabas_operator.reconcile.context import Context, Regarding
from barnabas_operator.reconcile.kafka_topics import (
    Managed,
    reconcile_topics_of,
    wait_for_cluster,
)
from barnabas_operator.reconcile.namespaces import (
    is_allowed,
    list_named,
    namespace_of,
    refuse_unallowed,
    refuse_unwatched,
)
from barnabas_operator.reconcile.orphans import DeletionGuard
from barnabas_operator.reconcile.pipelines import reconcile_pipeline
from barnabas_operator.reconcile.reading import read_named, read_one
from barnabas_operator.reconcile.security import as_recorded, credentials_of
from barnabas_operator.reconcile.status import StatusRefusedError

logger: Final = logging.getLogger(__name__)

# The API server checks against its definitions, which may be newer: it is lenient about fields.
READ_CLUSTER: Final = functools.partial(read_cluster, lenient=True)
READ_TOPIC: Final = functools.partial(read_topic, lenient=True)
READ_USER: Final = functools.partial(read_user, lenient=True)
READ_PIPELINE: Final = functools.partial(read_pipeline, lenient=True)

# Seconds until the next look: soon while something is under way, often enough for the figures of
# pipelines to be of use, and now and then to mend what was changed behind our back.
SOON_S: Final = 2.0
FIGURES_S: Final = 5.0
RESYNC_S: Final = 30.0
# A step of the replacement of a certificate authority is late by so much of its time at most.
LATENESS: Final = 0.1

Part = TypeVar("Part")

# What the operator owns, by label selector. Claims have no `managed-by`: they outlive their owner.
_MANAGED: Final = f"{MANAGED_BY}={FIELD_MANAGER}"
OWNED: Final[Mapping[Kind, str]] = {
    STATEFUL_SETS: _MANAGED,
    SERVICES: _MANAGED,
    CONFIG_MAPS: _MANAGED,
    BUDGETS: _MANAGED,
    PODS: _MANAGED,
    CLAIMS: CLUSTER,
}


@dataclass(frozen=True, slots=True, order=True)
class Key:
    """A cluster by name, whether it exists or is only named by topics and pipelines."""

    namespace: str
    cluster: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.cluster}"


def key_of(document: Any) -> Key | None:
    """The cluster that a resource is or names; None if it names none."""
    namespace = namespace_of(document)
    if document.get("kind") == CLUSTERS.kind:
        return Key(namespace, document["metadata"]["name"])
    spec = document.get("spec")
    cluster = spec.get("cluster") if isinstance(spec, Mapping) else None
    named_in = cluster_namespace_of(document)
    if not (isinstance(cluster, str) and cluster and named_in):
        return None
    return Key(namespace if document.get("kind") == PIPELINES.kind else named_in, cluster)


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The clusters of a resync, and the namespaces that could not be listed ("" means all)."""

    keys: frozenset[Key]
    errors: dict[str, KubeError]
    # Those of the resources.
    namespaces: frozenset[str] = frozenset()

    def is_gone(self, key: Key) -> bool:
        """Whether nothing names the cluster any more, as far as its namespace could be listed."""
        unknown = "" in self.errors or key.namespace in self.errors
        return not unknown and key not in self.keys


class Index(Protocol):
    """Takes over what a resync lists."""

    def begin(self) -> int:
        """Before a list."""
        ...

    def replace(
        self, kind: Kind, namespace: str | None, documents: Iterable[Document], begun: int
    ) -> None:
        """What was listed."""
        ...

    def invalidate(self, kind: Kind, namespace: str | None) -> None:
        """What could not be listed."""
        ...


def find_keys(kube: Kube, namespaces: Iterable[str | None], index: Index | None = None) -> Found:
    """Every cluster that is or is named; a namespace of None means all.

    An error concerns its namespace alone: one that was deleted must not stop the others.
    """
    keys: set[Key] = set()
    found: set[str] = set()
    errors: dict[str, KubeError] = {}
    for namespace in namespaces:
        try:
            for kind in (CLUSTERS, TOPICS, USERS, PIPELINES):
                begun = index.begin() if index else 0
                documents = _list(kube, kind, namespace)
                if index:
                    index.replace(kind, namespace, documents, begun)
                keys.update(key for key in map(key_of, documents) if key is not None)
                found.update(map(namespace_of, documents))
        except KubeError as error:
            errors[namespace or ""] = error
    return Found(keys=frozenset(keys), errors=errors, namespaces=frozenset(found))


def index_owned(kube: Kube, namespaces: Iterable[str | None], index: Index) -> None:
    """List what the operator owns, to find changes that no watch has reported.

    Where that fails the index is incomplete, and passes read everything themselves.
    """
    for namespace in namespaces:
        for kind, selector in OWNED.items():
            begun = index.begin()
            try:
                index.replace(kind, namespace, kube.metadata(kind, namespace, selector), begun)
            except KubeError as error:
                index.invalidate(kind, namespace)
                logger.debug("Listing failed: namespace=%s %s", namespace or "(all)", error)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of a pass: the seconds until the next one is due, and whether that may be skipped.

    `settled`: nothing was to be done, nothing is waited for, and the time of day had no say, and
    will have none for `settled_for_s`.
    `secrets` are the versions of the Secrets that were read, by namespace and name: they are not
    watched. `topics` are the topics that resources name.
    """

    again_in: float
    settled: bool = False
    settled_for_s: float = inf
    secrets: Mapping[tuple[str, str], str] = field(default_factory=dict)
    topics: frozenset[str] = frozenset()


def reconcile(key: Key, context: Context) -> Outcome:
    """One pass. Raises KubeError."""
    context.warnings.begin()
    if not context.watches(key.namespace):
        for kind in (TOPICS, USERS):
            refuse_unwatched(_named(kind, key, context), key.namespace, context)
        return Outcome(again_in=RESYNC_S)
    document = context.kube.get(CLUSTERS, key.namespace, key.cluster)
    cluster = read_one(document, READ_CLUSTER, context) if document else None
    documents, refused = _split(_named(TOPICS, key, context), key, cluster, context)
    topics = read_named(documents, key.cluster, READ_TOPIC, context)
    user_documents, refused_users = _split(_named(USERS, key, context), key, cluster, context)
    users = read_named(user_documents, key.cluster, READ_USER, context)
    pipelines = read_named(_named(PIPELINES, key, context), key.cluster, READ_PIPELINE, context)
    if cluster is not None or document is None:
        refuse_unallowed([*refused, *refused_users], key.namespace, key.cluster, context)
    if cluster is not None and cluster.meta.deleting:
        # Its objects go with it; its topics stay on their disks.
        return Outcome(again_in=RESYNC_S)
    written: list[tuple[Condition, ...]] = []
    refusals: list[KubeError] = []
    contradiction, settled = "", False
    secrets: Mapping[tuple[str, str], str] = {}
    own = key.cluster, key.namespace
    present = Present.of_namespaces(documents, *own, lambda _: False)
    if cluster is not None:
        secrets = given_versions(cluster, context)
        cluster, contradiction = as_recorded(cluster, context)
        context = replace(context, credentials=credentials_of(cluster, context))
        status = _status_of(cluster, context, contradiction, refusals)
        cluster = replace(cluster, body=replace(cluster.body, status=status))
        written.append(status.conditions)
        looked_at = functools.partial(is_allowed, cluster, context=context)
        present = replace(present, looked_at=looked_at)
        guard = DeletionGuard(present=present, unparsed=(*topics.unparsed, *pipelines.unparsed))
        managed = _attempt(
            functools.partial(reconcile_topics_of, cluster, topics.resources, guard, context),
            Managed(statuses=[]),
            refusals,
        )
        written += [each.conditions for each in managed.statuses]
        user_guard = DeletionGuard(
            present=PresentUsers.of_namespaces(user_documents, *own, looked_at),
            unparsed=users.unparsed,
        )
        manage_users = kafka_users.reconcile_users_of
        managed_users = _attempt(
            functools.partial(manage_users, cluster, users.resources, user_guard, context),
            kafka_users.ManagedUsers(statuses=[]),
            refusals,
        )
        written += [each.conditions for each in managed_users.statuses]
        secrets = {**secrets, **managed_users.secrets}
        settled = _is_settled(status.conditions) and managed.settled and managed_users.settled
    elif document is None:
        wait_for_cluster(topics.resources, context)
        kafka_users.wait_for_cluster(users.resources, context)
    written += [
        reconcile_pipeline(pipeline, cluster, context).conditions
        for pipeline in pipelines.resources
        # What runs is left to itself where its cluster is not as its resource says.
        if not (pipeline.meta.deleting or contradiction)
    ]
    if refusals:
        raise refusals[0]
    if _are_under_way(written) or _are_elsewhere([*refused, *refused_users], context):
        return Outcome(again_in=SOON_S)
    again_in, settled = (FIGURES_S, False) if pipelines.resources else (RESYNC_S, settled)
    outcome = Outcome(again_in=again_in, settled=settled, secrets=secrets, topics=present.named)
    return replace(outcome, settled_for_s=_settled_for_s(cluster))


def _settled_for_s(cluster: Resource[KafkaCluster] | None) -> float:
    """For how long no step of the replacement of a certificate authority can be due."""
    if cluster is None or not cluster.body.spec.needs_certificates:
        return inf
    return LATENESS * cluster.body.spec.certificates.overlap_seconds


def given_versions(cluster: Resource[KafkaCluster], context: Context) -> dict[tuple[str, str], str]:
    """The versions of the Secrets with certificates that a cluster is given; empty without one.

    Read before they are used: what changes from then on is another version.
    """
    namespace = cluster.meta.namespace
    found = {}
    for name in cluster.body.spec.given_secrets:
        try:
            body = context.kube.get(SECRETS, namespace, name)
        except KubeError as error:
            if not error.refused:
                raise
            continue  # The check of certificates says so.
        found[namespace, name] = SecretView.of(body).version if body else ""
    return found


def _status_of(
    cluster: Resource[KafkaCluster],
    context: Context,
    contradiction: str,
    refusals: list[KubeError],
) -> ClusterStatus:
    """The cluster after its part of the pass. Topics and users go on by a status that the API
    server refuses: it follows from what was observed."""
    try:
        return reconcile_cluster(cluster, context, contradiction)
    except StatusRefusedError as error:
        refusals.append(error)
        logger.warning("%s: status not written: %s", f"KafkaCluster {cluster.meta.name}", error)
        context.count_step("WriteStatus", "refused")
        context.events.record(
            Regarding.of(CLUSTERS, cluster.meta),
            action="WriteStatus",
            reason=Reason.REFUSED,
            note=f"the API server refuses the status: {short(error.message)}",
            warning=True,
        )
        status: ClusterStatus = error.unwritten
        return status


def _attempt(part: Callable[[], Part], otherwise: Part, refusals: list[KubeError]) -> Part:
    """A part of a pass. What the API server refuses to it ends the pass once the others have had
    their turn: it would refuse that again."""
    try:
        return part()
    except KubeError as error:
        if not error.refused:
            raise
        refusals.append(error)
        return otherwise


def _are_elsewhere(documents: Iterable[Document], context: Context) -> bool:
    """Whether any is in a namespace in which the operator does not act, or not yet."""
    return not all(context.watches(namespace_of(each)) for each in documents)


def _is_settled(conditions: Iterable[Condition]) -> bool:
    """Whether a cluster is Ready and nothing else. A warning may be one that ends with time."""
    return [(each.type, each.status) for each in conditions] == [(READY, "True")]


def _are_under_way(written: Iterable[Iterable[Condition]]) -> bool:
    """Whether any may be otherwise soon: an approval has an event, and a window comes in hours."""
    return any(
        each.type == RECONCILING and each.reason != Reason.ROLL_HELD_BACK
        for conditions in written
        for each in conditions
    )


def _named(kind: Kind, key: Key, context: Context) -> list[Document]:
    """What names the cluster, and perhaps other resources of its namespace."""
    found = context.index(kind, key.namespace, key.cluster)
    if found is not None:
        return found
    if kind is PIPELINES:
        return _list(context.kube, kind, key.namespace)
    listed = _or_none(kind, lambda: list_named(kind, key.namespace, context))
    return [each for each in listed if _may_name(each, key)]


def _may_name(document: Document, key: Key) -> bool:
    """Whether a resource names the cluster, or may mean any one of its own namespace."""
    named = key_of(document)
    return named == key or (named is None and namespace_of(document) == key.namespace)


def _split(
    documents: Iterable[Document],
    key: Key,
    cluster: Resource[KafkaCluster] | None,
    context: Context,
) -> tuple[list[Document], list[Document]]:
    """The resources that may name the cluster, and those of namespaces that it does not allow."""
    allowed, refused = [], []
    for each in documents:
        namespace = namespace_of(each)
        own = namespace == key.namespace
        if own or (cluster is not None and is_allowed(cluster, namespace, context)):
            allowed.append(each)
        else:
            refused.append(each)
    return allowed, refused


def _list(kube: Kube, kind: Kind, namespace: str | None) -> list[Document]:
    return list(_or_none(kind, lambda: kube.list(kind, namespace)))


def _or_none(kind: Kind, ask: Callable[[], Sequence[Document]]) -> Sequence[Document]:
    """The resources of a kind; none where their definition is not installed.

    Helm does not upgrade definitions, and one may be deleted: the other kinds are served.
    """
    try:
        return ask()
    except KubeError as error:
        if kind is not CLUSTERS and error.status == 404:
            return []
        raise
