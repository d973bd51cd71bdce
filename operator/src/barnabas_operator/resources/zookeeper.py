"""The ZooKeeper ensemble of a cluster.

In a secured cluster clients and members come over TLS and show certificates of the cluster's
authority, unless the cluster was created by an operator that had no TLS for ZooKeeper.

The image's entry takes `zoo.cfg` from the ConfigMap, writes `myid` (the pod's ordinal and one) into
an empty data directory, and refuses to start where another member's `myid` lies. It copies renewed
certificates to where ZooKeeper looks for them. Its verbs `live` and `ready` are the probes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from barnabas_operator.api.clusters import KafkaCluster
from barnabas_operator.api.reading import Resource
from barnabas_operator.names import (
    CONFIG_HASH,
    ELECTION_PORT,
    PEER_PORT,
    SECURE_ZOOKEEPER_PORT,
    ZOOKEEPER_PORT,
    ClusterNames,
)
from barnabas_operator.resources import config, objects, pods, services
from barnabas_operator.resources.objects import Document

COMPONENT: Final = "zookeeper"
CONFIG_PATH: Final = "/etc/barnabas"
# The image's entry point, which is also the program of its probes.
MEMBER: Final = "zookeeper-member"
# Where the ensemble's Secret is mounted.
MOUNT_PATH: Final = "/etc/zookeeper-tls"


def zookeeper_objects(
    cluster: Resource[KafkaCluster], *, image: str, selector: Mapping[str, str] | None = None
) -> list[Document]:
    """Everything of the ensemble, in the order in which it is applied.

    `selector` is that of a StatefulSet that exists: it cannot change.
    """
    names = ClusterNames(cluster.meta.name, cluster.meta.namespace)
    labels, selector = names.labels(COMPONENT), selector or names.selector(COMPONENT)
    owner = cluster.meta
    text = zookeeper_config(cluster)
    config_map = objects.document("v1", "ConfigMap", names.zookeeper, owner=owner, labels=labels)
    config_map["data"] = {"zoo.cfg": text}
    port = client_port(cluster.body)
    peers = {"client": port, "peer": PEER_PORT, "election": ELECTION_PORT}
    return [
        objects.owned(body, owner=owner, kind=cluster.kind)
        for body in (
            config_map,
            services.headless(
                names.zookeeper_nodes, owner=owner, labels=labels, selector=selector, ports=peers
            ),
            services.cluster_ip(
                names.zookeeper,
                owner=owner,
                labels=labels,
                selector=selector,
                ports={"client": port},
            ),
            services.disruption_budget(
                names.zookeeper, owner=owner, labels=labels, selector=selector
            ),
            _stateful_set(cluster, names, selector, image=image, config_hash=objects.digest(text)),
        )
    ]


def zookeeper_config(cluster: Resource[KafkaCluster]) -> str:
    """The ensemble's zoo.cfg."""
    names = ClusterNames(cluster.meta.name, cluster.meta.namespace)
    replicas = cluster.body.spec.zookeeper.replicas
    members = [config.EnsembleMember(host=names.zookeeper_host(n)) for n in range(replicas)]
    return config.zoo_cfg(cluster.meta.name, members=members, tls=cluster.body.zookeeper_tls)


def client_port(cluster: KafkaCluster) -> int:
    """Where brokers and operator reach a member."""
    return SECURE_ZOOKEEPER_PORT if cluster.zookeeper_tls else ZOOKEEPER_PORT


def _stateful_set(
    cluster: Resource[KafkaCluster],
    names: ClusterNames,
    selector: Mapping[str, str],
    *,
    image: str,
    config_hash: str,
) -> Document:
    spec = cluster.body.spec.zookeeper
    labels = names.labels(COMPONENT)
    body = objects.document(
        "apps/v1", "StatefulSet", names.zookeeper, owner=cluster.meta, labels=labels
    )
    objects.mark_secured(body, cluster)
    template = _pod_template(cluster, names, selector, image=image, config_hash=config_hash)
    body["spec"] = {
        "replicas": spec.replicas,
        "serviceName": names.zookeeper_nodes,
        "podManagementPolicy": "Parallel",
        "updateStrategy": {"type": "OnDelete"},
        "persistentVolumeClaimRetentionPolicy": objects.claim_policy(spec.storage.deletion_policy),
        "selector": {"matchLabels": dict(selector)},
        "template": pods.with_template(template, spec.template, selector),
        "volumeClaimTemplates": [
            objects.claim_template(
                "data",
                spec.storage.size,
                storage_class=spec.storage.storage_class,
                labels=objects.claim_labels(cluster, names.selector(COMPONENT)),
            )
        ],
    }
    return body


def template_conflicts(cluster: Resource[KafkaCluster]) -> list[str]:
    """What `spec.zookeeper.template` asks for although the operator has it."""
    names = ClusterNames(cluster.meta.name, cluster.meta.namespace)
    selector = names.selector(COMPONENT)
    own = _pod_template(cluster, names, selector, image="", config_hash="")
    return pods.conflicts(own, cluster.body.spec.zookeeper.template, "spec.zookeeper.template")


def _pod_template(
    cluster: Resource[KafkaCluster],
    names: ClusterNames,
    selector: Mapping[str, str],
    *,
    image: str,
    config_hash: str,
) -> Document:
    """The operator's own template of the members' pods."""
    spec = cluster.body.spec
    pod: Document = {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": 30,
        "securityContext": objects.pod_security(),
        "affinity": objects.spread(selector),
        "containers": [_container(cluster.body, image=image)],
        "volumes": [
            {"name": "config", "configMap": {"name": names.zookeeper}},
            {"name": "tmp", "emptyDir": {"sizeLimit": "64Mi"}},
        ],
    }
    if cluster.body.zookeeper_tls:
        # Readable by the group of the volumes, which is ZooKeeper's.
        source = {"secretName": names.zookeeper_tls, "defaultMode": 0o440}
        pod["volumes"] += [
            {"name": "tls", "secret": source},
            {"name": "tls-copy", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}},
        ]
    if constraints := pods.spread_by_profile(spec.profile, selector):
        pod["topologySpreadConstraints"] = constraints
    return {
        "metadata": {
            "labels": names.labels(COMPONENT),
            "annotations": {CONFIG_HASH: config_hash},
        },
        "spec": pod,
    }


def _container(cluster: KafkaCluster, *, image: str) -> Document:
    resources = cluster.spec.zookeeper.resources
    # The kubelet is no party of TLS: a connection of it would be logged as one that failed.
    within = {"exec": {"command": [MEMBER, "live"]}, "timeoutSeconds": 5}
    live = within if cluster.zookeeper_tls else {"tcpSocket": {"port": "client"}}
    container: Document = {
        "name": COMPONENT,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "env": [
            objects.field_env("POD_NAME", "metadata.name"),
            objects.field_env("POD_INDEX", "metadata.labels['apps.kubernetes.io/pod-index']"),
        ],
        "ports": [
            {"name": "client", "containerPort": client_port(cluster), "protocol": "TCP"},
            {"name": "peer", "containerPort": PEER_PORT, "protocol": "TCP"},
            {"name": "election", "containerPort": ELECTION_PORT, "protocol": "TCP"},
        ],
        "startupProbe": {**live, "periodSeconds": 2, "failureThreshold": 150},
        "livenessProbe": {**live, "periodSeconds": 10, "failureThreshold": 6},
        "readinessProbe": {
            "exec": {"command": [MEMBER, "ready"]},
            "periodSeconds": 5,
            "timeoutSeconds": 5,
        },
        "resources": objects.container_resources(resources),
        "securityContext": objects.container_security(),
        "volumeMounts": [
            {"name": "config", "mountPath": CONFIG_PATH, "readOnly": True},
            {"name": "data", "mountPath": config.ZOOKEEPER_DATA},
            {"name": "tmp", "mountPath": "/tmp"},  # noqa: S108 - the container's own
        ],
    }
    if cluster.zookeeper_tls:
        container["env"].append({"name": "ZOOKEEPER_CERTIFICATES", "value": MOUNT_PATH})
        container["env"].append(
            {"name": "ZOOKEEPER_CERTIFICATE_COPY", "value": config.ZOOKEEPER_TLS}
        )
        container["volumeMounts"] += [
            {"name": "tls", "mountPath": MOUNT_PATH, "readOnly": True},
            {"name": "tls-copy", "mountPath": config.ZOOKEEPER_TLS},
        ]
    return container
