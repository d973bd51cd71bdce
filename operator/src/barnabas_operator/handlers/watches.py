"""What kopf watches, and what an event means.

An event of a resource, or of a StatefulSet or a pod, asks for a pass. Those of everything else that
the operator owns only marks the cluster as changed for the next pass.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, Final, NoReturn, Protocol

import kopf

from barnabas_operator.api import GROUP, VERSION
from barnabas_operator.kube import (
    CLUSTERS,
    PIPELINES,
    PODS,
    STATEFUL_SETS,
    TOPICS,
    USERS,
    Kind,
    KubeError,
)
from barnabas_operator.names import INSTANCE
from barnabas_operator.reconcile.reconciler import OWNED, Key, key_of
from barnabas_operator.resources.objects import digest

# A watch that the server or something between has silently dropped is noticed after that.
SERVER_TIMEOUT_S: Final = 300
CLIENT_TIMEOUT_S: Final = 330
FIRST_RETRY_S: Final = 1.0
LAST_RETRY_S: Final = 60.0
OBJECTS: Final = 100_000
# Objects that kopf lists at a time; it lists all at once otherwise, in all namespaces together.
PAGE: Final = 50
# For how long kopf keeps what it has of an object for its next event: a queue and a task.
IDLE_S: Final = 0.05
# Namespaces that kopf lists at a time; a list is over when no object has come for so long.
STARTS: Final = 4
QUIET_S: Final = 1.0
LONGEST_START_S: Final = 10.0
# For tasks of kopf that are cancelled; it gives events that it has not handled two seconds.
END_S: Final = 10.0

logger: Final = logging.getLogger(__name__)


class GenerationFilter:
    """Separates events that say something new from those that our own status made."""

    def __init__(self) -> None:
        # By uid, a hash of what each object asks for.
        self._seen: OrderedDict[str, str] = OrderedDict()

    def is_new(self, event: Mapping[str, Any]) -> bool:
        """Whether the event's object is new, gone, or asks for something else than before."""
        meta = event["object"]["metadata"]
        uid = meta["uid"]
        if event.get("type") == "DELETED":
            self._seen.pop(uid, None)
            return True
        # An annotation makes no generation; ours ask for something, as the approval of a roll.
        ours = {
            name: value
            for name, value in (meta.get("annotations") or {}).items()
            if name.startswith(f"{GROUP}/")
        }
        # A newer definition may show more of a spec without another generation.
        spec = event["object"].get("spec")
        asked = digest([meta.get("generation"), spec, bool(meta.get("deletionTimestamp")), ours])
        if self._seen.get(uid) == asked:
            return False
        self._seen[uid] = asked
        # A watch may lose a deletion. Of one that is forgotten too early the next event is new.
        if len(self._seen) > OBJECTS:
            self._seen.popitem(last=False)
        return True


Observe = Callable[[Kind, Mapping[str, Any]], None]


class Add(Protocol):
    """Asks for a pass; `changed` says that a user changed a resource."""

    def __call__(self, key: Key, *, changed: bool) -> None:
        """Have a cluster reconciled now."""
        ...


def register(add: Add, observe: Observe) -> kopf.OperatorRegistry:
    """The registry of event handlers, each of which asks for a pass."""
    registry = kopf.OperatorRegistry()
    generations = GenerationFilter()

    async def on_resource(kind: Kind, event: kopf.RawEvent) -> None:
        # Before the pass that the event asks for.
        observe(kind, event)
        key = key_of(event["object"])
        if key is not None and generations.is_new(event):
            add(key, changed=True)

    async def on_owned(kind: Kind, event: kopf.RawEvent) -> None:
        observe(kind, event)
        meta = event["object"]["metadata"]
        cluster = (meta.get("labels") or {}).get(INSTANCE)
        # The status of a StatefulSet does not say why a pod is not ready, as that it cannot start.
        if kind in (STATEFUL_SETS, PODS) and cluster:
            add(Key(meta["namespace"], cluster), changed=False)

    def handler(
        kind: Kind, handle: Callable[[Kind, kopf.RawEvent], Coroutine[Any, Any, None]]
    ) -> Callable[..., Coroutine[Any, Any, None]]:
        async def on_event(event: kopf.RawEvent, **_: Any) -> None:
            await handle(kind, event)

        return on_event

    for kind in (CLUSTERS, TOPICS, USERS, PIPELINES):
        kopf.on.event(GROUP, VERSION, kind.plural, registry=registry)(handler(kind, on_resource))
    for kind in OWNED:
        kopf.on.event(*kind.group_and_version, kind.plural, registry=registry)(
            handler(kind, on_owned)
        )
    kopf.on.login(registry=registry)(log_in)
    return registry


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """Asks whether the custom resources of a namespace (None: of all) can be listed.

    `check` raises KubeError while one is absent without which nothing can be done, and returns
    whether all are there. While one is absent it is asked again every `every_s`.
    """

    check: Callable[[str | None], bool]
    every_s: float


async def watch(
    namespace: str | None,
    add: Add,
    observe: Observe,
    served: Served,
    lost: Callable[[str | None], None],
    *,
    starts: asyncio.Semaphore,
) -> NoReturn:
    """Watch one namespace (None: all) for ever; `lost` is called when events may be missed.

    Some namespaces are listed at a time, as `starts` lets them: what kopf holds of each object
    until it is handled would otherwise be most of the operator's memory.

    kopf ends all of its watches when one is refused, as in a namespace that was deleted.
    So each namespace has a kopf of its own, which is started again with back-off. kopf looks for
    the custom resources only when it starts: it is started again when one was installed meanwhile.
    """
    delay = FIRST_RETRY_S
    while True:
        started = time.monotonic()
        problem: object = "kopf ended"
        try:
            complete = await asyncio.to_thread(served.check, namespace)
            watched = _Watched(namespace, add, observe, starts)
            if await _until_installed(watched, served, complete=complete):
                logger.info("Definitions installed: namespace=%s", namespace or "(all)")
                lost(namespace)
                continue
        except KubeError as error:
            problem = error
        except Exception as error:
            logger.debug("Watch failed: namespace=%s", namespace or "(all)", exc_info=True)
            problem = f"{type(error).__name__}: {error}"
        lost(namespace)
        if time.monotonic() - started > LAST_RETRY_S:
            delay = FIRST_RETRY_S
        text = "Watch failed: namespace=%s %s; retry in %.0f s"
        logger.warning(text, namespace or "(all)", problem, delay)
        await asyncio.sleep(delay)
        delay = min(2 * delay, LAST_RETRY_S)


class _Watched:
    """kopf in one namespace (None: all)."""

    def __init__(
        self, namespace: str | None, add: Add, observe: Observe, starts: asyncio.Semaphore
    ) -> None:
        self.namespace = namespace
        self._observe = observe
        self._starts = starts
        self._registry = register(add, self._observed)
        self._listing = asyncio.Event()

    async def run(self, stop_flag: asyncio.Event) -> None:
        """Until the flag is set; raises what ends it before.

        As `kopf.operator` does, which at its end also cancels every task of the event loop that is
        younger than itself: passes, and the watches of other namespaces.
        """
        stopping = asyncio.create_task(stop_flag.wait())
        tasks: Collection[asyncio.Task[None]] = ()
        try:
            async with self._starts:
                tasks = await kopf.spawn_tasks(
                    registry=self._registry,
                    settings=settings(),
                    # Nothing for each object: it would get a dict of its own.
                    memo=(),
                    standalone=True,
                    clusterwide=self.namespace is None,
                    namespaces=() if self.namespace is None else (self.namespace,),
                )
                await self._until_listed()
            await asyncio.wait([*tasks, stopping], return_when=asyncio.FIRST_COMPLETED)
        finally:
            # First of all: where one was refused, kopf leaves the others to themselves.
            await _end([stopping, *filter(self._is_watcher, asyncio.all_tasks())])
            await _end(tasks)
        for each in tasks:
            if each.done() and not each.cancelled() and (error := each.exception()):
                raise error

    def _is_watcher(self, task: asyncio.Task[Any]) -> bool:
        """Whether kopf watches a kind of the namespace in a task, by the name that it gives it."""
        name = task.get_name()
        return name.startswith("watcher for ") and name.endswith(f"@{self.namespace}")

    def _observed(self, kind: Kind, event: Mapping[str, Any]) -> None:
        self._listing.set()
        self._observe(kind, event)

    async def _until_listed(self) -> None:
        give_up_at = time.monotonic() + LONGEST_START_S
        while time.monotonic() < give_up_at:
            self._listing.clear()
            try:
                async with asyncio.timeout(QUIET_S):
                    await self._listing.wait()
            except TimeoutError:
                return


async def _end(tasks: Collection[asyncio.Task[Any]]) -> None:
    for each in tasks:
        each.cancel()
    if tasks:
        await asyncio.wait(tasks, timeout=END_S)


async def _until_installed(watched: _Watched, served: Served, *, complete: bool) -> bool:
    """Run kopf; whether it was ended as a definition was installed that it does not watch."""
    installed = asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        if not complete:
            waiting = tasks.create_task(_await_definitions(watched.namespace, served, installed))
        try:
            await watched.run(installed)
        finally:
            if not complete:
                waiting.cancel()
    return installed.is_set()


async def _await_definitions(
    namespace: str | None, served: Served, installed: asyncio.Event
) -> None:
    while not installed.is_set():
        await asyncio.sleep(served.every_s)
        try:
            if await asyncio.to_thread(served.check, namespace):
                installed.set()
        except KubeError as error:
            logger.debug("Definitions unknown: namespace=%s %s", namespace or "(all)", error)


async def log_in(settings: kopf.OperatorSettings, **_: Any) -> kopf.ConnectionInfo | None:
    """As the pod's service account, or as kubectl would.

    Not in a thread: kopf would keep one for each namespace.
    """
    return kopf.login_with_service_account(settings=settings) or kopf.login_with_kubeconfig(
        settings=settings
    )


def settings() -> kopf.OperatorSettings:
    """kopf without anything but watching."""
    chosen = kopf.OperatorSettings()
    chosen.posting.enabled = False
    # It kills the process so long after the watches of one namespace have ended.
    chosen.process.ultimate_exiting_timeout = None
    # Without this it watches namespaces and CRDs, which needs rights on the whole cluster.
    chosen.scanning.disabled = True
    chosen.watching.chunk_size = PAGE
    chosen.queueing.idle_timeout = IDLE_S
    chosen.watching.server_timeout = SERVER_TIMEOUT_S
    chosen.watching.client_timeout = CLIENT_TIMEOUT_S
    # By the API server: what others have in the namespace is neither sent nor kept.
    for kind, selector in OWNED.items():
        chosen.watching.label_selectors[(*kind.group_and_version, kind.plural)] = selector
    return chosen
