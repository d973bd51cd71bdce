"""A KafkaPipeline: wait for cluster, user and topics, run one pod, report what the pod reports."""

from __future__ import annotations

import dataclasses
from typing import Final

from barnabas_operator.api.clusters import KafkaCluster
from barnabas_operator.api.conditions import Verdict
from barnabas_operator.api.pipelines import PipelineStatus
from barnabas_operator.api.reading import Resource
from barnabas_operator.brokers import BrokersError
from barnabas_operator.kube import (
    CLAIMS,
    CONFIG_MAPS,
    PIPELINES,
    SERVICES,
    STATEFUL_SETS,
    USERS,
)
from barnabas_operator.names import PipelineNames
from barnabas_operator.plan.claims import claims_of
from barnabas_operator.plan.pipelines import (
    WAITING_FOR_USER,
    Pipeline,
    PipelinePlan,
    Waiting,
    plan_pipeline,
    user_problem,
)
from barnabas_operator.plan.snapshot import shortened
from barnabas_operator.plan.versions import held_generation
from barnabas_operator.progress import Progress
from barnabas_operator.reconcile.apply import apply_steps, summary
from barnabas_operator.reconcile.clusters import bootstrap_servers, connect
from barnabas_operator.reconcile.context import Context
from barnabas_operator.reconcile.ownership import is_ours
from barnabas_operator.reconcile.status import write_status

# What a pipeline calls itself when it will not go on by itself.
FAILED: Final = "Failed"
WAITING_FOR_CLUSTER: Final = "WaitingForCluster"
WAITING_FOR_TOPICS: Final = "WaitingForTopics"
NOT_STARTED: Final = ("", WAITING_FOR_CLUSTER, WAITING_FOR_USER, WAITING_FOR_TOPICS)


def reconcile_pipeline(
    pipeline: Pipeline, cluster: Resource[KafkaCluster] | None, context: Context
) -> PipelineStatus:
    """One pass; returns the status as written. Raises KubeError."""
    before, spec = pipeline.body.status, pipeline.body.spec
    started = before.phase not in NOT_STARTED
    if cluster is None:
        text = f"there is no KafkaCluster {spec.cluster} in this namespace"
        phase = _phase(pipeline, context, WAITING_FOR_CLUSTER, started=started)
        return _wait(pipeline, before, Waiting(phase, WAITING_FOR_CLUSTER, text), context)
    plan = _plan(pipeline, cluster, context)
    started = started or plan.has_pod
    if cluster.body.spec.secured and spec.user is None:
        phase = _phase(pipeline, context, WAITING_FOR_USER, started=started)
        status = dataclasses.replace(before, phase=phase)
        return write_status(pipeline, status, _user_required(pipeline, cluster), context)
    known = dataclasses.replace(
        before,
        image=plan.image,
        update_available=plan.update_available,
        held_generation=held_generation(before),
    )
    problem = _user_problem(pipeline, context)
    # A pipeline that runs is left to itself: it knows best how to wait for its cluster.
    if not started:
        waits = problem or missing_topics(pipeline, cluster, context)
        if waits:
            return _wait(pipeline, known, waits, context)
    # A pod that was to start now could lack the Secret of its user.
    held = bool(problem and plan.steps)
    steps = () if held else plan.steps
    refused = summary(apply_steps(steps, pipeline.meta, context, kind=PIPELINES))
    progress = _progress(pipeline, context)
    status = status_of(known, progress)
    # Rows are counted all the time; phases and conditions are written at once.
    if status.phase == before.phase and not context.figures_due(pipeline.meta.uid):
        status = dataclasses.replace(known, phase=status.phase)
    verdict = _with_warnings(judge(progress, refused=refused), plan, problem, held=held)
    return write_status(pipeline, status, verdict, context)


def _progress(pipeline: Pipeline, context: Context) -> Progress | None:
    """What the pod says; None while it is silent."""
    return context.progress(PipelineNames(pipeline.meta.name, pipeline.meta.namespace).status_url)


def _phase(pipeline: Pipeline, context: Context, waiting: str, *, started: bool) -> str:
    """The phase where something is missing: a pod that runs says itself how it fares."""
    if not started:
        return waiting
    return status_of(pipeline.body.status, _progress(pipeline, context)).phase


def _user_required(pipeline: Pipeline, cluster: Resource[KafkaCluster]) -> Verdict:
    """Of a pipeline without a user, which nothing but its resource will change."""
    topics = pipeline.body.spec.source.topics
    roles = shortened([f"{{type: consumer, topic: {topic}}}" for topic in topics], separator=", ")
    text = (
        f"KafkaCluster {cluster.meta.name} is secured: set spec.user to a KafkaUser of this"
        f" namespace that has cluster: {cluster.meta.name} and"
        f" authorization: {{roles: [{roles}]}}"
    )
    return Verdict(ready=False, reason="UserRequired", message=text, stalled=True)


def _user_problem(pipeline: Pipeline, context: Context) -> Waiting | None:
    """Why the user of the pipeline cannot be used; None if it can, or there is none."""
    name = pipeline.body.spec.user
    if name is None:
        return None
    return user_problem(pipeline, context.kube.get(USERS, pipeline.meta.namespace, name))


def missing_topics(
    pipeline: Pipeline, cluster: Resource[KafkaCluster], context: Context
) -> Waiting | None:
    """What is not there yet of what the pipeline reads."""
    if not cluster.body.status.serves_topics:
        text = f"KafkaCluster {cluster.meta.name} does not answer"
        return Waiting(WAITING_FOR_CLUSTER, WAITING_FOR_CLUSTER, text)
    try:
        existing = connect(cluster, context).topic_names()
    except BrokersError as error:
        return Waiting(WAITING_FOR_CLUSTER, WAITING_FOR_CLUSTER, str(error))
    absent = [name for name in pipeline.body.spec.source.topics if name not in existing]
    if absent:
        text = f"there is no topic {', '.join(absent)} yet"
        return Waiting(WAITING_FOR_TOPICS, WAITING_FOR_TOPICS, text)
    return None


def _plan(pipeline: Pipeline, cluster: Resource[KafkaCluster], context: Context) -> PipelinePlan:
    """What to do about the objects, after reading them. Raises KubeError."""
    names = PipelineNames(pipeline.meta.name, pipeline.meta.namespace)
    found = {
        kind.kind: body
        for kind in (CONFIG_MAPS, SERVICES, STATEFUL_SETS)
        if (body := context.kube.get(kind, names.namespace, names.all)) is not None
    }
    owner = found.get(STATEFUL_SETS.kind)
    if owner is not None and not is_ours(owner, pipeline.meta.uid):
        owner = None
    # Claims of the name may be another's as long as the StatefulSet is.
    claims = claims_of(context.kube.list(CLAIMS, names.namespace), names.all) if owner else []
    return plan_pipeline(
        pipeline,
        found,
        stateful_set=owner,
        claims=claims,
        images=context.images,
        bootstrap_servers=bootstrap_servers(cluster),
    )


def status_of(before: PipelineStatus, progress: Progress | None) -> PipelineStatus:
    """The status, without conditions; while the pod is silent, what it last said."""
    if progress is None:
        return dataclasses.replace(before, phase="Starting", rows_per_second=0.0)
    return dataclasses.replace(
        before,
        phase=progress.phase,
        rows=progress.rows,
        rows_per_second=progress.rows_per_second,
        lag=progress.lag,
        last_batch_id=progress.last_batch_id,
    )


def judge(progress: Progress | None, *, refused: str) -> Verdict:
    """How the pipeline fares."""
    if refused:
        return Verdict(ready=False, reason="Refused", message=refused, stalled=True)
    if progress is None:
        text = "its pod does not answer yet"
        return Verdict(ready=False, reason="Starting", message=text, settled=False)
    if progress.phase == FAILED:
        return Verdict(ready=False, reason=FAILED, message=progress.message, stalled=True)
    if progress.phase != "Running":
        message = progress.message or f"the pipeline says {progress.phase}"
        return Verdict(ready=False, reason=progress.phase, message=message, settled=False)
    return Verdict(ready=True, reason="Running", message=progress.message)


def _with_warnings(
    verdict: Verdict, plan: PipelinePlan, problem: Waiting | None, *, held: bool
) -> Verdict:
    """The verdict on a pipeline that runs on, whatever its user and its version are.

    `held`: what would replace its pod waits for the user.
    """
    found = [("UnknownVersion", plan.unknown)] if plan.unknown else []
    if problem:
        found.append((problem.reason, f"{problem.message}; the pod goes on as it is"))
    if problem and held and not verdict.stalled:
        text = f"{problem.message}; what would replace the pod waits for it"
        verdict = dataclasses.replace(verdict, settled=False, pending=(problem.reason, text))
    if not found:
        return verdict
    texts = tuple(text for _, text in found)
    return dataclasses.replace(verdict, warnings=texts, warning_reason=found[0][0])


def _wait(
    pipeline: Pipeline, status: PipelineStatus, waiting: Waiting, context: Context
) -> PipelineStatus:
    verdict = Verdict(ready=False, reason=waiting.reason, message=waiting.message, settled=False)
    return write_status(
        pipeline, dataclasses.replace(status, phase=waiting.phase), verdict, context
    )
