"""The operator as a process, against an API server over HTTP."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from barnabas_operator.handlers.operator import Environment
from barnabas_operator.reconcile.reconciler import RESYNC_S
from tests.operator import examples
from tests.operator.api_server import Server, serving
from tests.operator.memory_kube import MemoryKube
from tests.waiting import RUN, START, seconds, wait_for

IMAGES = {
    f"BARNABAS_{component}_IMAGE": f"{component.lower()}:1"
    for component in ("BROKER", "ZOOKEEPER", "PIPELINE")
}
RESOURCES = {"kafkaclusters", "kafkatopics", "kafkausers", "kafkapipelines"}
OWNED = {
    "statefulsets", "services", "configmaps", "poddisruptionbudgets", "pods",
    "persistentvolumeclaims",
}  # fmt: skip
WATCHED = RESOURCES | OWNED


def test_environment() -> None:
    """All namespaces unless some are named, by commas or spaces."""
    environment = Environment.of({**IMAGES, "WATCH_NAMESPACES": "a, b"})
    assert environment.namespaces == ("a", "b")
    assert environment.images.broker == "broker:1"
    assert Environment.of(IMAGES).namespaces == ()
    assert Environment.of(IMAGES).resync_s == RESYNC_S


def test_versions() -> None:
    """The operator's own version has its own images; others are listed as JSON."""
    listed = '{"0.0.9": {"broker": "b:9", "zookeeper": "z:9"}}'
    images = Environment.of({**IMAGES, "BARNABAS_VERSIONS": listed}).images
    assert images.versions == {
        images.operator: {
            "broker": "broker:1",
            "zookeeper": "zookeeper:1",
            "pipeline": "pipeline:1",
            "protocol": "3.9-IV0",
        },
        "0.0.9": {"broker": "b:9", "zookeeper": "z:9"},
    }
    with pytest.raises(ValueError, match="BARNABAS_VERSIONS"):
        Environment.of({**IMAGES, "BARNABAS_VERSIONS": "[]"})
    newer = '{"9": {"broker": "b", "zookeeper": "z", "protocol": "9.9"}}'
    with pytest.raises(ValueError, match="protocol of 9"):
        Environment.of({**IMAGES, "BARNABAS_VERSIONS": newer})


def test_an_image_that_is_not_named() -> None:
    """Told before anything starts."""
    with pytest.raises(ValueError, match="BARNABAS_BROKER_IMAGE is not set"):
        Environment.of({})


def _start(
    server: Server, directory: Path, namespaces: str = "default", resync_s: float = 0.2
) -> subprocess.Popen[str]:
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": server.address}}],
        "users": [{"name": "c", "user": {"token": "t"}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
    }
    path = directory / "kubeconfig"
    path.write_text(yaml.safe_dump(config))
    variables = {
        **os.environ,
        **IMAGES,
        "KUBECONFIG": str(path),
        "WATCH_NAMESPACES": namespaces,
        "BARNABAS_RESYNC_SECONDS": str(resync_s),
        "BARNABAS_HEALTH_PORT": "0",
    }
    return subprocess.Popen(
        [sys.executable, "-m", "barnabas_operator"],
        env=variables,
        stderr=subprocess.PIPE,
        text=True,
    )


def _read_until(process: subprocess.Popen[str], holds: Callable[[str], bool]) -> str:
    """The log up to the line for which it holds."""
    assert process.stderr is not None
    log = ""
    for line in process.stderr:
        log += line
        if holds(line):
            return log
    raise AssertionError(f"the operator ended:\n{log}")


def test_it_makes_a_cluster_mends_it_and_leaves_nothing_behind(tmp_path: Path) -> None:
    """From the resources to the objects, again after a loss, without finalizer or annotation."""
    kube = MemoryKube(*examples.quickstart())
    with serving(kube) as server, _start(server, tmp_path) as process:
        try:
            _read_until(process, lambda line: "StatefulSet quickstart-broker: missing" in line)
            assert all(server.watches.acquire(timeout=seconds(START)) for _ in WATCHED)
            kube.remove("Service", "quickstart-bootstrap")
            _read_until(process, lambda line: "Service quickstart-bootstrap: missing" in line)
        finally:
            process.send_signal(signal.SIGTERM)
            log = process.stderr.read() if process.stderr else ""
            status = process.wait(seconds(START))
    assert status == 0, log
    for kind in ("KafkaCluster", "KafkaTopic", "KafkaPipeline"):
        for (found, _, _), body in kube.objects.items():
            if found == kind:
                assert "finalizers" not in body["metadata"]
                assert "annotations" not in body["metadata"]
                assert body["status"]["conditions"]
    watches = [path for _, path, _ in server.seen if "watch=" in path]
    assert {_plural(path) for path in watches} == WATCHED
    # What others have in the namespace is not asked for.
    assert {_plural(path) for path in watches if "labelSelector=" in path} == OWNED


def _plural(path: str) -> str:
    return path.split("?")[0].rsplit("/", 1)[1]


def test_a_deleted_namespace_does_not_stop_the_others(tmp_path: Path) -> None:
    """Its role went with it, so every read there is refused: at the start, and ever after."""
    with (
        serving(MemoryKube(*examples.quickstart())) as server,
        _start(server, tmp_path, "gone,default") as process,
    ):
        server.forbidden.add("gone")
        try:
            log = _read_until(process, lambda line: "quickstart-broker: missing" in line)
            assert all(server.watches.acquire(timeout=seconds(START)) for _ in WATCHED)
        finally:
            process.send_signal(signal.SIGTERM)
            log += process.stderr.read() if process.stderr else ""
            status = process.wait(seconds(START))
    assert status == 0, log
    assert "Listing failed: namespace=gone" in log
    assert "Watch failed: namespace=gone" in log


def test_a_definition_that_is_not_installed_stops_nothing(tmp_path: Path) -> None:
    """Helm does not upgrade definitions: without that of KafkaUsers everything else is served.

    KafkaUsers are watched as soon as their definition is installed.
    """
    with serving(MemoryKube(*examples.quickstart())) as server:
        server.absent.add("kafkausers")
        with _start(server, tmp_path) as process:
            try:
                log = _read_until(process, lambda line: "quickstart-broker: missing" in line)
                rest = WATCHED - server.absent
                assert all(server.watches.acquire(timeout=seconds(START)) for _ in rest)
                server.absent.clear()
                log += _read_until(process, lambda line: "Definitions installed" in line)
                assert all(server.watches.acquire(timeout=seconds(START)) for _ in WATCHED)
            finally:
                process.send_signal(signal.SIGTERM)
                log += process.stderr.read() if process.stderr else ""
                status = process.wait(seconds(START))
    assert status == 0, log
    assert "failed" not in log


def test_a_watch_that_is_too_old_lists_again(tmp_path: Path) -> None:
    """410 Gone in the middle: what came before the new list is seen without a resync."""
    kube = MemoryKube(*examples.quickstart())
    with serving(kube) as server, _start(server, tmp_path, resync_s=seconds(RUN)) as process:
        try:
            log = _read_until(process, lambda line: "quickstart-broker: missing" in line)
            assert all(server.watches.acquire(timeout=seconds(START)) for _ in WATCHED)
            kube.put(examples.topic("late"))
            server.gone["kafkatopics"].set()
            wait_for(
                "the status of the late topic",
                lambda: kube.find("KafkaTopic", "late").get("status"),
                until=bool,
            )
            assert server.watches.acquire(timeout=seconds(START))
        finally:
            process.send_signal(signal.SIGTERM)
            log += process.stderr.read() if process.stderr else ""
            status = process.wait(seconds(START))
    assert status == 0, log
    assert "failed" not in log


def test_a_second_operator_waits_and_takes_over(tmp_path: Path) -> None:
    """It writes nothing while the first one leads, and acts at once when that one ends."""
    kube = MemoryKube(*examples.quickstart())
    with serving(kube) as server, _start(server, tmp_path) as first:
        _read_until(first, lambda line: "quickstart-broker: missing" in line)
        with _start(server, tmp_path) as second:
            try:
                log = _read_until(second, lambda line: "Standby" in line)
                assert "Became the leader" not in log
                first.send_signal(signal.SIGTERM)
                rest = first.stderr.read() if first.stderr else ""
                assert first.wait(seconds(START)) == 0, rest
                kube.remove("Service", "quickstart-bootstrap")
                _read_until(second, lambda line: "Became the leader" in line)
                _read_until(second, lambda line: "Service quickstart-bootstrap: missing" in line)
            finally:
                second.send_signal(signal.SIGTERM)
                rest = second.stderr.read() if second.stderr else ""
                status = second.wait(seconds(START))
    assert status == 0, rest
    notes = [body["note"] for (kind, _, _), body in kube.objects.items() if kind == "Event"]
    assert any("StatefulSet quickstart-broker: missing" in note for note in notes)
