"""The quickstart of manifests/examples as a person uses it: applied, ready, written and read."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from e2e import images, kafka
from e2e.cluster import Cluster
from e2e.commands import ROOT
from e2e.pipeline import Pipeline
from tests.waiting import ANSWER, SETTLE, seconds

MAIN: Final = "barnabas"
BRIEF: Final = "brief"
RELEASE: Final = "barnabas-operator"
CHART: Final = "charts/barnabas-operator"
FILE: Final = "manifests/examples/quickstart.yaml"
FIXTURES: Final = ROOT / "e2e" / "fixtures"
CLIENT_PROGRAM: Final = Path(kafka.__file__).read_text("utf-8")
PIPELINE: Final = "packages-to-parquet"


def install_with_helm(
    cluster: Cluster,
    *,
    watch: Sequence[str] = (),
    resync_s: int | None = None,
    racks: bool = True,
    priority_class: str = "",
) -> None:
    """Install the operator's chart as its documentation says, and wait for it."""
    command = ["install", RELEASE, CHART, "-n", MAIN, "--create-namespace", "--wait"]
    command += ["--timeout", f"{seconds(SETTLE):.0f}s", "--set", f"racks={str(racks).lower()}"]
    if priority_class:
        command += ["--set", f"priorityClassName={priority_class}"]
    if resync_s is not None:
        command += ["--set", f"resyncSeconds={resync_s}"]
    if watch:
        command += ["--set", f"watchNamespaces={{{','.join(watch)}}}"]
    cluster.helm(*command)


def offer_versions(cluster: Cluster, versions: Mapping[str, Mapping[str, str]]) -> None:
    """Upgrade the operator to one that knows more versions, as Helm does it, and wait for it."""
    command = ["upgrade", RELEASE, CHART, "-n", MAIN, "--reuse-values", "--wait"]
    command += ["--timeout", f"{seconds(SETTLE):.0f}s", "--set-json"]
    cluster.helm(*command, f"versions={json.dumps(versions)}")


@dataclass(frozen=True, slots=True)
class Quickstart:
    """The resources of the quickstart in the main namespace of a cluster."""

    cluster: Cluster

    def apply(self) -> None:
        """`kubectl apply -f`."""
        self.cluster.kubectl("apply", "-n", MAIN, "-f", FILE)

    def wait_until_ready(self) -> None:
        """Until every resource is Ready in its present generation."""
        for resource in (
            "kafkacluster/quickstart",
            "kafkatopic/packages",
            "kafkatopic/files",
            f"kafkapipeline/{PIPELINE}",
        ):
            self.wait_ready(resource)

    def wait_ready(self, resource: str) -> None:
        """Until one resource is Ready."""
        self.cluster.wait_ready(resource, namespace=MAIN)

    def bootstrap(self, listener: str) -> str:
        """What the status says clients are to be given for a listener."""
        status = (self.cluster.get("kafkacluster", "quickstart", namespace=MAIN) or {})["status"]
        servers = [each for each in status["listeners"] if each["name"] == listener]
        return str(servers[0]["bootstrapServers"])

    def client(self) -> kafka.Client:
        """How a client on this machine reaches the brokers, through ports of the nodes."""
        return {"bootstrap.servers": self.bootstrap("external")}

    def admin(self) -> AdminClient:
        """An administrator's client on this machine."""
        return AdminClient({**self.client(), "log_level": 3})

    def send(self, topic: str, records: Iterable[kafka.Record]) -> dict[kafka.Place, kafka.Record]:
        """Send from this machine, through a port of the nodes."""
        return kafka.send(self.client(), topic, records, limit_s=seconds(SETTLE))

    def read(self, topic: str) -> dict[kafka.Place, kafka.Record]:
        """Read on this machine, through a port of the nodes."""
        return kafka.read(self.client(), topic, limit_s=seconds(SETTLE))

    def start_client_pod(self) -> None:
        """Start the pod from which `send_in_pod` and `read_in_pod` work."""
        text = (FIXTURES / "client.yaml").read_text("utf-8")
        pod = text.replace("CLIENT_IMAGE", images.name("broker"))
        self.cluster.kubectl("apply", "-n", MAIN, "-f", "-", stdin=pod)
        self.cluster.wait_ready("pod/client", namespace=MAIN)

    def send_in_pod(self, topic: str, records: Iterable[kafka.Record]) -> None:
        """Send from a pod, through the bootstrap Service."""
        self._client("send", topic, kafka.to_lines(records))

    def read_in_pod(self, topic: str) -> list[kafka.Record]:
        """Read in a pod, through the bootstrap Service."""
        return kafka.from_lines(self._client("read", topic, b""))

    def _client(self, verb: str, topic: str, stdin: bytes) -> bytes:
        servers = self.bootstrap("plain")
        limit = f"{seconds(SETTLE):.0f}"
        command = ("python", "-c", CLIENT_PROGRAM, verb, servers, topic, limit)
        return self.cluster.kubectl_bytes(
            "exec", "-i", "-n", MAIN, "client", "--", *command, stdin=stdin
        )

    def setting(self, kind: ResourceType, of: str, name: str) -> str | None:
        """What Kafka says a setting of a broker or topic is."""
        resource = ConfigResource(kind, of)
        admin = self.admin()  # The answers come only as long as the client is there.
        found = admin.describe_configs([resource])[resource].result(seconds(ANSWER))
        value: str | None = found[name].value
        return value

    def partitions(self, topic: str) -> int:
        """How many partitions Kafka says a topic has; 0 if there is none."""
        found = self.admin().list_topics(timeout=seconds(ANSWER)).topics.get(topic)
        return len(found.partitions) if found else 0

    @property
    def pipeline(self) -> Pipeline:
        """Its pipeline."""
        return Pipeline(self.cluster, MAIN, PIPELINE, "packages")
