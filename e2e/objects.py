"""Objects of the API server, as pykube-ng reads them; kubectl and helm do what users do."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any, Final

import pykube
import requests
from pykube.objects import APIObject, NamespacedAPIObject

from barnabas_operator.api import API_VERSION
from e2e.commands import CommandError
from tests.waiting import ANSWER, seconds


class KafkaCluster(NamespacedAPIObject):
    """A cluster."""

    version = API_VERSION
    endpoint = "kafkaclusters"
    kind = "KafkaCluster"


class KafkaTopic(NamespacedAPIObject):
    """A topic."""

    version = API_VERSION
    endpoint = "kafkatopics"
    kind = "KafkaTopic"


class KafkaPipeline(NamespacedAPIObject):
    """A pipeline."""

    version = API_VERSION
    endpoint = "kafkapipelines"
    kind = "KafkaPipeline"


class KafkaUser(NamespacedAPIObject):
    """A user."""

    version = API_VERSION
    endpoint = "kafkausers"
    kind = "KafkaUser"


class Lease(NamespacedAPIObject):
    """What a leader among operators holds."""

    version = "coordination.k8s.io/v1"
    endpoint = "leases"
    kind = "Lease"


class NetworkPolicy(NamespacedAPIObject):
    """Who may connect to pods."""

    version = "networking.k8s.io/v1"
    endpoint = "networkpolicies"
    kind = "NetworkPolicy"


class TLSRoute(NamespacedAPIObject):
    """A route of the Gateway API, by the host of a TLS connection."""

    version = "gateway.networking.k8s.io/v1alpha2"
    endpoint = "tlsroutes"
    kind = "TLSRoute"


KINDS: Final[dict[str, type[APIObject]]] = {
    "configmap": pykube.ConfigMap,
    "crd": pykube.CustomResourceDefinition,
    "kafkacluster": KafkaCluster,
    "kafkapipeline": KafkaPipeline,
    "kafkatopic": KafkaTopic,
    "kafkauser": KafkaUser,
    "lease": Lease,
    "networkpolicy": NetworkPolicy,
    "node": pykube.Node,
    "pod": pykube.Pod,
    "poddisruptionbudget": pykube.PodDisruptionBudget,
    "pvc": pykube.PersistentVolumeClaim,
    "secret": pykube.Secret,
    "service": pykube.Service,
    "statefulset": pykube.StatefulSet,
    "tlsroute": TLSRoute,
}

Json = dict[str, Any]


def get(kubeconfig: Path, kind: str, name: str, namespace: str) -> Json | None:
    """One object, or None where there is none; raises CommandError."""
    try:
        found: APIObject | None = _query(kubeconfig, kind, namespace).get_or_none(name=name)
        return None if found is None else found.obj
    except (pykube.exceptions.PyKubeError, requests.RequestException, ValueError) as error:
        raise CommandError(("get", kind, name), "failed", str(error)) from error


def listed(kubeconfig: Path, kind: str, namespace: str, selector: str) -> list[Json]:
    """The objects of a kind that a label selector chooses; raises CommandError."""
    try:
        query = _query(kubeconfig, kind, namespace).filter(selector=selector)
        return [found.obj for found in query]
    except (pykube.exceptions.PyKubeError, requests.RequestException, ValueError) as error:
        raise CommandError(("list", kind, selector), "failed", str(error)) from error


def _query(kubeconfig: Path, kind: str, namespace: str) -> Any:
    read = KINDS[kind]
    query = read.objects(_client(kubeconfig))
    return query.filter(namespace=namespace) if issubclass(read, NamespacedAPIObject) else query


@functools.cache
def _client(kubeconfig: Path) -> pykube.HTTPClient:
    config = pykube.KubeConfig.from_file(str(kubeconfig))
    return pykube.HTTPClient(config, timeout=seconds(ANSWER))
