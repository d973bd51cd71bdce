"""The workload of a pipeline: one pod, one volume for files and checkpoint.

A StatefulSet of one, never a Deployment: two pods at once would write to one checkpoint.
"""

from __future__ import annotations

from typing import Final

import yaml

from barnabas_operator.api import API_VERSION
from barnabas_operator.api.pipelines import KafkaPipeline
from barnabas_operator.api.reading import Resource
from barnabas_operator.api.writing import to_json
from barnabas_operator.names import CONFIG_HASH, STATUS_PORT, PipelineNames
from barnabas_operator.resources import objects, services
from barnabas_operator.resources.objects import Document
from barnabas_operator.resources.user_secret import MOUNT_PATH

CONFIG_PATH: Final = "/etc/barnabas"
DATA_PATH: Final = "/data"
USER_VOLUME: Final = "user"
# What only the operator acts on: images of other versions need not know these fields.
OPERATOR_FIELDS: Final = frozenset({"version", "image", "imagePullSecrets"})


def pipeline_objects(
    pipeline: Resource[KafkaPipeline], *, image: str, bootstrap_servers: str
) -> list[Document]:
    """ConfigMap, Service and StatefulSet, in the order in which they are applied."""
    names = PipelineNames(pipeline.meta.name, pipeline.meta.namespace)
    labels = names.labels(pipeline.body.spec.cluster)
    owner = pipeline.meta
    text = pipeline_config(pipeline)
    config_map = objects.document("v1", "ConfigMap", names.all, owner=owner, labels=labels)
    config_map["data"] = {"pipeline.yaml": text}
    service = services.headless(
        names.all,
        owner=owner,
        labels=labels,
        selector=names.selector(),
        ports={"status": STATUS_PORT},
    )
    stateful_set = objects.document("apps/v1", "StatefulSet", names.all, owner=owner, labels=labels)
    storage = pipeline.body.spec.storage
    stateful_set["spec"] = {
        "replicas": 1,
        "serviceName": names.all,
        "persistentVolumeClaimRetentionPolicy": objects.claim_policy(storage.deletion_policy),
        "selector": {"matchLabels": names.selector()},
        "template": {
            "metadata": {"labels": labels, "annotations": {CONFIG_HASH: objects.digest(text)}},
            "spec": _pod(pipeline, names, image=image, bootstrap_servers=bootstrap_servers),
        },
        "volumeClaimTemplates": [
            objects.claim_template(
                "data", storage.size, storage_class=storage.storage_class, labels=names.selector()
            )
        ],
    }
    bodies = (config_map, service, stateful_set)
    return [objects.owned(body, owner=owner, kind=pipeline.kind) for body in bodies]


def pipeline_config(pipeline: Resource[KafkaPipeline]) -> str:
    """The resource itself, with all defaults: the pod runs what `barnabas pipeline run` runs."""
    spec = to_json(pipeline.body.spec)
    resource = {
        "apiVersion": API_VERSION,
        "kind": pipeline.kind,
        "metadata": {"name": pipeline.meta.name, "namespace": pipeline.meta.namespace},
        "spec": {name: value for name, value in spec.items() if name not in OPERATOR_FIELDS},
    }
    return yaml.safe_dump(resource, sort_keys=False)


def _pod(
    pipeline: Resource[KafkaPipeline], names: PipelineNames, *, image: str, bootstrap_servers: str
) -> Document:
    http = {"httpGet": {"path": "/status", "port": "status"}}
    user = pipeline.body.spec.user
    # Of a user, the addresses are in its Secret: they are those of its listener.
    source = (
        {"name": "BARNABAS_KAFKA_USER", "value": MOUNT_PATH}
        if user
        else {"name": "BARNABAS_BOOTSTRAP", "value": bootstrap_servers}
    )
    container: Document = {
        "name": "pipeline",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["python", "-m", "barnabas_pipelines", "run", f"{CONFIG_PATH}/pipeline.yaml"],
        "env": [
            source,
            # Spark and Python write below it whatever they do not keep.
            {"name": "HOME", "value": "/tmp"},  # noqa: S108 - the container's own
        ],
        "ports": [{"name": "status", "containerPort": STATUS_PORT, "protocol": "TCP"}],
        # The JVM takes its time to start on a busy node.
        "startupProbe": {**http, "periodSeconds": 5, "failureThreshold": 60},
        "livenessProbe": {**http, "periodSeconds": 20, "timeoutSeconds": 5, "failureThreshold": 6},
        "readinessProbe": {**http, "periodSeconds": 5, "timeoutSeconds": 5},
        "resources": objects.container_resources(pipeline.body.spec.resources),
        "securityContext": objects.container_security(),
        "volumeMounts": [
            {"name": "config", "mountPath": CONFIG_PATH, "readOnly": True},
            {"name": "data", "mountPath": DATA_PATH},
            {"name": "tmp", "mountPath": "/tmp"},  # noqa: S108 - the container's own
        ],
    }
    pod: Document = {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": 60,
        "securityContext": objects.pod_security(),
        "containers": [container],
        "volumes": [
            {"name": "config", "configMap": {"name": names.all}},
            {"name": "tmp", "emptyDir": {"sizeLimit": "2Gi"}},
        ],
    }
    if secrets := pipeline.body.spec.image_pull_secrets:
        pod["imagePullSecrets"] = to_json(secrets)
    if user:
        mount = {"name": USER_VOLUME, "mountPath": MOUNT_PATH, "readOnly": True}
        container["volumeMounts"].append(mount)
        # Readable by the group of the volumes. Without a hash of its content: a changed password
        # reaches the pod as a changed file, and replaces no pod.
        secret = {"secretName": user, "defaultMode": 0o440}
        pod["volumes"].append({"name": USER_VOLUME, "secret": secret})
    return pod
