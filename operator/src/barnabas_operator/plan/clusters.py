"""What to do next for a KafkaCluster: an ordered table of checks over one snapshot.

Each check is a pure function of the snapshot and of the steps planned before it. It adds steps and
findings and depends on nothing else, so a check that waits holds back only what follows from it.
The order is that of a reconcile: objects (Services before the workloads that advertise their
ports), claims, racks, then at most one pod, the ensemble's before the brokers'.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from barnabas_operator.api.clusters import KafkaCluster
from barnabas_operator.api.conditions import is_ready
from barnabas_operator.api.listeners import ListenerType
from barnabas_operator.api.reading import Resource
from barnabas_operator.plan.addresses import node_ports
from barnabas_operator.plan.claims import (
    growth,
    ignored_class,
    lost_cluster_id,
    marked,
    ordinal_of,
    relabelled,
    with_present_templates,
)
from barnabas_operator.plan.disruptions import max_unavailable
from barnabas_operator.plan.drift import compare
from barnabas_operator.plan.dynamic_config import check_dynamic_config, with_config_record
from barnabas_operator.plan.findings import Reason
from barnabas_operator.plan.observed import Images, Observed
from barnabas_operator.plan.protocols import with_protocol
from barnabas_operator.plan.pruning import surplus
from barnabas_operator.plan.roll_checks import (
    check_broker_roll,
    check_ensemble_roll,
    check_pods,
)
from barnabas_operator.plan.snapshot import (
    TEMPLATES,
    Draft,
    Plan,
    Snapshot,
    shortened,
    snapshot_of,
)
from barnabas_operator.plan.steps import AnnotateRack, Apply
from barnabas_operator.plan.versions import as_before, is_held, stamped
from barnabas_operator.resources import listeners
from barnabas_operator.resources.brokers import broker_services, broker_workload, claim_size
from barnabas_operator.resources.config import internal_topics
from barnabas_operator.resources.issued_certificates import issued_certificates, pending
from barnabas_operator.resources.network_policies import network_policies
from barnabas_operator.resources.objects import Document
from barnabas_operator.resources.zookeeper import zookeeper_objects

INTERNAL_TOPICS: Final = {
    "__consumer_offsets": "offsets.topic.replication.factor",
    "__transaction_state": "transaction.state.log.replication.factor",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One row of the table: what is checked, and which reasons it can find."""

    name: str
    looks_at: str
    run: Callable[[Snapshot, Draft], None]
    reasons: tuple[Reason, ...]


def plan_cluster(cluster: Resource[KafkaCluster], observed: Observed, *, images: Images) -> Plan:
    """What to do now."""
    snapshot = snapshot_of(cluster, observed, images)
    draft = Draft()
    for check in CHECKS:
        check.run(snapshot, draft)
    return Plan(steps=tuple(draft.steps), config=draft.config, findings=tuple(draft.findings))


# --- objects --------------------------------------------------------------------------------------


def check_availability(snapshot: Snapshot, draft: Draft) -> None:
    """Ready: brokers answer, and every partition has a leader."""
    view = snapshot.observed.brokers
    absent = snapshot.absences("broker")
    status = snapshot.cluster.body.status
    if absent and not (status.initialized or is_ready(status.conditions)):
        draft.find(Reason.STARTING, shortened([each.message for each in absent]))
    elif view is None:
        trouble = snapshot.observed.brokers_trouble or "no broker is ready"
        draft.find(Reason.UNREACHABLE, f"no broker answers: {trouble}")
    elif view.leaderless:
        count = len(view.leaderless)
        text = shortened(view.leaderless, separator=", ")
        draft.find(Reason.LEADERLESS_PARTITIONS, f"{count} partitions have no leader: {text}")


def check_objects(snapshot: Snapshot, draft: Draft) -> None:
    """Every object as the resource asks for it, and none that it asks for no longer."""
    cluster, operator = snapshot.cluster, snapshot.images.operator
    wanted, observed = _wanted(snapshot, draft), snapshot.observed
    for body in wanted:
        found = snapshot.observed.objects.get((body["kind"], body["metadata"]["name"]))
        possible: Document | None = with_present_templates(body, found)
        of_brokers = body["metadata"]["name"] == snapshot.names.broker
        if of_brokers and body["kind"] == "ConfigMap":
            possible = with_protocol(body, snapshot.protocol)
        if possible is not None and of_brokers and body["kind"] == "StatefulSet":
            possible = with_config_record(possible, snapshot)
        # Addresses are not the resource's to decide, nor of a version.
        of_pods = body["kind"] in TEMPLATES and body["metadata"]["name"] != snapshot.names.addresses
        if possible is not None and of_pods:
            generation = cluster.meta.generation
            possible = stamped(possible, generation=generation, operator=operator)
            if found is not None and is_held(found, cluster, operator):
                draft.held = True
                possible = as_before(possible, found)
        if possible is None:
            continue
        difference = compare(possible, found, now=snapshot.observed.now)
        if difference.reason:
            draft.steps.append(Apply(body=possible, reason=difference.reason))
        if difference.warning:
            name = f"{body['kind']} {body['metadata']['name']}"
            draft.find(Reason.VALUE_ALTERED, f"{name}: {difference.warning}")
    complete = any(body["metadata"]["name"] == snapshot.names.broker for body in wanted)
    # Pods of an earlier version that are held may need what this one does not.
    if complete and not (cluster.unknown_fields or draft.held):
        kept = _still_mounted(snapshot)
        draft.steps += surplus(
            [*wanted, *kept], observed.objects.values(), owner_uid=cluster.meta.uid
        )


def _still_mounted(snapshot: Snapshot) -> list[Mapping[str, Any]]:
    """The ConfigMap of addresses while pods may have it as a volume: without it none starts."""
    name = snapshot.names.addresses
    found = snapshot.observed.objects.get(("ConfigMap", name))
    seen = snapshot.set_of("broker")
    if found is None or seen is None:
        return []
    volumes = snapshot.template_of("broker").get("spec", {}).get("volumes") or ()
    pods = snapshot.observed.pods.get("broker", ())
    mounted = any((each.get("configMap") or {}).get("name") == name for each in volumes)
    older = not seen.current or any(pod.revision != seen.update_revision for pod in pods)
    return [found] if mounted or older else []


def check_certificates(snapshot: Snapshot, draft: Draft) -> None:
    """Authorities that issue, and certificates that do not expire."""
    draft.findings += snapshot.observed.certificates


def check_version(snapshot: Snapshot, draft: Draft) -> None:
    """The images that the spec asks for, and what an upgraded operator would change."""
    chosen, newest = snapshot.chosen, snapshot.images
    if chosen.unknown:
        draft.find(Reason.UNKNOWN_VERSION, chosen.unknown)
    spec = snapshot.cluster.body.spec
    if spec.version is not None or spec.images is not None:
        return
    newer = (newest.broker, newest.zookeeper) != (chosen.broker, chosen.zookeeper)
    if newer or draft.held:
        images = f"{newest.broker} and {newest.zookeeper}"
        text = f"the operator's pods run {images}; set spec.version to update"
        draft.find(Reason.UPDATE_AVAILABLE, text)


def _wanted(snapshot: Snapshot, draft: Draft) -> list[Document]:
    cluster, images, observed = snapshot.cluster, snapshot.chosen, snapshot.observed
    members = snapshot.selector_of(snapshot.names.zookeeper)
    brokers = snapshot.selector_of(snapshot.names.broker)
    wanted = [
        *network_policies(
            cluster,
            operator_namespace=snapshot.observed.operator_namespace,
            members=members,
            brokers=brokers,
        ),
        *zookeeper_objects(cluster, image=images.zookeeper, selector=members),
        *broker_services(cluster, selector=brokers),
        *issued_certificates(cluster, observed.listener_hosts, observed.objects),
    ]
    if unissued := list(pending(cluster, observed.objects)):
        draft.find(Reason.CERTIFICATE_PENDING, shortened(unissued))
    if waiting := listeners.pending(cluster, snapshot.observed.objects):
        draft.find(Reason.LISTENER_PENDING, shortened(waiting))
    ports = node_ports(cluster, snapshot.observed.objects)
    unknown = [
        each.name
        for each in cluster.body.spec.listeners
        if each.type is ListenerType.NODEPORT and each.name not in ports and each.node_port is None
    ]
    if unknown:
        text = f"Kubernetes has not assigned a node port to listener {', '.join(unknown)}"
        draft.find(Reason.NODE_PORTS_PENDING, text)
        return wanted
    name = snapshot.names.broker
    # A forced roll does not wait until every replica is in sync.
    evictable = (
        1
        if snapshot.forced
        else max_unavailable(
            cluster.body.spec.brokers.replicas,
            snapshot.observed.brokers,
            snapshot.observed.objects.get(("PodDisruptionBudget", name)),
        )
    )
    return wanted + broker_workload(
        cluster,
        image=images.broker,
        node_ports=ports,
        found=snapshot.observed.objects,
        selector=brokers,
        max_unavailable=evictable,
    )


def check_size(snapshot: Snapshot, draft: Draft) -> None:
    """As many brokers as the spec asks for, unless those above hold replicas."""
    if snapshot.size.kept:
        draft.find(Reason.BROKERS_KEPT, snapshot.size.kept)
    removed = [
        claim["metadata"]["name"]
        for claim in snapshot.observed.claims.get("broker", ())
        if ordinal_of(claim) >= snapshot.size.replicas
    ]
    if removed:
        text = f"claims of removed brokers are kept: {shortened(removed, separator=', ')}"
        draft.find(Reason.CLAIMS_KEPT, f"{text}; delete them once their data is not needed")


def check_claims(snapshot: Snapshot, draft: Draft) -> None:
    """Claims of running pods as large as the spec asks for; they never shrink."""
    spec = snapshot.cluster.body.spec
    parts = (
        ("zookeeper", spec.zookeeper.replicas, spec.zookeeper.storage.size),
        ("broker", snapshot.size.replicas, claim_size(snapshot.cluster.body)),
    )
    for component, replicas, size in parts:
        claims = snapshot.observed.claims.get(component, ())
        grown, kept = growth([each for each in claims if ordinal_of(each) < replicas], size)
        draft.steps += grown
        draft.steps += relabelled(claims, snapshot.names.selector(component))
        draft.steps += marked(claims) if spec.secured else []
        for message in kept:
            draft.find(Reason.CLAIM_LARGER, message)
    classes = (
        (snapshot.names.zookeeper, spec.zookeeper.storage.storage_class),
        (snapshot.names.broker, spec.brokers.storage.storage_class),
    )
    for name, storage_class in classes:
        found = snapshot.observed.objects.get(("StatefulSet", name))
        if ignored := ignored_class(storage_class, found):
            draft.find(Reason.STORAGE_CLASS_IGNORED, ignored)
    if lost := lost_cluster_id(spec):
        draft.find(Reason.CLAIM_POLICIES_DIFFER, lost)


def check_internal_topics(snapshot: Snapshot, draft: Draft) -> None:
    """Internal topics with as many replicas as they would be created with now."""
    view, spec = snapshot.observed.brokers, snapshot.cluster.body.spec
    if view is None:
        return
    defaults = {**internal_topics(spec.brokers.replicas), **spec.config}
    for topic, setting in INTERNAL_TOPICS.items():
        wanted, present = int(defaults[setting]), view.internal.get(topic)
        if present is not None and present < min(wanted, len(view.broker_ids)):
            text = f"{topic} has {present} replicas where {setting}={wanted}"
            remedy = f"`barnabas reassign plan factor {wanted} --topic {topic}`"
            draft.find(Reason.INTERNAL_TOPIC_REPLICAS, f"{text}; {remedy}")


def check_racks(snapshot: Snapshot, draft: Draft) -> None:
    """The rack of its node on each broker's pod."""
    rack, observed = snapshot.cluster.body.spec.brokers.rack, snapshot.observed
    if rack is None:
        return
    if observed.racks_trouble:
        draft.find(Reason.RACK_UNKNOWN, observed.racks_trouble)
    for pod in observed.pods.get("broker", ()):
        if pod.rack or pod.node not in observed.racks:
            continue
        if found := observed.racks[pod.node]:
            draft.steps.append(AnnotateRack(name=pod.name, rack=found))
        else:
            text = f"node {pod.node} has no label {rack.topology_key}; label it"
            draft.find(Reason.RACK_UNKNOWN, f"{pod.name} waits for its rack: {text}")


CHECKS: Final = (
    Check(
        name="availability",
        looks_at="whether brokers answer and every partition has a leader",
        run=check_availability,
        reasons=(Reason.STARTING, Reason.UNREACHABLE, Reason.LEADERLESS_PARTITIONS),
    ),
    Check(
        name="objects",
        looks_at=(
            "NetworkPolicies, Services, Certificates, ConfigMaps, PodDisruptionBudgets and"
            " StatefulSets"
        ),
        run=check_objects,
        reasons=(
            Reason.NODE_PORTS_PENDING,
            Reason.LISTENER_PENDING,
            Reason.CERTIFICATE_PENDING,
            Reason.VALUE_ALTERED,
        ),
    ),
    Check(
        name="version",
        looks_at="the images of spec.version, and whether the operator has newer ones",
        run=check_version,
        reasons=(Reason.UNKNOWN_VERSION, Reason.UPDATE_AVAILABLE),
    ),
    Check(
        name="certificates",
        looks_at="the certificate authorities, what brokers and listeners show, and its expiry",
        run=check_certificates,
        reasons=(
            Reason.CERTIFICATE_AUTHORITY_INVALID,
            Reason.LISTENER_CERTIFICATE_INVALID,
            Reason.CERTIFICATE_EXPIRES,
            Reason.CERTIFICATE_LACKS_HOSTS,
            Reason.REFUSED,
        ),
    ),
    Check(
        name="claims",
        looks_at="the size of each claim",
        run=check_claims,
        reasons=(Reason.CLAIM_LARGER, Reason.STORAGE_CLASS_IGNORED, Reason.CLAIM_POLICIES_DIFFER),
    ),
    Check(
        name="size",
        looks_at="brokers above spec.brokers.replicas, and the claims of removed ones",
        run=check_size,
        reasons=(Reason.BROKERS_KEPT, Reason.CLAIMS_KEPT),
    ),
    Check(
        name="internal topics",
        looks_at="the replicas of __consumer_offsets and __transaction_state",
        run=check_internal_topics,
        reasons=(Reason.INTERNAL_TOPIC_REPLICAS,),
    ),
    Check(
        name="dynamic config",
        looks_at="the dynamic settings of all brokers that spec.config names, or named before",
        run=check_dynamic_config,
        reasons=(Reason.DYNAMIC_CONFIG_UNKNOWN,),
    ),
    Check(
        name="racks",
        looks_at="the rack of each broker's node",
        run=check_racks,
        reasons=(Reason.RACK_UNKNOWN,),
    ),
    Check(
        name="pods",
        looks_at="whether every pod exists, serves and has the current template",
        run=check_pods,
        reasons=(
            Reason.STATEFUL_SET_PENDING,
            Reason.POD_MISSING,
            Reason.POD_TERMINATING,
            Reason.POD_NOT_READY,
            Reason.POD_BROKEN,
            Reason.ROLL_PENDING,
        ),
    ),
    Check(
        name="ensemble roll",
        looks_at="whether an ensemble member is to be replaced, followers before the leader",
        run=check_ensemble_roll,
        reasons=(
            Reason.ROLL_STOPPED,
            Reason.ROLL_WAITS_FOR_BROKERS,
            Reason.ROLL_WAITS_FOR_ENSEMBLE,
            Reason.ROLL_HELD_BACK,
            Reason.ROLL_SOAKS,
        ),
    ),
    Check(
        name="broker roll",
        looks_at="whether a broker is to be replaced, the controller last",
        run=check_broker_roll,
        reasons=(
            Reason.ROLL_STOPPED,
            Reason.ROLL_WAITS_FOR_ENSEMBLE,
            Reason.ROLL_HELD_BACK,
            Reason.ROLL_SOAKS,
            Reason.ROLL_WAITS_FOR_BUDGET,
        ),
    ),
)  # fmt: skip
