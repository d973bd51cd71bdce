"""What a failed scenario leaves behind: logs, events and resources as files."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from e2e.cluster import Cluster
from e2e.commands import CommandError

RESOURCES: Final = (
    "kafkaclusters,kafkatopics,kafkausers,kafkapipelines,statefulsets,deployments,pods,services,endpoints,"
    "configmaps,persistentvolumeclaims,poddisruptionbudgets"
)


def collect(cluster: Cluster, directory: Path, namespaces: Sequence[str]) -> None:
    """Write down how everything is now; what cannot be had is noted in its file instead."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    _keep(cluster, directory / "nodes.txt", "describe", "nodes")
    for name in namespaces:
        here = directory / name
        here.mkdir()
        of = ("-n", name)
        _keep(cluster, here / "overview.txt", "get", RESOURCES, "-o", "wide", *of)
        _keep(cluster, here / "resources.yaml", "get", RESOURCES, "-o", "yaml", *of)
        _keep(cluster, here / "events.txt", "get", "events", "--sort-by=.lastTimestamp", *of)
        _keep(cluster, here / "pods.txt", "describe", "pods", *of)
        for pod in _pods(cluster, name):
            log = ("logs", pod, "--all-containers", "--timestamps", *of)
            _keep(cluster, here / f"{pod}.log", *log)
            _keep(cluster, here / f"{pod}.previous.log", *log, "--previous")


def _pods(cluster: Cluster, namespace: str) -> list[str]:
    try:
        path = "jsonpath={.items[*].metadata.name}"
        return cluster.kubectl("get", "pods", "-n", namespace, "-o", path).split()
    except CommandError:
        return []


def _keep(cluster: Cluster, path: Path, *arguments: str) -> None:
    try:
        path.write_bytes(cluster.kubectl_bytes(*arguments))
    except CommandError as error:
        path.write_text(f"{error}\n", encoding="utf-8")
