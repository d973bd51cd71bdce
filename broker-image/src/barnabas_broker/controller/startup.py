"""Taking one's place at a coordination store: alone in one's own, or among others in a shared one.

A broker with a store of its own becomes the controller at once. In order: find or make the
cluster's identity, claim `/controller` with the next controller epoch, finish or note the deletions
that were asked for, give ids to topics from before there were any, and elect a leader for each
partition. A crash on the way leaves what the next start completes.

A broker at a shared store joins first, and runs for controller when it is registered
(`controller.active_controller`).
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from random import Random

from barnabas_broker.cluster.image import MetadataImage, ids_of
from barnabas_broker.controller.controller_claim import (
    ControllerClaim,
    commit_fenced,
    contest,
)
from barnabas_broker.controller.election_context import ElectionContext, in_question, lead_topic
from barnabas_broker.controller.elections import LiveBrokers
from barnabas_broker.controller.identity import new_cluster_id
from barnabas_broker.controller.loading import (
    load_broker_configs,
    load_existing,
    load_quota_configs,
    load_topic_znodes,
    load_topics,
    load_user_configs,
)
from barnabas_broker.controller.topic_znodes import delete_topic
from barnabas_broker.controller.writes import create_parents
from barnabas_broker.zk import acl_znodes
from barnabas_broker.zk.store import (
    CoordinationError,
    CoordinationStore,
    Create,
    Delete,
    Operation,
)
from barnabas_broker.zk.znodes import (
    PERSISTENT_PATHS,
    ClusterIdZnode,
    DeleteTopicZnode,
    FeatureZnode,
    TopicZnode,
)
from barnabas_zookeeper.errors import NodeExistsError, NoNodeError

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TakenOver:
    """What the controller of a store of its own starts with.

    `deleting` are topics that are gone but whose logs may still lie on disk.
    """

    image: MetadataImage
    claim: ControllerClaim
    deleting: frozenset[str]


def take_over(
    store: CoordinationStore,
    *,
    broker_id: int,
    cluster_id: str | None,
    deletion_enabled: bool,
    random: Random,
    now_ms: int,
) -> TakenOver:
    """Make `broker_id` the controller of a store that is its own.

    `cluster_id` is the one in meta.properties, None for new directories. Raises CoordinationError
    where the store belongs to another cluster, MalformedZnodeError where it holds unreadable
    data.
    """
    make_parents(store, now_ms=now_ms)
    identity = identify(store, cluster_id, random, found_new=True, now_ms=now_ms)
    claim = contest(store, broker_id=broker_id, now_ms=now_ms)
    if claim is None:
        raise CoordinationError("another session is the controller of this broker's own data")
    operations = missing_feature(store)
    deletions, doomed, deleting = _deletions(store, deletion_enabled=deletion_enabled)
    operations += deletions
    leading = ElectionContext(LiveBrokers({broker_id}, restarted={broker_id}), claim.epoch, random)
    kept = [name for name in store.children(TopicZnode.ROOT) if name not in doomed]
    for topic in load_topics(store, kept).values():
        existing = load_existing(store, in_question(topic))
        operations += lead_topic(topic, leading, existing=existing)
    commit_fenced(store, claim, operations, now_ms=now_ms)
    image = replace(load_image(store, identity), controller_id=broker_id)
    return TakenOver(image, claim, deleting)


def missing_feature(store: CoordinationStore) -> list[Operation]:
    """The creation of /feature, if it is not there: the controller's to make."""
    if store.exists(FeatureZnode.PATH) is not None:
        return []
    return [Create(FeatureZnode.PATH, FeatureZnode().encode())]


def make_parents(store: CoordinationStore, *, now_ms: int) -> None:
    """Create the parent znodes that brokers expect; other brokers may do so at the same time."""
    paths = [*PERSISTENT_PATHS, "/cluster"]
    create_parents(store, paths, now_ms=now_ms, purpose="the first znodes")


def identify(
    store: CoordinationStore,
    cluster_id: str | None,
    random: Random,
    *,
    found_new: bool,
    now_ms: int,
) -> str:
    """The id of the cluster in the store, made if there is none.

    `cluster_id` is the one in meta.properties, None for new directories; `found_new` says whether
    a store without an identity takes that one: a broker's own does, an ensemble does not. Raises
    CoordinationError where the store belongs to another cluster.
    """
    try:
        stored = ClusterIdZnode.decode(store.get(ClusterIdZnode.PATH)[0])
    except NoNodeError:
        if cluster_id is not None and not found_new:
            raise CoordinationError(
                f"the log directories belong to cluster {cluster_id} (meta.properties), but there "
                f"is no {ClusterIdZnode.PATH}; is the chroot in zookeeper.connect the right one?"
            ) from None
        identity = cluster_id or new_cluster_id(random)
        creation = Create(ClusterIdZnode.PATH, ClusterIdZnode.encode(identity))
        try:
            store.commit([creation], now_ms=now_ms)
        except NodeExistsError:  # Another new broker was quicker.
            return identify(store, cluster_id, random, found_new=found_new, now_ms=now_ms)
        return identity
    if cluster_id is not None and cluster_id != stored:
        shared = "; two clusters on one ensemble need a chroot each in zookeeper.connect"
        raise CoordinationError(
            f"the log directories belong to cluster {cluster_id} (meta.properties), "
            f"the coordination data to cluster {stored}{'' if found_new else shared}"
        )
    return stored


def warn_of_acls(store: CoordinationStore) -> None:
    """Log that ACLs are stored, if there are any: this broker has no authorizer."""
    if guarded := _resources_with_acls(store):
        _log.warning(
            "ACLs of %d resource(s) are stored, the first in %s: this broker has no authorizer "
            "and allows every operation to all clients; set authorizer.class.name",
            len(guarded),
            guarded[0],
        )


def _resources_with_acls(store: CoordinationStore) -> list[str]:
    """The znodes in which ACLs are stored, one for each resource; empty where there are none."""
    types = (
        f"{root}/{kind}"
        for root in acl_znodes.ROOTS.values()
        if store.exists(root) is not None
        for kind in store.children(root)
    )
    return sorted(f"{kind}/{name}" for kind in types for name in store.children(kind))


def _deletions(
    store: CoordinationStore, *, deletion_enabled: bool
) -> tuple[list[Operation], frozenset[str], frozenset[str]]:
    """What to do about marks under /admin/delete_topics; topics to delete; topics that are gone.

    A mark beside a topic is a wish: old tools write it, whatever the brokers' settings. Kafka
    grants it, or takes it away where delete.topic.enable is false. A mark without a topic is a
    deletion of ours that may not have got to the logs.
    """
    marked = store.children(DeleteTopicZnode.ROOT)
    wished = frozenset(name for name in marked if store.exists(TopicZnode(name).path) is not None)
    gone = frozenset(marked) - wished
    operations: list[Operation] = []
    for name in sorted(wished):
        if deletion_enabled:
            operations += delete_topic(name, load_topic_znodes(store, name))
        else:
            operations.append(Delete(DeleteTopicZnode(name).path))
    if not deletion_enabled:
        return operations, frozenset(), gone
    return operations, wished, gone | wished


def load_image(store: CoordinationStore, cluster_id: str) -> MetadataImage:
    """Topics and settings as they are stored. Raises MalformedZnodeError."""
    found = load_topics(store, store.children(TopicZnode.ROOT))
    topics = {name: topic.image for name, topic in found.items()}
    broker_configs: Mapping[str, Mapping[str, str]] = load_broker_configs(store)
    return MetadataImage(
        cluster_id=cluster_id,
        topics=topics,
        topic_ids=ids_of(topics.values()),
        broker_configs=broker_configs,
        user_configs=load_user_configs(store),
        quota_configs=load_quota_configs(store),
        version=1,
    )
