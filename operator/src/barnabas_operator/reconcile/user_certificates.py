"""The Secret of a user with a client certificate: issued, renewed, and applied where it differs.

Secrets are read by name only. Neither logs, Events nor errors contain what is in them.
"""

from __future__ import annotations

import logging
from datetime import timedelta

from barnabas_kafka.certificates import CertificateError, issue, read_certificate
from barnabas_operator.api.clusters import KafkaCluster
from barnabas_operator.api.reading import Resource
from barnabas_operator.api.users import ROTATE
from barnabas_operator.kube import SECRETS, USERS
from barnabas_operator.names import ClusterNames
from barnabas_operator.plan.certificates import (
    Authority,
    expires_soon,
    format_time,
    no_earlier_than,
    parse_time,
)
from barnabas_operator.plan.findings import Reason
from barnabas_operator.plan.passwords import SecretView
from barnabas_operator.plan.topics import Refusal
from barnabas_operator.plan.user_ledger import User
from barnabas_operator.plan.users import Access, Waiting, user_name
from barnabas_operator.reconcile.authorities import read_authority
from barnabas_operator.reconcile.cluster_secrets import CertificatesUnavailableError
from barnabas_operator.reconcile.context import Context, Regarding
from barnabas_operator.reconcile.lost_authorities import issuing_for
from barnabas_operator.reconcile.ownership import apply_as_read, controller, is_begun
from barnabas_operator.reconcile.user_files import (
    certificate_data,
    own_pair,
    reissue_reason,
    view_of,
)
from barnabas_operator.reconcile.user_secrets import differs, objection
from barnabas_operator.reconcile.users import UserSecret
from barnabas_operator.resources.user_certificate import user_certificate_secret

logger = logging.getLogger(__name__)


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
    before = own_pair(own)
    validity = timedelta(days=cluster.body.spec.certificates.validity_days)
    issuing, above = issuing_for(view_of(before), authority)
    reason = reissue_reason(user, own, before, authority=above, now=now, validity=validity)
    pair = before
    if reason or pair is None:
        try:
            pair = issue(issuing, user_name(user), now=now, validity=validity)
        except CertificateError as error:
            text = f"no certificate can be issued ({reason}): {error}"
            return Refusal(Reason.CERTIFICATE_AUTHORITY_INVALID.value, text)
    asked = meta.annotations.get(ROTATE, "") or (own.annotations.get(ROTATE, "") if own else "")
    body = user_certificate_secret(
        meta,
        cluster=user.body.spec.cluster,
        data=certificate_data(user, access, pair, own if not reason else None),
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
    view = read_certificate(pair.certificate)
    ends = format_time(view.not_after)
    expires = ""
    if expires_soon(view, now):
        # It would have been renewed, but for an authority that ends with it.
        expires = f"the certificate expires at {ends}, as the clients' authority does; replace that"
    version = own.version if own else ""
    return UserSecret(
        password="",
        version=version,
        with_password=frozenset({version}),
        versions={meta.name: version},
        changed=changed,
        not_after=ends,
        expires=expires,
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
