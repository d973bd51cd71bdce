"""A cluster's certificate authorities: created or given, and replaced step by step."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from barnabas_kafka.certificates import (
    CertificateError,
    KeyPair,
    check_authority,
    create_authority,
    normalized,
    read_certificate,
    split_bundle,
)
from barnabas_operator.api.certificates import CertificateAuthority, CertificateStatus
from barnabas_operator.api.clusters import KafkaCluster
from barnabas_operator.api.conditions import STALLED
from barnabas_operator.api.reading import Metadata, Resource
from barnabas_operator.kube import SECRETS, USERS, Document, KubeError
from barnabas_operator.names import (
    ORGANIZATION,
    ROTATE_CLIENTS_CA,
    ROTATE_CLUSTER_CA,
    ROTATION,
    ROTATION_SINCE,
    ClusterNames,
)
from barnabas_operator.plan.certificates import (
    AUTHORITY_DAYS,
    EXPIRY_WARNING,
    Authority,
    format_time,
    parse_time,
    plan_authority,
)
from barnabas_operator.plan.findings import Finding, Reason
from barnabas_operator.plan.namespaces import cluster_namespace_of
from barnabas_operator.plan.passwords import SecretView
from barnabas_operator.reconcile.cluster_secrets import (
    CertificatesUnavailableError,
    ClusterSecrets,
)
from barnabas_operator.reconcile.context import Context
from barnabas_operator.reconcile.lost_authorities import former_certificates
from barnabas_operator.reconcile.namespaces import is_allowed, list_named, namespace_of
from barnabas_operator.reconcile.ownership import controller
from barnabas_operator.resources.certificates import (
    CLIENTS_TRUST,
    CLUSTER_TRUST,
    KEY_STORE,
    OPERATOR_STORE,
    TRUSTED,
    ZOOKEEPER_STORE,
    authority_annotations,
    secret,
)
from barnabas_operator.resources.user_certificate import USER_CERTIFICATE

CERTIFICATE: Final = "tls.crt"
KEY: Final = "tls.key"
NEXT_CERTIFICATE: Final = "next.crt"
NEXT_KEY: Final = "next.key"
# Of a given authority: as cert-manager writes it, and as other operators do.
GIVEN_KEYS: Final = ((CERTIFICATE, KEY), (TRUSTED, "ca.key"))


class Authorities:
    """The authorities of one cluster during one reconciliation.

    What is to be reported goes to `findings` and `expiries`.
    """

    def __init__(
        self,
        cluster: Resource[KafkaCluster],
        of_cluster: ClusterSecrets,
        context: Context,
        *,
        findings: list[Finding],
        expiries: list[CertificateStatus],
    ) -> None:
        self._cluster = cluster
        self._secured = cluster.body.spec.secured
        self._meta: Metadata = cluster.meta
        self._spec = cluster.body.spec.certificates
        self._secrets = of_cluster
        self._context = context
        self._names = ClusterNames(cluster.meta.name, cluster.meta.namespace)
        self._findings = findings
        self._expiries = expiries

    def reconcile(self, name: str) -> Authority:
        """An authority as it is to be, applied."""
        secret_name, source, annotation = {
            "cluster-ca": (self._names.cluster_ca, self._spec.cluster_ca, ROTATE_CLUSTER_CA),
            "clients-ca": (self._names.clients_ca, self._spec.clients_ca, ROTATE_CLIENTS_CA),
        }[name]
        found = self._secrets.own(secret_name)
        before = read_authority(found) if found is not None else None
        if before is None and self._secured:
            self._check_not_lost(secret_name)
        given = self._given(source) if source is not None else None
        if source is not None and given is None and before is None:
            raise CertificatesUnavailableError(self._findings.pop())
        change = plan_authority(
            before,
            given=given,
            # The user's own authority is replaced by the user.
            asked="" if source else self._meta.annotations.get(annotation, ""),
            now=self._secrets.now,
            overlap=timedelta(seconds=self._spec.overlap_seconds),
            not_after=lambda text: read_certificate(text).not_after,
            generate=lambda: self._generated(name),
            replaces=source is None,
            lagging=lambda present: self._lagging(name, present),
            not_before=lambda text: read_certificate(text).not_before,
            former=self._former(name) if found is None else (),
        )
        after = change.authority
        data = {CERTIFICATE: after.current.certificate, KEY: after.current.key}
        data[TRUSTED] = after.bundle
        if after.next is not None:
            data |= {NEXT_CERTIFICATE: after.next.certificate, NEXT_KEY: after.next.key}
        annotations = authority_annotations(since=format_time(after.since), rotation=after.rotation)
        body = secret(secret_name, self._meta, data, annotations=annotations)
        self._secrets.apply(body, found, change.reason)
        not_after = read_certificate(after.current.certificate).not_after
        self._expiries.append(CertificateStatus(name=name, not_after=format_time(not_after)))
        if source is not None and not_after - self._secrets.now <= EXPIRY_WARNING:
            text = f"the certificate in Secret {source.secret_name} expires at"
            self._find(Reason.CERTIFICATE_EXPIRES, f"{text} {format_time(not_after)}; replace it")
        return after

    def _check_not_lost(self, secret_name: str) -> None:
        """Refuse to create an authority beside brokers with certificates of an earlier one.

        Brokers that do not trust each other's new certificates for a while replicate nothing.
        """
        brokers = self._names.broker_tls
        if self._secrets.own(brokers) is None:
            return
        text = f"Secret {secret_name} is lost, and the brokers' certificates are of it"
        remedy = f"restore it; or delete Secret {brokers}, too: then all are made"
        raise CertificatesUnavailableError(
            Finding(
                reason=Reason.CERTIFICATE_AUTHORITY_INVALID,
                message=f"{text}; {remedy} again, and clients have to trust a new authority",
            )
        )

    def _generated(self, name: str) -> KeyPair:
        """A new authority. Its name is unlike that of every other: clients trust both."""
        return create_authority(
            f"{self._meta.name} {name} {secrets.token_hex(4)}",
            organization=ORGANIZATION,
            now=self._secrets.now,
            days=AUTHORITY_DAYS,
        )

    def _former(self, name: str) -> tuple[str, ...]:
        """What is trusted although the authority's Secret is not there (any more)."""
        of_clients = name == "clients-ca"
        found = self._secrets.own(self._names.broker_tls if of_clients else self._names.public_ca)
        if found is None:
            return ()
        text = SecretView.of(found).text(CLIENTS_TRUST if of_clients else TRUSTED)
        return former_certificates(text)

    def _lagging(self, name: str, authority: Authority) -> str:
        """What lacks the change of the present step of a replacement; empty if all have it.

        The step may have been written by an operator that ended before all else was.
        """
        trusting = authority.next is not None
        of_clients = name == "clients-ca"
        wanted: list[tuple[str, str]] = []
        if trusting:
            secret_name = self._names.broker_tls if of_clients else self._names.public_ca
            wanted = [(secret_name, CLIENTS_TRUST if of_clients else TRUSTED)]
        elif not of_clients:
            wanted = [(self._names.broker_tls, KEY_STORE)]
        if self._cluster.body.zookeeper_tls and not of_clients:
            members = CLUSTER_TRUST if trusting else ZOOKEEPER_STORE
            wanted.append((self._names.zookeeper_tls, members))
        if self._secured and not of_clients:
            operators = CLUSTER_TRUST if trusting else OPERATOR_STORE
            wanted.append((self._names.operator_tls, operators))
            if trusting:
                wanted.append((self._names.broker_tls, CLUSTER_TRUST))
        for place, item in wanted:
            found = self._secrets.get(place)
            text = SecretView.of(found).text(item) if found is not None else ""
            if not _takes_part(text, authority):
                return f"{item} of Secret {place} is not up to date"
        # Users trust the authority of brokers, and show certificates of the other one.
        key = USER_CERTIFICATE if of_clients else TRUSTED
        for user in self._users() if trusting != of_clients else []:
            text = self._text_of_user(user, key)
            if text and not _takes_part(text, authority):
                return f"{key} of Secret {_label_of(user, self._meta)} is not up to date"
        return ""

    def _users(self) -> list[Document]:
        """The cluster's KafkaUsers, whose Secrets have their names.

        One of another namespace that is refused is left as it is: it holds nothing up.
        """
        namespace, cluster = self._meta.namespace, self._meta.name
        found: Sequence[Document] | None = self._context.index(USERS, namespace, cluster)
        if found is None:
            try:
                found = list_named(USERS, namespace, self._context)
            except KubeError as error:
                if error.status != 404:
                    raise
                # Their definition is not installed.
                found = []
        return [
            each
            for each in sorted(
                found, key=lambda each: (namespace_of(each), each["metadata"]["name"])
            )
            if (each.get("spec") or {}).get("cluster") == cluster
            and cluster_namespace_of(each) == namespace
            and not each["metadata"].get("deletionTimestamp")
            and (
                namespace_of(each) == namespace
                or (
                    is_allowed(self._cluster, namespace_of(each), self._context)
                    and not _is_refused(each)
                )
            )
        ]

    def _text_of_user(self, user: Document, key: str) -> str:
        """What the Secret of a KafkaUser has; empty where it has none, or it is another's."""
        meta = user["metadata"]
        try:
            found = self._context.kube.get(SECRETS, namespace_of(user), meta["name"])
        except KubeError as error:
            if not error.refused:
                raise
            return ""
        if found is None or (controller(found) or {}).get("uid") != meta.get("uid"):
            return ""
        return SecretView.of(found).text(key)

    def _given(self, source: CertificateAuthority) -> KeyPair | None:
        """The user's own authority; None, and a finding, if it cannot be used."""
        place = f"Secret {source.secret_name} of spec.certificates"
        body = self._secrets.get(source.secret_name)
        if body is None:
            self._find(Reason.CERTIFICATE_AUTHORITY_INVALID, f"{place} does not exist; create it")
            return None
        view = SecretView.of(body)
        for certificate, key in GIVEN_KEYS:
            if view.text(certificate) and view.text(key):
                pair = KeyPair(certificate=view.text(certificate), key=view.text(key))
                break
        else:
            text = f"{place} has neither tls.crt and tls.key nor ca.crt and ca.key"
            self._find(Reason.CERTIFICATE_AUTHORITY_INVALID, text)
            return None
        try:
            check_authority(pair, now=self._secrets.now)
            return normalized(pair)
        except CertificateError as error:
            self._find(Reason.CERTIFICATE_AUTHORITY_INVALID, f"{place}: {error}")
            return None

    def _find(self, reason: Reason, message: str) -> None:
        self._findings.append(Finding(reason=reason, message=message))


def read_authority(found: Document) -> Authority:
    """An authority as its Secret has it; one that is damaged is never replaced silently."""
    view = SecretView.of(found)
    try:
        following = _checked(view, NEXT_CERTIFICATE, NEXT_KEY)
        current = _checked(view, CERTIFICATE, KEY, may_lack_key=following is not None)
        trusted = split_bundle(view.text(TRUSTED))
        for each in trusted:
            read_certificate(each)
        if current is None or current.certificate not in trusted:
            raise CertificateError(f"{CERTIFICATE} is missing or not in {TRUSTED}")
    except CertificateError as error:
        text = f"Secret {view.name} is damaged: {error}"
        remedy = "restore it; or delete it, and another authority follows with an overlap"
        finding = Finding(reason=Reason.CERTIFICATE_AUTHORITY_INVALID, message=f"{text}; {remedy}")
        raise CertificatesUnavailableError(finding) from error
    return Authority(
        current=current,
        trusted=trusted,
        next=following,
        since=parse_time(view.annotations.get(ROTATION_SINCE, "")),
        rotation=view.annotations.get(ROTATION, ""),
    )


def _checked(
    view: SecretView, certificate: str, key: str, *, may_lack_key: bool = False
) -> KeyPair | None:
    if not (view.text(certificate) or view.text(key)):
        return None
    pair = KeyPair(certificate=view.text(certificate), key=view.text(key))
    if may_lack_key and not pair.key:
        read_certificate(pair.certificate)
        return pair
    # An authority that has expired is still the one that is to be replaced.
    check_authority(pair, now=None)
    return pair


def _trusts(bundle: str, authority: Authority) -> bool:
    return set(authority.trusted) <= set(split_bundle(bundle))


def _takes_part(text: str, authority: Authority) -> bool:
    """Whether a pod with this text has completed the present step of a replacement."""
    has_part = _trusts if authority.next is not None else _is_issued_by
    return has_part(text, authority)


def _is_refused(user: Document) -> bool:
    conditions = (user.get("status") or {}).get("conditions") or ()
    return any(each.get("type") == STALLED and each.get("status") == "True" for each in conditions)


def _label_of(user: Document, cluster: Metadata) -> str:
    """The Secret of a user, with its namespace where that is not the cluster's."""
    namespace, name = namespace_of(user), str(user["metadata"]["name"])
    return name if namespace == cluster.namespace else f"{namespace}/{name}"


def _is_issued_by(text: str, authority: Authority) -> bool:
    """Whether the certificate in a text is of the authority that issues."""
    above = read_certificate(authority.current.certificate)
    try:
        found = read_certificate(text)
    except CertificateError:
        # The next check issues it again.
        return False
    return (found.authority_key_id, found.issuer) == (above.key_id, above.subject)
