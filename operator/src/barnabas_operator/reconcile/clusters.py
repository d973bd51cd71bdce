"""A KafkaCluster: observe brokers and objects, plan, apply the steps, write the status."""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from barnabas_kafka.certificates import is_named
from barnabas_kafka.settings.broker import BrokerSettings
from barnabas_operator.api.certificates import CertificateStatus
from barnabas_operator.api.clusters import (
    ClusterSpec,
    ClusterStatus,
    ImageNames,
    KafkaCluster,
    ListenerStatus,
    ReplicaStatus,
    Security,
    StorageStatus,
    ZooKeeperProtocol,
)
from barnabas_operator.api.conditions import Verdict
from barnabas_operator.api.listeners import Listener, ListenerType
from barnabas_operator.api.reading import Resource
from barnabas_operator.brokers import Brokers, BrokersError, Endpoint
from barnabas_operator.kube import (
    BUDGETS,
    CERTIFICATES,
    CLAIMS,
    CONFIG_MAPS,
    KINDS,
    NETWORK_POLICIES,
    NODES,
    PODS,
    SERVICES,
    STATEFUL_SETS,
    Kind,
    KubeError,
)
from barnabas_operator.names import INSTANCE, ClusterNames
from barnabas_operator.plan.addresses import node_ports, readdressed
from barnabas_operator.plan.claims import claims_of
from barnabas_operator.plan.clusters import check_availability, plan_cluster
from barnabas_operator.plan.dynamic_config import manages_config
from barnabas_operator.plan.findings import Finding, Reason, Severity
from barnabas_operator.plan.listeners import listener_problems
from barnabas_operator.plan.observed import COMPONENTS, ClusterView, Observed, selector_of
from barnabas_operator.plan.roll_plan import roll_plan
from barnabas_operator.plan.rolling import PodView, outdated
from barnabas_operator.plan.security import security_problems
from barnabas_operator.plan.snapshot import Draft, Plan, shortened, snapshot_of
from barnabas_operator.plan.steps import DeletePod, GrowClaim
from barnabas_operator.plan.versions import held_generation
from barnabas_operator.reconcile.apply import Refused, apply_steps, summary
from barnabas_operator.reconcile.certificates import reconcile_certificates
from barnabas_operator.reconcile.context import Context
from barnabas_operator.reconcile.dynamic_config import alter_dynamic_config, ask_dynamic_config
from barnabas_operator.reconcile.ownership import is_ours
from barnabas_operator.reconcile.rolls import admin_url, hold_back, may_join, restore_leaders
from barnabas_operator.reconcile.status import StatusRefusedError, record_expiry, write_status
from barnabas_operator.reconcile.templates import without_invalid_templates
from barnabas_operator.resources import brokers, zookeeper
from barnabas_operator.resources import listeners as routing
from barnabas_operator.resources.brokers import TLS_VOLUME, claim_size, storage_estimate
from barnabas_operator.resources.certificates import LISTENER_PREFIX, broker_hosts
from barnabas_operator.resources.config import inter_broker_listener

Cluster = Resource[KafkaCluster]
USER_NAME: Final = re.compile(r"[A-Za-z0-9._@-]+")


def reconcile_cluster(cluster: Cluster, context: Context, contradiction: str = "") -> ClusterStatus:
    """One pass; returns the status as written. Raises KubeError.

    A status that the API server refuses is in the error, which is raised once all else is done.
    `contradiction` is what in the resource cannot be, see `reconcile.security`.
    """
    observed = observe(cluster, context)
    if refusal := contradiction or refuse(cluster):
        # What serves goes on serving, and nothing is changed.
        draft = Draft()
        check_availability(snapshot_of(cluster, observed, context.images), draft)
        draft.find(Reason.INVALID_SPEC, refusal)
        return _write(cluster, observed, draft.findings, context)
    hosts = listener_hosts_of(cluster, observed)
    certificates = reconcile_certificates(
        cluster,
        broker_hosts_of(cluster, observed),
        context,
        of_listeners=hosts,
        in_use=lambda store: may_read(cluster, observed, store),
    )
    observed = dataclasses.replace(
        observed,
        certificates=certificates.findings,
        listener_hosts={name: frozenset(each) for name, each in hosts.items()},
    )
    if not (certificates.complete or _mounts_certificates(cluster, observed)):
        draft = Draft(findings=list(certificates.findings))
        check_availability(snapshot_of(cluster, observed, context.images), draft)
        return _write(cluster, observed, draft.findings, context)
    plan = plan_cluster(cluster, observed, images=context.images)
    plan = without_invalid_templates(plan, cluster, context)
    if not snapshot_of(cluster, observed, context.images).forced:
        plan = hold_back(plan, observed, context, cluster.body.spec.rolls.guarantee)
    cluster, plan = _show_roll(cluster, observed, plan, context)
    findings = list(plan.findings)
    if plan.config is not None:
        brokers_of = connect(cluster, context)
        findings += alter_dynamic_config(plan.config, brokers_of, cluster.meta, context)
    joining = functools.partial(may_join, connect=lambda: connect(cluster, context))
    findings += refusals(apply_steps(plan.steps, cluster.meta, context, may_join=joining))
    return _write(
        cluster,
        observed,
        findings,
        context,
        applied=bool(plan.steps or plan.config),
        expiries=certificates.expiries,
    )


def _show_roll(
    cluster: Cluster, observed: Observed, plan: Plan, context: Context
) -> tuple[Cluster, Plan]:
    """The cluster after the plan of a roll was written, before its first pod is replaced.

    A roll that cannot be shown does not begin; the other steps are left in the plan.
    """
    shown = cluster.body.status.roll
    roll = roll_plan(snapshot_of(cluster, observed, context.images), plan.findings)
    begins = roll is not None and (shown is None or shown.token != roll.token)
    if not (begins and any(isinstance(step, DeletePod) for step in plan.steps)):
        return cluster, plan
    try:
        status = _write(cluster, observed, plan.findings, context, applied=True)
    except StatusRefusedError:
        others = tuple(step for step in plan.steps if not isinstance(step, DeletePod))
        return cluster, dataclasses.replace(plan, steps=others)
    body = dataclasses.replace(cluster.body, status=status)
    return Resource(cluster.meta, body, cluster.unknown_fields), plan


def _write(
    cluster: Cluster,
    observed: Observed,
    findings: Sequence[Finding],
    context: Context,
    *,
    applied: bool = False,
    expiries: Sequence[CertificateStatus] = (),
) -> ClusterStatus:
    verdict = judge(findings, applied=applied)
    snapshot = snapshot_of(cluster, observed, context.images)
    chosen = snapshot.chosen
    roll = restore_leaders(
        cluster.body.status.roll,
        roll_plan(snapshot, findings),
        observed,
        lambda: connect(cluster, context),
    )
    notes = [each.message for each in findings if each.severity is Severity.NOTE]
    status = dataclasses.replace(
        status_of(cluster, observed),
        images=ImageNames(broker=chosen.broker, zookeeper=chosen.zookeeper),
        update_available="; ".join(notes),
        inter_broker_protocol_version=snapshot.protocol.current,
        roll=roll,
        certificates=_expiries(cluster, expiries),
    )
    written = write_status(cluster, status, verdict, context)
    for each in findings:
        if each.reason is Reason.CERTIFICATE_EXPIRES:
            record_expiry(cluster, each.message, context)
    return written


def refusals(refused: Sequence[Refused]) -> Iterator[Finding]:
    """Findings about the steps that the API server refused, with a remedy for claims."""
    evictions = [each for each in refused if isinstance(each.step, DeletePod)]
    if message := summary([each for each in refused if each not in evictions]):
        yield Finding(reason=Reason.REFUSED, message=message)
    if message := summary(evictions):
        yield Finding(reason=Reason.ROLL_WAITS_FOR_BUDGET, message=message)
    claims = [each for each in refused if isinstance(each.step, GrowClaim)]
    if claims:
        yield Finding(reason=Reason.CLAIM_NOT_EXPANDABLE, message=_not_expandable(claims))


def _not_expandable(claims: Sequence[Refused]) -> str:
    steps = [each.step for each in claims if isinstance(each.step, GrowClaim)]
    names = shortened([step.name for step in steps], separator=", ")
    first = steps[0]
    kind = f"StorageClass {first.storage_class}" if first.storage_class else "its StorageClass"
    remedy = f"set allowVolumeExpansion on {kind}, or set the size back to {first.present}"
    return f"{names} cannot grow to {first.size}; {remedy}"


def refuse(cluster: Cluster) -> str:
    """Why a spec is refused: every problem of its settings, users, listeners and templates.

    Empty if there is none.
    """
    body = cluster.body
    problems = BrokerSettings.problems(body.spec.config, strict=True)
    found = [f"spec.config.{problem}" for problem in problems]
    authorization = body.spec.authorization
    for name in authorization.super_users if authorization else ():
        if not USER_NAME.fullmatch(name):
            text = "must be a name without the prefix User:, of letters, digits and ._@-"
            found.append(f"spec.authorization.superUsers: {name} {text}")
    found += listener_problems(body)
    if unfit := list(security_problems(body)):
        # Without a listener of the brokers' own there is no template to compare with.
        return "; ".join([*unfit, *found])
    found += brokers.template_conflicts(cluster)
    found += zookeeper.template_conflicts(cluster)
    return "; ".join(found)


def observe(cluster: Cluster, context: Context) -> Observed:
    """Read everything that belongs to the cluster."""
    kube, namespace = context.kube, cluster.meta.namespace
    labels = {INSTANCE: cluster.meta.name}
    objects: dict[tuple[str, str], Mapping[str, Any]] = {}
    # An insecure one that never served may have begun as a secured one: policies keep brokers out.
    begins = not cluster.body.status.initialized
    policies = (NETWORK_POLICIES,) if cluster.body.spec.secured or begins else ()
    kinds = (STATEFUL_SETS, SERVICES, CONFIG_MAPS, BUDGETS, *policies, *routes_of(cluster.body))
    for kind in kinds:
        for found in _listed(kind, namespace, labels, context):
            if is_ours(found, cluster.meta.uid):
                objects[found["kind"], found["metadata"]["name"]] = found
    names = ClusterNames(cluster.meta.name, namespace)
    for name in (names.zookeeper, names.broker):
        if ("StatefulSet", name) in objects:
            continue
        # Without its label it is still there, with brokers that hold replicas.
        body = kube.get(STATEFUL_SETS, namespace, name)
        if body is not None and is_ours(body, cluster.meta.uid):
            objects["StatefulSet", name] = body
    pods, claims = {}, {}
    rack = cluster.body.spec.brokers.rack
    all_claims = kube.list(CLAIMS, namespace)
    for component in COMPONENTS:
        name = f"{cluster.meta.name}-{component}"
        owner = objects.get(("StatefulSet", name))
        pods[component] = [
            PodView.of(pod, topology_key=rack.topology_key if rack else "")
            for pod in (kube.list(PODS, namespace, selector_of(owner)) if owner else ())
            if owner is not None and _is_owned(pod, owner)
        ]
        # Claims of these names may be another's as long as the StatefulSet is not ours.
        claims[component] = claims_of(all_claims, name) if owner is not None else []
    racks, racks_trouble = look_for_racks(cluster, pods["broker"], context)
    view, trouble = ask_brokers(cluster, objects, pods["broker"], context)
    served = ask_advertised(cluster, view, context)
    pods["broker"] = readdressed(cluster, objects, pods["broker"], served)
    config = None
    if view is not None and manages_config(objects.get(("StatefulSet", names.broker))):
        config = ask_dynamic_config(lambda: connect(cluster, context))
    observed = Observed(
        objects=objects,
        pods=pods,
        claims=claims,
        racks=racks,
        racks_trouble=racks_trouble,
        brokers=view,
        brokers_trouble=trouble,
        recovery=ask_recovery(pods["broker"], context),
        dynamic_config=config,
        now=context.now,
        operator_namespace=context.operator_namespace,
    )
    return dataclasses.replace(observed, modes=ask_ensemble(names, observed, context))


def routes_of(body: KafkaCluster) -> list[Kind]:
    """The kinds that only some listeners have, by type or issuer: those that are there, or were."""
    types = {str(each.type) for each in body.spec.listeners}
    types |= {each.type for each in body.status.listeners}
    kinds = [KINDS[kind] for type_, kind in routing.KIND_OF.items() if type_ in types]
    shown = any(each.name.startswith(LISTENER_PREFIX) for each in body.status.certificates)
    issued = any(each.issuer is not None for each in body.spec.listeners)
    return [*kinds, CERTIFICATES] if issued or shown else kinds


def _listed(
    kind: Kind, namespace: str, labels: Mapping[str, str], context: Context
) -> list[dict[str, Any]]:
    """The cluster's objects of a kind; none of an optional one where there can be none.

    An API server without the definition, or rights that are older than the operator, are named
    when the object is applied.
    """
    try:
        return context.kube.list(kind, namespace, labels)
    except KubeError as error:
        optional = (NETWORK_POLICIES.kind, CERTIFICATES.kind, *routing.KIND_OF.values())
        if kind.kind in optional and error.status in (403, 404):
            return []
        raise


def ask_advertised(
    cluster: Cluster, view: ClusterView | None, context: Context
) -> Mapping[int, str]:
    """What each broker advertises, where that may differ from what it should."""
    if view is None or not routing.needs_files(cluster.body.spec.listeners):
        return {}
    try:
        return connect(cluster, context).advertised(view.broker_ids)
    except BrokersError:
        # Asked again in the next pass; until then nothing is restarted for it.
        return {}


def ask_recovery(pods: Sequence[PodView], context: Context) -> Mapping[str, str]:
    """How far log recovery has come on brokers that are not ready."""
    return {
        pod.name: context.recovery(admin_url(pod, context.credentials), context.credentials.admin)
        for pod in pods
        if pod.address and not (pod.ready or pod.broken or pod.terminating)
    }


def ask_ensemble(names: ClusterNames, observed: Observed, context: Context) -> Mapping[str, str]:
    """The mode of each ensemble member, asked only while a pod is to be replaced."""
    sets = {"zookeeper": names.zookeeper, "broker": names.broker}
    due = any(
        outdated(observed.pods[component], seen)
        for component, name in sets.items()
        if (seen := observed.stateful_set(name)) is not None
    )
    if not due:
        return {}
    return {
        pod.name: context.ensemble_mode(pod.address, context.credentials.member)
        for pod in observed.pods["zookeeper"]
        if pod.address and pod.is_available
    }


def look_for_racks(
    cluster: Cluster, pods: Sequence[PodView], context: Context
) -> tuple[Mapping[str, str], str]:
    """The rack of each node on which a broker waits for it, and why it cannot be found out."""
    rack = cluster.body.spec.brokers.rack
    if rack is None:
        return {}, ""
    found: dict[str, str] = {}
    for node in {pod.node for pod in pods if pod.node and not pod.rack}:
        try:
            body = context.kube.get(NODES, "", node)
        except KubeError as error:
            if error.status != 403:
                raise
            remedy = "install the operator's chart with racks=true"
            return {}, f"brokers wait for their racks: the operator may not get nodes; {remedy}"
        labels = (body or {}).get("metadata", {}).get("labels") or {}
        found[node] = labels.get(rack.topology_key, "")
    return found, ""


def _is_owned(pod: Mapping[str, Any], owner: Mapping[str, Any]) -> bool:
    """Whose a pod is, its owner's identity decides; labels can be given to anything."""
    references = pod["metadata"].get("ownerReferences") or ()
    return any(each["uid"] == owner["metadata"]["uid"] for each in references)


def ask_brokers(
    cluster: Cluster,
    objects: Mapping[tuple[str, str], Mapping[str, Any]],
    pods: Sequence[PodView],
    context: Context,
) -> tuple[ClusterView | None, str]:
    """The cluster's state as a broker reports it, or why no broker could be asked.

    Only a ready broker is asked, through a Service of the cluster, and brokers of another cluster
    are not believed.
    """
    if not any(pod.ready for pod in pods):
        return None, "no broker is ready"
    bootstrap = ClusterNames(cluster.meta.name, cluster.meta.namespace).bootstrap
    if ("Service", bootstrap) not in objects:
        return None, f"Service {bootstrap} does not exist, or is not of this cluster"
    try:
        view = connect(cluster, context).describe()
    except ValueError as error:
        return None, str(error)
    except BrokersError as error:
        return None, str(error)
    known = cluster.body.status.cluster_id
    if not (view.cluster_id and view.broker_ids):
        return None, "the brokers know of no cluster yet"
    if known and view.cluster_id != known:
        return None, f"brokers of another cluster answer: its id is {view.cluster_id}, not {known}"
    return view, ""


def bootstrap_servers(cluster: Cluster) -> str:
    """Where the operator itself and pipelines reach the cluster."""
    names = ClusterNames(cluster.meta.name, cluster.meta.namespace)
    return names.bootstrap_server(inter_broker_listener(cluster.body.spec.all_listeners).port)


def connect(cluster: Cluster, context: Context) -> Brokers:
    """A client of the cluster's brokers, with the credentials of the operator."""
    return context.brokers(Endpoint(bootstrap_servers(cluster), context.credentials.tls))


def judge(findings: Sequence[Finding], *, applied: bool) -> Verdict:
    """The conditions that follow from the findings, in the order of the checks."""
    by_severity = {
        severity: [each for each in findings if each.severity is severity] for severity in Severity
    }
    blocking, waiting = by_severity[Severity.BLOCKING], by_severity[Severity.WAITING]
    stalled, warnings = by_severity[Severity.STALLED], by_severity[Severity.WARNING]
    pending = stalled or waiting
    if not (applied or blocking or stalled):
        pending = _held_first(waiting) or waiting
    if applied and not pending:
        pending = [Finding(reason=Reason.APPLYING, message="changes were applied")]
    texts = shortened([each.message for each in pending])
    message = "brokers answer and every partition has a leader"
    if blocking:
        message = shortened([each.message for each in blocking])
    if stalled:
        message = f"{message}; the spec is not applied in full: {texts}"
    return Verdict(
        ready=not blocking,
        reason=str(blocking[0].reason) if blocking else "Ready",
        message=message,
        settled=not (blocking or pending),
        stalled=bool(stalled),
        pending=(str(pending[0].reason), texts) if pending else None,
        warnings=tuple(each.message for each in warnings),
        warning_reason=str(warnings[0].reason) if warnings else "Warning",
    )


def _held_first(waiting: Sequence[Finding]) -> list[Finding]:
    """The findings with RollHeldBack first, if the roll waits for nothing else; otherwise none."""
    held = [each for each in waiting if each.reason is Reason.ROLL_HELD_BACK]
    others = [each for each in waiting if each.reason is not Reason.ROLL_HELD_BACK]
    of_the_roll = {Reason.ROLL_PENDING, Reason.ROLL_WAITS_FOR_ENSEMBLE}
    return [*held, *others] if held and {each.reason for each in others} <= of_the_roll else []


def status_of(cluster: Cluster, observed: Observed) -> ClusterStatus:
    """The status, without conditions."""
    before, spec, view = cluster.body.status, cluster.body.spec, observed.brokers
    reckoned = storage_estimate(cluster.body)
    ready = {
        component: sum(pod.serves for pod in pods) for component, pods in observed.pods.items()
    }
    return ClusterStatus(
        security=before.security or _security(spec, observed),
        zookeeper_protocol=_zookeeper_protocol(cluster.body, observed),
        cluster_id=view.cluster_id if view else before.cluster_id,
        listeners=listeners(cluster, observed),
        brokers=ReplicaStatus(replicas=spec.brokers.replicas, ready=ready["broker"]),
        zookeeper=ReplicaStatus(replicas=spec.zookeeper.replicas, ready=ready["zookeeper"]),
        storage=StorageStatus(
            size=claim_size(cluster.body), arithmetic=reckoned.lines if reckoned else ()
        ),
        held_generation=held_generation(before),
        initialized=before.initialized
        # An earlier operator managed topics of a cluster that had answered.
        or (before.is_of_an_earlier_operator and before.cluster_id != "")
        or (view is not None and ready["broker"] >= spec.brokers.replicas),
        answering=view is not None,
    )


def _security(spec: ClusterSpec, observed: Observed) -> str:
    """What is recorded once there are pods to be: a first spec that is refused can be corrected."""
    if not any(kind == STATEFUL_SETS.kind for kind, _ in observed.objects):
        return ""
    return (Security.SECURED if spec.secured else Security.INSECURE).value


def _zookeeper_protocol(cluster: KafkaCluster, observed: Observed) -> str:
    """Of a secured cluster, recorded with its security."""
    if not (cluster.spec.secured and _security(cluster.spec, observed)):
        return ""
    protocol = ZooKeeperProtocol.TLS if cluster.zookeeper_tls else ZooKeeperProtocol.PLAINTEXT
    return protocol.value


def _expiries(
    cluster: Cluster, found: Sequence[CertificateStatus]
) -> tuple[CertificateStatus, ...]:
    """Those of this pass; without any, the last ones that were known, if there are certificates."""
    known = cluster.body.status.certificates if cluster.body.spec.needs_certificates else ()
    return tuple(found) or known


def _mounts_certificates(cluster: Cluster, observed: Observed) -> bool:
    """Whether the brokers mount certificates already, which they then keep."""
    name = ClusterNames(cluster.meta.name, cluster.meta.namespace).broker
    found = observed.objects.get(("StatefulSet", name))
    volumes = found["spec"]["template"]["spec"].get("volumes", ()) if found else ()
    return any(each["name"] == TLS_VOLUME for each in volumes)


def broker_hosts_of(cluster: Cluster, observed: Observed) -> set[str]:
    """The hosts by which clients reach the brokers, as far as they are known."""
    own = broker_hosts(ClusterNames(cluster.meta.name, cluster.meta.namespace))
    others = set().union(*listener_hosts_of(cluster, observed).values())
    return own | {host for host in others if not is_named(host, own)}


def listener_hosts_of(cluster: Cluster, observed: Observed) -> dict[str, set[str]]:
    """The same by listener."""
    names = ClusterNames(cluster.meta.name, cluster.meta.namespace)
    found = {}
    for each in listeners(cluster, observed):
        servers = filter(None, each.bootstrap_servers.split(","))
        found[each.name] = {server.rpartition(":")[0].strip("[]") for server in servers}
    replicas = range(cluster.body.spec.brokers.replicas)
    for listener in cluster.body.spec.listeners:
        hosts: set[str | None] = set()
        if listener.type is ListenerType.INTERNAL:
            hosts = {names.broker_pod(f"{names.broker}-{n}") for n in replicas}
        elif listener.type in routing.OWN_OBJECTS:
            hosts = {routing.own_host(listener, n, names, observed.objects) for n in replicas}
        found[listener.name] |= set(filter(None, hosts))
    return found


def may_read(cluster: Cluster, observed: Observed, store: str) -> bool:
    """Whether running brokers may read a key store: their settings name it, or did before."""
    name = ClusterNames(cluster.meta.name, cluster.meta.namespace).broker
    seen = observed.stateful_set(name)
    if seen is None:
        return False
    if not seen.current or any(
        pod.revision != seen.update_revision for pod in observed.pods["broker"]
    ):
        return True
    data = observed.objects.get(("ConfigMap", name), {}).get("data") or {}
    return store in data.get("server.properties", "")


def listeners(cluster: Cluster, observed: Observed) -> tuple[ListenerStatus, ...]:
    """Where clients reach the brokers, as far as it is known."""
    names = ClusterNames(cluster.meta.name, cluster.meta.namespace)
    ports = node_ports(cluster, observed.objects)
    statuses = []
    for each in cluster.body.spec.listeners:
        if each.type is ListenerType.INTERNAL:
            servers = names.bootstrap_server(each.port)
        elif each.type in routing.OWN_OBJECTS:
            servers = routing.bootstrap_servers(each, names, observed.objects)
        else:
            servers = _on_nodes(each, ports.get(each.name), observed.pods["broker"])
        statuses.append(
            ListenerStatus(name=each.name, type=each.type.value, bootstrap_servers=servers)
        )
    return (*statuses, *_leaving(cluster, observed))


def _leaving(cluster: Cluster, observed: Observed) -> Iterator[ListenerStatus]:
    """Removed listeners whose routes are still there: their kind is listed until they are gone."""
    wanted = {each.name for each in cluster.body.spec.listeners}
    types = {each.type for each in cluster.body.spec.listeners}
    kinds = {kind for kind, _ in observed.objects}
    for each in cluster.body.status.listeners:
        kind = routing.KIND_OF.get(each.type) if each.type not in types else None
        if kind in kinds and each.name not in wanted:
            yield ListenerStatus(name=each.name, type=each.type, bootstrap_servers="")


def _on_nodes(listener: Listener, first: int | None, pods: Sequence[PodView]) -> str:
    """Where each broker is reached by the address of its node, as far as it is known."""
    if first is None:
        return ""
    addresses = []
    for pod in sorted(pods, key=lambda each: each.ordinal):
        broker = pod.ordinal
        if host := brokers.host_on_node(listener, broker, pod.node_address):
            port = brokers.node_port_of(listener, broker, first)
            addresses.append(f"{host}:{routing.advertised_port(listener, broker, str(port))}")
    return ",".join(addresses)
