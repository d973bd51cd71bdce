"""The resources of a file: one KafkaCluster, and the topics and pipelines that belong to it.

A file meets no API server. The schema is checked by `api.reading`; what the API server checks with
CEL rules is checked here, as far as it concerns one version of a resource. All that is wrong with a
file is told at once, each with its place and what would be right.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from barnabas_kafka.settings.broker import BrokerSettings
from barnabas_operator.api import API_VERSION
from barnabas_operator.api.clusters import (
    ADMIN_PORT,
    AUTHORIZATION_SETTINGS,
    OPERATOR_SETTINGS,
    ClusterSpec,
    KafkaCluster,
    Listener,
    ListenerType,
)
from barnabas_operator.api.pipelines import KafkaPipeline
from barnabas_operator.api.reading import (
    Resource,
    ResourceError,
    read_cluster,
    read_pipeline,
    read_topic,
)
from barnabas_operator.api.topics import KafkaTopic
from barnabas_operator.api.users import KafkaUser

Document = Mapping[str, Any]
AnyResource = Resource[KafkaCluster] | Resource[KafkaTopic] | Resource[KafkaPipeline]

NAME_LENGTH: Final = 40
_NAME: Final = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_READERS: Final[Mapping[str, Callable[[Document], AnyResource]]] = {
    "KafkaCluster": read_cluster,
    "KafkaTopic": read_topic,
    "KafkaPipeline": read_pipeline,
}


class ManifestError(Exception):
    """A file cannot be used; `problems` are all there are, a line each."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(problems))


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """A cluster and what belongs to it; `documents` are the same as they were written."""

    cluster: Resource[KafkaCluster]
    topics: tuple[Resource[KafkaTopic], ...] = ()
    pipelines: tuple[Resource[KafkaPipeline], ...] = ()
    documents: tuple[Document, ...] = ()


def read_file(path: Path, *, name: str | None = None) -> Manifest:
    """The cluster of a file, `name` where it has several; raises ManifestError."""
    try:
        loaded = list(yaml.safe_load_all(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise ManifestError([f"cannot read {path}: {error.strerror}"]) from error
    except UnicodeDecodeError as error:
        raise ManifestError([f"{path}: it is no UTF-8 text"]) from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        problem = getattr(error, "problem", None) or str(error)
        raise ManifestError([f"{path}: {where}this is no YAML: {problem}"]) from error
    try:
        return choose([document for document in loaded if document is not None], name=name)
    except ManifestError as error:
        raise ManifestError([f"{path}: {problem}" for problem in error.problems]) from error


def choose(documents: Sequence[Any], *, name: str | None = None) -> Manifest:
    """The one cluster that is meant, with what names it; raises ManifestError."""
    problems: list[str] = []
    found: list[tuple[AnyResource, Document]] = []
    for number, document in enumerate(documents, 1):
        try:
            found.append((_resource(document, f"document {number}"), document))
        except ResourceError as error:
            problems.append(str(error))
    resources = [resource for resource, _ in found]
    problems += [problem for resource in resources for problem in _broken_rules(resource)]
    problems += _twice(resources)
    # What cannot be read may be what the others refer to.
    if problems:
        raise ManifestError(problems)
    problems = list(_dangling(resources))
    if problems:
        raise ManifestError(problems)
    cluster = _the_cluster(resources, name)
    own = [each for each in found if _cluster_of(each[0]) == _key(cluster)]
    return Manifest(
        cluster=cluster,
        topics=tuple(each for each, _ in own if isinstance(each.body, KafkaTopic)),
        pipelines=tuple(each for each, _ in own if isinstance(each.body, KafkaPipeline)),
        documents=tuple(document for _, document in own),
    )


def carry_statuses(
    documents: Sequence[Document], before: Sequence[Document]
) -> list[Mapping[str, Any]]:
    """The documents, with the statuses of the same resources as they were remembered."""
    known = {(each["kind"], each["metadata"]["name"]): each.get("status") for each in before}
    carried: list[Mapping[str, Any]] = []
    for document in documents:
        bare = {key: value for key, value in document.items() if key != "status"}
        status = known.get((document["kind"], document["metadata"]["name"]))
        carried.append({**bare, "status": status} if status else bare)
    return carried


def _resource(document: Any, where: str) -> AnyResource:
    if not isinstance(document, Mapping):
        raise ResourceError(where, "is no resource: a mapping with apiVersion, kind, metadata")
    kind, version = document.get("kind"), document.get("apiVersion")
    if kind == KafkaUser.__name__:
        text = "is KafkaUser, which `barnabas local` does not manage; remove it from the file"
        raise ResourceError(f"{where}: kind", text)
    if not isinstance(kind, str) or kind not in _READERS:
        raise ResourceError(f"{where}: kind", f"is {kind}; there are {', '.join(_READERS)}")
    if version != API_VERSION:
        raise ResourceError(f"{where}: apiVersion", f"is {version}, must be {API_VERSION}")
    meta = document.get("metadata")
    if isinstance(meta, Mapping) and not isinstance(meta.get("name"), str):
        raise ResourceError(f"{where}: {kind}: metadata.name", "is missing or is no text")
    return _READERS[kind](document)


def _key(resource: AnyResource) -> tuple[str, str]:
    return resource.meta.namespace, resource.meta.name


def _cluster_of(resource: AnyResource) -> tuple[str, str]:
    """Namespace and name of the cluster that a resource is, or belongs to."""
    body = resource.body
    name = resource.meta.name if isinstance(body, KafkaCluster) else body.spec.cluster
    return resource.meta.namespace, name


def _the_cluster(resources: Iterable[AnyResource], name: str | None) -> Resource[KafkaCluster]:
    clusters = [each for each in resources if isinstance(each.body, KafkaCluster)]
    names = ", ".join(each.meta.name for each in clusters)
    chosen = [each for each in clusters if name in (None, each.meta.name)]
    if not clusters:
        raise ManifestError(["there is no KafkaCluster; topics and pipelines need theirs beside"])
    if not chosen:
        raise ManifestError([f"there is no KafkaCluster {name}; there is {names}"])
    if len(chosen) > 1:
        raise ManifestError([f"there are several KafkaClusters ({names}): choose with --name"])
    return chosen[0]


def _twice(resources: Iterable[AnyResource]) -> Iterator[str]:
    counted = Counter((each.kind, *_key(each)) for each in resources)
    for (kind, _, name), count in counted.items():
        if count > 1:
            yield f"{kind} {name}: is there {count} times; give each a name of its own"


def _dangling(resources: Sequence[AnyResource]) -> Iterator[str]:
    clusters = {_key(each) for each in resources if isinstance(each.body, KafkaCluster)}
    known = ", ".join(sorted(name for _, name in clusters)) or "none"
    for each in resources:
        wanted = _cluster_of(each)
        if clusters and wanted not in clusters:
            where = f"{each.kind} {each.meta.name}: spec.cluster"
            text = f"there is no KafkaCluster {wanted[1]} in its namespace; there is {known}"
            yield f"{where}: {text}"


# --- what the API server checks with CEL ----------------------------------------------------------


def _broken_rules(resource: AnyResource) -> Iterator[str]:
    body, where = resource.body, f"{resource.kind} {resource.meta.name}"
    if not isinstance(body, KafkaTopic):
        name = resource.meta.name
        if len(name) > NAME_LENGTH or not _NAME.fullmatch(name):
            text = f"small letters, digits and dashes, at most {NAME_LENGTH}, a letter first"
            yield f"{where}: metadata.name must be {text}"
    if isinstance(body, KafkaCluster):
        for problem in (*_cluster_rules(body.spec), *_setting_problems(body.spec.config)):
            yield f"{where}: {problem}"
    elif isinstance(body, KafkaPipeline):
        if body.spec.sink.parquet is None:
            yield f"{where}: spec.sink: give a sink: parquet"
    elif body.spec.topic_name in (".", ".."):
        yield f"{where}: spec.topicName: cannot be . or .."


def _cluster_rules(spec: ClusterSpec) -> Iterator[str]:
    if spec.brokers.replicas > 1:
        for each in spec.listeners:
            if each.type is ListenerType.NODEPORT and each.node_port is None:
                text = "needs a nodePort where there are several brokers"
                yield f"spec.listeners: {each.name}: {text}"
    storage = spec.brokers.storage
    if (storage.size is None) == (storage.sizing is None):
        yield "spec.brokers.storage: give either size or sizing"
    anonymous = [each for each in spec.listeners if each.authentication is None]
    if not any(each.type is ListenerType.INTERNAL for each in anonymous):
        yield "spec.listeners: one listener must be of type internal, without authentication"
    if spec.authorization is not None:
        if len(anonymous) > 1:
            yield "spec.authorization: every listener but one needs authentication"
        for name in AUTHORIZATION_SETTINGS:
            if name in spec.config:
                yield f"spec.config.{name}: follows from spec.authorization; remove it"
    yield from _listener_rules(spec.listeners)


def _listener_rules(listeners: Sequence[Listener]) -> Iterator[str]:
    for what, counted in (
        ("port", Counter(str(each.port) for each in listeners)),
        ("name", Counter(each.name for each in listeners)),
    ):
        for value, count in counted.items():
            if count > 1:
                yield f"spec.listeners: {count} have the {what} {value}; each needs its own"
    for each in listeners:
        if each.port == ADMIN_PORT or each.name == "metrics":
            yield f"spec.listeners: {each.name}: name metrics and port {ADMIN_PORT} are taken"
        given = {"nodePort": each.node_port, "advertisedHost": each.advertised_host}
        for name, found in given.items():
            if found is not None and each.type is not ListenerType.NODEPORT:
                yield f"spec.listeners: {each.name}: {name} is for listeners of type nodeport"


def _setting_problems(config: Mapping[str, str]) -> Iterator[str]:
    own = [name for name in config if name.startswith(OPERATOR_SETTINGS)]
    for name in own:
        yield f"spec.config.{name}: follows from the resource itself; remove it"
    others = {name: value for name, value in config.items() if name not in own}
    for problem in BrokerSettings.problems(others, strict=True):
        yield f"spec.config.{problem}"
