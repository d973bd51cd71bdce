"""What a person should know of a file that can be used: where it means something else elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from barnabas_operator.api.clusters import KafkaCluster
from barnabas_operator.api.pipelines import KafkaPipeline
from barnabas_operator.api.reading import Resource
from barnabas_operator.local.pipeline_rules import ADMIN


def notes(
    cluster: Resource[KafkaCluster],
    pipelines: Sequence[Resource[KafkaPipeline]],
    given: Sequence[Mapping[str, Any]],
    *,
    secure: bool,
) -> Iterator[str]:
    """The notes on a cluster and its pipelines; `given` are the documents as they are written.

    With `secure` the cluster is secured by an option, whatever the file says.
    """
    name, secured = cluster.meta.name, cluster.body.spec.secured
    for each in given:
        if (
            each["kind"] == KafkaCluster.__name__
            and each["metadata"]["name"] == name
            and not secure
        ):
            yield from _on_mode(each["spec"].get("insecure"), secured=secured)
    for pipeline in pipelines:
        if secured and pipeline.body.spec.user is None:
            text = f"KafkaPipeline {pipeline.meta.name} names no KafkaUser, and connects as {ADMIN}"
            yield f"{text} here; on Kubernetes it needs spec.user"


def _on_mode(insecure: bool | None, *, secured: bool) -> Iterator[str]:
    """What the file says, or leaves out, although the cluster was created otherwise."""
    if insecure is None and not secured:
        text = "the cluster was created insecure, and stays so, but the file does not say it"
        yield f"{text}; add insecure: true to its spec: a new cluster of this file is secured"
    elif insecure is not None and insecure is secured:
        mode = "secured" if secured else "insecure"
        text = f"spec.insecure is {str(insecure).lower()}, and it was created {mode}"
        yield f"{text}, and stays so; --dir is for another cluster"
