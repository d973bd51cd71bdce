"""What is wrong with a KafkaUser of a file: rules that the API server has in CEL, and Secrets.

A laptop has no Secrets: a password of one's own is a file beside the others of the user.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from barnabas_operator.api.authentication import AuthenticationType
from barnabas_operator.api.clusters import ANONYMOUS, KafkaCluster
from barnabas_operator.api.reading import Metadata, Resource
from barnabas_operator.api.users import (
    AclResource,
    AclResourceType,
    KafkaUser,
    PatternType,
    Role,
    RoleType,
    UserAuthentication,
)
from barnabas_operator.plan.topics import Refusal
from barnabas_operator.plan.users import access_of

# Of a Secret, and of a directory here.
_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")


def broken_rules(meta: Metadata, user: KafkaUser) -> Iterator[str]:
    """What is wrong with a user by itself; each begins with the path in the resource."""
    spec = user.spec
    if not _NAME.fullmatch(meta.name):
        text = "small letters, digits, dots and dashes, as the name of a Secret has"
        yield f"metadata.name: must be {text}"
    if spec.username == ANONYMOUS:
        yield f"spec.username: {ANONYMOUS} is the principal of clients without authentication"
    yield from _authentication_rules(spec.authentication)
    authorization = spec.authorization
    if authorization is None:
        return
    for index, role in enumerate(authorization.roles):
        for problem in _role_rules(role):
            yield f"spec.authorization.roles[{index}]: {problem}"
    for index, rule in enumerate(authorization.acls):
        if not _is_named(rule.resource):
            text = "name is for all types but cluster, of which there is one"
            yield f"spec.authorization.acls[{index}].resource: {text}"
        elif rule.resource.type is AclResourceType.USER and not _is_principal(rule.resource.name):
            text = "the name of a user is its principal, such as User:billing"
            yield f"spec.authorization.acls[{index}].resource: {text}"


def unfit_for(user: Resource[KafkaUser], cluster: Resource[KafkaCluster]) -> str:
    """What a user asks of its cluster that this does not have; empty if it has all."""
    access = access_of(user, cluster)
    if not isinstance(access, Refusal):
        return ""
    of_authorization = access.reason == "AuthorizationDisabled"
    path = "spec.authorization" if of_authorization else "spec.authentication"
    return f"{path}: {access.message}"


def _authentication_rules(given: UserAuthentication) -> Iterator[str]:
    path = "spec.authentication"
    if given.password_secret_ref is not None:
        text = "is a Secret of Kubernetes; remove it: a password is generated here, and `up` takes"
        yield f"{path}.passwordSecretRef: {text} another from the file users/NAME/password"
    if given.rotation_days is not None and given.type is AuthenticationType.TLS:
        yield f"{path}.rotationDays: is for passwords that are generated"


def _role_rules(role: Role) -> Iterator[str]:
    streams = role.type is RoleType.STREAMS
    if not streams and (role.topic is None or role.application_id is not None):
        yield "producer and consumer need a topic and have no applicationId"
    if role.group is not None and role.type is not RoleType.CONSUMER:
        yield "group is for consumers"
    if role.transactional_id is not None and role.type is not RoleType.PRODUCER:
        yield "transactionalId is for producers"
    if streams and (role.application_id is None or role.topic or role.pattern_type):
        yield "streams needs an applicationId, and neither topic nor patternType"


def _is_principal(name: str | None) -> bool:
    return name == "*" or (name or "").startswith("User:")


def _is_named(resource: AclResource) -> bool:
    if resource.type is AclResourceType.CLUSTER:
        return resource.name is None and resource.pattern_type is PatternType.LITERAL
    return resource.name is not None
