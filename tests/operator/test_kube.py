"""The port on the API server, over HTTP."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import kubernetes
import pytest

from barnabas_operator.kube import (
    CLOCK_SKEW,
    CLUSTERS,
    CONFIG_MAPS,
    NAMESPACES,
    PAGE_BYTES,
    PODS,
    SERVICES,
    TOPICS,
    ApiServer,
    KubeError,
)
from tests.operator import examples
from tests.operator.api_server import APPLY, MERGE, Server, serving
from tests.operator.memory_kube import MemoryKube
from tests.operator.test_answers import pod

CONFIG_MAP = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "c", "namespace": "default", "labels": {"a": "b"}},
    "data": {"key": "value"},
}


@pytest.fixture
def server() -> Iterator[Server]:
    """An API server with the quickstart in it."""
    with serving(MemoryKube(*examples.quickstart())) as running:
        yield running


@pytest.fixture
def kube(server: Server) -> Iterator[ApiServer]:
    """The port on it."""
    configuration = kubernetes.client.Configuration(host=server.address)
    with kubernetes.client.ApiClient(configuration) as client:
        yield ApiServer(client)


def test_objects_and_absence(kube: ApiServer) -> None:
    """What is not there is None, not an error."""
    found = kube.get(CLUSTERS, "default", "quickstart")
    assert found is not None
    assert found["metadata"]["name"] == "quickstart"
    assert kube.get(CLUSTERS, "default", "another") is None


def test_objects_of_no_namespace(kube: ApiServer, server: Server) -> None:
    """A namespace itself: a role in it allows to get it."""
    meta = {"name": "default", "namespace": "", "deletionTimestamp": "2026-01-03T00:00:00Z"}
    server.kube.put({"apiVersion": "v1", "kind": "Namespace", "metadata": meta})
    found = kube.get(NAMESPACES, "", "default")
    assert found is not None
    assert found["metadata"]["deletionTimestamp"]
    assert server.seen[-1][1] == "/api/v1/namespaces/default"
    assert kube.get(NAMESPACES, "", "another") is None


def test_metadata_of_what_a_selector_selects(kube: ApiServer, server: Server) -> None:
    """Without specs and statuses, by a label's value or by the label alone."""
    server.kube.put(CONFIG_MAP)
    server.kube.put({**CONFIG_MAP, "metadata": {"name": "d", "namespace": "default"}})
    for selector in ("a=b", "a"):
        (found,) = kube.metadata(CONFIG_MAPS, None, selector)
        assert found["metadata"]["name"] == "c"
        assert found["metadata"]["resourceVersion"]
        assert "data" not in found
    assert kube.metadata(CONFIG_MAPS, "elsewhere", "a") == []


def test_lists_say_what_their_items_are(kube: ApiServer) -> None:
    """The API server leaves kind and version out of a list's items."""
    topics = kube.list(TOPICS, None)
    assert [each["metadata"]["name"] for each in topics] == ["files", "packages"]
    assert {(each["kind"], each["apiVersion"]) for each in topics} == {
        ("KafkaTopic", "barnabas.io/v1alpha1")
    }
    assert kube.list(TOPICS, "elsewhere") == []


def test_lists_of_large_resources_have_small_pages(kube: ApiServer, server: Server) -> None:
    """Hundreds of a megabyte each would be more memory than the operator has."""
    server.kube.objects.clear()
    names = [f"t{number:02}" for number in range(60)]
    for name in names:
        server.kube.put(examples.large(examples.topic(name)))
    for _ in range(2):
        found = kube.list(TOPICS, "default")
        assert [each["metadata"]["name"] for each in found] == names
        assert max(len(json.dumps(each)) for each in found) < 2000
    limits = [path.partition("limit=")[2].partition("&")[0] for _, path, _ in server.seen]
    first, (second, *_) = limits[:3], limits[3:]
    assert first == ["25"] * 3
    assert int(second) * (1 << 19) <= PAGE_BYTES


def test_lists_of_small_resources_have_ever_larger_pages(kube: ApiServer, server: Server) -> None:
    """Thousands are a few requests."""
    server.kube.objects.clear()
    for number in range(60):
        server.kube.put(examples.topic(f"t{number:02}"))
    for _ in range(3):
        assert len(kube.list(TOPICS, "default")) == 60
    assert len(server.seen) == 3 + 2 + 1


def test_apply_is_server_side_under_our_name(kube: ApiServer, server: Server) -> None:
    """Created without force; changed with force, but only the object with that uid."""
    uid = kube.apply(CONFIG_MAP)["metadata"]["uid"]
    server.kube.edit("ConfigMap", "c", lambda body: body["data"].update(key="theirs"))
    with pytest.raises(KubeError, match='conflicts with "kubectl-edit"') as raised:
        kube.apply(CONFIG_MAP)
    assert raised.value.status == 409
    with pytest.raises(KubeError, match="Precondition failed"):
        kube.apply(CONFIG_MAP, uid="another")
    kube.apply({**CONFIG_MAP, "data": {"key": "new"}}, uid=uid)
    assert server.kube.find("ConfigMap", "c")["data"] == {"key": "new"}
    assert kube.list(CONFIG_MAPS, "default", {"a": "b"})[0]["data"] == {"key": "new"}
    assert kube.list(CONFIG_MAPS, "default", {"a": "c"}) == []
    paths = [path for method, path, content in server.seen if (method, content) == ("PATCH", APPLY)]
    assert paths[0].endswith("/configmaps/c?fieldManager=barnabas-operator")
    assert paths[-1].endswith("/configmaps/c?fieldManager=barnabas-operator&force=true")


def test_a_dry_run_changes_nothing(kube: ApiServer, server: Server) -> None:
    """The API server is asked to check, and told so."""
    kube.apply(CONFIG_MAP, dry_run=True)
    assert kube.get(CONFIG_MAPS, "default", "c") is None
    (path,) = [path for method, path, content in server.seen if content == APPLY]
    assert path.endswith("/configmaps/c?fieldManager=barnabas-operator&dryRun=All")


def test_deletion_is_of_the_one_that_was_seen(kube: ApiServer, server: Server) -> None:
    """Another of the same name stays; one that is gone is no error."""
    made = kube.apply(CONFIG_MAP)
    kube.delete(CONFIG_MAPS, "default", "c", uid="another")
    assert kube.get(CONFIG_MAPS, "default", "c") is not None
    for _ in range(2):
        kube.delete(CONFIG_MAPS, "default", "c", uid=made["metadata"]["uid"])
    assert kube.get(CONFIG_MAPS, "default", "c") is None


def test_an_eviction_is_of_the_pod_that_was_seen(kube: ApiServer, server: Server) -> None:
    """Its budget has a say (429); a pod that is gone or followed by another is no error."""
    head = {"name": "p", "namespace": "default", "labels": {"a": "b"}}
    pod = server.kube.put({"kind": "Pod", "metadata": head})
    kube.evict("default", "p", uid="another")
    spec = {"maxUnavailable": 0, "selector": {"matchLabels": {"a": "b"}}}
    head = {"name": "b", "namespace": "default"}
    server.kube.put({"kind": "PodDisruptionBudget", "metadata": head, "spec": spec})
    server.kube.budget()
    with pytest.raises(KubeError, match="would violate the pod's disruption budget") as raised:
        kube.evict("default", "p", uid=pod["metadata"]["uid"])
    assert (raised.value.status, raised.value.refused) == (429, False)
    server.kube.remove("PodDisruptionBudget", "b")
    for _ in range(2):
        kube.evict("default", "p", uid=pod["metadata"]["uid"])
    assert server.kube.get(PODS, "default", "p") is None


def test_status_of_an_object_that_is_gone(kube: ApiServer, server: Server) -> None:
    """Written to the subresource; nobody to tell is no error."""
    kube.patch_status(TOPICS, "default", "packages", {"partitions": 3})
    assert server.kube.find("KafkaTopic", "packages")["status"] == {"partitions": 3}
    assert server.seen[-1][1].split("?")[0].endswith("/kafkatopics/packages/status")
    assert server.seen[-1][2] == MERGE
    kube.patch_status(TOPICS, "default", "gone", {"partitions": 3})


def test_merge_patch(kube: ApiServer, server: Server) -> None:
    """For claims, which belong to others."""
    kube.apply(CONFIG_MAP)
    kube.patch(CONFIG_MAPS, "default", "c", {"data": {"other": "1"}})
    assert server.kube.find("ConfigMap", "c")["data"] == {"key": "value", "other": "1"}


def test_a_refusal_has_the_servers_words(kube: ApiServer, server: Server) -> None:
    """What the API server says is what the user reads in a condition."""
    server.kube.refuses["apply ConfigMap c"] = "ConfigMap is invalid: data: too long"
    with pytest.raises(KubeError, match="is invalid: data: too long") as raised:
        kube.apply(CONFIG_MAP)
    assert (raised.value.status, raised.value.refused) == (422, True)


def test_an_unreachable_api_server_is_a_temporary_error() -> None:
    """An API server that cannot be reached is an error that passes."""
    with serving(MemoryKube()) as server:
        address = server.address
    configuration = kubernetes.client.Configuration(host=address)
    configuration.retries = False
    nobody = ApiServer(kubernetes.client.ApiClient(configuration), pause=lambda _: None)
    with pytest.raises(KubeError, match="cannot be reached") as raised:
        nobody.list(SERVICES, "default")
    assert (raised.value.status, raised.value.refused) == (0, False)


def test_a_busy_server_is_asked_again_when_it_says(server: Server) -> None:
    """A few times and after what it asks for; what it asks for too long is left to the caller."""
    pauses: list[float] = []
    configuration = kubernetes.client.Configuration(host=server.address)
    configuration.retries = False
    with kubernetes.client.ApiClient(configuration) as client:
        kube = ApiServer(client, pause=pauses.append)
        server.busy += [(429, "1"), (503, "")]
        assert kube.get(CLUSTERS, "default", "quickstart") is not None
        assert 1.0 <= pauses[0] <= 1.5
        server.busy += [(503, "")] * 3
        with pytest.raises(KubeError, match="the server is busy") as raised:
            kube.get(CLUSTERS, "default", "quickstart")
        assert (raised.value.status, len(pauses)) == (503, 4)
        server.busy += [(429, "30")]
        with pytest.raises(KubeError) as raised:
            kube.get(CLUSTERS, "default", "quickstart")
    assert (raised.value.retry_after, len(pauses)) == (30.0, 4)


@pytest.mark.parametrize("month", ["Jan 2026", "Dec 2031"])
def test_the_clock_of_the_api_server_counts(
    kube: ApiServer, server: Server, month: str, caplog: pytest.LogCaptureFixture
) -> None:
    """That of this machine may be months ahead or behind: certificates, schedules, windows."""
    assert abs(kube.now() - datetime.now(tz=UTC)) < CLOCK_SKEW
    kube.list(TOPICS, "default")
    assert abs(kube.now() - datetime.now(tz=UTC)) < CLOCK_SKEW
    assert "Clock" not in caplog.text
    date = f"Mon, 05 {month} 06:07:08 GMT"
    server.clock = lambda: date
    for _ in range(2):
        kube.list(TOPICS, "default")
    assert kube.now() - parsedate_to_datetime(date) < CLOCK_SKEW
    assert caplog.text.count("Clock differs from the API server's") == 1
    server.clock = lambda: "no date"
    kube.list(TOPICS, "default")
    assert kube.now() - parsedate_to_datetime(date) < CLOCK_SKEW


@pytest.mark.parametrize("answer", [b"<html>", b"[]", b'{"metadata": 7}', b"", b"[" * 100_000])
def test_an_answer_of_something_else_is_a_temporary_error(answer: bytes) -> None:
    """A proxy's page with status 200: the operator would end at the renewal of its Lease."""
    head = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(answer)
    with pod(head + answer) as url:
        configuration = kubernetes.client.Configuration(host=url.removesuffix("/status"))
        with kubernetes.client.ApiClient(configuration) as client:
            kube = ApiServer(client)
            with pytest.raises(KubeError, match="no object of the API server") as error:
                kube.get(TOPICS, "default", "t")
            assert (error.value.status, error.value.refused) == (0, False)
            with pytest.raises(KubeError, match="no object of the API server"):
                kube.list(TOPICS, "default")
