"""The operator put together: ports, loop and watches, as the environment says."""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import kopf

from barnabas_operator import progress, standing
from barnabas_operator.brokers import AdminBrokers
from barnabas_operator.handlers.events import register, settings
from barnabas_operator.handlers.shell import Loop
from barnabas_operator.kube import ApiServer, KubeError
from barnabas_operator.plan.clusters import Images
from barnabas_operator.reconcile.context import Context
from barnabas_operator.reconcile.passes import RESYNC_S, Key, all_keys, reconcile

HEALTH_PORT: Final = 8080
# A client keeps connections and threads; a few clusters' worth of them is kept.
CLIENTS: Final = 32
SERVED_WAIT_S: Final = 2.0

LOG: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """What the operator is told from outside."""

    images: Images
    namespaces: tuple[str, ...]
    resync_s: float
    health_port: int

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
            images=Images(**images),
            namespaces=tuple(listed),
            resync_s=float(variables.get("BARNABAS_RESYNC_SECONDS", RESYNC_S)),
            health_port=int(variables.get("BARNABAS_HEALTH_PORT", HEALTH_PORT)),
        )


async def run(environment: Environment) -> None:
    """Run until a signal ends it."""
    kube = ApiServer.connect()
    brokers = functools.lru_cache(CLIENTS)(AdminBrokers)

    def work(key: Key) -> float:
        now = datetime.now(tz=UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        context = Context(
            kube=kube,
            brokers=brokers,
            progress=progress.ask,
            may_restart=standing.may_restart,
            has_caught_up=standing.has_caught_up,
            images=environment.images,
            now=now,
        )
        return reconcile(key, context)

    def existing() -> frozenset[Key]:
        return all_keys(kube, environment.namespaces or (None,))

    await _until_served(existing)
    loop = Loop(work, existing, resync_s=environment.resync_s)
    worker = asyncio.create_task(loop.run())
    watching = asyncio.create_task(
        kopf.operator(
            registry=register(loop.ask),
            settings=settings(),
            standalone=True,
            clusterwide=not environment.namespaces,
            namespaces=environment.namespaces,
            liveness_endpoint=f"http://0.0.0.0:{environment.health_port}/healthz",
        )
    )
    done, running = await asyncio.wait({worker, watching}, return_when=asyncio.FIRST_COMPLETED)
    for task in running:
        task.cancel()
    await asyncio.gather(*running, return_exceptions=True)
    for task in done:
        task.result()


async def _until_served(existing: Callable[[], frozenset[Key]]) -> None:
    """Wait for the custom resources to be there: kopf looks for them once, when it starts."""
    while True:
        try:
            await asyncio.to_thread(existing)
        except KubeError as error:
            LOG.warning("waiting for the custom resources: %s", error)
            await asyncio.sleep(SERVED_WAIT_S)
        else:
            return
