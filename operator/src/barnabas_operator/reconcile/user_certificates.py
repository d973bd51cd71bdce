"""The Secret of a user with a client certificate: issued, renewed, and applied where it differs.

Secrets are read by name only. Neither logs, Events nor errors contain what is in them.
"""

from __future__ import annotations

import logging
import secrets
from datetime import datetime, timedelta
from typing import Final

from barnabas_operator.api.clusters import KafkaCluster
from barnabas_operator.api.reading import Resource
from barnabas_operator.api.users import ROTATE
from barnabas_operator.certificates import (
    CertificateError,
    check_pair,
    issue,
    pkcs12,
    read_certificate,
)
from barnabas_operator.kube import SECRETS, USERS
from barnabas_operator.names import ClusterNames
from barnabas_operator.plan.certificates import (
    Authority,
    CertificateView,
    KeyPair,
    format_time,
    issue_reason,
    no_earlier_than,
    parse_time,
)
from barnabas_operator.plan.passwords import SecretView
from barnabas_operator.plan.topics import Refusal
from barnabas_operator.plan.user_ledger import User
from barnabas_operator.plan.users import Access, Waiting, user_name
from barnabas_operator.reconcile.certificates import CertificatesUnavailableError, read_authority
from barnabas_operator.reconcile.context import Context, Regarding
from barnabas_operator.reconcile.lost_authorities import issuing_for
from barnabas_operator.reconcile.ownership import apply_as_read, controller, is_begun
from barnabas_operator.reconcile.user_secrets import UserSecret, differs, objection
from barnabas_operator.resources.user_certificate import (
    STORE_PASSWORD,
    USER_CERTIFICATE,
    USER_KEY,
    USER_STORE,
    certificate_properties,
    user_certificate_secret,
)

logger = logging.getLogger(__name__)

STORE_PASSWORD_BYTES: Final = 24


def prepare_certificate(
    user: User, access: Access, cluster: Resource[KafkaCluster], context: Context
) -> UserSecret | Refusal | Waiting:
    """Issue the certificate if it is due, and apply the Secret. Raises KubeError."""
    authority = _clients_authority(cluster, context)
    if not isinstance(authority, Authority):
        return authority
    meta = user.meta
    found = context.kube.get(SECRETS, meta.namespace, meta.name)
    now = no_earlier_than(parse_time(context.now), found)
    empty = user_certificate_secret(meta, cluster=user.body.spec.cluster, data={})
    if found is not None and (refused := objection(found, empty, user)):
        return refused
    own = SecretView.of(found) if found else None
    before = _pair(own)
    validity = timedelta(days=cluster.body.spec.certificates.validity_days)
    reason = _reason(user, own, before, authority=authority, now=now, validity=validity)
    pair = before
    if reason or pair is None:
        issuing, _ = issuing_for(_view(before), authority)
        pair = issue(issuing, user_name(user), now=now, validity=validity)
    asked = meta.annotations.get(ROTATE, "") or (own.annotations.get(ROTATE, "") if own else "")
    body = user_certificate_secret(
        meta,
        cluster=user.body.spec.cluster,
        data=_data(user, access, pair, own if not reason else None),
        rotation=asked,
    )
    changed = found is None or differs(body, found)
    if changed:
        note = f"Secret {meta.name}: apply"
        if reason:
            note += f", with a new certificate ({reason})"
        logger.info("KafkaUser %s/%s: %s", meta.namespace, meta.name, note)
        regarding = Regarding.of(USERS, meta)
        context.events.record(regarding, action="Apply", reason="Apply", note=note)
        own = SecretView.of(apply_as_read(context.kube, body, found))
    version = own.version if own else ""
    return UserSecret(
        password="",
        version=version,
        with_password=frozenset({version}),
        versions={meta.name: version},
        changed=changed,
        not_after=format_time(read_certificate(pair.certificate).not_after),
    )


def _clients_authority(
    cluster: Resource[KafkaCluster], context: Context
) -> Authority | Refusal | Waiting:
    names = ClusterNames(cluster.meta.name, cluster.meta.namespace)
    found = context.kube.get(SECRETS, names.namespace, names.clients_ca)
    ours = found is not None and (controller(found) or {}).get("uid") == cluster.meta.uid
    if found is None or not ours or is_begun(found):
        text = f"KafkaCluster {cluster.meta.name} has no authority for clients yet"
        return Waiting("WaitingForCluster", text)
    try:
        return read_authority(found)
    except CertificatesUnavailableError as error:
        return Refusal(error.finding.reason.value, error.finding.message)


def _pair(own: SecretView | None) -> KeyPair | None:
    """Certificate and key of the Secret; None if they are not a pair."""
    if own is None:
        return None
    pair = KeyPair(certificate=own.text(USER_CERTIFICATE), key=own.text(USER_KEY))
    try:
        check_pair(pair)
    except CertificateError:
        return None
    return pair


def _view(pair: KeyPair | None) -> CertificateView | None:
    return read_certificate(pair.certificate) if pair else None


def _reason(
    user: User,
    own: SecretView | None,
    before: KeyPair | None,
    *,
    authority: Authority,
    now: datetime,
    validity: timedelta,
) -> str:
    asked = user.meta.annotations.get(ROTATE, "")
    if own is not None and asked and asked != own.annotations.get(ROTATE, ""):
        return f"{ROTATE}={asked}"
    found = _view(before)
    _, above = issuing_for(found, authority)
    return issue_reason(
        found,
        authority=above,
        common_name=user_name(user),
        now=now,
        validity=validity,
    )


def _data(user: User, access: Access, pair: KeyPair, own: SecretView | None) -> dict[str, bytes]:
    """The data of the Secret; `own` is the present one if the certificate stays."""
    servers = access.servers(own.text("bootstrap.servers") if own else "")
    texts = certificate_properties(
        username=user_name(user),
        certificate=pair.certificate,
        key=pair.key,
        trusted=access.trusted,
        bootstrap_servers=servers,
    )
    data = {name: text.encode() for name, text in texts.items()}
    if own is not None and own.data.get(USER_STORE) and own.text(STORE_PASSWORD):
        # Each file of the same content is another one, with another salt.
        return {**data, **{name: own.data[name] for name in (USER_STORE, STORE_PASSWORD)}}
    password = secrets.token_urlsafe(STORE_PASSWORD_BYTES)
    data[USER_STORE] = pkcs12(pair, name=user_name(user), password=password)
    data[STORE_PASSWORD] = password.encode()
    return data
