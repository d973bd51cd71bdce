"""The brokers of a cluster, and the Services by which they are found."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from barnabas_operator.api.amounts import format_bytes
from barnabas_operator.api.clusters import ADMIN_PORT, KafkaCluster, Listener, ListenerType
from barnabas_operator.api.reading import Resource
from barnabas_operator.names import CONFIG_HASH, RACK, ClusterNames
from barnabas_operator.resources import config, objects, services
from barnabas_operator.resources.objects import Document
from barnabas_operator.sizing import Estimate, LogShape, estimate

COMPONENT: Final = "broker"
CONFIG_PATH: Final = "/etc/barnabas"
POD_PATH: Final = "/etc/barnabas-pod"
# A broker closes its logs at the end; without that the next start checks them.
GRACE_SECONDS: Final = 120
DISCOVERY: Final = "barnabas.io/listeners"
# What Prometheus looks for where pods are found by annotations.
SCRAPED: Final = {
    "prometheus.io/scrape": "true",
    "prometheus.io/port": str(ADMIN_PORT),
    "prometheus.io/path": "/metrics",
}

# Ports of the nodes by listener name, as far as they are known.
NodePorts = Mapping[str, int]


def broker_services(cluster: Resource[KafkaCluster]) -> list[Document]:
    """The Services; they come first, for Kubernetes may have to choose ports of the nodes."""
    names = ClusterNames(cluster.meta.name, cluster.meta.namespace)
    labels, selector = names.labels(COMPONENT), names.selector(COMPONENT)
    owner, listeners = cluster.meta, cluster.body.spec.listeners
    internal = {each.name: each.port for each in _internal(listeners)}
    bootstrap = services.cluster_ip(
        names.bootstrap, owner=owner, labels=labels, selector=selector, ports=internal
    )
    found = [{"name": name, "port": port, "protocol": "kafka"} for name, port in internal.items()]
    bootstrap["metadata"]["annotations"] = {DISCOVERY: json.dumps(found)}
    bodies = [
        services.headless(
            names.broker_nodes, owner=owner, labels=labels, selector=selector, ports=internal
        ),
        bootstrap,
    ]
    external = _external(listeners)
    for ordinal in range(cluster.body.spec.brokers.replicas if external else 0):
        pod = {**selector, "statefulset.kubernetes.io/pod-name": f"{names.broker}-{ordinal}"}
        ports = [
            (each.name, each.port, None if each.node_port is None else each.node_port + ordinal)
            for each in external
        ]
        bodies.append(
            services.node_port(
                names.external(ordinal), owner=owner, labels=labels, selector=pod, ports=ports
            )
        )
    return [objects.owned(body, owner=owner, kind=cluster.kind) for body in bodies]


def broker_workload(
    cluster: Resource[KafkaCluster], *, image: str, node_ports: NodePorts
) -> list[Document]:
    """Configuration, budget and StatefulSet; `node_ports` are those of broker 0's Service."""
    names = ClusterNames(cluster.meta.name, cluster.meta.namespace)
    labels, selector = names.labels(COMPONENT), names.selector(COMPONENT)
    owner = cluster.meta
    text = broker_config(cluster)
    config_map = objects.document("v1", "ConfigMap", names.broker, owner=owner, labels=labels)
    config_map["data"] = {"server.properties": text}
    stateful_set = objects.document(
        "apps/v1", "StatefulSet", names.broker, owner=owner, labels=labels
    )
    storage = cluster.body.spec.brokers.storage
    stateful_set["spec"] = {
        "replicas": cluster.body.spec.brokers.replicas,
        "serviceName": names.broker_nodes,
        "podManagementPolicy": "Parallel",
        "updateStrategy": {"type": "OnDelete"},
        "persistentVolumeClaimRetentionPolicy": objects.claim_policy(storage.deletion_policy),
        "selector": {"matchLabels": selector},
        "template": {
            "metadata": {
                "labels": labels,
                "annotations": {CONFIG_HASH: objects.digest(text), **SCRAPED},
            },
            "spec": _pod(cluster, names, image=image, node_ports=node_ports),
        },
        "volumeClaimTemplates": [
            objects.claim_template(
                "data",
                claim_size(cluster.body),
                storage_class=storage.storage_class,
                labels=selector,
            )
        ],
    }
    bodies = (
        config_map,
        services.disruption_budget(names.broker, owner=owner, labels=labels, selector=selector),
        stateful_set,
    )
    return [objects.owned(body, owner=owner, kind=cluster.kind) for body in bodies]


def broker_config(cluster: Resource[KafkaCluster]) -> str:
    """The brokers' server.properties."""
    names = ClusterNames(cluster.meta.name, cluster.meta.namespace)
    spec = cluster.body.spec
    return config.server_properties(
        cluster.meta.name,
        listeners=spec.listeners,
        config=spec.broker_config,
        brokers=spec.brokers.replicas,
        zookeeper_connect=names.zookeeper_connect(spec.zookeeper.replicas),
    )


def claim_size(cluster: KafkaCluster) -> str:
    """The size of each broker's claim, given or reckoned."""
    storage = cluster.spec.brokers.storage
    if storage.size is not None:
        return storage.size
    reckoned = storage_estimate(cluster)
    if reckoned is None:
        raise ValueError("spec.brokers.storage: give either size or sizing")
    return format_bytes(reckoned.claim_bytes)


def storage_estimate(cluster: KafkaCluster) -> Estimate | None:
    """The arithmetic behind the claim's size, if it is reckoned."""
    sizing = cluster.spec.brokers.storage.sizing
    if sizing is None:
        return None
    return estimate(
        sizing, brokers=cluster.spec.brokers.replicas, shape=log_shape(cluster.spec.config)
    )


def log_shape(settings: Mapping[str, str]) -> LogShape:
    """What the cluster's settings say of segments and indexes; Kafka's defaults for the rest."""
    defaults = LogShape()
    hours = settings.get("log.roll.hours")
    segment_ms = int(hours) * 3_600_000 if hours else defaults.segment_ms
    return LogShape(
        segment_bytes=int(settings.get("log.segment.bytes", defaults.segment_bytes)),
        segment_ms=int(settings.get("log.roll.ms", segment_ms)),
        index_interval_bytes=int(
            settings.get("log.index.interval.bytes", defaults.index_interval_bytes)
        ),
    )


def _internal(listeners: tuple[Listener, ...]) -> list[Listener]:
    return [each for each in listeners if each.type is ListenerType.INTERNAL]


def _external(listeners: tuple[Listener, ...]) -> list[Listener]:
    return [each for each in listeners if each.type is ListenerType.NODEPORT]


def advertised_listeners(
    cluster: Resource[KafkaCluster], names: ClusterNames, node_ports: NodePorts
) -> str:
    """What the brokers tell clients, as text in double quotes for the pod's shell."""
    addresses = []
    for each in cluster.body.spec.listeners:
        if each.type is ListenerType.NODEPORT:
            host = each.advertised_host or "$HOST_IP"
            first = node_ports.get(each.name, each.node_port)
            if first is None:
                raise ValueError(f"listener {each.name}: its port of the nodes is not known yet")
            port = f"$(({first} + POD_INDEX))"
        else:
            host = f"$POD_NAME.{names.broker_nodes}.{names.namespace}.svc"
            port = str(each.port)
        addresses.append(f"{each.kafka_name}://{host}:{port}")
    return ",".join(addresses)


def _probe(path: str, *, period_s: int, failures: int) -> Document:
    """The broker gives its event loop five seconds to answer."""
    return {
        "httpGet": {"path": path, "port": "metrics"},
        "periodSeconds": period_s,
        "timeoutSeconds": 6,
        "failureThreshold": failures,
    }


def _pod(
    cluster: Resource[KafkaCluster], names: ClusterNames, *, image: str, node_ports: NodePorts
) -> Document:
    spec = cluster.body.spec
    container: Document = {
        "name": COMPONENT,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["/bin/sh", "-euc", _script(cluster, names, node_ports)],
        "env": [
            objects.field_env("POD_NAME", "metadata.name"),
            objects.field_env("POD_INDEX", "metadata.labels['apps.kubernetes.io/pod-index']"),
            objects.field_env("HOST_IP", "status.hostIP"),
        ],
        "ports": [
            {"name": each.name, "containerPort": each.port, "protocol": "TCP"}
            for each in spec.listeners
        ]
        + [{"name": "metrics", "containerPort": ADMIN_PORT, "protocol": "TCP"}],
        # Logs that were not closed are checked first: an hour of patience.
        "startupProbe": _probe("/live", period_s=2, failures=1800),
        "livenessProbe": _probe("/live", period_s=10, failures=6),
        "readinessProbe": _probe("/ready", period_s=10, failures=3),
        "resources": objects.container_resources(spec.brokers.resources),
        "securityContext": objects.container_security(),
        "volumeMounts": [
            {"name": "config", "mountPath": CONFIG_PATH, "readOnly": True},
            {"name": "data", "mountPath": config.BROKER_VOLUME},
            {"name": "tmp", "mountPath": "/tmp"},  # noqa: S108 - the container's own
        ],
    }  # fmt: skip
    pod: Document = {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": GRACE_SECONDS,
        "securityContext": objects.pod_security(),
        "affinity": objects.spread(names.selector(COMPONENT)),
        "containers": [container],
        "volumes": [
            {"name": "config", "configMap": {"name": names.broker}},
            {"name": "tmp", "emptyDir": {"sizeLimit": "64Mi"}},
        ],
    }
    if spec.brokers.rack is not None:
        _add_rack(pod, names, image=image, topology_key=spec.brokers.rack.topology_key)
    return pod


def _script(cluster: Resource[KafkaCluster], names: ClusterNames, node_ports: NodePorts) -> str:
    """What starts a broker: only a shell can count on from the port of broker 0."""
    settings = [
        "broker.id=$POD_INDEX",
        f"advertised.listeners={advertised_listeners(cluster, names, node_ports)}",
    ]
    if cluster.body.spec.brokers.rack is not None:
        settings.append(f"broker.rack=$(cat {POD_PATH}/rack)")
    given = "".join(f' \\\n  --set "{setting}"' for setting in settings)
    return (
        f"exec barnabas broker start --supervised --config {CONFIG_PATH}/server.properties{given}\n"
    )


def _add_rack(pod: Document, names: ClusterNames, *, image: str, topology_key: str) -> None:
    """Spread the pods over racks, and start no broker before the operator told it its own.

    Only the operator may look at nodes. What it finds it writes to the pod's annotation, and that
    comes to the broker as a file; a broker that started without it would be placed as if it had
    no rack.
    """
    selector = names.selector(COMPONENT)
    pod["topologySpreadConstraints"] = [
        {
            "maxSkew": 1,
            "topologyKey": topology_key,
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": selector},
        }
    ]
    mount = {"name": "pod", "mountPath": POD_PATH, "readOnly": True}
    pod["containers"][0]["volumeMounts"].append(mount)
    item = {"path": "rack", "fieldRef": {"fieldPath": f"metadata.annotations['{RACK}']"}}
    pod["volumes"].append({"name": "pod", "downwardAPI": {"items": [item]}})
    pod["initContainers"] = [
        {
            "name": "rack",
            "image": image,
            "imagePullPolicy": "IfNotPresent",
            "command": ["/bin/sh", "-euc", f"until [ -s {POD_PATH}/rack ]; do sleep 1; done"],
            "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}},
            "securityContext": objects.container_security(),
            "volumeMounts": [mount],
        }
    ]
