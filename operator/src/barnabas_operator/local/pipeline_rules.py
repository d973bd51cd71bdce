"""What is wrong with a KafkaPipeline of a file, by itself and beside the users of its cluster.

On Kubernetes a pipeline waits for a KafkaUser that is not there. A file is all there is here: a
user that is missing from it is a mistake.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from barnabas_operator.api.clusters import KafkaCluster
from barnabas_operator.api.pipelines import KafkaPipeline
from barnabas_operator.api.reading import Resource
from barnabas_operator.api.users import KafkaUser

ADMIN: Final = "admin"
"""The super user of a secured cluster, for the person at the machine."""
_TOO_SHORT: Final = re.compile(r"(0+(ms|s|m|h|d))+|[0-9]{1,3}ms")


def broken_rules(pipeline: KafkaPipeline) -> Iterator[str]:
    """What is wrong with a pipeline by itself; each begins with the path in the resource."""
    if pipeline.spec.sink.parquet is None:
        yield "spec.sink: give a sink: parquet"
    elif ".." in pipeline.spec.sink.parquet.path:
        yield "spec.sink.parquet.path: may not contain .."
    if _TOO_SHORT.fullmatch(pipeline.spec.trigger.interval):
        yield "spec.trigger.interval: must be a second or more"


def unfit_for(
    pipeline: Resource[KafkaPipeline],
    cluster: Resource[KafkaCluster],
    users: Sequence[Resource[KafkaUser]],
) -> str:
    """What is wrong with the user that a pipeline names; empty if nothing is.

    `users` are those of all clusters in the namespace.
    """
    name, home = pipeline.body.spec.user, cluster.meta.name
    if name is None:
        return ""
    user = next((each for each in users if each.meta.name == name), None)
    if user is None:
        own = [each for each in users if each.body.spec.cluster == home]
        if name == ADMIN and cluster.body.spec.secured and admin_among(own) is None:
            return ""
        known = ", ".join(sorted(each.meta.name for each in users)) or "none"
        return f"spec.user: there is no KafkaUser {name}; there is {known}"
    if (theirs := user.body.spec.cluster) != home:
        return f"spec.user: KafkaUser {name} is a user of KafkaCluster {theirs}, not of {home}"
    return ""


def user_of(
    pipeline: Resource[KafkaPipeline],
    cluster: Resource[KafkaCluster],
    users: Sequence[Resource[KafkaUser]],
) -> str | None:
    """The name of the KafkaUser as which a pipeline connects; None where it needs none.

    Without one of its own, the person at the machine runs it.
    """
    if pipeline.body.spec.user is not None or not cluster.body.spec.secured:
        return pipeline.body.spec.user
    return admin_among(users)


def admin_among(users: Sequence[Resource[KafkaUser]]) -> str | None:
    """The name of the KafkaUser that is `admin` to the brokers, or that has the name."""
    found = (each for each in users if ADMIN in (each.meta.name, each.body.spec.username))
    return next((each.meta.name for each in found), None)
