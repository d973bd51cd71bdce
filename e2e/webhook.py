"""A mutating webhook that adds a sidecar to the brokers' pods, as service meshes do."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Final

from barnabas_kafka.certificates import KeyPair, create_authority, issue
from e2e import images
from e2e.cluster import Cluster, Json
from e2e.quickstart import MAIN

NAME: Final = "sidecar-injector"
SIDECAR: Final = "agent"
PORT: Final = 8443
FILES: Final = "/etc/webhook"
RESTRICTED: Final = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
# It ends at SIGTERM, which a first process ignores unless it handles it.
AGENT: Final = "import signal, sys; signal.signal(15, lambda *_: sys.exit(0)); signal.pause()"
# In a pod: the sidecar is the first argument.
PROGRAM: Final = f"""
import base64, http.server, json, ssl, sys
class Review(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        change = {{"op": "add", "path": "/spec/containers/-", "value": json.loads(sys.argv[1])}}
        patch = base64.b64encode(json.dumps([change]).encode()).decode()
        answer = {{"uid": request["request"]["uid"], "allowed": True,
                  "patchType": "JSONPatch", "patch": patch}}
        body = json.dumps({{**request, "request": None, "response": answer}}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
context.load_cert_chain("{FILES}/tls.crt", "{FILES}/tls.key")
server = http.server.ThreadingHTTPServer(("", {PORT}), Review)
server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
"""


@contextmanager
def injecting(cluster: Cluster, labels: dict[str, str]) -> Iterator[None]:
    """Every pod of the main namespace with these labels that is created meanwhile has a sidecar."""
    now = datetime.now(tz=UTC)
    authority = create_authority(NAME, now=now, days=1)
    host = f"{NAME}.{MAIN}.svc"
    pair = issue(authority, host, hosts=(host,), now=now, validity=timedelta(days=1))
    for document in _server(pair):
        cluster.kubectl("apply", "-n", MAIN, "-f", "-", stdin=json.dumps(document))
    try:
        cluster.wait_ready(f"pod/{NAME}", namespace=MAIN)
        registered = json.dumps(_configuration(authority, labels))
        cluster.kubectl("apply", "-f", "-", stdin=registered)
        yield
    finally:
        cluster.kubectl("delete", "mutatingwebhookconfiguration", NAME, "--ignore-not-found")
        names = (f"pod/{NAME}", f"service/{NAME}", f"secret/{NAME}")
        cluster.delete_objects("-n", MAIN, *names, "--ignore-not-found")


def _server(pair: KeyPair) -> list[Json]:
    labels = {"app": NAME}
    container = {
        "name": "server",
        "image": images.name("broker"),
        "command": ["python", "-c", PROGRAM, json.dumps(_sidecar())],
        "securityContext": RESTRICTED,
        "readinessProbe": {"tcpSocket": {"port": PORT}, "periodSeconds": 1},
        "volumeMounts": [{"name": "files", "mountPath": FILES, "readOnly": True}],
    }
    pod = {
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": 0,
        "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [container],
        "volumes": [{"name": "files", "secret": {"secretName": NAME}}],
    }
    files = {"tls.crt": pair.certificate, "tls.key": pair.key}
    data = {name: b64encode(text.encode()).decode() for name, text in files.items()}
    service = {"selector": labels, "ports": [{"port": 443, "targetPort": PORT}]}
    meta = {"name": NAME, "labels": labels}
    return [
        {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": data},
        {"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": service},
        {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": pod},
    ]


def _sidecar() -> Json:
    return {
        "name": SIDECAR,
        "image": images.name("broker"),
        "command": ["python", "-c", AGENT],
        "securityContext": RESTRICTED,
    }


def _configuration(authority: KeyPair, labels: dict[str, str]) -> Json:
    service = {"namespace": MAIN, "name": NAME, "path": "/"}
    trusted = b64encode(authority.certificate.encode()).decode()
    created = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}
    webhook = {
        "name": f"{NAME}.example.com",
        "clientConfig": {"service": service, "caBundle": trusted},
        "rules": [{**created, "operations": ["CREATE"]}],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": MAIN}},
        "objectSelector": {"matchLabels": labels},
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": NAME},
        "webhooks": [webhook],
    }
