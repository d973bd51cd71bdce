"""The resources of a file: one KafkaCluster, and the topics and pipelines that belong to it.

A file meets no API server. The schema is checked by `api.reading`; what the API server checks with
CEL rules is checked here, as far as it concerns one version of a resource. All that is wrong with a
file is reported at once, each with its place and what would be right.

Whether a cluster is secured is decided when it is created: what was recorded of it then counts, not
what its file says later.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import yaml

from barnabas_operator.api import API_VERSION
from barnabas_operator.api.authentication import AuthenticationType
from barnabas_operator.api.clusters import Authorization, KafkaCluster, Security
from barnabas_operator.api.pipelines import KafkaPipeline
from barnabas_operator.api.reading import (
    Resource,
    ResourceError,
    read_cluster,
    read_pipeline,
    read_topic,
    read_user,
)
from barnabas_operator.api.topics import KafkaTopic
from barnabas_operator.api.users import KafkaUser
from barnabas_operator.local import cluster_rules, pipeline_rules, topic_rules
from barnabas_operator.local.notes import notes
from barnabas_operator.local.pipeline_rules import ADMIN, admin_among
from barnabas_operator.local.positions import Placed, load_all

Document = Mapping[str, Any]
AnyResource = (
    Resource[KafkaCluster] | Resource[KafkaTopic] | Resource[KafkaUser] | Resource[KafkaPipeline]
)
Found = tuple[AnyResource, int]
"""A resource, and the number of its document."""
Recorded = Callable[[str], Security | None]
"""What a cluster of a name was created as; None for one that is yet to be."""

NAME_LENGTH: Final = 40
STDIN: Final = Path("-")
_SCRAM: Final = {"type": AuthenticationType.SHA_512.value}
UNUSED_CLAIM: Final = {"size": "1Gi"}
"""For ZooKeeper on a laptop, which takes the disk that it needs."""
_PATH: Final = re.compile(r"(?:apiVersion|kind|metadata|spec|status)\b[\w.\[\]-]*")
_NAME: Final = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")


def _read_cluster(document: Document) -> Resource[KafkaCluster]:
    """A KafkaCluster with listeners, also where it lists none; raises ResourceError."""
    read = read_cluster(document)
    spec = read.body.spec.in_mode(secured=read.body.spec.secured)
    return replace(read, body=replace(read.body, spec=spec))


_READERS: Final[Mapping[str, Callable[[Document], AnyResource]]] = {
    "KafkaCluster": _read_cluster,
    "KafkaTopic": read_topic,
    "KafkaUser": read_user,
    "KafkaPipeline": read_pipeline,
}


class ManifestError(Exception):
    """A file cannot be used; `problems` are all there are, a line each."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(problems))


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """A cluster and what belongs to it; `documents` are the same as they were given.

    Of a secured cluster `users` has one for the person at the machine, unless a resource has that
    name.
    """

    cluster: Resource[KafkaCluster]
    topics: tuple[Resource[KafkaTopic], ...] = ()
    users: tuple[Resource[KafkaUser], ...] = ()
    pipelines: tuple[Resource[KafkaPipeline], ...] = ()
    documents: tuple[Document, ...] = ()
    notes: tuple[str, ...] = ()
    """What a person should know of the file."""


def read_file(
    path: Path,
    *,
    name: str | None = None,
    recorded: Recorded = lambda _: None,
    secure: bool = False,
) -> Manifest:
    """The cluster of a file or of STDIN, `name` where it has several; raises ManifestError.

    With `secure` it is a secured one, and what its file leaves plain is secured; other clusters of
    the file are as they were.
    """
    source = "standard input" if path == STDIN else str(path)
    try:
        data = sys.stdin.buffer.read() if path == STDIN else path.read_bytes()
        placed = list(load_all(data.decode()))
    except OSError as error:
        raise ManifestError([f"cannot read {source}: {error.strerror}"]) from error
    except UnicodeDecodeError as error:
        raise ManifestError([f"{source}: it is no UTF-8 text"]) from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        problem = getattr(error, "problem", None) or str(error)
        raise ManifestError([f"{source}: {where}this is no YAML: {problem}"]) from error
    try:
        documents = [
            completed(
                each.document,
                recorded,
                secure=secure and name in (None, _name_of(each.document)),
            )
            for each in placed
        ]
        manifest = choose(documents, name=name, placed=placed)
    except ManifestError as error:
        raise ManifestError([f"{source}: {problem}" for problem in error.problems]) from error
    given = [each.document for each in placed]
    noted = notes(manifest.cluster, manifest.pipelines, given, secure=secure)
    return replace(manifest, notes=tuple(noted))


def completed(document: Any, recorded: Recorded = lambda _: None, *, secure: bool = False) -> Any:
    """The document with what is meant by it on a laptop, where it need not be said.

    A value of `config` may be a number or a truth value, and `spec.zookeeper` is needed only where
    it has a meaning, as has its storage never. A cluster that exists is what it was created as.
    """
    if not isinstance(document, Mapping) or not isinstance(document.get("spec"), Mapping):
        return document
    spec = dict(document["spec"])
    if isinstance(config := spec.get("config"), Mapping):
        spec["config"] = {name: _as_text(value) for name, value in config.items()}
    if document.get("kind") == KafkaCluster.__name__:
        zookeeper = {} if spec.get("zookeeper") is None else spec["zookeeper"]
        if isinstance(zookeeper, Mapping):
            spec["zookeeper"] = {"storage": UNUSED_CLAIM, **zookeeper}
        name = _name_of(document)
        security = recorded(name) if isinstance(name, str) and _NAME.fullmatch(name) else None
        if secure and security is Security.INSECURE:
            text = "was created insecure, and stays so; `down --delete-data` deletes it"
            raise ManifestError([f"KafkaCluster {name} {text}, --dir is for another one"])
        spec = _in_mode(spec, Security.SECURED if secure else security)
    return {**document, "spec": spec}


def _name_of(document: Any) -> Any:
    meta = document.get("metadata") if isinstance(document, Mapping) else None
    return meta.get("name") if isinstance(meta, Mapping) else None


def _in_mode(spec: Mapping[str, Any], security: Security | None) -> dict[str, Any]:
    """The spec of a cluster that was, or is to be, created as this.

    What the file of a secured cluster leaves plain may have been secured by `--secure`.
    """
    if security is None:
        return dict(spec)
    if security is Security.INSECURE:
        return {**spec, "insecure": True}
    if isinstance(listeners := spec.get("listeners"), list):
        secured = [_secured(each) if isinstance(each, Mapping) else each for each in listeners]
        spec = {**spec, "listeners": secured}
    return {**spec, "insecure": False}


def _secured(listener: Mapping[str, Any]) -> dict[str, Any]:
    tls, authentication = listener.get("tls"), listener.get("authentication")
    return {
        **listener,
        "tls": {} if tls is None else tls,
        "authentication": _SCRAM if authentication is None else authentication,
    }


def of_record(documents: Sequence[Document], security: Security | None) -> Manifest:
    """The manifest of a cluster as it was applied."""
    return choose([completed(each, lambda _: security) for each in documents])


def _as_text(value: Any) -> Any:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else value


def choose(
    documents: Sequence[Any], *, name: str | None = None, placed: Sequence[Placed] = ()
) -> Manifest:
    """The one cluster that is meant, with what names it; raises ManifestError.

    `placed` has the lines of the documents, where these are of a file.
    """
    found, problems = _read(documents, placed)
    problems += _twice(found)
    problems += _dangling(found, documents)
    problems += _unfit(found, documents)
    if problems:
        ordered = sorted(problems, key=lambda each: each.place(placed))
        raise ManifestError([each.message(placed) for each in ordered])
    cluster = _the_cluster([resource for resource, _ in found], name)
    own = [each for each in found if _cluster_of(each[0]) == _key(cluster)]
    users = tuple(each for each, _ in own if isinstance(each.body, KafkaUser))
    cluster, admin = _with_admin(cluster, users)
    return Manifest(
        cluster=cluster,
        users=(*admin, *users),
        topics=tuple(each for each, _ in own if isinstance(each.body, KafkaTopic)),
        pipelines=tuple(each for each, _ in own if isinstance(each.body, KafkaPipeline)),
        documents=tuple(documents[index] for _, index in own),
    )


def _read(documents: Sequence[Any], placed: Sequence[Placed]) -> tuple[list[Found], list[Problem]]:
    """The resources that can be read, and what is wrong with each document by itself."""
    problems = [
        Problem(index, path, f"{path}: is there twice")
        for index, each in enumerate(placed)
        for path in each.twice
    ]
    found: list[Found] = []
    for index, document in enumerate(documents):
        try:
            resource = _resource(document, f"document {index + 1}")
        except ResourceError as error:
            problems += [Problem(index, _path(str(it.path)), f"{it.path}: {it.message}")
                         for it in error.each]  # fmt: skip
            texts = _unread_settings(document)
        else:
            found.append((resource, index))
            texts = _broken_rules(resource)
        problems += [Problem(index, _path(text), text) for text in texts]
    return found, problems


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that is wrong with a document: its number, the path in it, and the text."""

    index: int
    path: str
    text: str

    def place(self, placed: Sequence[Placed]) -> tuple[int, int]:
        """Where it is: document and line."""
        return self.index, placed[self.index].line(self.path) if placed else 0

    def message(self, placed: Sequence[Placed]) -> str:
        """The line of the file, and the text."""
        return f"line {self.place(placed)[1]}: {self.text}" if placed else self.text


def _path(text: str) -> str:
    """The path in its document that a text of ours begins with, behind the resource's name."""
    *_, path = [part for part in text.split(": ") if _PATH.match(part)] or [""]
    found = _PATH.match(path)
    return found[0] if found else ""


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
    if not isinstance(kind, str) or kind not in _READERS:
        raise ResourceError(f"{where}: kind", f"is {kind}; there are {', '.join(_READERS)}")
    if version != API_VERSION:
        raise ResourceError(f"{where}: apiVersion", f"is {version}, must be {API_VERSION}")
    meta = document.get("metadata")
    if isinstance(meta, Mapping) and not isinstance(meta.get("name"), str):
        raise ResourceError(f"{where}: {kind}: metadata.name", "is missing or is no text")
    return _READERS[kind](document)


def _with_admin(
    cluster: Resource[KafkaCluster], users: Sequence[Resource[KafkaUser]]
) -> tuple[Resource[KafkaCluster], tuple[Resource[KafkaUser], ...]]:
    """A secured cluster with the user of the person at the machine as a super user."""
    spec = cluster.body.spec
    if not spec.secured or admin_among(users) is not None:
        return cluster, ()
    first = next(each.authentication for each in spec.listeners if each.authentication)
    admin = read_user(
        {
            "apiVersion": API_VERSION,
            "kind": KafkaUser.__name__,
            "metadata": {"name": ADMIN, "namespace": cluster.meta.namespace},
            "spec": {
                "cluster": cluster.meta.name,
                "authentication": {"type": first.type.value},
            },
        }
    )
    given = spec.authorization or Authorization()
    authorization = replace(given, super_users=(*given.super_users, ADMIN))
    body = replace(cluster.body, spec=replace(spec, authorization=authorization))
    return Resource(cluster.meta, body, cluster.unknown_fields), (admin,)


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


def _twice(found: Iterable[Found]) -> Iterator[Problem]:
    places: dict[tuple[str, str, str], list[int]] = {}
    owners: dict[tuple[tuple[str, str], str], str] = {}
    for each, index in found:
        places.setdefault((each.kind, *_key(each)), []).append(index)
        if isinstance(each.body, KafkaTopic):
            topic = each.body.spec.topic_name or each.meta.name
            owner = owners.setdefault((_cluster_of(each), topic), each.meta.name)
            if owner != each.meta.name:
                text = f"KafkaTopic {owner} has the topic {topic} already; each has its own"
                where = f"{each.kind} {each.meta.name}: spec.topicName"
                yield Problem(index, "spec.topicName", f"{where}: {text}")
    for (kind, _, name), indices in places.items():
        if (count := len(indices)) > 1:
            text = f"{kind} {name}: is there {count} times; give each a name of its own"
            yield Problem(indices[-1], "metadata.name", text)


def _unread(kind: type, found: Sequence[Found], documents: Sequence[Any]) -> set[str | None]:
    """The names of resources that are there but cannot be read; None is any name."""
    read = {index for _, index in found}
    names: set[str | None] = set()
    for document in (each for index, each in enumerate(documents) if index not in read):
        said = document.get("kind") if isinstance(document, Mapping) else None
        known = isinstance(said, str) and said in _READERS
        if said == kind.__name__ or not known:
            name = _name_of(document) if known else None
            names.add(name if isinstance(name, str) else None)
    return names


def _dangling(found: Sequence[Found], documents: Sequence[Any]) -> Iterator[Problem]:
    """Each cluster that is missing."""
    unread = _unread(KafkaCluster, found, documents)
    clusters = {_key(each) for each, _ in found if isinstance(each.body, KafkaCluster)}
    if not clusters and not unread:
        text = "there is no KafkaCluster; topics and pipelines need theirs beside"
        yield Problem(0, "", text)
    elif None not in unread:
        names = {name for _, name in clusters} | unread
        for each, index in found:
            wanted = _cluster_of(each)
            if wanted not in clusters and wanted[1] not in unread:
                where = f"{each.kind} {each.meta.name}: spec.cluster"
                text = f"there is no KafkaCluster {wanted[1]} in its namespace"
                known = f"there is {', '.join(sorted(filter(None, names)))}"
                yield Problem(index, "spec.cluster", f"{where}: {text}; {known}")


# --- what the API server checks with CEL ----------------------------------------------------------


def _unfit(found: Sequence[Found], documents: Sequence[Any]) -> Iterator[Problem]:
    """What a resource asks of its cluster that this does not have."""
    clusters = {_key(each): each for each, _ in found if isinstance(each.body, KafkaCluster)}
    unread_users = _unread(KafkaUser, found, documents)
    for each, index in found:
        cluster = clusters.get(_cluster_of(each))
        where, problem = f"{each.kind} {each.meta.name}", ""
        if cluster is None or not isinstance(cluster.body, KafkaCluster):
            continue
        if isinstance(each.body, KafkaUser):
            # Late: few files have users.
            from barnabas_operator.local.user_rules import unfit_for

            problem = unfit_for(each, cluster)
        elif isinstance(each.body, KafkaTopic):
            problem = topic_rules.unfit_for(each, cluster)
        elif (
            isinstance(each.body, KafkaPipeline) and not {None, each.body.spec.user} & unread_users
        ):
            users = [
                user
                for user, _ in found
                if isinstance(user.body, KafkaUser) and user.meta.namespace == each.meta.namespace
            ]
            problem = pipeline_rules.unfit_for(each, cluster, users)
        if problem:
            yield Problem(index, _path(f": {problem}"), f"{where}: {problem}")


def _broken_rules(resource: AnyResource) -> Iterator[str]:
    body, where, name = resource.body, f"{resource.kind} {resource.meta.name}", resource.meta.name
    own = (None, resource.meta.namespace)
    if isinstance(body, KafkaTopic | KafkaUser) and body.spec.cluster_namespace not in own:
        yield (
            f"{where}: spec.clusterNamespace: is for Kubernetes; `barnabas local` has one namespace"
        )
    if isinstance(body, KafkaCluster | KafkaPipeline) and (
        len(name) > NAME_LENGTH or not _NAME.fullmatch(name)
    ):
        text = f"small letters, digits and dashes, at most {NAME_LENGTH}, a letter first"
        yield f"{where}: metadata.name must be {text}"
    yield from (f"{where}: {problem}" for problem in _broken_by_kind(resource))


def _broken_by_kind(resource: AnyResource) -> Iterator[str]:
    body = resource.body
    if isinstance(body, KafkaUser):
        # Late: few files have users.
        from barnabas_operator.local import user_rules

        return user_rules.broken_rules(resource.meta, body)
    if isinstance(body, KafkaTopic):
        return topic_rules.broken_rules(resource.meta, body)
    if isinstance(body, KafkaCluster):
        return cluster_rules.broken_rules(body)
    return pipeline_rules.broken_rules(body)


def _unread_settings(document: Any) -> Iterator[str]:
    """What is wrong with the settings of a resource of which something else cannot be read."""
    kind = document.get("kind") if isinstance(document, Mapping) else None
    problems_of = {
        KafkaCluster.__name__: cluster_rules.setting_problems,
        KafkaTopic.__name__: topic_rules.setting_problems,
    }
    spec = document.get("spec") if isinstance(kind, str) and kind in problems_of else None
    config = spec.get("config") if isinstance(spec, Mapping) else None
    if isinstance(config, Mapping):
        texts = {str(name): value for name, value in config.items() if isinstance(value, str)}
        for problem in problems_of[str(kind)](texts):
            yield f"{kind} {_name_of(document)}: {problem}"
