"""The operator put together: ports, loop and watches, as the environment says."""

from __future__ import annotations

import asyncio
import functools
import json
import logging
import signal
import socket
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

from barnabas_kafka.settings.keys.identity import INTER_BROKER_PROTOCOL_VERSION
from barnabas_kafka.settings.metadata_version import MetadataVersion
from barnabas_operator import __version__, ensemble, progress, restart_check
from barnabas_operator.brokers import AdminBrokers, Brokers, Endpoint
from barnabas_operator.handlers.clients import Clients
from barnabas_operator.handlers.controller import Controller
from barnabas_operator.handlers.election import Election
from barnabas_operator.handlers.event_recorder import EventLimits, EventRecorder
from barnabas_operator.handlers.guard import PASS_DEADLINE_S, Deadline, guarded
from barnabas_operator.handlers.health import Health, serve
from barnabas_operator.handlers.leadership import Leadership, identity_of
from barnabas_operator.handlers.metrics import Metrics
from barnabas_operator.handlers.rate_limits import RateLimit
from barnabas_operator.handlers.resource_index import RESOURCES, ResourceIndex
from barnabas_operator.handlers.standby import StandbyEvents
from barnabas_operator.handlers.watches import LAST_RETRY_S, STARTS, Served, watch
from barnabas_operator.handlers.work_queue import WorkQueue
from barnabas_operator.kube import CLUSTERS, PIPELINES, TOPICS, USERS, ApiServer, Kind, KubeError
from barnabas_operator.plan.observed import Images
from barnabas_operator.reconcile.context import Context
from barnabas_operator.reconcile.namespaces import namespace_of
from barnabas_operator.reconcile.pass_warnings import PassWarnings
from barnabas_operator.reconcile.reconciler import (
    OWNED,
    RESYNC_S,
    Found,
    Key,
    find_keys,
    index_owned,
)
from barnabas_operator.reconcile.steady import SteadyClusters

HEALTH_PORT: Final = 8080
# A client keeps its connections, one or two to each broker. Those of more clusters connect again in
# each pass.
CLIENTS: Final = 128
# Of a pass that was asked to end: no call takes longer, and Kubernetes waits for thirty seconds.
LAST_CALL_S: Final = 20.0
# How often everything that is owned is listed, for changes that no watch has reported.
RELIST_S: Final = 300.0
# How often figures of a pipeline that runs are written.
FIGURES_S: Final = 30.0

logger: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """The operator's settings from its environment."""

    images: Images
    namespaces: tuple[str, ...]
    resync_s: float
    health_port: int
    # Where it is installed and under which name, and which of its processes this is.
    own_namespace: str
    release: str
    instance: str

    @property
    def identity(self) -> str:
        """This process as the holder of a Lease."""
        return identity_of(self.own_namespace, self.release, self.instance)

    @classmethod
    def of(cls, variables: Mapping[str, str]) -> Environment:
        """From environment variables; raises ValueError with what is missing."""
        images = {}
        for component in ("broker", "zookeeper", "pipeline"):
            name = f"BARNABAS_{component.upper()}_IMAGE"
            if not variables.get(name):
                raise ValueError(f"{name} is not set: name the image of the {component} pods")
            images[component] = variables[name]
        listed = variables.get("WATCH_NAMESPACES", "").replace(",", " ").split()
        return cls(
            images=Images(
                **images,
                operator=__version__,
                versions=_versions(variables.get("BARNABAS_VERSIONS") or "{}", images),
            ),
            namespaces=tuple(listed),
            resync_s=float(variables.get("BARNABAS_RESYNC_SECONDS", RESYNC_S)),
            health_port=int(variables.get("BARNABAS_HEALTH_PORT", HEALTH_PORT)),
            own_namespace=variables.get("BARNABAS_POD_NAMESPACE") or "default",
            release=variables.get("BARNABAS_RELEASE") or "barnabas-operator",
            instance=f"{variables.get('BARNABAS_POD_NAME') or socket.gethostname()}_{uuid.uuid4()}",
        )


def _versions(text: str, own: Mapping[str, str]) -> Mapping[str, Mapping[str, str]]:
    """Images by version, the operator's own among them; raises ValueError if it is no such JSON."""
    listed = json.loads(text)
    if not isinstance(listed, dict) or not all(isinstance(each, dict) for each in listed.values()):
        raise ValueError("BARNABAS_VERSIONS must be a JSON object of images by version")
    for version, each in listed.items():
        if each.get("protocol"):
            try:
                MetadataVersion.parse(each["protocol"])
            except ValueError as error:
                raise ValueError(f"BARNABAS_VERSIONS: protocol of {version}: {error}") from error
    ours = dict(own)
    ours["protocol"] = str(INTER_BROKER_PROTOCOL_VERSION.default)
    return {__version__: ours, **listed}


def run(environment: Environment) -> None:
    """Run until a signal ends it.

    Health is served before anything else. The event loop has a thread of its own, since the kopf of
    each namespace would take the process' signal handlers for itself.
    """
    health = Health()
    metrics = Metrics(health)
    stopping = Stopping()
    with (
        serve(environment.health_port, health, metrics.text),
        ThreadPoolExecutor(1, "operator") as thread,
    ):
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stopping.set())
        thread.submit(asyncio.run, _run(environment, metrics, stopping)).result()


class Stopping:
    """Asks the event loop of another thread to stop, from a signal handler too."""

    def __init__(self) -> None:
        self.asked = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._event = asyncio.Event()

    def set(self) -> None:
        """Ask."""
        self.asked = True
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._event.set)

    async def wait(self) -> None:
        """Wait until asked."""
        self._loop = asyncio.get_running_loop()
        if not self.asked:
            await self._event.wait()


def _connect(at: Endpoint) -> AdminBrokers:
    return AdminBrokers(at.servers, at.tls)


# By namespace and cluster: when certificates expire, by their names.
Expiries = Callable[[str, str, Mapping[str, float]], None]


class Passes:
    """What the controller calls in threads, and what is remembered between passes."""

    def __init__(
        self,
        environment: Environment,
        kube: ApiServer,
        *,
        leadership: Leadership,
        stopping: Stopping,
        count_step: Callable[[str, str], None] = lambda *_: None,
        expiries: Expiries,
        user_expiries: Expiries,
    ) -> None:
        self._leadership = leadership
        self.index = ResourceIndex(watched=environment.namespaces)
        self._environment = environment
        self._namespaces = environment.namespaces or (None,)
        self._kube = kube
        self._stopping = stopping
        self._expiries, self._user_expiries = expiries, user_expiries
        self._steady = SteadyClusters(self.index.revision)
        self._clients = Clients(_connect, CLIENTS)
        self._limits = EventLimits()
        release = f"{environment.own_namespace}/{environment.release}"
        self._standby = StandbyEvents(kube, release, environment.instance)
        self._count_step = count_step
        self._figures = RateLimit(FIGURES_S)
        self._warnings: dict[Key, PassWarnings] = {}
        # The first resync is not kept waiting: its passes read everything themselves.
        self._relist_at = time.monotonic() + environment.resync_s
        self._was_listed = False

    def work(self, key: Key) -> float:
        """See Controller."""
        with self._clients.lease() as client_of:
            return self._work(key, client_of)

    def _work(self, key: Key, client_of: Callable[[Endpoint], AdminBrokers]) -> float:
        deadline = time.monotonic() + PASS_DEADLINE_S
        check = Deadline(deadline, self._stopping, self._leadership.may_write).check
        kube = guarded(self._kube, check)

        def brokers(at: Endpoint) -> Brokers:
            return guarded(client_of(at), check, lambda _: key.namespace)

        context = Context(
            kube=kube,
            brokers=brokers,
            progress=progress.ask,
            restart_check=restart_check.restart_check,
            in_sync=restart_check.in_sync,
            recovery=restart_check.recovery,
            ensemble_mode=ensemble.mode,
            images=self._environment.images,
            now=self._kube.now().strftime("%Y-%m-%dT%H:%M:%SZ"),
            events=EventRecorder(kube, self._limits, self._environment.instance),
            figures_due=self._figures.allows,
            warnings=self._warnings.setdefault(key, PassWarnings()),
            index=self.index.named,
            operator_namespace=self._environment.own_namespace,
            expiries=self._expiries,
            user_expiries=self._user_expiries,
            retained=self.index.retained,
            watched=self._environment.namespaces,
            acts_in=functools.cache(self._leadership.acts_in),
            count_step=self._count_step,
        )
        return self._steady.reconcile(key, context)

    def is_listed(self, namespace: str) -> bool:
        """Whether passes in a namespace find there what names their clusters, or never will.

        A pass that begins before lists every watched namespace for itself.
        """
        return self._was_listed or self.index.is_listed(namespace)

    def find(self) -> Found:
        """See Controller; now and then finds changes that no watch has reported."""
        found = find_keys(self._kube, self._namespaces, self.index)
        self._was_listed = True
        self._steady.forget(found.is_gone)
        # A copy: passes add to them at the same time.
        for key in filter(found.is_gone, list(self._warnings)):
            self._warnings.pop(key, None)
        if time.monotonic() >= self._relist_at:
            index_owned(self._kube, self._namespaces, self.index)
            self._relist_at = time.monotonic() + RELIST_S
        self._standby.report(
            found.keys,
            lambda key: self.index.uid(CLUSTERS, key.namespace, key.cluster),
            self._leadership.other_release,
        )
        return found

    def observe(self, kind: Kind, event: Mapping[str, Any]) -> None:
        """An event of a watch; one that lists again may have missed some."""
        self.index.observe(kind, event)
        if event.get("type") is None and kind in OWNED:
            self._relist_soon()

    def lost(self, namespace: str | None) -> None:
        """A watch ended: what is owned there may change without an event."""
        for kind in OWNED:
            self.index.invalidate(kind, namespace)
        self._relist_soon()

    def _relist_soon(self) -> None:
        self._relist_at = min(self._relist_at, time.monotonic() + LAST_RETRY_S)


async def _run(environment: Environment, metrics: Metrics, stopping: Stopping) -> None:
    kube = ApiServer.connect()
    namespaces = environment.namespaces or (None,)
    loop = asyncio.get_running_loop()

    def changed(namespace: str | None, *, leads: bool | None) -> None:
        metrics.leads(namespace, leads=leads)
        controller.wake(namespace)

    leadership = Leadership(
        kube, namespaces=environment.namespaces, identity=environment.identity, changed=changed
    )
    passes = Passes(
        environment,
        kube,
        leadership=leadership,
        stopping=stopping,
        count_step=metrics.count_step,
        expiries=metrics.expiries,
        user_expiries=metrics.user_expiries,
    )

    def find() -> Found:
        found = passes.find()
        # Before the controller takes the clusters over.
        claim = functools.partial(leadership.claim_only, complete=not found.errors)
        loop.call_soon_threadsafe(claim, found.namespaces)
        return found

    def observe(kind: Kind, event: Mapping[str, Any]) -> None:
        passes.observe(kind, event)
        if kind in RESOURCES and event.get("type") != "DELETED":
            leadership.claim(namespace_of(event["object"]))

    controller = Controller(
        passes.work,
        find,
        metrics,
        resync_s=environment.resync_s,
        queue=WorkQueue(
            may_run=lambda key: (
                passes.is_listed(key.namespace) and leadership.may_reconcile(key.namespace)
            )
        ),
    )
    served = Served(check=functools.partial(_check_served, kube), every_s=environment.resync_s)
    tasks = [
        asyncio.create_task(each) for each in (controller.run(), stopping.wait(), leadership.run())
    ]
    starts = asyncio.Semaphore(STARTS)
    tasks += [
        asyncio.create_task(
            watch(each, controller.add, observe, served, passes.lost, starts=starts)
        )
        for each in namespaces
    ]
    try:
        await _until_one_ends(tasks)
    finally:
        # Passes that run end at their next call.
        stopping.asked = True
        if await controller.end(LAST_CALL_S):
            releases = (asyncio.to_thread(_release, each) for each in leadership.elected)
            await asyncio.gather(*releases)


def _check_served(kube: ApiServer, namespace: str | None) -> bool:
    """See Served; KafkaUsers may be absent, for Helm does not upgrade definitions."""
    for kind in (CLUSTERS, TOPICS, PIPELINES):
        kube.check_served(kind, namespace)
    try:
        kube.check_served(USERS, namespace)
    except KubeError as error:
        if error.status != 404:
            raise
        return False
    return True


async def _until_one_ends(tasks: Sequence[asyncio.Task[None]]) -> None:
    """None ends by itself but the one that waits for a signal; raises what ended one."""
    done, running = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in running:
        task.cancel()
    await asyncio.gather(*running, return_exceptions=True)
    for task in done:
        task.result()


def _release(election: Election) -> None:
    """Hand over; where that fails the Lease expires."""
    try:
        election.release()
    except KubeError as error:
        logger.warning("Lease release failed: namespace=%s %s", election.namespace, error)
