"""The input and output of checks: the snapshot, the draft, and the resulting plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from barnabas_operator.api.clusters import KafkaCluster
from barnabas_operator.api.reading import Resource
from barnabas_operator.names import ClusterNames
from barnabas_operator.plan.claims import ordinal_of
from barnabas_operator.plan.findings import Finding, Reason, Severity
from barnabas_operator.plan.observed import COMPONENTS, Images, Observed, selector_of
from barnabas_operator.plan.protocols import SETTING, Protocol, plan_protocol
from barnabas_operator.plan.roll_policy import RollRequests
from barnabas_operator.plan.rolling import (
    ASKED_FOR,
    ONE_AT_A_TIME,
    SetView,
    Together,
    absences,
    is_complete,
    outdated,
)
from barnabas_operator.plan.shrink import Size, brokers_to_run
from barnabas_operator.plan.steps import Apply, DeletePod, Step
from barnabas_operator.plan.topics import AlterConfig
from barnabas_operator.plan.versions import Chosen, chosen_images, image_in_use
from barnabas_operator.resources.objects import digest

# The objects that a component's pods are made from; no pod is replaced while they change.
TEMPLATES: Final = frozenset({"ConfigMap", "StatefulSet"})
NAMED: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Steps in order on the API server, one on the brokers, and what was found."""

    steps: tuple[Step, ...] = ()
    # Of the dynamic settings of all brokers.
    config: AlterConfig | None = None
    findings: tuple[Finding, ...] = ()

    def of(self, severity: Severity) -> tuple[Finding, ...]:
        """The findings of a severity, in the order of the checks."""
        return tuple(each for each in self.findings if each.severity is severity)


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Everything that a check may read."""

    cluster: Resource[KafkaCluster]
    observed: Observed
    images: Images
    # How many brokers to run; `cluster` has that number as its replicas.
    size: Size
    chosen: Chosen
    protocol: Protocol

    @property
    def names(self) -> ClusterNames:
        """The names of the cluster's objects."""
        return ClusterNames(self.cluster.meta.name, self.cluster.meta.namespace)

    def set_of(self, component: str) -> SetView | None:
        """The StatefulSet of a component."""
        names = {"zookeeper": self.names.zookeeper, "broker": self.names.broker}
        return self.observed.stateful_set(names[component])

    def template_of(self, component: str) -> Mapping[str, Any]:
        """The pod template of a component's StatefulSet; empty before that exists."""
        names = {"zookeeper": self.names.zookeeper, "broker": self.names.broker}
        found = self.observed.objects.get(("StatefulSet", names[component]))
        template: Mapping[str, Any] = found["spec"]["template"] if found is not None else {}
        return template

    def selector_of(self, name: str) -> dict[str, str] | None:
        """The selector of a StatefulSet that exists: Services and budgets go with it.

        Pods that it left behind as orphans keep their labels, and the budget still selects them.
        """
        objects = self.observed.objects
        kinds = ("StatefulSet", "PodDisruptionBudget")
        found = (objects.get((kind, name)) for kind in kinds)
        return next((selector_of(each) for each in found if each is not None), None)

    def roll_token(self) -> str:
        """What names the roll that is due: both components' templates, and addresses.

        A template that comes back has the revision that it had, and is another roll all the same.
        """
        sets = (self.set_of(component) for component in COMPONENTS)
        parts = [f"{seen.update_revision}/{seen.generation}" for seen in sets if seen is not None]
        addresses = self.observed.objects.get(("ConfigMap", self.names.addresses))
        if addresses is not None:
            parts.append(digest(addresses.get("data")))
        return digest(parts)[:8]

    @property
    def requests(self) -> RollRequests:
        """What annotations of the resource say about rolls."""
        return RollRequests.of(self.cluster.meta.annotations)

    @property
    def forced(self) -> bool:
        """Whether a roll is due that is forced, and not paused.

        The annotation outlives its roll. A pod that a person annotates later is no part of that:
        its restart has all checks.
        """
        named = self.requests.forced == self.roll_token() and not self.requests.paused
        return named and any(
            pod.restart != ASKED_FOR or pod.revision != seen.update_revision
            for component in COMPONENTS
            if (seen := self.set_of(component)) is not None
            for pod in outdated(self.observed.pods.get(component, ()), seen)
        )

    def last(self, component: str) -> frozenset[str]:
        """The pods that are replaced after the others: those that lead."""
        if component == "zookeeper":
            return self.observed.leaders()
        controller = self.observed.brokers.controller_id if self.observed.brokers else None
        names = () if controller is None else (f"{self.names.broker}-{controller}",)
        return frozenset(names)

    def together(self, component: str) -> Together:
        """Which of its pods may be replaced together; brokers alone, where all racks are known.

        A forced roll asks no broker whether its partitions can do without it.
        """
        spec, view = self.cluster.body.spec, self.observed.brokers
        pods = self.observed.pods.get(component, ())
        known = component == "broker" and spec.brokers.rack is not None
        if not known or self.forced or not all(pod.rack for pod in pods):
            return ONE_AT_A_TIME
        if view is None or view.replica_sets is None or replica_counts(self.observed) is None:
            return ONE_AT_A_TIME
        return Together(limit=spec.rolls.max_unavailable_per_rack, replica_sets=view.replica_sets)

    def absences(self, component: str) -> list[Finding]:
        """Why a component is not complete; see rolling."""
        seen = self.set_of(component)
        if seen is None:
            text = f"{component}: its StatefulSet does not exist yet"
            return [Finding(reason=Reason.STATEFUL_SET_PENDING, message=text)]
        pods = self.observed.pods.get(component, ())
        return absences(component, pods, seen, self.observed.recovery)

    def unavailable(self, component: str) -> list[Finding]:
        """The absences without those of pods that only a sidecar keeps from being ready."""
        pods = self.observed.pods.get(component, ())
        serving = {f"{pod.name} is not ready: {pod.sidecar}" for pod in pods if pod.sidecar}
        return [each for each in self.absences(component) if each.message not in serving]


@dataclass(slots=True)
class Draft:
    """The plan as far as the checks before have made it."""

    steps: list[Step] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    config: AlterConfig | None = None
    # Whether a pod template stays as another operator rendered it.
    held: bool = False

    def find(self, reason: Reason, message: str) -> None:
        """Add a finding."""
        self.findings.append(Finding(reason=reason, message=message))

    def changes_templates(self, name: str) -> bool:
        """Whether the template of the pods of this StatefulSet is about to change."""
        return any(
            isinstance(step, Apply)
            and step.body["kind"] in TEMPLATES
            and step.body["metadata"]["name"] == name
            for step in self.steps
        )

    def deletes_pod(self) -> bool:
        """Whether a pod is to be replaced already: one in a pass, or those that go together."""
        return any(isinstance(step, DeletePod) for step in self.steps)


def replica_counts(observed: Observed) -> Mapping[int, int] | None:
    """Replicas by broker id; None unless the whole cluster is in the answer.

    A broker that does not know the others yet, or a controller, may not know all topics either.
    """
    view = observed.brokers
    if view is None or view.controller_id is None:
        return None
    serving = {pod.ordinal for pod in observed.pods.get("broker", ()) if pod.serves}
    return view.replicas if serving <= set(view.broker_ids) else None


def snapshot_of(cluster: Resource[KafkaCluster], observed: Observed, images: Images) -> Snapshot:
    """The snapshot, in which the cluster has as many brokers as it must keep."""
    spec = cluster.body.spec
    names = ClusterNames(cluster.meta.name, cluster.meta.namespace)
    seen = observed.stateful_set(names.broker)
    size = brokers_to_run(
        spec.brokers.replicas,
        seen.replicas if seen is not None else 0,
        {ordinal_of(claim) for claim in observed.claims.get("broker", ())},
        replica_counts(observed),
    )
    if size.replicas != spec.brokers.replicas:
        brokers = replace(spec.brokers, replicas=size.replicas)
        body = replace(cluster.body, spec=replace(spec, brokers=brokers))
        cluster = replace(cluster, body=body)
    sets = {
        component: observed.objects[key]
        for component, name in (("zookeeper", names.zookeeper), ("broker", names.broker))
        if (key := ("StatefulSet", name)) in observed.objects
    }
    chosen = chosen_images(cluster, sets, images)
    broker_set = sets.get("broker")
    pods = observed.pods.get("broker", ())
    protocol = plan_protocol(
        chosen.broker,
        spec.config,
        stateful_set=broker_set,
        config_map=observed.objects.get(("ConfigMap", names.broker)),
        is_complete=seen is not None and is_complete(pods, seen),
        versions=images.versions,
    )
    if protocol.refusal:
        text = f"{chosen.broker} is not used: {protocol.refusal}"
        chosen = replace(chosen, broker=image_in_use(broker_set) or chosen.broker, unknown=text)
    if protocol.held:
        config = {**spec.config, SETTING: protocol.held}
        held = replace(cluster.body.spec, config=config)
        cluster = replace(cluster, body=replace(cluster.body, spec=held))
    return Snapshot(
        cluster=cluster,
        observed=observed,
        images=images,
        size=size,
        chosen=chosen,
        protocol=protocol,
    )


def shortened(texts: Sequence[str], *, separator: str = "; ") -> str:
    """The first few, and how many more there are."""
    more = f" and {len(texts) - NAMED} more" if len(texts) > NAMED else ""
    return separator.join(texts[:NAMED]) + more
