"""The operator as a process, against an API server over HTTP."""

from __future__ import annotations

import functools
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import kubernetes
import pytest

from barnabas_operator.handlers.leadership import Leadership
from barnabas_operator.handlers.operator import Environment, Passes, Stopping
from barnabas_operator.kube import ApiServer, Document
from barnabas_operator.reconcile.reconciler import RESYNC_S
from tests.operator import examples
from tests.operator.api_server import Server, kubeconfig, serving
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
    server: Server,
    directory: Path,
    namespaces: str = "default",
    resync_s: float = 0.2,
    release: str = "operators",
) -> subprocess.Popen[str]:
    """An operator whose token is its namespace."""
    path = kubeconfig(server.address, directory, release)
    variables = {
        **os.environ,
        **IMAGES,
        "KUBECONFIG": str(path),
        "WATCH_NAMESPACES": namespaces,
        "BARNABAS_POD_NAMESPACE": release,
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


def test_passes_wait_for_the_first_list_of_their_namespace() -> None:
    """Before it each one would list every watched namespace: all resources, many times at once.

    One that cannot be listed is waited for until the others were.
    """
    environment = Environment.of({**IMAGES, "WATCH_NAMESPACES": "default,gone,later"})
    with serving(MemoryKube(*examples.quickstart())) as server:
        configuration = kubernetes.client.Configuration(host=server.address)
        kube = ApiServer(kubernetes.client.ApiClient(configuration))
        passes = Passes(
            environment,
            kube,
            leadership=Leadership(kube, namespaces=(), identity="a", changed=lambda *_, **__: None),
            stopping=Stopping(),
            expiries=lambda *_: None,
            user_expiries=lambda *_: None,
        )
        assert not any(map(passes.is_listed, environment.namespaces))
        # They name clusters that are never listed.
        assert passes.is_listed("unwatched")
        server.forbidden.add("gone")
        assert passes.find().errors.keys() == {"gone"}
    assert all(map(passes.is_listed, environment.namespaces))


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


def _in(namespace: str) -> list[Document]:
    """The cluster of the quickstart in a namespace, and its topic."""
    documents = [examples.cluster(), examples.topic("orders")]
    for each in documents:
        each["metadata"].update(namespace=namespace)
        each["metadata"]["uid"] = f"{each['metadata']['uid']}-{namespace}"
    return documents


def _writers(server: Server, namespace: str) -> set[str]:
    """Who wrote in a namespace: anything but Leases, which are written to find out, and events."""
    root = f"/namespaces/{namespace}/"
    return {
        token
        for token, path in server.writers
        if root in path and "/leases" not in path and "/events" not in path
    }


def _standby_notes(kube: MemoryKube) -> set[tuple[str, str]]:
    """On which clusters there is an event of a standby, and what it says."""
    events = [body for (kind, _, _), body in kube.objects.items() if kind == "Event"]
    return {
        (body["regarding"]["namespace"], body["note"])
        for body in events
        if (body["reason"], body["regarding"]["kind"]) == ("Standby", "KafkaCluster")
    }


@contextmanager
def _installed(
    server: Server, directory: Path, namespaces: str, release: str
) -> Iterator[subprocess.Popen[str]]:
    """An operator that is killed in the end, if it was not before."""
    with _start(server, directory, namespaces, release=release) as process:
        try:
            yield process
        finally:
            process.kill()


def _mended(kube: MemoryKube, *namespaces: str) -> None:
    """A Service that is lost is created again in each namespace."""
    for namespace in namespaces:
        place = ("Service", namespace, "quickstart-bootstrap")
        # One that was killed may not have created it again.
        if place in kube.objects:
            kube.remove("Service", "quickstart-bootstrap", namespace)
        wait_for(
            f"the Service in {namespace}",
            functools.partial(kube.objects.__contains__, place),
            until=bool,
        )


def _expire(kube: MemoryKube, namespace: str, name: str) -> None:
    """Nobody waits for as long as the Lease of one that was killed lasts."""
    kube.edit(
        "Lease", name, lambda body: body["spec"].update(leaseDurationSeconds=1), namespace=namespace
    )


def test_two_operators_of_all_namespaces(tmp_path: Path) -> None:
    """In namespaces of their own: one acts, the other says so, and follows when that is killed."""
    kube = MemoryKube(*_in("x"), *_in("y"))
    with (
        serving(kube) as server,
        _installed(server, tmp_path, "", "first") as first,
    ):
        _read_until(first, lambda line: "StatefulSet quickstart-broker: missing" in line)
        _read_until(first, lambda line: "StatefulSet quickstart-broker: missing" in line)
        with _installed(server, tmp_path, "", "second") as second:
            log = _read_until(second, lambda line: "Standby" in line)
            assert "Became the leader" not in log
            notes = wait_for(
                "events of the standby", lambda: _standby_notes(kube), until=lambda n: len(n) == 2
            )
            assert {namespace for namespace, _ in notes} == {"x", "y"}
            assert all(
                "operator second/barnabas-operator stands by: first/barnabas-operator/" in note
                for _, note in notes
            )
            _mended(kube, "x", "y")
            assert [_writers(server, each) for each in ("x", "y")] == [{"first"}, {"first"}]
            first.kill()
            first.wait(seconds(START))
            server.writers.clear()
            _expire(kube, "default", "barnabas-operator-all-namespaces")
            _mended(kube, "x", "y")
    assert [_writers(server, each) for each in ("x", "y")] == [{"second"}, {"second"}]


def test_an_operator_of_all_namespaces_and_one_of_a_single_namespace(tmp_path: Path) -> None:
    """Each acts where it holds the Lease; what one has is the other's when that is killed."""
    kube = MemoryKube(*_in("x"), *_in("y"))
    foreign = examples.topic("foreign", clusterNamespace="x")
    foreign["metadata"].update(namespace="y", uid="foreign")
    kube.put(foreign)
    with (
        serving(kube) as server,
        _installed(server, tmp_path, "x", "one") as one,
    ):
        _read_until(one, lambda line: "StatefulSet quickstart-broker: missing" in line)
        with _installed(server, tmp_path, "", "every") as every:
            _read_until(every, lambda line: "StatefulSet quickstart-broker: missing" in line)
            (note,) = wait_for("an event", lambda: _standby_notes(kube), until=bool)
            assert note[0] == "x"
            assert "operator every/barnabas-operator stands by: one/barnabas-operator/" in note[1]
            refused = wait_for(
                "the status of the topic whose cluster is the other's",
                lambda: kube.find("KafkaTopic", "foreign", "y").get("status", {}),
                until=bool,
            )
            (ready,) = [each for each in refused["conditions"] if each["type"] == "Ready"]
            assert ready["reason"] == "NamespaceNotWatched"
            assert "another operator acts in namespace x" in ready["message"]
            assert (_writers(server, "x"), _writers(server, "y")) == ({"one"}, {"every"})
            one.kill()
            one.wait(seconds(START))
            server.writers.clear()
            _expire(kube, "x", "barnabas-operator")
            _mended(kube, "x")
            assert _writers(server, "x") == {"every"}
