"""The memory of the operator as a process, with kopf's watches of many listed namespaces.

    python -m benchmarks.operator_process --clusters 500 --topics 20 [--seconds 180]

As benchmarks.operator_load, with the operator as it is started in its image and 50 namespaces that
it watches. What it asks of Kafka clusters is answered in its own memory. Printed every ten seconds:
the resident memory and its maximum, threads, CPU time.
"""

from __future__ import annotations

import argparse
import os
import pickle
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final, cast

from barnabas_operator.handlers import operator
from barnabas_operator.handlers.clients import Clients
from barnabas_operator.kube import LEASES, Document, Kind
from benchmarks.operator_load import RSS_BAR_MIB, LateRequest, ManyKubes, key_of
from tests.operator.api_server import Server, kubeconfig
from tests.operator.memory_kube import MemoryKube
from tests.operator.ports import IMAGES, MemoryBrokers, context_on

EVERY_S: Final = 10.0
BACKLOG: Final = 1024


class Cluster(ManyKubes):
    """With Leases and Events, which are of no cluster."""

    def __init__(self, clusters: int, topics: int) -> None:
        super().__init__(clusters, topics)
        self._rest = MemoryKube()
        self.objects, self.put = self._rest.objects, self._rest.put

    def get(self, kind: Kind, namespace: str, name: str) -> Document | None:
        """See Kube."""
        kube = self._rest if kind is LEASES else self._of(name)
        return kube.get(kind, namespace, name)


class StoredBrokers(MemoryBrokers):
    """A Kafka cluster that is loaded from a file when it is connected to."""

    def close(self) -> None:
        """See AdminBrokers."""


def serve(clusters: int, topics: int, directory: Path) -> None:
    """Be the API server until killed; tells its address in a line."""
    kubes = Cluster(clusters, topics)
    for cluster, brokers in kubes.brokers.items():
        stored = StoredBrokers(views=brokers.views, view=brokers.view)
        (directory / cluster).write_bytes(pickle.dumps(stored))
    server = Server(cast(MemoryKube, kubes))
    server.RequestHandlerClass = LateRequest
    server.socket.listen(BACKLOG)
    print(server.address, flush=True)
    server.serve_forever()


def operate(directory: Path) -> None:
    """Be the operator, on Kafka clusters in memory."""

    def connect(at: Any) -> Any:
        return pickle.loads((directory / at.servers.partition("-")[0]).read_bytes())

    answers = context_on(cast(Any, None))
    patched: Any = operator
    patched.Clients = lambda _, limit: Clients(connect, limit)
    patched.progress.ask = answers.progress
    patched.ensemble.mode = answers.ensemble_mode
    for name in ("restart_check", "in_sync", "recovery"):
        setattr(patched.restart_check, name, getattr(answers, name))
    operator.run(operator.Environment.of(os.environ))


def environment(directory: Path, address: str, clusters: int) -> dict[str, str]:
    """The operator's variables."""
    namespaces = sorted({key_of(number).namespace for number in range(clusters)})
    return {
        **os.environ,
        "KUBECONFIG": str(kubeconfig(address, directory, "operator")),
        "WATCH_NAMESPACES": ",".join(namespaces),
        "BARNABAS_HEALTH_PORT": "0",
        "BARNABAS_BROKER_IMAGE": IMAGES.broker,
        "BARNABAS_ZOOKEEPER_IMAGE": IMAGES.zookeeper,
        "BARNABAS_PIPELINE_IMAGE": IMAGES.pipeline,
    }


def state(process: int) -> dict[str, str]:
    """Of a process, as the kernel has it."""
    lines = Path(f"/proc/{process}/status").read_text(encoding="ascii").splitlines()
    fields = dict(line.split(":", 1) for line in lines)
    return {name: fields[name].strip() for name in ("VmRSS", "VmHWM", "Threads")}


def measure(directory: Path, address: str, clusters: int, seconds: float) -> None:
    """Print the memory of an operator for so long, and then whether the bar is met."""
    command = [sys.executable, "-m", "benchmarks.operator_process", "--operate", str(directory)]
    with (
        (directory / "log").open("w", encoding="utf-8") as log,
        subprocess.Popen(
            command, env=environment(directory, address, clusters), stderr=log
        ) as process,
    ):
        try:
            began, now = time.monotonic(), {"VmHWM": "0 kB"}
            while time.monotonic() - began < seconds and process.poll() is None:
                time.sleep(EVERY_S)
                now = state(process.pid)
                print(f"{time.monotonic() - began:.0f} s", now, flush=True)
        finally:
            process.kill()
    highest = int(now["VmHWM"].split()[0]) / 1024
    verdict = "met" if highest <= RSS_BAR_MIB else "MISSED"
    print(f"memory of at most {RSS_BAR_MIB} MiB: {verdict}, {highest:.0f} MiB at most")


def main() -> int:
    """Start both processes and measure one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clusters", type=int, default=500)
    parser.add_argument("--topics", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=180.0)
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--operate", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.operate:
        operate(given.operate)
        return 0
    if given.serve:
        serve(given.clusters, given.topics, given.serve)
        return 0
    sizes = ["--clusters", str(given.clusters), "--topics", str(given.topics)]
    with tempfile.TemporaryDirectory() as directory:
        command = [sys.executable, "-m", "benchmarks.operator_process", "--serve", directory]
        with subprocess.Popen([*command, *sizes], stdout=subprocess.PIPE, text=True) as server:
            try:
                assert server.stdout is not None
                address = server.stdout.readline().strip()
                measure(Path(directory), address, given.clusters, given.seconds)
            finally:
                server.kill()
    return 0


if __name__ == "__main__":
    sys.exit(main())
