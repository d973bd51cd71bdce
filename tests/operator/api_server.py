"""MemoryKube behind HTTP: an API server that the real client and kopf can talk to.

Discovery, lists, watches, server-side apply, merge patches, deletion with preconditions; what the
operator uses, answered as a real one answers.
"""

from __future__ import annotations

import functools
import json
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import yaml

from barnabas_operator.kube import EVENTS, KINDS, LEASES, NAMESPACES, Kind, KubeError
from tests.operator.memory_kube import MemoryKube, metadata_of, select
from tests.operator.openapi import refuse_unknown
from tests.waiting import RUN, seconds

# What every API server has; kopf waits until it sees them.
CRDS = Kind("apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions")
SERVED = (*KINDS.values(), NAMESPACES, LEASES, EVENTS, CRDS)
BY_PLURAL = {kind.plural: kind for kind in SERVED}
JSON = "application/json"
APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"


class ApiRequest(BaseHTTPRequestHandler):
    """One request; the server has the objects."""

    server: Server
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Discovery, an object, a list or a watch."""
        path = urlsplit(self.path).path.strip("/").split("/")
        query = {name: values[-1] for name, values in parse_qs(urlsplit(self.path).query).items()}
        self.server.seen.append((self.command, self.path, ""))
        if (answer := _discovery(path, self.server.absent)) is not None:
            self._send(200, answer)
            return
        kind, namespace, name, _ = _place(path)
        if kind.plural in self.server.absent:
            self._fail(404, "the server could not find the requested resource")
        elif namespace in self.server.forbidden:
            self._fail(403, f"{kind.plural} is forbidden: no access in namespace {namespace}")
        elif self.server.busy:
            status, retry_after = self.server.busy.pop(0)
            self._fail(status, "the server is busy", retry_after=retry_after)
        elif name is not None:
            found = self.server.kube.get(kind, namespace or "", name)
            self._send(200, found) if found else self._fail(404, f"{name} not found")
        elif query.get("watch"):
            self._watch(kind)
        else:
            selector = query.get("labelSelector", "")
            items = select(self.server.kube.list, kind, namespace, selector)
            start = int(query.get("continue", 0))
            end = start + int(query.get("limit") or len(items))
            meta = {"resourceVersion": "1", **({"continue": str(end)} if end < len(items) else {})}
            items = items[start:end]
            partial = "as=PartialObjectMetadataList" in self.headers["Accept"]
            if partial:
                items = [metadata_of(each) for each in items]
            for item in items:
                item["metadata"].setdefault("resourceVersion", "1")
                # As a real one: items of a list do not say what they are.
                item.pop("kind"), item.pop("apiVersion", None)
            head = {"apiVersion": kind.api_version, "kind": f"{kind.kind}List"}
            # As a real one may: a list of metadata that is empty is written as null.
            reported = (items or None) if partial else items
            self._send(200, {**head, "metadata": meta, "items": reported})

    def do_PATCH(self) -> None:
        """Server-side apply, a merge patch, or a status."""
        body = self._body()
        kind, namespace, name, part = _place(urlsplit(self.path).path.strip("/").split("/"))
        content_type = self.headers["Content-Type"]
        self.server.seen.append((self.command, self.path, content_type))
        kube, place = self.server.kube, namespace or ""
        try:
            if content_type == APPLY:
                forced = "force=true" in urlsplit(self.path).query
                uid = body["metadata"].pop("uid", None)
                assert forced == (uid is not None)
                dry_run = "dryRun=All" in urlsplit(self.path).query
                self._send(200, kube.apply(body, uid=uid, dry_run=dry_run))
                return
            if kube.get(kind, place, name or "") is None:
                self._fail(404, f"{name} not found")
                return
            if part == "status":
                kube.patch_status(kind, place, name or "", body["status"])
            else:
                kube.patch(kind, place, name or "", body)
            self._send(200, kube.get(kind, place, name or ""))
        except KubeError as error:
            self._fail(error.status, error.message)

    def do_POST(self) -> None:
        """An eviction, or an object that is new."""
        body = self._body()
        kind, namespace, name, part = _place(urlsplit(self.path).path.strip("/").split("/"))
        self.server.seen.append((self.command, self.path, ""))
        if name is None:
            self._create(kind, namespace or "", body)
            return
        assert (part, body["kind"]) == ("eviction", "Eviction")
        uid = body["deleteOptions"]["preconditions"]["uid"]
        try:
            self.server.kube.evict(namespace or "", name or "", uid=uid)
            self._send(201, {"kind": "Status", "status": "Success"})
        except KubeError as error:
            self._fail(error.status, error.message)

    def do_PUT(self) -> None:
        """An object as a whole, if it is still the version that is meant."""
        body = self._body()
        refuse_unknown(body)
        kind, namespace, name, _ = _place(urlsplit(self.path).path.strip("/").split("/"))
        found = self.server.kube.objects.get((kind.kind, namespace or "", name or ""))
        if namespace in self.server.forbidden:
            self._fail(403, "forbidden")
        elif found is None:
            self._fail(404, f"{name} not found")
        elif found["metadata"]["resourceVersion"] != body["metadata"]["resourceVersion"]:
            self._fail(409, "the object has been modified")
        else:
            self._send(200, self.server.kube.put(body))

    def _create(self, kind: Kind, namespace: str, body: Any) -> None:
        refuse_unknown(body)
        key = (kind.kind, namespace, body["metadata"]["name"])
        if namespace in self.server.forbidden:
            self._fail(403, "forbidden")
        elif key in self.server.kube.objects:
            self._fail(409, f"{key[2]} already exists")
        else:
            self._send(201, self.server.kube.put(body))

    def do_DELETE(self) -> None:
        """An object, if it is the one that is meant."""
        body = self._body()
        kind, namespace, name, _ = _place(urlsplit(self.path).path.strip("/").split("/"))
        found = self.server.kube.get(kind, namespace or "", name or "")
        if found is None:
            self._fail(404, f"{name} not found")
        elif found["metadata"]["uid"] != body["preconditions"]["uid"]:
            self._fail(409, "the UID in the precondition does not match")
        else:
            self.server.kube.remove(kind.kind, name or "", namespace or "")
            self._send(200, {"kind": "Status", "status": "Success"})

    def _watch(self, kind: Kind) -> None:
        """Nothing happens in a watch here but 410 Gone; it ends with the server."""
        self.send_response(200)
        self.send_header("Content-Type", JSON)
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.flush()
        self.close_connection = True
        self.server.watches.release()
        gone = self.server.gone[kind.plural]
        gone.wait(seconds(RUN))
        if not self.server.ended.is_set():
            gone.clear()
            status = {"kind": "Status", "code": 410, "message": "too old resource version"}
            self.wfile.write(json.dumps({"type": "ERROR", "object": status}).encode() + b"\n")

    def _body(self) -> Any:
        """What is written, and by whom."""
        token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        self.server.writers.append((token, urlsplit(self.path).path))
        return yaml.safe_load(self.rfile.read(int(self.headers["Content-Length"])))

    def _send(self, status: int, body: Any, *, retry_after: str = "") -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", JSON)
        self.send_header("Content-Length", str(len(data)))
        if retry_after:
            self.send_header("Retry-After", retry_after)
        self.end_headers()
        self.wfile.write(data)

    def _fail(self, status: int, message: str, *, retry_after: str = "") -> None:
        body = {"kind": "Status", "message": message, "code": status}
        self._send(status, body, retry_after=retry_after)

    def date_time_string(self, timestamp: float | None = None) -> str:
        """The header Date, by the server's clock."""
        return super().date_time_string(timestamp) if timestamp else self.server.clock()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base's name
        """The test tells what went wrong, not the log."""


class Server(ThreadingHTTPServer):
    """The server and what it saw: (method, path, content type)."""

    daemon_threads = True

    def __init__(self, kube: MemoryKube) -> None:
        super().__init__(("127.0.0.1", 0), ApiRequest)
        self.kube = kube
        self.seen: list[tuple[str, str, str]] = []
        # Who has written: the token, and the path.
        self.writers: list[tuple[str, str]] = []
        # Namespaces that were deleted, and the right to read them with them.
        self.forbidden: set[str] = set()
        # Kinds whose definition is not installed, by their plurals.
        self.absent: set[str] = set()
        # What the next reads are answered with: status and Retry-After.
        self.busy: list[tuple[int, str]] = []
        # Its clock, as the header Date has it.
        self.clock: Callable[[], str] = functools.partial(formatdate, usegmt=True)
        self.ended = threading.Event()
        # Set by a test: the open watch of this plural is too old.
        self.gone = {kind.plural: threading.Event() for kind in SERVED}
        self.watches = threading.Semaphore(0)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """An operator that is killed hangs up."""

    @property
    def address(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.server_address[1]}"


@contextmanager
def serving(kube: MemoryKube) -> Iterator[Server]:
    """A running server."""
    server = Server(kube)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.ended.set()
        for watch in server.gone.values():
            watch.set()
        server.shutdown()
        thread.join()
        server.server_close()


def kubeconfig(address: str, directory: Path, token: str) -> Path:
    """A file with which a client reaches a server, with this token."""
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": address}}],
        "users": [{"name": "c", "user": {"token": token}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
    }
    path = directory / f"kubeconfig-{token}"
    path.write_text(yaml.safe_dump(config))
    return path


def _place(path: list[str]) -> tuple[Kind, str | None, str | None, str | None]:
    """Kind, namespace, name and subresource of a path."""
    rest = path[2:] if path[0] == "api" else path[3:]
    namespace = None
    if rest[0] == "namespaces" and len(rest) > 2:
        namespace, rest = rest[1], rest[2:]
    padded = [*rest, None, None]
    return BY_PLURAL[rest[0]], namespace, padded[1], padded[2]


def _discovery(path: list[str], absent: Collection[str]) -> dict[str, Any] | None:
    """What there is, for a client that asks before it watches."""
    if path == ["api"]:
        return {"kind": "APIVersions", "versions": ["v1"]}
    if path == ["apis"]:
        versions = sorted({kind.api_version for kind in SERVED} - {"v1"})
        groups = []
        for version in versions:
            each = {"groupVersion": version, "version": version.split("/")[1]}
            name = version.split("/")[0]
            groups.append({"name": name, "versions": [each], "preferredVersion": each})
        return {"kind": "APIGroupList", "groups": groups}
    version = "/".join(path[1:])
    served = [kind for kind in SERVED if kind.plural not in absent]
    kinds = [kind for kind in served if kind.api_version == version]
    if not kinds:
        return None
    resources = [
        {
            "name": kind.plural,
            "singularName": kind.kind.lower(),
            "kind": kind.kind,
            "namespaced": True,
            "verbs": ["get", "list", "watch", "patch"],
        }
        for kind in kinds
    ]
    return {"kind": "APIResourceList", "groupVersion": version, "resources": resources}
