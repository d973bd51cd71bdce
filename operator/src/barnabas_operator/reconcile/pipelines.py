"""A KafkaPipeline: wait for cluster and topics, run one pod, tell what the pod says of itself."""

from __future__ import annotations

import dataclasses
from typing import Final

from barnabas_operator.api.clusters import KafkaCluster
from barnabas_operator.api.conditions import Verdict
from barnabas_operator.api.pipelines import KafkaPipeline, PipelineStatus
from barnabas_operator.api.reading import Resource
from barnabas_operator.brokers import BrokersError
from barnabas_operator.kube import CLAIMS, KINDS, PIPELINES, STATEFUL_SETS
from barnabas_operator.names import PipelineNames
from barnabas_operator.plan.claims import claims_of, growth, with_present_templates
from barnabas_operator.plan.drift import drift
from barnabas_operator.plan.steps import Apply, GrowClaim, Step
from barnabas_operator.progress import Progress
from barnabas_operator.reconcile.apply import apply_steps, summary
from barnabas_operator.reconcile.clusters import bootstrap_servers, connect
from barnabas_operator.reconcile.context import Context
from barnabas_operator.reconcile.ownership import is_ours
from barnabas_operator.reconcile.status import write_status
from barnabas_operator.resources.pipelines import pipeline_objects

Pipeline = Resource[KafkaPipeline]

# What a pipeline calls itself when it will not go on by itself.
FAILED: Final = "Failed"


def reconcile_pipeline(
    pipeline: Pipeline, cluster: Resource[KafkaCluster] | None, context: Context
) -> PipelineStatus:
    """One pass; returns the status that was told. Raises KubeError."""
    before = pipeline.body.status
    if cluster is None:
        text = f"there is no KafkaCluster {pipeline.body.spec.cluster} in this namespace"
        return _wait(pipeline, "WaitingForCluster", text, context)
    if cluster.body.spec.secured:
        text = f"KafkaCluster {cluster.meta.name} is secured, and pipelines have no user yet"
        verdict = Verdict(
            ready=False,
            reason="ClusterSecured",
            message=f"{text}; read it with a job of your own, as a KafkaUser",
            stalled=True,
        )
        return write_status(pipeline, before, verdict, context)
    missing = missing_topics(pipeline, cluster, context)
    # A pipeline that runs is left to itself: it knows best how to wait for its cluster.
    if missing and before.phase in ("", "WaitingForCluster", "WaitingForTopics"):
        return _wait(pipeline, missing.phase, missing.message, context)
    refused = apply(pipeline, cluster, context)
    names = PipelineNames(pipeline.meta.name, pipeline.meta.namespace)
    told = context.progress(names.status_url)
    status = status_of(before, told)
    # Rows are counted all the time; phases and conditions are told at once.
    if status.phase == before.phase and not context.figures_due(pipeline.meta.uid):
        status = dataclasses.replace(before, phase=status.phase)
    return write_status(pipeline, status, judge(told, refused=refused), context)


@dataclasses.dataclass(frozen=True, slots=True)
class Waiting:
    """What a pipeline waits for."""

    phase: str
    message: str


def missing_topics(
    pipeline: Pipeline, cluster: Resource[KafkaCluster], context: Context
) -> Waiting | None:
    """What is not there yet of what the pipeline reads."""
    if not cluster.body.status.serves_topics:
        return Waiting("WaitingForCluster", f"KafkaCluster {cluster.meta.name} does not answer")
    try:
        existing = connect(cluster, context).topic_names()
    except BrokersError as error:
        return Waiting("WaitingForCluster", str(error))
    absent = [name for name in pipeline.body.spec.source.topics if name not in existing]
    if absent:
        return Waiting("WaitingForTopics", f"there is no topic {', '.join(absent)} yet")
    return None


def apply(pipeline: Pipeline, cluster: Resource[KafkaCluster], context: Context) -> str:
    """Bring the objects to what they should be; returns what was refused, empty if nothing."""
    wanted = pipeline_objects(
        pipeline, image=context.images.pipeline, bootstrap_servers=bootstrap_servers(cluster)
    )
    steps: list[Step] = []
    for body in wanted:
        meta = body["metadata"]
        found = context.kube.get(KINDS[body["kind"]], meta["namespace"], meta["name"])
        possible = with_present_templates(body, found)
        if reason := drift(possible, found):
            steps.append(Apply(body=possible, reason=reason))
    steps += _grown(pipeline, context)
    return summary(apply_steps(steps, pipeline.meta, context, kind=PIPELINES))


def _grown(pipeline: Pipeline, context: Context) -> list[GrowClaim]:
    """The claims to grow. Those of the name may be another's as long as the StatefulSet is."""
    names = PipelineNames(pipeline.meta.name, pipeline.meta.namespace)
    owner = context.kube.get(STATEFUL_SETS, names.namespace, names.all)
    if owner is None or not is_ours(owner, pipeline.meta.uid):
        return []
    claims = claims_of(context.kube.list(CLAIMS, names.namespace), names.all)
    grown, _ = growth(claims, pipeline.body.spec.storage.size)
    return grown


def status_of(before: PipelineStatus, told: Progress | None) -> PipelineStatus:
    """The status, without conditions; while the pod is silent, what it last said."""
    if told is None:
        return dataclasses.replace(before, phase="Starting", rows_per_second=0.0)
    return PipelineStatus(
        phase=told.phase,
        rows=told.rows,
        rows_per_second=told.rows_per_second,
        lag=told.lag,
        last_batch_id=told.last_batch_id,
    )


def judge(told: Progress | None, *, refused: str) -> Verdict:
    """How the pipeline fares."""
    if refused:
        return Verdict(ready=False, reason="Refused", message=refused, stalled=True)
    if told is None:
        text = "its pod does not answer yet"
        return Verdict(ready=False, reason="Starting", message=text, settled=False)
    if told.phase == FAILED:
        return Verdict(ready=False, reason=FAILED, message=told.message, stalled=True)
    if told.phase != "Running":
        message = told.message or f"the pipeline says {told.phase}"
        return Verdict(ready=False, reason=told.phase, message=message, settled=False)
    return Verdict(ready=True, reason="Running", message=told.message)


def _wait(pipeline: Pipeline, phase: str, message: str, context: Context) -> PipelineStatus:
    verdict = Verdict(ready=False, reason=phase, message=message, settled=False)
    status = dataclasses.replace(pipeline.body.status, phase=phase)
    return write_status(pipeline, status, verdict, context)
