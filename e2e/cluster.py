"""A kind cluster: one control plane, three workers in three zones, its own kubeconfig.

The user's kubeconfig is never touched: the cluster's lies in `.cache/kind/<name>.kubeconfig`.
`KIND_NODE_IMAGE` names the image of the nodes where kind's default cannot be pulled.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from e2e.commands import ROOT, CommandError, missing, run
from e2e.wait import wait_for

ZONES: Final = ("zone-a", "zone-b", "zone-c")
NODE_IMAGE_VARIABLE: Final = "KIND_NODE_IMAGE"
CREATE_TIMEOUT_S: Final = 600.0
READY_WITHIN_S: Final = 300.0
CONFIG: Final = {
    "kind": "Cluster",
    "apiVersion": "kind.x-k8s.io/v1alpha4",
    "nodes": [
        {"role": "control-plane"},
        *({"role": "worker", "labels": {"topology.kubernetes.io/zone": zone}} for zone in ZONES),
    ],
}

Json = dict[str, Any]


class CannotRunKindError(Exception):
    """Why there can be no cluster here, and what to do."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster by its name; it need not exist yet."""

    name: str

    @property
    def kubeconfig(self) -> Path:
        """How kubectl and helm reach it."""
        return ROOT / ".cache" / "kind" / f"{self.name}.kubeconfig"

    def exists(self) -> bool:
        """Whether kind knows it."""
        return self.name in run("kind", "get", "clusters").decode().split()

    def create(self) -> None:
        """Create it and wait for its nodes; raises CannotRunKindError or CommandError."""
        check_kind_can_run()
        self.kubeconfig.parent.mkdir(parents=True, exist_ok=True)
        image = os.environ.get(NODE_IMAGE_VARIABLE)
        command = ["kind", "create", "cluster", "--name", self.name, "--config", "-"]
        command += ["--kubeconfig", str(self.kubeconfig)] + (["--image", image] if image else [])
        try:
            run(*command, stdin=json.dumps(CONFIG), timeout_s=CREATE_TIMEOUT_S)
        except CommandError as error:
            if not image and "pull" in error.said:
                text = (
                    f"kind cannot pull its node image; {NODE_IMAGE_VARIABLE} may name a local one"
                )
                raise CannotRunKindError(f"{text}\n{error}") from error
            raise
        wait_for("all nodes are Ready", self._all_nodes_ready, within_s=READY_WITHIN_S)

    def delete(self) -> None:
        """Remove it, if it exists."""
        run("kind", "delete", "cluster", "--name", self.name, "--kubeconfig", str(self.kubeconfig))
        self.kubeconfig.unlink(missing_ok=True)

    def load(self, *images: str) -> None:
        """Bring local images to every node; those it has already are left out."""
        run("kind", "load", "docker-image", "--name", self.name, *images, timeout_s=600)

    def kubectl(
        self, *arguments: str, stdin: bytes | str | None = None, timeout_s: float = 200.0
    ) -> str:
        """What `kubectl` answers, as text; raises CommandError."""
        return self.kubectl_bytes(*arguments, stdin=stdin, timeout_s=timeout_s).decode()

    def kubectl_bytes(
        self, *arguments: str, stdin: bytes | str | None = None, timeout_s: float = 200.0
    ) -> bytes:
        """What `kubectl` answers; raises CommandError."""
        command = ("kubectl", "--kubeconfig", str(self.kubeconfig), *arguments)
        return run(*command, stdin=stdin, timeout_s=timeout_s)

    def helm(self, *arguments: str) -> str:
        """What `helm` answers; raises CommandError."""
        return run("helm", "--kubeconfig", str(self.kubeconfig), *arguments).decode()

    def get(self, kind: str, name: str, *, namespace: str) -> Json | None:
        """One object, or None where there is none."""
        text = self.kubectl("get", kind, name, "-n", namespace, "--ignore-not-found", "-o", "json")
        found: Json | None = json.loads(text) if text.strip() else None
        return found

    def list(self, kind: str, *, namespace: str, selector: str = "") -> list[Json]:
        """The objects of a kind."""
        text = self.kubectl("get", kind, "-n", namespace, "-l", selector, "-o", "json")
        items: list[Json] = json.loads(text)["items"]
        return items

    def node_address(self) -> str:
        """The address of a worker; ports of the nodes are reachable at it from this machine."""
        path = '{.status.addresses[?(@.type=="InternalIP")].address}'
        return self.kubectl("get", "node", f"{self.name}-worker", "-o", f"jsonpath={path}").strip()

    def _all_nodes_ready(self) -> bool:
        """Whether all nodes are Ready and the DNS, which everything needs, serves."""
        self.kubectl("wait", "node", "--all", "--for=condition=Ready", "--timeout=1s")
        self.kubectl("rollout", "status", "-n", "kube-system", "deploy/coredns", "--timeout=1s")
        return True


def check_kind_can_run() -> None:
    """Raise CannotRunKindError, in words for a user, where a tool or docker is missing."""
    lacking = missing(("docker", "kind", "helm", "kubectl"))
    if lacking:
        text = f"this needs {', '.join(lacking)} on the path; docs/kubernetes.md says where from"
        raise CannotRunKindError(text)
    try:
        run("docker", "info", timeout_s=30)
    except CommandError as error:
        raise CannotRunKindError(
            f"Docker does not answer: start it, or run as a user who may\n{error}"
        ) from error
