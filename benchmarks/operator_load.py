"""The operator with many clusters: a steady round, and a change while other clusters hang.

    python -m benchmarks.operator_load --clusters 500 --topics 20 [--out README.md]

A second process is the API server: the one of the tests, each answer 20 ms late. This process runs
the operator's controller, index and client of the API server; Kafka clusters are in its memory. A
cluster that hangs answers each of its clients after ten seconds with an error. Changes are put into
the work queue and the index where a watch would put them, so the time of the watch is not in the
figures. What the operator does now and then, whole passes and lists, is measured by itself.
"""

from __future__ import annotations

import argparse
import asyncio
import collections
import dataclasses
import datetime
import itertools
import json
import os
import random
import shlex
import statistics
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, cast

import kubernetes

from barnabas_operator.brokers import Brokers, BrokersError
from barnabas_operator.handlers.controller import Controller
from barnabas_operator.handlers.health import Health
from barnabas_operator.handlers.metrics import Metrics
from barnabas_operator.handlers.operator import RELIST_S
from barnabas_operator.handlers.resource_index import ResourceIndex
from barnabas_operator.kube import CLUSTERS, TOPICS, ApiServer, Document, Kind
from barnabas_operator.plan.topics import TopicView
from barnabas_operator.reconcile.reconciler import RESYNC_S, Key, find_keys, index_owned, reconcile
from barnabas_operator.reconcile.steady import FULL_PASS_S, SteadyClusters
from tests.operator import examples
from tests.operator.api_server import ApiRequest, Server
from tests.operator.memory_kube import MemoryKube
from tests.operator.ports import MemoryBrokers, context_on

LATENCY_S: Final = 0.02
HANG_S: Final = 10.0
PER_NAMESPACE: Final = 10
HANGING: Final = 20
CHANGES: Final = 100
BETWEEN_S: Final = 0.05
CPU_BAR_S, RSS_BAR_MIB, REACTION_BAR_S = 1.0, 200, 2.0


def key_of(number: int) -> Key:
    """The cluster of a number; its name begins the names of all that is its."""
    return Key(f"ns{number // PER_NAMESPACE:03}", f"c{number:04}")


def settled(key: Key, topics: int) -> tuple[MemoryKube, MemoryBrokers]:
    """A cluster and its topics, reconciled until nothing is left to do."""
    documents = [examples.cluster()]
    documents += [examples.topic(f"{key.cluster}-t{number:02}") for number in range(topics)]
    for document in documents:
        document["metadata"]["namespace"] = key.namespace
        if document["kind"] == "KafkaTopic":
            document["spec"].update(cluster=key.cluster, topicName=document["metadata"]["name"])
        else:
            document["metadata"].update(name=key.cluster, uid=f"uid-of-{key.cluster}")
    kube, brokers = MemoryKube(*documents), MemoryBrokers()
    for _ in range(2):
        reconcile(key, context_on(kube, brokers))
        kube.settle()
    kube.writes.clear()
    reconcile(key, context_on(kube, brokers))
    assert kube.writes == [], kube.writes
    return kube, brokers


class ManyKubes:
    """A MemoryKube for each cluster, found by how names and label values begin."""

    def __init__(self, clusters: int, topics: int) -> None:
        keys = map(key_of, range(clusters))
        made = {key.cluster: settled(key, topics) for key in keys}
        self.kubes = {cluster: kube for cluster, (kube, _) in made.items()}
        self.brokers = {cluster: brokers for cluster, (_, brokers) in made.items()}
        self.namespaces = collections.defaultdict(list)
        for number in range(clusters):
            key = key_of(number)
            self.namespaces[key.namespace].append(self.kubes[key.cluster])

    def list(self, kind: Kind, namespace: str, labels: Mapping[str, str]) -> list[Document]:
        """See Kube."""
        named = [self.kubes[value] for value in labels.values() if value in self.kubes]
        kubes = named[:1] or self.namespaces[namespace]
        return [document for kube in kubes for document in kube.list(kind, namespace, labels)]

    def get(self, kind: Kind, namespace: str, name: str) -> Document | None:
        """See Kube."""
        return self._of(name).get(kind, namespace, name)

    def apply(self, body: Document, *, uid: str | None = None) -> Document:
        """See Kube."""
        return self._of(body["metadata"]["name"]).apply(body, uid=uid)

    def patch(self, kind: Kind, namespace: str, name: str, body: Document) -> None:
        """See Kube."""
        self._of(name).patch(kind, namespace, name, body)

    def patch_status(self, kind: Kind, namespace: str, name: str, status: Document) -> None:
        """See Kube."""
        self._of(name).patch_status(kind, namespace, name, status)

    def _of(self, name: str) -> MemoryKube:
        return self.kubes[name.partition("-")[0]]


class LateRequest(ApiRequest):
    """Each answer is late; `/stats` counts requests since it was last asked for."""

    disable_nagle_algorithm = True

    def do_GET(self) -> None:  # noqa: N802 - the name is the base class's
        """See ApiRequest."""
        if self.path == "/stats":
            seen, self.server.seen = self.server.seen, []
            self._send(200, dict(collections.Counter(method for method, _, _ in seen)))
        else:
            super().do_GET()

    def _send(self, status: int, body: Any, *, retry_after: str = "") -> None:
        time.sleep(LATENCY_S)
        super()._send(status, body, retry_after=retry_after)


def serve(clusters: int, topics: int) -> None:
    """Be the API server until killed; tells its address in a line."""
    server = Server(cast(MemoryKube, ManyKubes(clusters, topics)))
    server.RequestHandlerClass = LateRequest
    server.request_queue_size = 128
    print(server.address, flush=True)
    server.serve_forever()


class Hanging:
    """Brokers that answer nothing in time."""

    def __getattr__(self, name: str) -> Any:
        """Any of their methods."""

        def hang(*_: object, **__: object) -> None:
            time.sleep(HANG_S)
            raise BrokersError("_TIMED_OUT", "timed out", reachable=False)

        return hang


class Load:
    """The operator's parts on the API server at an address."""

    def __init__(self, address: str, clusters: int) -> None:
        configuration = kubernetes.client.Configuration(host=address)
        configuration.retries = False
        configuration.connection_pool_maxsize = 64
        self.kube = ApiServer(kubernetes.client.ApiClient(configuration))
        self.address = address
        self.keys = [key_of(number) for number in range(clusters)]
        self.index = ResourceIndex()
        self.hanging: set[Key] = set()
        self.ended: dict[Key, float] = {}
        self.changed = threading.Condition()
        self.changes = itertools.count()
        self.namespaces = sorted({key.namespace for key in self.keys})
        self.find = lambda: find_keys(self.kube, self.namespaces, self.index)
        self.steady = SteadyClusters(self.index.revision)
        self._brokers: dict[Key, MemoryBrokers] = {}

    def stats(self) -> dict[str, int]:
        """Requests since the last call, by method."""
        with urllib.request.urlopen(f"{self.address}/stats", timeout=HANG_S) as answer:
            counts: dict[str, int] = json.load(answer)
        counts.pop("stats", None)
        return counts

    def brokers(self, key: Key) -> Brokers:
        """The cluster as its topics' statuses have it."""
        if key in self.hanging:
            return cast(Brokers, Hanging())
        if key not in self._brokers:
            views = {}
            for topic in self.index.named(TOPICS, key.namespace, key.cluster) or ():
                status, spec = topic["status"], topic["spec"]
                name = status["topicName"]
                views[name] = TopicView(
                    name=name, topic_id=status["topicId"], partitions=status["partitions"],
                    replicas=status["replicas"], config=dict(spec.get("config") or {}),
                )  # fmt: skip
            self._brokers[key] = MemoryBrokers(views=views)
        return self._brokers[key]

    def work(self, key: Key) -> float:
        """One pass."""
        context = context_on(self.kube, self.brokers(key))
        self.steady.reconcile(key, dataclasses.replace(context, index=self.index.named))
        with self.changed:
            self.ended[key] = time.monotonic()
            self.changed.notify_all()
        # Only what is asked for is measured.
        return 3600.0

    def change(self, key: Key) -> None:
        """What the watch says of a changed cluster."""
        document = self.kube.get(CLUSTERS, key.namespace, key.cluster)
        assert document is not None
        document["metadata"]["resourceVersion"] = f"changed-{next(self.changes)}"
        self.index.observe(CLUSTERS, {"type": "MODIFIED", "object": document})

    def wait(self, keys: list[Key], since: float) -> None:
        """Until each of them has had a pass that ended later."""
        with self.changed:
            done = self.changed.wait_for(
                lambda: all(self.ended.get(key, 0.0) > since for key in keys), timeout=900
            )
        assert done, "passes did not end"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Cost:
    """Of something that was done: seconds, CPU seconds, and requests to the API server."""

    seconds: float
    cpu: float
    requests: dict[str, int]

    @property
    def row(self) -> str:
        """As cells of a table."""
        reads = self.requests.get("GET", 0)
        return f"{self.seconds:.1f} s | {self.cpu:.2f} s | {reads} | {self.writes}"

    @property
    def writes(self) -> int:
        """All requests but reads."""
        return sum(count for method, count in self.requests.items() if method != "GET")


async def measured(load: Load, work: Callable[[], object]) -> Cost:
    """What work costs, in a thread."""
    load.stats()
    began, cpu = time.monotonic(), time.process_time()
    await asyncio.to_thread(work)
    seconds, cpu = time.monotonic() - began, time.process_time() - cpu
    return Cost(seconds=seconds, cpu=cpu, requests=load.stats())


async def measure(load: Load) -> dict[str, Any]:
    """The figures."""
    controller = Controller(load.work, load.find, Metrics(Health()), resync_s=3600.0)
    running = asyncio.create_task(controller.run())

    async def a_round() -> Cost:
        began = time.monotonic()
        for key in load.keys:
            controller.add(key, changed=False)
        return await measured(load, lambda: load.wait(load.keys, began))

    began = time.monotonic()
    first = await measured(load, lambda: load.wait(load.keys, began))
    owned = await measured(load, lambda: index_owned(load.kube, load.namespaces, load.index))
    whole = await a_round()
    steady = await a_round()
    rss = rss_mib()
    resync = await measured(load, load.find)
    load.hanging = set(load.keys[:HANGING])
    for key in load.hanging:
        controller.add(key)
    healthy = load.keys[HANGING:]
    generator = random.Random(1)
    reactions = []
    for _ in range(CHANGES):
        key = generator.choice(healthy)
        load.change(key)
        began = time.monotonic()
        controller.add(key)
        await asyncio.to_thread(load.wait, [key], began)
        reactions.append(time.monotonic() - began)
        await asyncio.sleep(BETWEEN_S)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    costs = {"first": first, "owned": owned, "whole": whole, "steady": steady, "resync": resync}
    return {**costs, "rss_mib": rss, "reactions": sorted(reactions)}


def rss_mib() -> float:
    """Of this process, now."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


def report(figures: dict[str, Any], clusters: int, topics: int) -> str:
    """The result file."""
    words = shlex.join(["python", "-m", "benchmarks.operator_load", *sys.argv[1:]])
    today = datetime.datetime.now(tz=datetime.UTC).date()
    reactions, steady, rss = figures["reactions"], figures["steady"], figures["rss_mib"]
    p99 = statistics.quantiles(reactions, n=100)[98]

    whole_passes = f"once in {FULL_PASS_S / 120:.0f} to {FULL_PASS_S / 60:.0f} minutes"

    def verdict(*, met: bool) -> str:
        return "met" if met else "MISSED"

    return f"""# The operator with {clusters} clusters and {clusters * topics} topics

`{words}`, {today}, load {os.getloadavg()[0]:.0f}, {os.cpu_count()} cores

| | Time | CPU | Reads | Writes |
|---|---|---|---|---|
| first round after a start, lists of all resources with it | {figures["first"].row} |
| a steady round over all clusters | {steady.row} |
| a round that reads everything, {whole_passes} | {figures["whole"].row} |
| a resync, every {RESYNC_S:.0f} s | {figures["resync"].row} |
| a list of everything that is owned, every {RELIST_S / 60:.0f} minutes | {figures["owned"].row} |

| | |
|---|---|
| memory (RSS), without kopf | {rss:.0f} MiB |
| a change while {HANGING} clusters hang, p50 | {statistics.median(reactions):.2f} s |
| p99 | {p99:.2f} s |
| largest of {len(reactions)} | {reactions[-1]:.2f} s |

* nothing written in a steady round: {verdict(met=steady.writes == 0)}
* a steady round takes at most {CPU_BAR_S:.0f} CPU-s: {verdict(met=steady.cpu <= CPU_BAR_S)}
* memory of at most {RSS_BAR_MIB} MiB, without kopf: {verdict(met=rss <= RSS_BAR_MIB)}
* a change is acted on within {REACTION_BAR_S:.0f} s at p99: {verdict(met=p99 <= REACTION_BAR_S)}
"""


def main() -> int:
    """Measure, print, and write the result file if one is named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clusters", type=int, default=500)
    parser.add_argument("--topics", type=int, default=20)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        serve(arguments.clusters, arguments.topics)
        return 0
    sizes = ["--clusters", str(arguments.clusters), "--topics", str(arguments.topics)]
    command = [sys.executable, "-m", "benchmarks.operator_load", "--serve", *sizes]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            address = server.stdout.readline().strip()
            figures = asyncio.run(measure(Load(address, arguments.clusters)))
        finally:
            server.kill()
    text = report(figures, arguments.clusters, arguments.topics)
    print(text)
    if arguments.out:
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        arguments.out.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
