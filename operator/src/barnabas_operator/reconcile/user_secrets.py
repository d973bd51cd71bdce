"""The Secret of a user: which password it has to have, and applied where it differs.

Secrets are read by name only. Neither logs, Events nor errors contain what is in them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from barnabas_operator.api.reading import Metadata
from barnabas_operator.kube import CLUSTERS, SECRETS, USERS, Document, KubeError
from barnabas_operator.names import ClusterNames
from barnabas_operator.plan.passwords import PASSWORD_KEY, Password, SecretView, choose_password
from barnabas_operator.plan.topics import Refusal
from barnabas_operator.plan.user_ledger import User
from barnabas_operator.plan.users import Access, Waiting, user_name
from barnabas_operator.reconcile.apply import short
from barnabas_operator.reconcile.context import Context, Regarding
from barnabas_operator.reconcile.ownership import apply_as_read, controller, objection_to
from barnabas_operator.reconcile.user_files import generate_password
from barnabas_operator.reconcile.users import UserSecret
from barnabas_operator.resources.certificates import TRUSTED, listener_trust
from barnabas_operator.resources.user_secret import user_secret

logger = logging.getLogger(__name__)

# Secrets that let their reader into Kubernetes: none is copied for who may read a user's alone.
TOKENS: Final = frozenset({"kubernetes.io/service-account-token", "bootstrap.kubernetes.io/token"})


def prepare_secret(
    user: User, prepare: Callable[[], UserSecret | Refusal | Waiting]
) -> UserSecret | Refusal | Waiting:
    """Apply the Secret; what the API server refuses concerns this user. Raises KubeError."""
    try:
        return prepare()
    except KubeError as error:
        # As RBAC words it; an admission webhook may answer 403, too.
        if error.status == 403 and 'resource "secrets"' in error.message:
            text = "the operator may not get, create or patch Secrets"
            return Refusal("Refused", f"{text}; install the operator's chart with users=true")
        if error.refused:
            return Refusal("Refused", f"Secret {user.meta.name}: {short(error.message)}")
        if error.status == 409:
            text = f"Secret {user.meta.name} was created or changed at the same time"
            return Waiting("SecretConflict", text)
        raise


def prepare_password(
    user: User, access: Access, context: Context
) -> UserSecret | Refusal | Waiting:
    """Choose the password and apply the Secret. Raises KubeError."""
    kube, meta = context.kube, user.meta
    reference = user.body.spec.authentication.password_secret_ref
    given = kube.get(SECRETS, meta.namespace, reference.name) if reference else None
    owner = controller(given) if given is not None else None
    if owner is not None and owner["kind"] == CLUSTERS.kind:
        # Else access to the user's Secret alone would give keys and tokens of a cluster.
        text = f"Secret {SecretView.of(given or {}).name} is of KafkaCluster {owner['name']}"
        return Refusal("InvalidPassword", f"{text}; give another one")
    if given is not None and given.get("type") in TOKENS:
        text = f"Secret {SecretView.of(given).name} is a token of Kubernetes"
        return Refusal("InvalidPassword", f"{text}; give another one")
    found = kube.get(SECRETS, meta.namespace, meta.name)
    empty = _body(user, access, Password(value=""))
    if found is not None and (refused := objection(found, empty, user)):
        return refused
    own = SecretView.of(found) if found else None
    view = SecretView.of(given) if given else None
    password = choose_password(
        user, given=view, own=own, generate=generate_password, now=context.now
    )
    if isinstance(password, Refusal):
        return password
    before = own.text("bootstrap.servers") if own else ""
    access = replace(access, bootstrap_servers=access.servers(before))
    body = _body(user, access, password)
    with_password = {own.version} if own and own.text(PASSWORD_KEY) == password.value else set()
    versions = {view.name: view.version} if view else {}
    warnings = (password.warning,) if password.warning else ()
    changed = found is None or differs(body, found)
    if changed:
        _announce(user, password, context)
        own = SecretView.of(apply_as_read(kube, body, found))
    if own is None:
        raise KubeError(0, f"Secret {meta.name} was applied and is not there")
    return UserSecret(
        password=password.value,
        version=own.version,
        with_password=frozenset(with_password | {own.version}),
        versions={**versions, own.name: own.version},
        warnings=warnings,
        changed=changed,
    )


def trusted_by_clients(cluster: Metadata, listener: str, context: Context) -> str | None:
    """The certificates with which clients of a listener verify brokers.

    None if there are none yet; empty where clients' systems have them. Of a listener with a
    certificate of its own they are those of the cluster, too: it may show that at first.
    """
    names = ClusterNames(cluster.name, cluster.namespace)
    found = context.kube.get(SECRETS, names.namespace, names.public_ca)
    ours = found is not None and (controller(found) or {}).get("uid") == cluster.uid
    view = SecretView.of(found) if found is not None and ours else None
    if view is None or not view.text(TRUSTED):
        return None
    key = listener_trust(listener)
    if key in view.data and not view.text(key):
        return ""
    return view.text(key) + view.text(TRUSTED)


def _body(user: User, access: Access, password: Password) -> Document:
    return user_secret(
        user.meta,
        cluster=user.body.spec.cluster,
        username=user_name(user),
        password=password.value,
        bootstrap_servers=access.bootstrap_servers,
        security_protocol=access.security_protocol,
        mechanism=access.mechanism,
        rotation=password.rotation,
        generated=password.generated,
        trusted=access.trusted,
    )


def objection(found: Document, body: Document, user: User) -> Refusal | Waiting | None:
    """Why the Secret of the user's name is not the operator's to read or to change."""
    text = objection_to(found, body)
    if not text:
        return None
    owner = controller(found)
    if owner and (owner["kind"], owner["name"]) == (USERS.kind, user.meta.name):
        return Waiting("SecretConflict", f"{text}; Kubernetes collects it as garbage")
    return Refusal("SecretExists", text)


def differs(body: Document, found: Mapping[str, Any]) -> bool:
    """Whether the Secret has to be applied."""
    meta, wanted = found["metadata"], body["metadata"]
    return not (
        body["data"].items() <= (found.get("data") or {}).items()
        and wanted["labels"].items() <= (meta.get("labels") or {}).items()
        and wanted.get("annotations", {}).items() <= (meta.get("annotations") or {}).items()
        and (controller(found) or {}).get("uid") == user_uid(body)
    )


def user_uid(body: Document) -> str:
    """The uid of the KafkaUser whose Secret this is."""
    return str(body["metadata"]["ownerReferences"][0]["uid"])


def _announce(user: User, password: Password, context: Context) -> None:
    note = f"Secret {user.meta.name}: apply"
    if password.reason:
        note += f", with a new password ({password.reason})"
    logger.info("KafkaUser %s/%s: %s", user.meta.namespace, user.meta.name, note)
    regarding = Regarding.of(USERS, user.meta)
    context.events.record(regarding, action="Apply", reason="Apply", note=note)
