"""A dry run of what a resource asks of its pods, before anything of it is applied.

The API server knows what a pod may hold, and says which field is wrong. A StatefulSet that it
refuses is left as it is, with the configuration that its pods read: the pods that run are not
touched, and everything else goes on.
"""

from __future__ import annotations

import dataclasses
import re
from typing import Any, Final

from barnabas_operator.api.clusters import KafkaCluster
from barnabas_operator.api.pods import PodTemplate
from barnabas_operator.api.reading import Resource
from barnabas_operator.kube import STATEFUL_SETS, KubeError
from barnabas_operator.names import ClusterNames
from barnabas_operator.plan.findings import Finding, Reason
from barnabas_operator.plan.snapshot import TEMPLATES, Plan
from barnabas_operator.plan.steps import Apply, DeleteObject
from barnabas_operator.reconcile.context import Context
from barnabas_operator.reconcile.ownership import try_owned

# Of the API server's words in a condition.
LONGEST: Final = 600
# An unknown field of an applied object is no status of its own.
NO_SUCH_FIELD: Final = "failed to create typed patch object"
# A webhook with side effects: nothing can be tried beforehand.
NO_DRY_RUN: Final = "does not support dry run"
# The object that a message is about, and the field: by index, or by name in applied objects.
HEAD: Final = re.compile(r"^.*?(?: is invalid: | object \([^)]*\): )(?:errors:\s*)?", re.DOTALL)
TEMPLATE: Final = re.compile(r"\.?\bspec\.template\.(?:metadata\.|spec\.)?")
OWN_CONTAINER: Final = re.compile(r"\bcontainers\[0\]\.(?:(env|volumeMounts)\[(\d+)\])?")
SIDECAR: Final = re.compile(r"\bcontainers\[(\d+)\]")
NAMED: Final = re.compile(r'\bcontainers\[name="([^"]*)"\]\.?')
# The claim of a StatefulSet is one such field, and which one depends on the version.
VOLUMES: Final = re.compile(r"\bvolumes\[\d+\]")


def without_invalid_templates(
    plan: Plan, cluster: Resource[KafkaCluster], context: Context
) -> Plan:
    """The plan without the StatefulSets that the API server would refuse for a template."""
    names = ClusterNames(cluster.meta.name, cluster.meta.namespace)
    spec = cluster.body.spec
    templates = {
        names.zookeeper: ("spec.zookeeper.template", spec.zookeeper.template),
        names.broker: ("spec.brokers.template", spec.brokers.template),
    }
    for step in plan.steps:
        if not isinstance(step, Apply) or step.body["kind"] != STATEFUL_SETS.kind:
            continue
        path, template = templates[step.body["metadata"]["name"]]
        if template == PodTemplate():
            continue
        if refusal := _refusal(dict(step.body), template, context):
            finding = Finding(reason=Reason.INVALID_TEMPLATE, message=f"{path}: {refusal}")
            plan = _without(plan, step.body["metadata"]["name"], finding)
    return plan


def _refusal(body: dict[str, Any], template: PodTemplate, context: Context) -> str:
    try:
        try_owned(context.kube, body)
    except KubeError as error:
        if NO_DRY_RUN in error.message:
            return ""
        if error.refused or NO_SUCH_FIELD in error.message:
            return explained(error.message, body["spec"]["template"]["spec"], template)
        raise
    return ""


def _without(plan: Plan, name: str, finding: Finding) -> Plan:
    """Nothing is taken away either: the template that stays may need it."""
    steps = tuple(
        step
        for step in plan.steps
        if not isinstance(step, DeleteObject)
        and not (
            isinstance(step, Apply)
            and step.body["kind"] in TEMPLATES
            and step.body["metadata"]["name"] == name
        )
    )
    return dataclasses.replace(plan, steps=steps, findings=(*plan.findings, finding))


def explained(message: str, pod: dict[str, Any], template: PodTemplate) -> str:
    """The API server's message, with the fields as the resource has them."""
    sidecars = {each.get("name") for each in template.sidecars}
    # Items of the resource follow the operator's own.
    first = len(pod["containers"]) - len(template.sidecars)
    added = {"env": template.env, "volumeMounts": template.volume_mounts}

    def own_container(match: re.Match[str]) -> str:
        name, index = match[1], match[2]
        if name is None:
            return ""
        own = len(pod["containers"][0][name]) - len(added[name])
        return f"{name}[{int(index) - own}]"

    text = TEMPLATE.sub("", HEAD.sub("", message))
    text = OWN_CONTAINER.sub(own_container, text)
    text = SIDECAR.sub(lambda match: f"sidecars[{int(match[1]) - first}]", text)
    text = NAMED.sub(
        lambda match: f'sidecars[name="{match[1]}"].' if match[1] in sidecars else "", text
    )
    text = " ".join(VOLUMES.sub("volumes", text).split())
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
