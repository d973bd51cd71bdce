"""The ledger of users: what the operator has created for each, and what protects it from deletion.

A user is entered before its credentials are set. The entry lists its ACLs and quotas, so that only
those are removed that the operator created, and of each SCRAM credential the number of iterations.
That is drawn at random for each credential, and Kafka shows it: another number is a credential that
another client has set.

When the resource of an entry is gone, credentials and ACLs are deleted, or forgotten where it said
`deletionPolicy: Retain`. That needs no finalizer. Everything in the API protects, as with topics
(`plan.ledger`).
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from barnabas_operator.api.reading import Resource
from barnabas_operator.api.storage import DeletionPolicy
from barnabas_operator.api.users import (
    AclOperation,
    AclPermission,
    AclResourceType,
    KafkaUser,
    PatternType,
)
from barnabas_operator.plan.namespaces import foreign_resource, parse_foreign
from barnabas_operator.plan.orphans import PresentResources
from barnabas_operator.plan.shards import SHARD_BYTES, Format
from barnabas_operator.plan.user_acls import Acl

User = Resource[KafkaUser]

# An ACL has no more bytes in a line, with names of characters that are escaped.
LONGEST_ACL: Final = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class UserEntry:
    """What the operator has created for a user, and for which resource."""

    resource: str
    uid: str
    policy: DeletionPolicy = DeletionPolicy.DELETE
    # The iterations of each mechanism's credential, as the brokers have confirmed it.
    credentials: Mapping[str, int] = field(default_factory=dict)
    # Of credentials that are about to be set or removed: a pass may end before it knows.
    pending: Mapping[str, int] = field(default_factory=dict)
    # The version of the Secret whose password was set last.
    secret: str = ""
    acls: frozenset[Acl] = frozenset()
    # The quotas by their names in Kafka.
    quotas: frozenset[str] = frozenset()
    # The namespace of the resource, empty for that of the cluster.
    namespace: str = ""
    # The uid of the definition of KafkaUsers, empty where it is not known.
    definition: str = ""

    def has_set(self, mechanism: str, iterations: int) -> bool:
        """Whether a credential is one that the operator has set."""
        return iterations in (self.credentials.get(mechanism), self.pending.get(mechanism))


UserLedger = Mapping[str, UserEntry]


class PresentUsers(PresentResources):
    """What exists in the API, as far as it protects users."""

    __slots__ = ()

    NAME_FIELD = "username"


def with_policies(
    ledger: UserLedger, owners: Mapping[str, User], leaving: Sequence[User]
) -> dict[str, UserEntry]:
    """The ledger with the policies that the resources have now, or had when they went.

    That needs no answer of a broker. A resource that is `leaving` decides about its own entry only.
    """
    # By names, too: outside of Kubernetes no resource has a uid.
    policies = {
        (user.meta.uid, user.meta.name): user.body.spec.deletion_policy
        for user in (*leaving, *owners.values())
    }
    return {
        name: replace(entry, policy=policies.get((entry.uid, entry.resource), entry.policy))
        for name, entry in ledger.items()
    }


def _entry(document: Mapping[str, Any]) -> UserEntry:
    namespace, resource = (
        ("", document["resource"])
        if "resource" in document
        else parse_foreign(document["foreignResource"])
    )
    texts = (resource, document["uid"], document["secret"])
    if not (all(isinstance(text, str) for text in texts) and texts[0]):
        raise ValueError("resource, uid and secret must be texts")
    return UserEntry(
        resource=texts[0],
        uid=texts[1],
        policy=DeletionPolicy(document["deletionPolicy"]),
        credentials=_counts(document["credentials"]),
        pending=_counts(document.get("pending") or {}),
        secret=texts[2],
        acls=frozenset(_acl(each) for each in document["acls"]),
        quotas=frozenset(map(str, document.get("quotas") or ())),
        namespace=namespace,
        definition=str(document.get("definition", "")),
    )


def _counts(counts: Mapping[str, Any]) -> dict[str, int]:
    return {str(name): int(count) for name, count in counts.items()}


def _acl(fields: Sequence[str]) -> Acl:
    resource, name, pattern, host, operation, permission = fields
    return Acl(
        resource=AclResourceType(resource),
        name=name,
        pattern=PatternType(pattern),
        host=host,
        operation=AclOperation(operation),
        permission=AclPermission(permission),
    )


def _fields(acl: Acl) -> list[str]:
    return [
        acl.resource.value,
        acl.name,
        acl.pattern.value,
        acl.host,
        acl.operation.value,
        acl.permission.value,
    ]


def are_too_long(acls: Collection[Acl]) -> bool:
    """Whether the ACLs of a user fill more than a shard; the ones before them have room there."""
    if len(acls) * LONGEST_ACL <= SHARD_BYTES:
        return False
    return sum(len(json.dumps(_fields(each))) + 2 for each in acls) > SHARD_BYTES


def _written(entry: UserEntry) -> Mapping[str, Any]:
    resource = (
        foreign_resource(entry.namespace, entry.resource)
        if entry.namespace
        else {"resource": entry.resource}
    )
    return {
        **resource,
        "uid": entry.uid,
        "deletionPolicy": entry.policy.value,
        "credentials": dict(sorted(entry.credentials.items())),
        "pending": dict(sorted(entry.pending.items())),
        "secret": entry.secret,
        "acls": [_fields(each) for each in sorted(entry.acls)],
        "quotas": sorted(entry.quotas),
        **({"definition": entry.definition} if entry.definition else {}),
    }


FORMAT: Final = Format("user", _entry, _written)
