"""The brokers of a cluster, and the Services by which they are found."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Final

from barnabas_operator.api.amounts import format_bytes
from barnabas_operator.api.clusters import KafkaCluster
from barnabas_operator.api.listeners import ADMIN_PORT, Listener, ListenerType, filled
from barnabas_operator.api.reading import Resource
from barnabas_operator.names import CONFIG_HASH, RACK, ClusterNames
from barnabas_operator.resources import config, listeners, objects, pods, services, zookeeper
from barnabas_operator.resources.certificates import BROKER_PATH
from barnabas_operator.resources.objects import Document
from barnabas_operator.sizing import Estimate, LogShape, estimate

COMPONENT: Final = "broker"
CONFIG_PATH: Final = "/etc/barnabas"
ADDRESSES_PATH: Final = "/etc/barnabas-addresses"
POD_PATH: Final = "/etc/barnabas-pod"
# From the pod's label, and from its annotation.
RACK_FILES: Final = (f"{POD_PATH}/topology", f"{POD_PATH}/rack")
# A broker closes its logs at the end; without that the next start checks them.
GRACE_SECONDS: Final = 120
TLS_VOLUME: Final = "tls"
DISCOVERY: Final = "barnabas.io/listeners"
# What Prometheus looks for where pods are found by annotations.
SCRAPED: Final = {
    "prometheus.io/scrape": "true",
    "prometheus.io/port": str(ADMIN_PORT),
    "prometheus.io/path": "/metrics",
}
SCHEME: Final = "prometheus.io/scheme"

# Ports of the nodes by listener name, as far as they are known.
NodePorts = Mapping[str, int]


def broker_services(
    cluster: Resource[KafkaCluster], *, selector: Mapping[str, str] | None = None
) -> list[Document]:
    """The Services; they come first, for Kubernetes may have to choose ports of the nodes.

    `selector` is that of a StatefulSet that exists: it cannot change.
    """
    names = ClusterNames(cluster.meta.name, cluster.meta.namespace)
    labels, selector = names.labels(COMPONENT), selector or names.selector(COMPONENT)
    owner, wanted = cluster.meta, cluster.body.spec.listeners
    internal = {each.name: each.port for each in _internal(cluster.body.spec.all_listeners)}
    bootstrap = services.cluster_ip(
        names.bootstrap, owner=owner, labels=labels, selector=selector, ports=internal
    )
    found = [
        {"name": each.name, "port": each.port, "protocol": "kafka"} for each in _internal(wanted)
    ]
    bootstrap["metadata"]["annotations"] = {DISCOVERY: json.dumps(found)}
    bodies = [
        services.headless(
            names.broker_nodes, owner=owner, labels=labels, selector=selector, ports=internal
        ),
        bootstrap,
    ]
    external = _external(wanted)
    for ordinal in range(cluster.body.spec.brokers.replicas if external else 0):
        pod = {**selector, "statefulset.kubernetes.io/pod-name": f"{names.broker}-{ordinal}"}
        ports = [
            (each.name, each.port, node_port_of(each, ordinal, each.node_port)) for each in external
        ]
        bodies.append(
            _with_additions(
                services.node_port(
                    names.external(ordinal), owner=owner, labels=labels, selector=pod, ports=ports
                ),
                external,
                ordinal,
            )
        )
    bodies += listeners.listener_objects(cluster, selector=selector)
    return [objects.owned(body, owner=owner, kind=cluster.kind) for body in bodies]


def _with_additions(service: Document, wanted: list[Listener], ordinal: int) -> Document:
    """The Service of a broker's ports on the nodes with what its listeners add to it."""
    meta, spec = service["metadata"], service["spec"]
    annotations: dict[str, str] = {}
    for each in wanted:
        given, own = each.configuration, each.configuration.of_broker(ordinal)
        for name, value in {**given.labels, **own.labels}.items():
            meta["labels"].setdefault(name, filled(value, ordinal))
        for name, value in {**given.annotations, **own.annotations}.items():
            annotations[name] = filled(value, ordinal)
        if given.external_traffic_policy is not None:
            spec["externalTrafficPolicy"] = given.external_traffic_policy.value
    if annotations:
        meta["annotations"] = annotations
    return service


def node_port_of(listener: Listener, ordinal: int, first: int | None) -> int | None:
    """The port of the nodes for a broker; None where Kubernetes chooses."""
    own = listener.configuration.of_broker(ordinal).node_port
    if own is not None:
        return own
    return None if first is None else first + ordinal


def broker_workload(
    cluster: Resource[KafkaCluster],
    *,
    image: str,
    node_ports: NodePorts,
    found: listeners.Objects | None = None,
    selector: Mapping[str, str] | None = None,
    max_unavailable: int = 1,
) -> list[Document]:
    """Configuration, addresses, budget and StatefulSet.

    `node_ports` are those of broker 0's Service, `found` the objects with addresses in them.
    """
    names = ClusterNames(cluster.meta.name, cluster.meta.namespace)
    labels, selector = names.labels(COMPONENT), selector or names.selector(COMPONENT)
    owner = cluster.meta
    text = broker_config(cluster)
    config_map = objects.document("v1", "ConfigMap", names.broker, owner=owner, labels=labels)
    config_map["data"] = {"server.properties": text}
    stateful_set = objects.document(
        "apps/v1", "StatefulSet", names.broker, owner=owner, labels=labels
    )
    objects.mark_secured(stateful_set, cluster)
    storage = cluster.body.spec.brokers.storage
    stateful_set["spec"] = {
        "replicas": cluster.body.spec.brokers.replicas,
        "serviceName": names.broker_nodes,
        "podManagementPolicy": "Parallel",
        "updateStrategy": {"type": "OnDelete"},
        "persistentVolumeClaimRetentionPolicy": objects.claim_policy(storage.deletion_policy),
        "selector": {"matchLabels": dict(selector)},
        "template": pods.with_template(
            _pod_template(cluster, names, selector, image=image, node_ports=node_ports),
            cluster.body.spec.brokers.template,
            selector,
        ),
        "volumeClaimTemplates": [
            objects.claim_template(
                "data",
                claim_size(cluster.body),
                storage_class=storage.storage_class,
                labels=objects.claim_labels(cluster, names.selector(COMPONENT)),
            )
        ],
    }
    bodies = (
        config_map,
        *_addresses(cluster, names, node_ports, found or {}),
        services.disruption_budget(
            names.broker,
            owner=owner,
            labels=labels,
            selector=selector,
            max_unavailable=max_unavailable,
        ),
        stateful_set,
    )
    return [objects.owned(body, owner=owner, kind=cluster.kind) for body in bodies]


def template_conflicts(cluster: Resource[KafkaCluster]) -> list[str]:
    """What `spec.brokers.template` asks for although the operator has it."""
    names = ClusterNames(cluster.meta.name, cluster.meta.namespace)
    # Any port of the nodes will do: they are in the command alone.
    ports = {each.name: 0 for each in _external(cluster.body.spec.listeners)}
    selector = names.selector(COMPONENT)
    own = _pod_template(cluster, names, selector, image="", node_ports=ports)
    return pods.conflicts(own, cluster.body.spec.brokers.template, "spec.brokers.template")


def broker_config(cluster: Resource[KafkaCluster]) -> str:
    """The brokers' server.properties."""
    names = ClusterNames(cluster.meta.name, cluster.meta.namespace)
    spec = cluster.body.spec
    secured: dict[str, str] = {}
    if spec.secured:
        users = spec.authorization.super_users if spec.authorization else ()
        secured = config.secured_settings(names, users)
    if cluster.body.zookeeper_tls:
        secured |= config.zookeeper_tls_settings()
    port = zookeeper.client_port(cluster.body)
    return config.server_properties(
        cluster.meta.name,
        listeners=spec.all_listeners,
        config={**config.ensemble_settings(), **spec.broker_config, **secured},
        brokers=spec.brokers.replicas,
        zookeeper_connect=names.zookeeper_connect(spec.zookeeper.replicas, port),
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
    """What the cluster's settings say of segments and indexes; Kafka's defaults for the rest.

    A setting that is no number is taken for absent: the cluster is refused for it elsewhere.
    """
    defaults = LogShape()
    hours = _whole(settings, "log.roll.hours", 0)
    segment_ms = hours * 3_600_000 if hours else defaults.segment_ms
    return LogShape(
        segment_bytes=_whole(settings, "log.segment.bytes", defaults.segment_bytes),
        segment_ms=_whole(settings, "log.roll.ms", segment_ms),
        index_interval_bytes=_whole(
            settings, "log.index.interval.bytes", defaults.index_interval_bytes
        ),
    )


def _whole(settings: Mapping[str, str], key: str, default: int) -> int:
    try:
        return int(settings[key])
    except (KeyError, ValueError):
        return default


def _addresses(
    cluster: Resource[KafkaCluster],
    names: ClusterNames,
    node_ports: NodePorts,
    found: listeners.Objects,
) -> Iterator[Document]:
    """The ConfigMap with what each broker advertises, where a template cannot say it."""
    if not listeners.needs_files(cluster.body.spec.listeners):
        return
    labels = names.labels(COMPONENT)
    body = objects.document("v1", "ConfigMap", names.addresses, owner=cluster.meta, labels=labels)
    body["data"] = {
        str(broker): advertised_listeners(cluster, names, node_ports, broker=broker, found=found)
        for broker in range(cluster.body.spec.brokers.replicas)
    }
    yield body


def _internal(wanted: tuple[Listener, ...]) -> list[Listener]:
    return [each for each in wanted if each.type is ListenerType.INTERNAL]


def _external(wanted: tuple[Listener, ...]) -> list[Listener]:
    return [each for each in wanted if each.type is ListenerType.NODEPORT]


def advertised_listeners(
    cluster: Resource[KafkaCluster],
    names: ClusterNames,
    node_ports: NodePorts,
    *,
    broker: int | None = None,
    found: listeners.Objects | None = None,
) -> str:
    """What brokers advertise, with places that each fills in from its pod's environment.

    A listener whose address is not known yet is left out.
    """
    addresses = []
    for each in cluster.body.spec.all_listeners:
        host: str | None
        port = str(each.port)
        if each.type is ListenerType.NODEPORT:
            host, port = _on_node(each, broker, node_ports)
        elif each.type is ListenerType.INTERNAL:
            host = names.broker_pod("{POD_NAME}")
        else:
            host = listeners.own_host(each, broker, names, found or {})
            port = str(listeners.HTTPS) if each.type in listeners.ROUTED else port
        if host is not None:
            port = listeners.advertised_port(each, broker, port)
            addresses.append(f"{each.kafka_name}://{host}:{port}")
    return ",".join(addresses)


def _on_node(listener: Listener, broker: int | None, node_ports: NodePorts) -> tuple[str, str]:
    host = host_on_node(listener, broker, "{HOST_IP}")
    first = node_ports.get(listener.name, listener.node_port)
    if first is None:
        raise ValueError(f"listener {listener.name}: its port of the nodes is not known yet")
    if broker is None:
        return host, f"{{{first}+POD_INDEX}}"
    return host, str(node_port_of(listener, broker, first))


def host_on_node(listener: Listener, broker: int | None, node: str) -> str:
    """The advertised host of a broker on a node's port."""
    given = listener.configuration
    own = given.of_broker(broker).advertised_host if broker is not None else None
    # A resource has one of them.
    host = own or listener.advertised_host or given.advertised_host_template or node
    return filled(host, listeners.INDEX if broker is None else broker)


def _probe(path: str, *, secured: bool, period_s: int, failures: int) -> Document:
    """The broker gives its event loop five seconds to answer."""
    scheme = {"scheme": "HTTPS"} if secured else {}
    return {
        "httpGet": {"path": path, "port": "metrics", **scheme},
        "periodSeconds": period_s,
        "timeoutSeconds": 6,
        "failureThreshold": failures,
    }


def _pod_template(
    cluster: Resource[KafkaCluster],
    names: ClusterNames,
    selector: Mapping[str, str],
    *,
    image: str,
    node_ports: NodePorts,
) -> Document:
    """The operator's own template of the brokers' pods."""
    config_hash = objects.digest(broker_config(cluster))
    scraped = {**SCRAPED, **({SCHEME: "https"} if cluster.body.spec.secured else {})}
    return {
        "metadata": {
            "labels": names.labels(COMPONENT),
            "annotations": {CONFIG_HASH: config_hash, **scraped},
        },
        "spec": _pod(cluster, names, selector, image=image, node_ports=node_ports),
    }


def _pod(
    cluster: Resource[KafkaCluster],
    names: ClusterNames,
    selector: Mapping[str, str],
    *,
    image: str,
    node_ports: NodePorts,
) -> Document:
    spec = cluster.body.spec
    container: Document = {
        "name": COMPONENT,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": _command(cluster, names, node_ports),
        "env": [
            objects.field_env("POD_NAME", "metadata.name"),
            objects.field_env("POD_INDEX", "metadata.labels['apps.kubernetes.io/pod-index']"),
            objects.field_env("HOST_IP", "status.hostIP"),
        ],
        "ports": [
            {"name": each.name, "containerPort": each.port, "protocol": "TCP"}
            for each in spec.all_listeners
        ]
        + [{"name": "metrics", "containerPort": ADMIN_PORT, "protocol": "TCP"}],
        # Logs that were not closed are checked first: for up to an hour.
        # Until the admin port is open, which waits for the rack at most. From then on `/live` fails
        # only where log recovery makes no progress, however long it takes.
        "startupProbe": _probe("/live", secured=spec.secured, period_s=2, failures=300),
        "livenessProbe": _probe("/live", secured=spec.secured, period_s=10, failures=6),
        "readinessProbe": _probe("/ready", secured=spec.secured, period_s=10, failures=3),
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
        "affinity": objects.spread(selector),
        "containers": [container],
        "volumes": [
            {"name": "config", "configMap": {"name": names.broker}},
            {"name": "tmp", "emptyDir": {"sizeLimit": "64Mi"}},
        ],
    }
    if listeners.needs_files(spec.listeners):
        container["volumeMounts"].append(
            {"name": "addresses", "mountPath": ADDRESSES_PATH, "readOnly": True}
        )
        volume = {"name": "addresses", "configMap": {"name": names.addresses}}
        pod["volumes"].append(volume)
    if constraints := pods.spread_by_profile(spec.profile, selector):
        pod["topologySpreadConstraints"] = constraints
    if spec.needs_certificates:
        mount = {"name": TLS_VOLUME, "mountPath": BROKER_PATH, "readOnly": True}
        container["volumeMounts"].append(mount)
        # Readable by the group of the volumes, which is the broker's.
        source = {"secretName": names.broker_tls, "defaultMode": 0o440}
        pod["volumes"].append({"name": TLS_VOLUME, "secret": source})
    if spec.brokers.rack is not None:
        _add_rack(pod, selector, image=image, topology_key=spec.brokers.rack.topology_key)
    return pod


def _command(
    cluster: Resource[KafkaCluster], names: ClusterNames, node_ports: NodePorts
) -> list[str]:
    """What starts a broker: no shell, for one command has what differs from pod to pod."""
    advertised = ["--set-file", f"advertised.listeners={ADDRESSES_PATH}/{{POD_INDEX}}"]
    if not listeners.needs_files(cluster.body.spec.listeners):
        text = advertised_listeners(cluster, names, node_ports)
        advertised = ["--set", f"advertised.listeners={text}"]
    command = [
        "barnabas", "broker", "start", "--supervised", "--from-pod",
        "--config", f"{CONFIG_PATH}/server.properties",
        "--set", "broker.id={POD_INDEX}",
        *advertised,
    ]  # fmt: skip
    if cluster.body.spec.brokers.rack is not None:
        command += [part for file in RACK_FILES for part in ("--rack-file", file)]
    return command


def _add_rack(pod: Document, selector: Mapping[str, str], *, image: str, topology_key: str) -> None:
    """Spread the pods over racks, and start no broker before its own is known.

    Kubernetes copies the node's labels of zone and region onto a pod when it is bound, from 1.35 on
    (KEP-4742). Elsewhere the operator, which may get nodes, writes an annotation. Both reach the
    broker as files; one that started without would be placed as if it had no rack.
    """
    pod["topologySpreadConstraints"] = [
        each
        for each in pod.get("topologySpreadConstraints", ())
        if each["topologyKey"] != topology_key
    ] + [
        {
            "maxSkew": 1,
            "topologyKey": topology_key,
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": dict(selector)},
        }
    ]
    mount = {"name": "pod", "mountPath": POD_PATH, "readOnly": True}
    pod["containers"][0]["volumeMounts"].append(mount)
    fields = (f"metadata.labels['{topology_key}']", f"metadata.annotations['{RACK}']")
    items = [
        {"path": PurePosixPath(file).name, "fieldRef": {"fieldPath": field}}
        for file, field in zip(RACK_FILES, fields, strict=True)
    ]
    pod["volumes"].append({"name": "pod", "downwardAPI": {"items": items}})
    pod["initContainers"] = [
        {
            "name": "rack",
            "image": image,
            "imagePullPolicy": "IfNotPresent",
            "command": ["barnabas", "broker", "wait-for-rack", *RACK_FILES],
            "resources": {"requests": {"cpu": "10m", "memory": "32Mi"}},
            "securityContext": objects.container_security(),
            "volumeMounts": [mount],
        }
    ]
