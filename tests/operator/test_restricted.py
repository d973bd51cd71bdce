"""What a cluster's administrator grants: pods within Pod Security *restricted*, Secrets by name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePath
from typing import Any

import pytest
import yaml

from barnabas_operator.api.reading import read_cluster, read_pipeline
from barnabas_operator.resources.brokers import broker_workload
from barnabas_operator.resources.pipelines import pipeline_objects
from barnabas_operator.resources.zookeeper import zookeeper_objects
from tests.operator import examples
from tests.operator.openapi import OLDEST, problems

SHELLS = {"ash", "bash", "busybox", "dash", "ksh", "sh", "zsh"}
LISTENERS = [
    {"name": "plain", "port": 9092},
    {"name": "certs", "port": 9094, "tls": {}, "authentication": {"type": "tls"}},
]
# The types of volumes that the profile allows.
VOLUMES = {
    "configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim",
    "projected", "secret",
}  # fmt: skip

Document = dict[str, Any]


def installed() -> Iterator[Document]:
    """What `kubectl apply -f manifests/install.yaml` creates."""
    path = examples.ROOT / "manifests" / "install.yaml"
    yield from filter(None, yaml.safe_load_all(path.read_text(encoding="utf-8")))


def workloads() -> Iterator[Document]:
    """The operator, and what it runs with every option that adds to a pod."""
    rack = {"topologyKey": "topology.kubernetes.io/zone"}
    brokers = {"replicas": 1, "storage": {"size": "1Gi"}, "rack": rack}
    cluster = read_cluster(examples.cluster(listeners=LISTENERS, brokers=brokers))
    pipeline = read_pipeline(examples.pipeline())
    yield from broker_workload(cluster, image="b:1", node_ports={})
    yield from zookeeper_objects(cluster, image="z:1")
    document = examples.cluster(insecure=False, listeners=[examples.SECURED_LISTENER])
    document["metadata"]["name"] = "secured"
    secured = read_cluster(document)
    yield from broker_workload(secured, image="b:1", node_ports={})
    yield from zookeeper_objects(secured, image="z:1")
    yield from pipeline_objects(pipeline, image="p:1", bootstrap_servers="b:9092")
    yield from installed()


PODS = {
    f"{body['kind']} {body['metadata']['name']}": body["spec"]["template"]["spec"]
    for body in workloads()
    if body["kind"] in ("StatefulSet", "Deployment")
}


@pytest.mark.parametrize("name", PODS)
def test_every_pod_is_within_the_profile_restricted(name: str) -> None:
    """As Kubernetes defines it: a namespace that enforces it runs all of them."""
    pod = PODS[name]
    assert len(PODS) == 6
    assert not {"hostNetwork", "hostPID", "hostIPC"} & pod.keys()
    security = pod["securityContext"]
    assert security["runAsNonRoot"] is True
    assert security["runAsUser"] != 0
    assert security["seccompProfile"] == {"type": "RuntimeDefault"}
    for container in (*pod["containers"], *pod.get("initContainers", ())):
        own = container["securityContext"]
        assert own["allowPrivilegeEscalation"] is False
        assert own["capabilities"] == {"drop": ["ALL"]}
        assert not own.get("privileged")
        assert not any("hostPort" in port for port in container.get("ports", ()))
    for volume in pod.get("volumes", ()):
        assert volume.keys() - {"name"} <= VOLUMES


def _commands(value: Any) -> Iterator[list[str]]:
    """Every command with its arguments: of containers, of probes, of hooks."""
    if isinstance(value, dict):
        for key, each in value.items():
            if key in ("command", "args") and isinstance(each, list):
                yield [str(part) for part in each]
            else:
                yield from _commands(each)
    elif isinstance(value, list):
        for each in value:
            yield from _commands(each)


@pytest.mark.parametrize("name", PODS)
def test_no_pod_runs_a_shell(name: str) -> None:
    """Neither to start nor to be probed: an image need not have one."""
    commands = list(_commands(PODS[name]))
    assert commands or name.startswith("Deployment")
    programs = {PurePath(part).name for command in commands for part in command}
    assert not programs & SHELLS, commands


def test_no_entry_point_of_an_image_runs_a_shell() -> None:
    """The programs that images start: by their first line, and by what the Dockerfile names."""
    dockerfile = (examples.ROOT / "Dockerfile").read_text("utf-8")
    started = re.findall(r"^(?:CMD|ENTRYPOINT|HEALTHCHECK)\s+(.*)$", dockerfile, re.MULTILINE)
    copied = re.findall(r"^COPY (\S+) /usr/local/bin/\S+$", dockerfile, re.MULTILINE)
    first_lines = [(examples.ROOT / each).read_text("utf-8").partition("\n")[0] for each in copied]
    assert started
    assert first_lines
    words = {PurePath(word).name for each in (*started, *first_lines) for word in _words(each)}
    assert not words & SHELLS
    assert all(each.startswith("[") for each in started), "the form without a shell"


def _words(line: str) -> list[str]:
    return re.split(r"[\s\",#!\[\]]+", line)


def test_no_pod_of_a_cluster_has_the_right_to_ask_the_api_server() -> None:
    """The operator alone has a token: the others have nothing to ask."""
    tokens = {name: pod.get("automountServiceAccountToken", True) for name, pod in PODS.items()}
    assert [name for name, mounted in tokens.items() if mounted] == ["Deployment barnabas-operator"]


def test_secrets_are_neither_listed_nor_watched_nor_deleted() -> None:
    """A right to list is one to read all of them."""
    verbs = {
        verb
        for body in installed()
        if body["kind"] in ("Role", "ClusterRole")
        for rule in body["rules"]
        if {"secrets", "*"} & set(rule["resources"])
        for verb in rule["verbs"]
    }
    assert verbs == {"get", "create", "patch"}


def test_certificates_are_mounted_from_a_secret_and_named_in_no_argument() -> None:
    """Files that the broker's group may read; the API server takes the manifest."""
    cluster = read_cluster(examples.cluster(listeners=LISTENERS))
    config_map, _, stateful_set = broker_workload(cluster, image="b:1", node_ports={})
    assert not list(problems(stateful_set, OLDEST))
    pod = stateful_set["spec"]["template"]["spec"]
    (volume,) = [each for each in pod["volumes"] if "secret" in each]
    assert volume["secret"] == {"secretName": "quickstart-broker-tls", "defaultMode": 0o440}
    settings = config_map["data"]["server.properties"].splitlines()
    prefix, path = "listener.name.certs.ssl.", "/etc/barnabas-tls"
    assert f"{prefix}client.auth=required" in settings
    assert f"{prefix}keystore.location={path}/broker.pem" in settings
    assert f"{prefix}truststore.location={path}/clients-ca.crt" in settings
