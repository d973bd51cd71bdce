"""The Kubernetes API as the operator needs it: a port, and its adaptor.

Only this module imports the Kubernetes client. Objects are dicts as the API server gives them, and
are written by server-side apply under one field manager: what others own of an object stays theirs.
"""

from __future__ import annotations

import json
import logging
import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any, Final, Protocol

import kubernetes
import urllib3

from barnabas_operator.api import GROUP, VERSION
from barnabas_operator.names import FIELD_MANAGER

logger: Final = logging.getLogger(__name__)

Document = dict[str, Any]
Documents = list[Document]

TIMEOUT_S: Final = 15
CONNECTIONS: Final = 64
RETRIES: Final = 2
FIRST_RETRY_S: Final = 0.2
# A longer delay is left to the work queue: a reconciliation that sleeps occupies a thread.
LONGEST_RETRY_S: Final = 2.0
# Objects in a page of a list: few until their size is known, then as many as have so many bytes.
FIRST_PAGE: Final = 25
LARGEST_PAGE: Final = 500
PAGE_BYTES: Final = 8 << 20
# A clock that is wrong, and not only an answer that was slow.
CLOCK_SKEW: Final = timedelta(minutes=1)
JSON: Final = "application/json"
# A list without specs and statuses, from every API server that can leave them out.
METADATA: Final = f"{JSON};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,{JSON}"


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of object: where it lies in the API."""

    api_version: str
    kind: str
    plural: str

    @property
    def root(self) -> str:
        """The path of its API group and version."""
        return f"/{'apis' if '/' in self.api_version else 'api'}/{self.api_version}"

    @property
    def group_and_version(self) -> tuple[str, str]:
        """Its API group, empty for the core's, and version."""
        group, _, version = self.api_version.rpartition("/")
        return group, version


CONFIG_MAPS: Final = Kind("v1", "ConfigMap", "configmaps")
SECRETS: Final = Kind("v1", "Secret", "secrets")
SERVICES: Final = Kind("v1", "Service", "services")
PODS: Final = Kind("v1", "Pod", "pods")
NODES: Final = Kind("v1", "Node", "nodes")
NAMESPACES: Final = Kind("v1", "Namespace", "namespaces")
CLAIMS: Final = Kind("v1", "PersistentVolumeClaim", "persistentvolumeclaims")
STATEFUL_SETS: Final = Kind("apps/v1", "StatefulSet", "statefulsets")
BUDGETS: Final = Kind("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets")
NETWORK_POLICIES: Final = Kind("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies")
INGRESSES: Final = Kind("networking.k8s.io/v1", "Ingress", "ingresses")
TLS_ROUTES: Final = Kind("gateway.networking.k8s.io/v1alpha2", "TLSRoute", "tlsroutes")
CERTIFICATES: Final = Kind("cert-manager.io/v1", "Certificate", "certificates")
LEASES: Final = Kind("coordination.k8s.io/v1", "Lease", "leases")
DEFINITIONS: Final = Kind(
    "apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions"
)
EVENTS: Final = Kind("events.k8s.io/v1", "Event", "events")
CLUSTERS: Final = Kind(f"{GROUP}/{VERSION}", "KafkaCluster", "kafkaclusters")
TOPICS: Final = Kind(f"{GROUP}/{VERSION}", "KafkaTopic", "kafkatopics")
USERS: Final = Kind(f"{GROUP}/{VERSION}", "KafkaUser", "kafkausers")
PIPELINES: Final = Kind(f"{GROUP}/{VERSION}", "KafkaPipeline", "kafkapipelines")
KINDS: Final = {
    kind.kind: kind
    for kind in (
        CONFIG_MAPS, SECRETS, SERVICES, PODS, CLAIMS, STATEFUL_SETS, BUDGETS, CLUSTERS, TOPICS,
        USERS, PIPELINES, INGRESSES, TLS_ROUTES, NETWORK_POLICIES, CERTIFICATES,
    )
}  # fmt: skip


# What is read of the metadata of a resource of ours.
_READ: Final = (
    "name", "namespace", "uid", "generation", "resourceVersion", "creationTimestamp",
    "deletionTimestamp",
)  # fmt: skip


def trimmed(kind: Kind, document: Mapping[str, Any]) -> Document:
    """A resource of ours as far as it is read: most of a large one may be managedFields and what
    other programs note in annotations. There may be thousands."""
    meta = document["metadata"]
    read = {name: meta[name] for name in _READ if name in meta}
    notes = meta.get("annotations") or {}
    if ours := {name: value for name, value in notes.items() if name.startswith(f"{GROUP}/")}:
        read["annotations"] = ours
    parts = {name: document[name] for name in ("spec", "status") if name in document}
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": read, **parts}


class KubeError(Exception):
    """The API server refused or cannot be reached; `status` is HTTP's, 0 if there was no answer."""

    def __init__(self, status: int, message: str, *, retry_after: float = 0.0) -> None:
        self.status = status
        self.message = message
        # For how many seconds the API server asks not to be asked again.
        self.retry_after = retry_after
        super().__init__(message)

    @property
    def refused(self) -> bool:
        """Whether asking again the same would be answered the same."""
        return self.status in (400, 403, 422)


class Kube(Protocol):
    """What the operator asks of Kubernetes. All raise KubeError."""

    def get(self, kind: Kind, namespace: str, name: str) -> Document | None:
        """An object, or None if there is none of that name."""
        ...

    def list(
        self, kind: Kind, namespace: str | None, labels: Mapping[str, str] | None = None
    ) -> list[Document]:
        """The objects of a namespace (None: of all), with these labels."""
        ...

    def metadata(self, kind: Kind, namespace: str | None, selector: str) -> Documents:
        """The objects of a namespace (None: of all) that a label selector selects.

        Of each there may be nothing but its metadata.
        """
        ...

    def apply(self, body: Document, *, uid: str | None = None, dry_run: bool = False) -> Document:
        """Create an object, or change the one with this uid, to be as the body says; returns it.

        With a resourceVersion in the body the object must not have changed since. With a uid it
        must still be that object, and fields that others have changed are taken back. Without one,
        values of others are not overwritten. Either is status 409 otherwise. A dry run
        is answered in the same way and changes nothing.
        """
        ...

    def create(self, kind: Kind, namespace: str, body: Document) -> Document:
        """Create an object and return it; status 409 if there is one of its name."""
        ...

    def delete(self, kind: Kind, namespace: str, name: str, *, uid: str) -> None:
        """Delete an object, if it is still the one with this uid."""
        ...

    def evict(self, namespace: str, name: str, *, uid: str) -> bool:
        """Delete a pod, as a drain does; status 429 where its disruption budget forbids it.

        False where the pod is gone already: then no budget was asked.
        """
        ...

    def patch(self, kind: Kind, namespace: str, name: str, body: Document) -> None:
        """Change fields of an object that is not applied as a whole (merge patch)."""
        ...

    def patch_status(self, kind: Kind, namespace: str, name: str, status: Document) -> None:
        """Write an object's status; an object that is gone is no error."""
        ...


@dataclass(frozen=True, slots=True)
class _Request:
    """One request to the API server."""

    method: str
    path: str
    query: Mapping[str, Any] = field(default_factory=dict)
    body: Document | None = None
    content_type: str = JSON
    accept: str = JSON

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


class ApiServer:
    """The port on a real API server, found as kubectl finds it or from within a pod."""

    def __init__(
        self,
        client: kubernetes.client.ApiClient,
        *,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._client = client
        self._pause = pause
        self._pages: dict[tuple[Kind, str], int] = {}
        # By how much this machine's clock is ahead of the API server's.
        self._ahead = timedelta()

    @classmethod
    def connect(cls) -> ApiServer:
        """With the pod's service account, or with the user's kubeconfig."""
        kubernetes.config.load_config()  # type: ignore[no-untyped-call]
        configuration = kubernetes.client.Configuration.get_default_copy()
        # Connections are retried below: urllib3's own retries would multiply the time limit.
        configuration.retries = False
        configuration.connection_pool_maxsize = CONNECTIONS
        return cls(kubernetes.client.ApiClient(configuration))

    def now(self) -> datetime:
        """What time it is by the API server's clock, as of its last answer.

        By a clock that is months ahead certificates would be issued that are not valid yet.
        """
        return datetime.now(tz=UTC) - self._ahead

    def _set_clock(self, date: str | None) -> None:
        try:
            ahead = datetime.now(tz=UTC) - parsedate_to_datetime(date or "")
        except (TypeError, ValueError):
            return
        ahead = ahead if abs(ahead) > CLOCK_SKEW else timedelta()
        if ahead and abs(ahead - self._ahead) > CLOCK_SKEW:
            seconds = ahead.total_seconds()
            logger.warning("Clock differs from the API server's: ahead=%.0f s", seconds)
        self._ahead = ahead

    def check_served(self, kind: Kind, namespace: str | None) -> None:
        """Raises KubeError where objects of this kind cannot be listed."""
        self._call(_Request("GET", _path(kind, namespace), {"limit": 1}))

    def get(self, kind: Kind, namespace: str, name: str) -> Document | None:
        """See Kube."""
        try:
            return self._call(_Request("GET", _path(kind, namespace, name)))
        except KubeError as error:
            if error.status == 404:
                return None
            raise

    def list(
        self, kind: Kind, namespace: str | None, labels: Mapping[str, str] | None = None
    ) -> list[Document]:
        """See Kube."""
        selector = ",".join(f"{key}={value}" for key, value in (labels or {}).items())
        return self._list(kind, namespace, selector, JSON)

    def metadata(self, kind: Kind, namespace: str | None, selector: str) -> Documents:
        """See Kube."""
        return self._list(kind, namespace, selector, METADATA)

    def _list(self, kind: Kind, namespace: str | None, selector: str, accept: str) -> Documents:
        limit = self._pages.get((kind, accept), FIRST_PAGE)
        # The same for all pages of a list, as the API server asks for.
        query: dict[str, Any] = {"limit": limit}
        if selector:
            query["labelSelector"] = selector
        found: list[Document] = []
        largest = 0
        while True:
            request = _Request("GET", _path(kind, namespace), query, accept=accept)
            content = self._send(request)
            page = _object(content, request)
            # While a definition changes, the API server writes an empty list of metadata as null.
            items = page.get("items") or ()
            largest = max(largest, len(content) // max(1, len(items)))
            found += [_item(kind, each) for each in items]
            if not (more := page.get("metadata", {}).get("continue")):
                break
            query["continue"] = more
        if found:
            fitting = min(2 * limit, LARGEST_PAGE, PAGE_BYTES // max(1, largest))
            self._pages[kind, accept] = max(1, fitting)
        return found

    def apply(self, body: Document, *, uid: str | None = None, dry_run: bool = False) -> Document:
        """See Kube."""
        meta = body["metadata"]
        query = {"fieldManager": FIELD_MANAGER}
        if dry_run:
            query["dryRun"] = "All"
        if uid is not None:
            # The API server compares a uid in the body with the object's.
            body = {**body, "metadata": {**meta, "uid": uid}}
            query["force"] = "true"
        path = _path(KINDS[body["kind"]], meta["namespace"], meta["name"])
        return self._call(_Request("PATCH", path, query, body, "application/apply-patch+yaml"))

    def delete(self, kind: Kind, namespace: str, name: str, *, uid: str) -> None:
        """See Kube."""
        body = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": {"uid": uid},
            "propagationPolicy": "Background",
        }
        # Gone, or already followed by another of its name.
        with _ignored(404, 409):
            self._call(_Request("DELETE", _path(kind, namespace, name), body=body))

    def evict(self, namespace: str, name: str, *, uid: str) -> bool:
        """See Kube."""
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": name, "namespace": namespace},
            "deleteOptions": {"preconditions": {"uid": uid}},
        }
        # As above.
        try:
            self._call(_Request("POST", f"{_path(PODS, namespace, name)}/eviction", body=body))
        except KubeError as error:
            if error.status not in (404, 409):
                raise
            return False
        return True

    def patch(self, kind: Kind, namespace: str, name: str, body: Document) -> None:
        """See Kube."""
        self._merge(_path(kind, namespace, name), body)

    def patch_status(self, kind: Kind, namespace: str, name: str, status: Document) -> None:
        """See Kube."""
        with _ignored(404):
            self._merge(f"{_path(kind, namespace, name)}/status", {"status": status})

    def create(self, kind: Kind, namespace: str, body: Document) -> Document:
        """See Kube."""
        query = {"fieldManager": FIELD_MANAGER}
        return self._call(_Request("POST", _path(kind, namespace), query, body))

    def replace(self, kind: Kind, namespace: str, name: str, body: Document) -> Document:
        """Replace an object that still has the body's resourceVersion; else status 409."""
        return self._call(_Request("PUT", _path(kind, namespace, name), body=body))

    def _merge(self, path: str, body: Document) -> None:
        query = {"fieldManager": FIELD_MANAGER}
        self._call(_Request("PATCH", path, query, body, "application/merge-patch+json"))

    def _call(self, request: _Request) -> Document:
        """Send a request whose answer is an object."""
        return _object(self._send(request), request)

    def _send(self, request: _Request) -> bytes:
        """Send a request; a read is repeated a few times while the server is busy."""
        for attempt in range(RETRIES):
            try:
                return self._send_once(request)
            except KubeError as error:
                delay = max(error.retry_after, FIRST_RETRY_S * 2**attempt)
                if not _may_repeat(request, error) or delay > LONGEST_RETRY_S:
                    raise
            # Many reconciliations meet the same busy server: their retries are spread.
            self._pause(delay * random.uniform(1.0, 1.5))  # noqa: S311 - no secret
        return self._send_once(request)

    def _send_once(self, request: _Request) -> bytes:
        with _errors(request):
            serialized = self._client.param_serialize(
                request.method,
                request.path,
                query_params=list(request.query.items()),
                header_params={"Accept": request.accept, "Content-Type": request.content_type},
                body=request.body,
                auth_settings=["BearerToken"],
            )
            response = self._client.call_api(*serialized, _request_timeout=TIMEOUT_S)
            content: bytes = response.read()  # type: ignore[no-untyped-call]
        self._set_clock(response.headers.get("Date"))
        if not 200 <= response.status <= 299:
            raise KubeError(
                response.status,
                f"{request}: {_reason(content)}",
                retry_after=_seconds(response.headers.get("Retry-After")),
            )
        return content


def _object(content: bytes, request: _Request) -> Document:
    """The object in a response; a proxy in place of the API server may send anything."""
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        found = None
    if not (isinstance(found, dict) and isinstance(found.get("metadata", {}), dict)):
        raise KubeError(0, f"{request}: the answer is no object of the API server")
    return found


def _item(kind: Kind, item: Document) -> Document:
    """An item of a list, which comes without saying what it is."""
    if kind.group_and_version[0] == GROUP:
        return trimmed(kind, item)
    return {"apiVersion": kind.api_version, "kind": kind.kind, **item}


def _may_repeat(request: _Request, error: KubeError) -> bool:
    """Whether a request can be sent again: a read, of a server that is busy or away.

    A write is left to the next reconciliation: it takes effect soon after it was decided, or never.
    """
    return request.method == "GET" and (error.status in (0, 429) or error.status >= 500)


def _seconds(retry_after: str | None) -> float:
    """The header in seconds; the API server does not send its other form, a date."""
    try:
        return max(0.0, float(retry_after or 0))
    except ValueError:
        return 0.0


def _path(kind: Kind, namespace: str | None, name: str | None = None) -> str:
    place = f"/namespaces/{namespace}" if namespace else ""
    return f"{kind.root}{place}/{kind.plural}" + (f"/{name}" if name else "")


@contextmanager
def _errors(request: _Request) -> Iterator[None]:
    try:
        yield
    except kubernetes.client.ApiException as error:
        raise KubeError(error.status or 0, f"{request}: {error.reason}") from error
    except (urllib3.exceptions.HTTPError, OSError) as error:
        raise KubeError(0, f"{request}: the API server cannot be reached: {error}") from error


@contextmanager
def _ignored(*statuses: int) -> Iterator[None]:
    try:
        yield
    except KubeError as error:
        if error.status not in statuses:
            raise


def _reason(content: bytes) -> str:
    """The message of the API server's Status object, which an answer from elsewhere is not."""
    try:
        return str(json.loads(content)["message"])
    except (ValueError, KeyError, TypeError):
        return content[:200].decode("utf-8", "replace")
