"""A kind cluster: one control plane, three workers in three zones, its own kubeconfig.

The user's kubeconfig is never touched: the cluster's lies in `.cache/kind/<name>.kubeconfig`.
`KIND_NODE_IMAGE` names the image of the nodes where kind's default cannot be pulled.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

from e2e import images, objects
from e2e.commands import ROOT, CommandError, missing, run
from e2e.wait import wait_for
from tests.waiting import ANSWER, ATTEMPT_S, RUN, SETTLE, seconds

ZONES: Final = ("zone-a", "zone-b", "zone-c")
NODE_IMAGE_VARIABLE: Final = "KIND_NODE_IMAGE"
LOG_LINES: Final = 20
"""How many of the last lines of each log a time-out shows."""
# Kubelets bring a changed Secret into its pods at the next sync, a minute apart by default.
KUBELET: Final = {"kind": "KubeletConfiguration", "syncFrequency": "10s"}
CONFIG: Final = {
    "kind": "Cluster",
    "apiVersion": "kind.x-k8s.io/v1alpha4",
    "kubeadmConfigPatches": [json.dumps(KUBELET)],
    "nodes": [
        {"role": "control-plane"},
        *({"role": "worker", "labels": {"topology.kubernetes.io/zone": zone}} for zone in ZONES),
    ],
}

OURS: Final = "kafkaclusters,kafkatopics,kafkausers,kafkapipelines"

Json = dict[str, Any]
Fact = TypeVar("Fact")


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

    def create(self, **feature_gates: bool) -> None:
        """Create it and wait for its nodes; raises CannotRunKindError or CommandError."""
        check_kind_can_run()
        self.kubeconfig.parent.mkdir(parents=True, exist_ok=True)
        image = os.environ.get(NODE_IMAGE_VARIABLE)
        command = ["kind", "create", "cluster", "--name", self.name, "--config", "-"]
        command += ["--kubeconfig", str(self.kubeconfig)] + (["--image", image] if image else [])
        try:
            run(*command, stdin=json.dumps({**CONFIG, "featureGates": feature_gates}))
        except CommandError as error:
            if not image and "pull" in error.said:
                text = (
                    f"kind cannot pull its node image; {NODE_IMAGE_VARIABLE} may name a local one"
                )
                raise CannotRunKindError(f"{text}\n{error}") from error
            raise
        wait_for("all nodes to be Ready", self._all_nodes_ready, within=RUN)

    def delete(self) -> None:
        """Remove it, if it exists."""
        run("kind", "delete", "cluster", "--name", self.name, "--kubeconfig", str(self.kubeconfig))
        self.kubeconfig.unlink(missing_ok=True)

    def load(self, *images: str) -> None:
        """Bring local images to every worker; those it has already are left out."""
        workers = ",".join(self.workers())
        run("kind", "load", "docker-image", "--name", self.name, "--nodes", workers, *images)

    def kubectl(self, *arguments: str, stdin: bytes | str | None = None) -> str:
        """What `kubectl` answers, as text; raises CommandError."""
        return self.kubectl_bytes(*arguments, stdin=stdin).decode()

    def kubectl_bytes(self, *arguments: str, stdin: bytes | str | None = None) -> bytes:
        """What `kubectl` answers; raises CommandError."""
        return run(*self.kubectl_command(*arguments), stdin=stdin)

    def kubectl_command(self, *arguments: str) -> Sequence[str]:
        """The command line of a `kubectl`, where it goes on beside the test."""
        return ("kubectl", "--kubeconfig", str(self.kubeconfig), *arguments)

    def delete_objects(self, *arguments: str) -> None:
        """`kubectl delete` until the objects are gone."""
        self.kubectl("delete", *arguments, f"--timeout={seconds(SETTLE):.0f}s")

    def wait_ready(self, resource: str, *, namespace: str, within: float = SETTLE) -> None:
        """Wait until a resource is Ready in its present generation."""
        self.wait_for_condition(resource, "Ready", namespace=namespace, within=within)

    def wait_for_condition(
        self, resource: str, condition: str, *, namespace: str, within: float = SETTLE
    ) -> None:
        """Wait until a resource has a condition, in its present generation."""
        command = ("wait", "-n", namespace, resource, f"--for=condition={condition}")
        self.wait_for(
            f"the condition {condition} of {resource}",
            lambda: self.kubectl(*command, f"--timeout={ATTEMPT_S:.0f}s"),
            namespaces=(namespace,),
            within=within,
        )

    def wait_gone(
        self, kinds: str, *, namespace: str, selector: str, show: Sequence[str] = ()
    ) -> None:
        """Wait until no object of these kinds and labels is left; `show` names more namespaces."""
        self.wait_for(
            f"the end of all {kinds} with {selector}",
            lambda: self.names(kinds, namespace=namespace, selector=selector),
            until=lambda left: not left,
            namespaces=(namespace, *show),
        )

    def wait_rolled_out(self, deployment: str, *, namespace: str) -> None:
        """Wait until all pods of a Deployment are new and available."""
        command = ("rollout", "status", f"deploy/{deployment}", "-n", namespace)
        self.wait_for(
            f"the roll-out of {deployment}",
            lambda: self.kubectl(*command, f"--timeout={ATTEMPT_S:.0f}s"),
            namespaces=(namespace,),
        )

    def wait_for(
        self,
        what: str,
        read: Callable[[], Fact],
        *,
        namespaces: Sequence[str],
        until: Callable[[Fact], object] = bool,
        within: float = SETTLE,
    ) -> Fact:
        """`wait_for`, whose error shows the pods of the namespaces and the ends of their logs."""
        return wait_for(what, read, until=until, within=within, show=lambda: self.tails(namespaces))

    def tails(self, namespaces: Sequence[str]) -> str:
        """The resources and pods of namespaces, and the last lines that each pod logged."""
        parts = []
        for name in namespaces:
            of = ("-n", name)
            parts.append(self._said("get", f"{OURS},pods", "-o", "wide", *of))
            for pod in self._said("get", "pods", "-o", "name", *of).split():
                log = self._said("logs", pod, "--all-containers", f"--tail={LOG_LINES}", *of)
                parts.append(f"--- {name} {pod}\n{log}")
        return "\n".join(parts)

    def _said(self, *arguments: str) -> str:
        try:
            return self.kubectl(*arguments)
        except CommandError as error:
            return str(error)

    def helm(self, *arguments: str) -> str:
        """What `helm` answers; raises CommandError."""
        return run("helm", "--kubeconfig", str(self.kubeconfig), *arguments).decode()

    def get(self, kind: str, name: str, *, namespace: str) -> Json | None:
        """One object, or None where there is none; raises CommandError."""
        return objects.get(self.kubeconfig, kind, name, namespace)

    def list(self, kind: str, *, namespace: str, selector: str = "") -> list[Json]:
        """The objects of a kind; raises CommandError."""
        return objects.listed(self.kubeconfig, kind, namespace, selector)

    def names(self, kinds: str, *, namespace: str, selector: str = "") -> Sequence[str]:
        """The objects of one or more kinds, as `kind/name`; raises CommandError."""
        return self.kubectl("get", kinds, "-n", namespace, "-l", selector, "-o", "name").split()

    def workers(self) -> Sequence[str]:
        """The names of the nodes that run pods, which are containers of Docker."""
        nodes = run("kind", "get", "nodes", "--name", self.name).decode().split()
        return [node for node in nodes if not node.endswith("-control-plane")]

    def on_node(self, node: str, *command: str) -> str:
        """What a command in a node answers; raises CommandError."""
        return run("docker", "exec", node, *command).decode()

    def process_of(self, node: str, container: str) -> str:
        """The process id, in its node, of the first process of a pod's container."""
        wanted = container.rpartition("/")[2]
        tasks = self.on_node(node, "ctr", "--namespace=k8s.io", "tasks", "list")
        (found,) = (line.split() for line in tasks.splitlines() if line.startswith(wanted))
        return found[1]

    @contextmanager
    def frozen(self, pod: Json, container: str) -> Iterator[None]:
        """Stop the process that the first one of a container supervises: it hangs, and is there."""
        (status,) = (it for it in pod["status"]["containerStatuses"] if it["name"] == container)
        node = pod["spec"]["nodeName"]
        supervisor = self.process_of(node, status["containerID"])
        process = self.on_node(node, "pgrep", "--parent", supervisor).strip()
        self.on_node(node, "kill", "-STOP", process)
        try:
            yield
        finally:
            # A liveness probe may have ended it meanwhile: the kubelet restarts it in its pod.
            with suppress(CommandError):
                self.on_node(node, "kill", "-CONT", process)

    def node_address(self) -> str:
        """The address of a worker; ports of the nodes are reachable at it from this machine."""
        node = self.get("node", f"{self.name}-worker", namespace="") or {}
        addresses = {each["type"]: str(each["address"]) for each in node["status"]["addresses"]}
        return addresses["InternalIP"]

    def working_sets(self, namespace: str) -> dict[str, int]:
        """The memory of each pod of a namespace in bytes, as the kubelets account for it.

        Waits for that of new pods, which kubelets have some seconds after their start.
        """
        return self.wait_for(
            f"the memory of each pod of {namespace}",
            lambda: self._working_sets(namespace),
            until=lambda found: found and all(found.values()),
            namespaces=(namespace,),
        )

    def _working_sets(self, namespace: str) -> dict[str, int]:
        """Of those that are accounted for, 0 of one that is not yet."""
        found = {}
        path = "jsonpath={.items[*].metadata.name}"
        for node in self.kubectl("get", "nodes", "-o", path).split():
            summary = self.kubectl("get", "--raw", f"/api/v1/nodes/{node}/proxy/stats/summary")
            for pod in json.loads(summary)["pods"]:
                of = pod["podRef"]
                if of["namespace"] == namespace:
                    found[of["name"]] = int(pod.get("memory", {}).get("workingSetBytes", 0))
        return found

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
        run("docker", "info", within=ANSWER)
    except CommandError as error:
        raise CannotRunKindError(
            f"Docker does not answer: start it, or run as a user who may\n{error}"
        ) from error


@contextmanager
def cluster_of_this_source(
    name: str,
    *,
    targets: Sequence[str] = images.TARGETS,
    keep: bool = False,
    **feature_gates: bool,
) -> Iterator[Cluster]:
    """A new cluster whose nodes have images of this very source; deleted at the end, or kept."""
    for target in targets:
        images.build(target)
    cluster = Cluster(name)
    cluster.delete()
    try:
        cluster.create(**feature_gates)
        cluster.load(*map(images.name, targets))
        yield cluster
    finally:
        if not keep:
            cluster.delete()
