"""The names and labels of what the operator makes; nothing else spells them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from barnabas_operator.api import GROUP

FIELD_MANAGER: Final = "barnabas-operator"
MANAGED_BY: Final = "app.kubernetes.io/managed-by"
INSTANCE: Final = "app.kubernetes.io/instance"
COMPONENT: Final = "app.kubernetes.io/component"
PIPELINE: Final = f"{GROUP}/pipeline"
# Labels of our own, by which pods are selected. GitOps tools track, and prune, what they applied by
# `app.kubernetes.io/instance`: it is on no claim, for claims outlive their owner.
CLUSTER: Final = f"{GROUP}/cluster"
CLUSTER_COMPONENT: Final = f"{GROUP}/component"
# On StatefulSets of a secured cluster, without which it is insecure; and a label of their claims.
SECURITY: Final = f"{GROUP}/security"
# On StatefulSets of a cluster whose ZooKeeper has TLS; without it ZooKeeper's traffic is plain.
ZOOKEEPER_PROTOCOL: Final = f"{GROUP}/zookeeper-protocol"
# Of certificates of what the operator runs; those of users have none.
ORGANIZATION: Final = "barnabas.io"
# On every object: the hash of what was last applied, so that a removed field is noticed.
APPLIED_HASH: Final = f"{GROUP}/applied-hash"
# On StatefulSets and ConfigMaps: the operator, and the generation for which they were rendered.
RENDERED: Final = f"{GROUP}/rendered"
# On StatefulSets: the image that was rendered, whatever a webhook made of it.
IMAGE: Final = f"{GROUP}/image"
# On the brokers' ConfigMap: what they speak among themselves, an inter.broker.protocol.version.
PROTOCOL: Final = f"{GROUP}/protocol"
# On a KafkaCluster: the token of a roll that may go on.
APPROVE_ROLL: Final = f"{GROUP}/approve-roll"
# On a KafkaCluster: the token of a roll that may go on whatever brokers, budget and policy say.
FORCE_ROLL: Final = f"{GROUP}/force-roll"
# On a KafkaCluster: no pod that serves is replaced while it is there, but for `false`.
PAUSE_ROLL: Final = f"{GROUP}/pause-roll"
# On a pod of a cluster: it is replaced as if its template had changed.
MANUAL_ROLL: Final = f"{GROUP}/manual-roll"
# On a KafkaCluster: another value replaces the certificate authority.
ROTATE_CLUSTER_CA: Final = f"{GROUP}/rotate-cluster-ca"
ROTATE_CLIENTS_CA: Final = f"{GROUP}/rotate-clients-ca"
# On the Secret of an authority: when the present step of its replacement began, and what was asked.
ROTATION_SINCE: Final = f"{GROUP}/rotation-since"
ROTATION: Final = f"{GROUP}/rotation"
# On pod templates: the hash of the configuration that the pod reads at start.
CONFIG_HASH: Final = f"{GROUP}/config-hash"
# On the brokers' StatefulSet: which settings changes of the resource need no roll for.
DYNAMIC_CONFIG: Final = f"{GROUP}/dynamic-config"
# On the brokers' pods: the rack of the node on which a pod has come to run.
RACK: Final = f"{GROUP}/rack"

ZOOKEEPER_PORT: Final = 2181
SECURE_ZOOKEEPER_PORT: Final = 2281
PEER_PORT: Final = 2888
ELECTION_PORT: Final = 3888
STATUS_PORT: Final = 8080


@dataclass(frozen=True, slots=True)
class ClusterNames:
    """The names of what belongs to a KafkaCluster."""

    cluster: str
    namespace: str

    @property
    def zookeeper(self) -> str:
        """StatefulSet, Service, ConfigMap and PodDisruptionBudget of the ensemble."""
        return f"{self.cluster}-zookeeper"

    @property
    def zookeeper_nodes(self) -> str:
        """Headless Service that gives each member a name."""
        return f"{self.cluster}-zookeeper-nodes"

    @property
    def broker(self) -> str:
        """StatefulSet, ConfigMap and PodDisruptionBudget of the brokers."""
        return f"{self.cluster}-broker"

    @property
    def broker_nodes(self) -> str:
        """Headless Service that gives each broker a name."""
        return f"{self.cluster}-broker-nodes"

    @property
    def bootstrap(self) -> str:
        """Service for a client's first connection."""
        return f"{self.cluster}-bootstrap"

    @property
    def cluster_ca(self) -> str:
        """Secret of the authority for brokers, ensemble and operator."""
        return f"{self.cluster}-cluster-ca"

    @property
    def clients_ca(self) -> str:
        """Secret of the authority for certificates of users."""
        return f"{self.cluster}-clients-ca"

    @property
    def public_ca(self) -> str:
        """Secret with the certificates that clients trust, and no key."""
        return f"{self.cluster}-cluster-ca-cert"

    @property
    def broker_tls(self) -> str:
        """Secret of the brokers' certificate."""
        return f"{self.cluster}-broker-tls"

    @property
    def operator(self) -> str:
        """The operator's name in its certificate for the cluster."""
        return f"{self.cluster}-operator"

    @property
    def operator_tls(self) -> str:
        """Secret of the operator's certificate, by which brokers of a secured cluster know it."""
        return f"{self.cluster}-operator-tls"

    @property
    def admin_token(self) -> str:
        """Secret of the token that the admin ports of a secured cluster ask for."""
        return f"{self.cluster}-admin-token"

    @property
    def zookeeper_tls(self) -> str:
        """Secret of the certificate of an ensemble whose traffic is TLS."""
        return f"{self.cluster}-zookeeper-tls"

    def network(self, component: str) -> str:
        """NetworkPolicy of a component of a secured cluster."""
        return f"{self.cluster}-{component}-network"

    def broker_pod(self, pod: str) -> str:
        """Host name of a broker's pod, within the Kubernetes cluster."""
        return f"{pod}.{self.broker_nodes}.{self.namespace}.svc"

    @property
    def former_ledger(self) -> str:
        """ConfigMap in which earlier versions recorded all managed topics."""
        return f"{self.cluster}-topics"

    def ledger(self, shard: int, component: str = "topics") -> str:
        """ConfigMap with a part of the ledger of topics, or of users."""
        return f"{self.cluster}-{component}-{shard}"

    def external(self, ordinal: int) -> str:
        """Service that gives one broker its ports on the nodes."""
        return f"{self.broker}-{ordinal}-external"

    @property
    def addresses(self) -> str:
        """ConfigMap with what each broker advertises, where that differs in more than its id."""
        return f"{self.broker}-addresses"

    def listener_broker(self, listener: str, ordinal: int | str) -> str:
        """Service, Ingress or TLSRoute by which one listener of one broker is reached."""
        return f"{self.cluster}-{listener}-{ordinal}"

    def listener_bootstrap(self, listener: str) -> str:
        """Service, Ingress or TLSRoute of a listener for a client's first connection."""
        return f"{self.cluster}-{listener}-bootstrap"

    def listener_certificate(self, listener: str) -> str:
        """Certificate of cert-manager for a listener, and the Secret with what is issued."""
        return f"{self.cluster}-{listener}-certificate"

    def zookeeper_host(self, ordinal: int) -> str:
        """Host name of a member, within the Kubernetes cluster."""
        return f"{self.zookeeper}-{ordinal}.{self.zookeeper_nodes}.{self.namespace}.svc"

    def zookeeper_connect(self, replicas: int, port: int = ZOOKEEPER_PORT) -> str:
        """`zookeeper.connect` of the brokers; the chroot is the cluster's name."""
        hosts = (f"{self.zookeeper_host(n)}:{port}" for n in range(replicas))
        return f"{','.join(hosts)}/{self.cluster}"

    def bootstrap_server(self, port: int) -> str:
        """`bootstrap.servers` within the Kubernetes cluster."""
        return f"{self.bootstrap}.{self.namespace}.svc:{port}"

    def labels(self, component: str) -> dict[str, str]:
        """Labels of an object of the cluster."""
        return {**labels(self.cluster, component), **self.selector(component)}

    def selector(self, component: str) -> dict[str, str]:
        """The labels by which pods are selected, unless their StatefulSet has others already."""
        return {CLUSTER: self.cluster, CLUSTER_COMPONENT: component}


@dataclass(frozen=True, slots=True)
class PipelineNames:
    """The names of what belongs to a KafkaPipeline."""

    pipeline: str
    namespace: str

    @property
    def all(self) -> str:
        """StatefulSet, Service and ConfigMap."""
        return f"{self.pipeline}-pipeline"

    @property
    def status_url(self) -> str:
        """Where the pod serves its status."""
        return f"http://{self.all}.{self.namespace}.svc:{STATUS_PORT}/status"

    def labels(self, cluster: str) -> dict[str, str]:
        """Labels of an object of the pipeline."""
        return {**labels(cluster, "pipeline"), PIPELINE: self.pipeline}

    def selector(self) -> dict[str, str]:
        """The labels by which the pod is selected."""
        return {COMPONENT: "pipeline", PIPELINE: self.pipeline}


def principal_of(name: str) -> str:
    """The principal of what the operator runs, by the common name of its certificate."""
    return f"CN={name},O={ORGANIZATION}"


def labels(instance: str, component: str) -> dict[str, str]:
    """The labels of every object that the operator makes."""
    return {
        "app.kubernetes.io/name": "barnabas",
        INSTANCE: instance,
        COMPONENT: component,
        MANAGED_BY: FIELD_MANAGER,
    }
