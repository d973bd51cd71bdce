"""The present state of a cluster, in the words of the resources' statuses.

Reading changes nothing. The operator's own planner finds what `up` would do, and the view has it as
a reason; what cannot be known while the broker is stopped is left out.
"""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from barnabas_operator.api.certificates import CertificateStatus
from barnabas_operator.api.clusters import ClusterStatus, KafkaCluster, ReplicaStatus
from barnabas_operator.api.conditions import READY, Condition, Verdict, conditions, is_ready
from barnabas_operator.api.pipelines import PipelineStatus
from barnabas_operator.api.reading import Resource
from barnabas_operator.api.topics import TopicStatus
from barnabas_operator.api.users import KafkaUser, PatternType, RoleType, UserStatus
from barnabas_operator.api.writing import to_json
from barnabas_operator.brokers import Brokers, BrokersError
from barnabas_operator.local import broker, coordination, pipelines, processes, watching
from barnabas_operator.local.admin import connect
from barnabas_operator.local.coordination import ServerView
from barnabas_operator.local.documents import AnyResource, Manifest, of_record
from barnabas_operator.local.pipeline_rules import admin_among
from barnabas_operator.local.state import LocalError, Record, StateDirectory, root
from barnabas_operator.local.user_directory import UserDirectory
from barnabas_operator.plan.observed import ClusterView
from barnabas_operator.plan.topics import (
    Kept,
    Refusal,
    Topic,
    TopicView,
    differences,
    is_managed,
    owners,
    plan_topic,
    topic_name,
)

if TYPE_CHECKING:
    from barnabas_operator.local import users

KUBERNETES_ONLY: Final = (
    "spec.zookeeper, storage, resources, template, version, images and roll are for"
    " Kubernetes: here the broker keeps the coordination data itself and takes the disk and memory"
    " it needs"
)
SEVERAL: Final = (
    "spec.zookeeper, spec.brokers.rack, storage, resources, template, version, images and"
    " roll are for Kubernetes: here one process keeps the coordination data, and brokers take"
    " the disk and memory they need"
)
ENSEMBLE: Final = (
    "spec.brokers.rack, storage, resources, template, version, images and roll are for"
    " Kubernetes: here brokers and the members of the ensemble take the disk and memory they need"
)
STOPPED: Final = "Stopped"

Verdicts = Mapping[str, Verdict]


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerView:
    """A broker's process; `pid`, `memory_bytes` and `admin` are None when it does not run."""

    id: int
    pid: int | None
    memory_bytes: int | None
    startup_s: float
    log: Path
    admin: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineView:
    """A pipeline's process."""

    status: PipelineStatus
    pid: int | None
    memory_bytes: int | None
    directory: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class UserRow:
    """A user, and where what its clients need is; `command` works when it is pasted."""

    status: UserStatus
    directory: Path
    command_config: Path
    command: str


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A cluster and all that belongs to it, as it is now."""

    name: str
    file: str
    directory: Path
    status: ClusterStatus
    brokers: tuple[BrokerView, ...]
    zookeeper: tuple[ServerView, ...]
    topics: Mapping[str, TopicStatus]
    users: Mapping[str, UserRow]
    pipelines: Mapping[str, PipelineView]

    def conditions(self) -> Mapping[str, tuple[Condition, ...]]:
        """The conditions of every resource, by kind and name."""
        return {
            f"KafkaCluster {self.name}": self.status.conditions,
            **{f"KafkaTopic {name}": each.conditions for name, each in self.topics.items()},
            **{f"KafkaUser {name}": each.status.conditions for name, each in self.users.items()},
            **{
                f"KafkaPipeline {name}": each.status.conditions
                for name, each in self.pipelines.items()
            },
        }

    @property
    def ready(self) -> bool:
        """Whether all of it is Ready, the cluster and what belongs to it."""
        return self.unready is None

    @property
    def unready(self) -> str | None:
        """Kind and name of what is not Ready, of several the first.

        A pipeline for which nothing but Spark is missing on this machine is not meant.
        """
        return next((name for name, each in self.conditions().items() if _falls_short(each)), None)

    def statuses(self) -> Mapping[tuple[str, str], Any]:
        """The statuses as JSON, by kind and name of the resource."""
        return {
            ("KafkaCluster", self.name): to_json(self.status),
            **{("KafkaTopic", name): to_json(each) for name, each in self.topics.items()},
            **{("KafkaUser", name): to_json(each.status) for name, each in self.users.items()},
            **{
                ("KafkaPipeline", name): to_json(each.status)
                for name, each in self.pipelines.items()
            },
        }

    def as_json(self) -> dict[str, Any]:
        """All of it, for programs."""
        return {
            "name": self.name,
            "file": self.file,
            "directory": str(self.directory),
            "ready": self.ready,
            "status": to_json(self.status),
            "brokers": [
                {
                    "id": each.id,
                    "running": each.pid is not None,
                    "pid": each.pid,
                    "memoryBytes": each.memory_bytes,
                    "startupSeconds": round(each.startup_s, 3),
                    "log": str(each.log),
                    "admin": each.admin,
                }
                for each in self.brokers
            ],
            "zookeeper": [
                {
                    "id": each.id,
                    "running": each.pid is not None,
                    "pid": each.pid,
                    "memoryBytes": each.memory_bytes,
                    "address": each.address,
                    "mode": each.mode,
                    "log": str(each.log),
                }
                for each in self.zookeeper
            ],
            "topics": [
                {"name": name, "status": to_json(each)} for name, each in self.topics.items()
            ],
            "users": [
                {
                    "name": name,
                    "directory": str(each.directory),
                    "commandConfig": str(each.command_config),
                    "command": each.command,
                    "status": to_json(each.status),
                }
                for name, each in self.users.items()
            ],
            "pipelines": [
                {
                    "name": name,
                    "running": each.pid is not None,
                    "pid": each.pid,
                    "memoryBytes": each.memory_bytes,
                    "directory": str(each.directory),
                    "status": to_json(each.status),
                }
                for name, each in self.pipelines.items()
            ],
        }


def _falls_short(found: Sequence[Condition]) -> bool:
    """Whether a resource is not Ready, and not for lack of an installation."""
    return not is_ready(found) and not any(
        each.type == READY and each.reason == pipelines.NOT_INSTALLED for each in found
    )


def look(
    record: Record,
    state: StateDirectory,
    verdicts: Verdicts | None = None,
    outcomes: Mapping[str, users.Outcome] | None = None,
) -> View:
    """Read everything; `verdicts` on topics and `outcomes` of users are of an `up` that ends."""
    manifest = of_record(record.documents, record.security)
    now = datetime.now(tz=UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    brokers = tuple(_broker(broker_id, record, state) for broker_id in record.brokers)
    running = sum(each.pid is not None for each in brokers)
    servers = tuple(coordination.servers(record, state))
    admin: Brokers | None = None
    described: ClusterView | None = None
    trouble = ""
    reason, message = _why_not_running(record, state, servers)
    if running:
        try:
            admin = connect(manifest.cluster, record, state)
            described, trouble = _ask(admin)
        except LocalError as error:
            trouble = str(error)
        if trouble:
            reason, message = "Unreachable", trouble
    ready = described is not None and not reason
    text = "the broker answers" if len(brokers) == 1 else f"{running} brokers run"
    verdict = Verdict(
        ready=ready, reason=reason or "Ready", message=message or text, warnings=(_warning(record),)
    )
    serving = sum(each.mode is not None for each in servers)
    status = dataclasses.replace(
        _cluster_status(manifest.cluster, record, verdict, running=running, now=now),
        certificates=_expiries(manifest.cluster, state),
        zookeeper=ReplicaStatus(replicas=len(servers), ready=serving),
    )
    return View(
        name=record.cluster,
        file=record.file,
        directory=state.path,
        status=status,
        brokers=brokers,
        zookeeper=servers,
        topics=_topics(manifest, admin if described else None, verdicts or {}, now=now),
        users=_users(
            manifest, record, state, outcomes, admin=admin if described else None, now=now
        ),
        pipelines={each.meta.name: _pipeline(each, state, now=now) for each in manifest.pipelines},
    )


def _users(
    manifest: Manifest,
    record: Record,
    state: StateDirectory,
    outcomes: Mapping[str, users.Outcome] | None,
    *,
    admin: Brokers | None,
    now: str,
) -> Mapping[str, UserRow]:
    if not manifest.users:
        return {}
    # Late: it brings what makes certificates.
    from barnabas_operator.local import users

    found = outcomes or users.look(manifest, record, state, admin)
    rows = {}
    for user in manifest.users:
        name, directory = user.meta.name, UserDirectory(state.user(user.meta.name))
        outcome = found[name]
        rows[name] = UserRow(
            status=dataclasses.replace(
                outcome.status,
                observed_generation=user.meta.generation,
                secret="",
                conditions=_conditions(user, outcome.verdict, now),
            ),
            directory=directory.path,
            command_config=directory.command_config,
            command=_command(user, manifest, state),
        )
    return rows


def _command(user: Resource[KafkaUser], manifest: Manifest, state: StateDirectory) -> str:
    """A command that the user may run, by the first of its roles."""
    given = user.body.spec.authorization
    command = ["topics", "list"]
    for role in given.roles if given else ():
        if role.topic is None or role.pattern_type is PatternType.PREFIXED:
            continue
        if role.type is RoleType.PRODUCER:
            command = ["produce", role.topic]
        else:
            command = ["consume", role.topic, *(["--group", role.group] if role.group else [])]
        break
    return shlex.join(["barnabas", *command, *_as_user(user.meta.name, manifest, state)])


def _as_user(name: str, manifest: Manifest, state: StateDirectory) -> list[str]:
    """The options with which commands connect as a user."""
    cluster = manifest.cluster.meta.name
    if state.path != root() / cluster:  # Commands look for names in the usual place alone.
        return ["--command-config", str(UserDirectory(state.user(name)).command_config)]
    whole = manifest.cluster.body.spec.secured and name == admin_among(manifest.users)
    return ["--local", cluster if whole else f"{cluster}/{name}"]


def _expiries(
    cluster: Resource[KafkaCluster], state: StateDirectory
) -> tuple[CertificateStatus, ...]:
    if not cluster.body.spec.needs_certificates:
        return ()
    from barnabas_operator.local.pki import Pki

    return Pki(state.pki).expiries()


def _broker(broker_id: int, record: Record, state: StateDirectory) -> BrokerView:
    files = broker.BrokerFiles(state.broker(broker_id))
    pid = processes.pid_of(files.entry())
    return BrokerView(
        id=broker_id,
        pid=pid,
        memory_bytes=processes.resident_bytes(pid) if pid else None,
        startup_s=record.brokers[broker_id].startup_s,
        log=files.log,
        admin=files.admin_url() if pid else None,
    )


def _warning(record: Record) -> str:
    if record.ensemble:
        return ENSEMBLE
    return KUBERNETES_ONLY if record.zookeeper is None else SEVERAL


def _why_not_running(
    record: Record, state: StateDirectory, servers: Sequence[ServerView]
) -> tuple[str, str]:
    """Reason and message where a process of the cluster does not do its work; empty if all do."""
    for each in watching.watched(record, state):
        if each.stopped:
            return STOPPED, f"{each.name} is stopped; `barnabas local up` starts it"
        if ended := each.end():
            return each.ended_reason, ended
    for server in servers:
        if server.mode is None:
            text = f"ZooKeeper at {server.address} runs and does not serve (log: {server.log})"
            return "ZooKeeperNotServing", text
    return "", ""


def with_statuses(record: Record, view: View) -> None:
    """Remember the statuses, for the times at which conditions changed."""
    statuses = view.statuses()
    record.documents = [
        {**document, "status": statuses[document["kind"], document["metadata"]["name"]]}
        for document in record.documents
    ]


def _ask(admin: Brokers) -> tuple[ClusterView | None, str]:
    """What the cluster says of itself, or why it does not."""
    try:
        return admin.describe(), ""
    except BrokersError as error:
        return None, str(error)


def _cluster_status(
    cluster: Resource[KafkaCluster], record: Record, verdict: Verdict, *, running: int, now: str
) -> ClusterStatus:
    return ClusterStatus(
        observed_generation=cluster.meta.generation,
        conditions=_conditions(cluster, verdict, now),
        cluster_id=record.cluster_id,
        security=record.security.value if record.security else "",
        listeners=broker.listeners(cluster, record) if running else (),
        brokers=ReplicaStatus(replicas=len(record.brokers), ready=running),
    )


def _conditions(
    resource: AnyResource,
    verdict: Verdict,
    now: str,
) -> tuple[Condition, ...]:
    previous = resource.body.status.conditions
    return conditions(verdict, generation=resource.meta.generation, previous=previous, now=now)


def _topics(
    manifest: Manifest, admin: Brokers | None, verdicts: Verdicts, *, now: str
) -> Mapping[str, TopicStatus]:
    managed = owners(manifest.topics)
    views: Mapping[str, TopicView] = {}
    if admin is not None:
        try:
            found_topics = admin.topics(admin.topic_names() & managed.keys())
            views = {n: each for n, each in found_topics.items() if isinstance(each, TopicView)}
        except BrokersError:
            admin = None
    statuses = {}
    for topic in manifest.topics:
        name = topic.meta.name
        found = views.get(topic_name(topic))
        if admin is None:
            text = "nothing is known of the topic while the broker does not answer"
            verdict = Verdict(ready=False, reason="WaitingForCluster", message=text)
        else:
            verdict = verdicts.get(name) or _judge(topic, found, managed[topic_name(topic)])
        status = topic.body.status if admin is None else TopicStatus()
        if found is not None:
            owned = is_managed(topic, found) or not differences(topic.body.spec, found)
            status = TopicStatus(
                topic_id=found.topic_id if owned else topic.body.status.topic_id,
                partitions=found.partitions,
                replicas=found.replicas,
            )
        statuses[name] = dataclasses.replace(
            status,
            topic_name=topic_name(topic),
            observed_generation=topic.meta.generation,
            conditions=_conditions(topic, verdict, now),
        )
    return statuses


def _judge(topic: Topic, found: TopicView | None, owner: Topic) -> Verdict:
    """The verdict on a topic between two runs of `up`."""
    if owner.meta.name != topic.meta.name:
        text = f"topic {topic_name(topic)} is managed by KafkaTopic {owner.meta.name}"
        return Verdict(ready=False, reason="Conflict", message=text, stalled=True)
    steps = plan_topic(topic, found)
    if isinstance(steps, Refusal):
        return Verdict(ready=False, reason=steps.reason, message=steps.message, stalled=True)
    if isinstance(steps, Kept):
        return steps.verdict
    if steps:
        todo = "; ".join(map(str, steps))
        text = f"`barnabas local up` would: {todo}"
        reason = "Missing" if found is None else "Drifted"
        return Verdict(ready=found is not None, reason=reason, message=text, settled=False)
    return Verdict(ready=True, reason="Ready")


def _pipeline(pipeline: pipelines.Pipeline, state: StateDirectory, *, now: str) -> PipelineView:
    name = pipeline.meta.name
    status, verdict = pipelines.look(name, state, pipeline.body.status)
    files = pipelines.PipelineFiles(state.pipeline(name))
    pid = processes.pid_of(files.entry())
    return PipelineView(
        status=dataclasses.replace(
            status,
            observed_generation=pipeline.meta.generation,
            conditions=_conditions(pipeline, verdict, now),
        ),
        pid=pid,
        memory_bytes=processes.resident_bytes(pid) if pid else None,
        directory=files.directory,
    )
