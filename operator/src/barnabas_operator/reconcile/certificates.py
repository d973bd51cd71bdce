"""The certificates of a cluster: of brokers, ensemble and operator, and what clients trust."""

from __future__ import annotations

import functools
import logging
import re
import secrets
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, TypeVar

from barnabas_kafka.certificates import (
    CertificateError,
    KeyPair,
    check_pair,
    issue,
    pair_of,
    read_certificate,
)
from barnabas_operator.api.certificates import Certificates as CertificatesSpec
from barnabas_operator.api.certificates import CertificateStatus
from barnabas_operator.api.clusters import KafkaCluster
from barnabas_operator.api.listeners import Listener
from barnabas_operator.api.reading import Metadata, Resource
from barnabas_operator.kube import Document
from barnabas_operator.names import (
    ORGANIZATION,
    ClusterNames,
)
from barnabas_operator.plan.certificates import (
    Authority,
    format_time,
    hosts_to_name,
    issue_reason,
    parse_time,
)
from barnabas_operator.plan.findings import Finding, Reason
from barnabas_operator.plan.passwords import SecretView
from barnabas_operator.reconcile.authorities import Authorities
from barnabas_operator.reconcile.cluster_secrets import (
    CertificatesUnavailableError,
    ClusterSecrets,
)
from barnabas_operator.reconcile.context import Context
from barnabas_operator.reconcile.listener_certificates import (
    ListenerCertificates,
    Shown,
    listener_certificates,
)
from barnabas_operator.reconcile.lost_authorities import issuing_for
from barnabas_operator.resources.certificates import (
    ADMIN_TOKEN,
    CLIENTS_TRUST,
    CLUSTER_TRUST,
    KEY_STORE,
    OPERATOR_STORE,
    TOKEN,
    TRUSTED,
    ZOOKEEPER_STORE,
    secret,
    zookeeper_hosts,
)

logger = logging.getLogger(__name__)

# A broker with a token that is too short, or none, does not start.
TOKEN_FORM: Final = re.compile(r"[!-~]{32,200}")
BROKER_KEYS: Final = (KEY_STORE, CLUSTER_TRUST, CLIENTS_TRUST)

Made = TypeVar("Made")


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificates:
    """The result. Unless it is complete new pods may lack certificates."""

    complete: bool = True
    findings: tuple[Finding, ...] = ()
    expiries: tuple[CertificateStatus, ...] = ()


def reconcile_certificates(
    cluster: Resource[KafkaCluster],
    hosts: Collection[str],
    context: Context,
    *,
    of_listeners: Mapping[str, Collection[str]],
    in_use: Callable[[str], bool],
) -> Certificates:
    """Bring the Secrets of a cluster to what they should be. Raises KubeError.

    `hosts` are the names that brokers are reached by, `of_listeners` those of each listener.
    `in_use`: whether running brokers may read a file of their Secret.
    """
    if not cluster.body.spec.needs_certificates:
        context.expiries(cluster.meta.namespace, cluster.meta.name, {})
        return Certificates()
    work = _Reconciliation(cluster, context)
    # Of the two authorities, the one that can be used goes on: certificates expire.
    cluster_ca = work.attempt(lambda: work.authorities.reconcile("cluster-ca"))
    clients_ca = work.attempt(lambda: work.authorities.reconcile("clients-ca"))
    listeners = cluster.body.spec.listeners
    own = work.attempt(lambda: work.listeners(listeners, of_listeners, in_use))
    own = own or ListenerCertificates()
    if cluster_ca is not None:
        work.attempt(lambda: work.publish(cluster_ca, own))
    secured = cluster.body.spec.secured
    token = work.attempt(work.admin_token) if secured else ""
    work.attempt(lambda: work.broker(cluster_ca, clients_ca, own, hosts, token))
    if secured and cluster_ca is not None:
        work.attempt(lambda: work.operator(cluster_ca))
    if cluster.body.zookeeper_tls and cluster_ca is not None:
        work.attempt(lambda: work.zookeeper(cluster_ca))
    if work.failed:
        return Certificates(complete=False, findings=tuple(work.findings))
    ends = {each.name: parse_time(each.not_after).timestamp() for each in work.expiries}
    context.expiries(work.names.namespace, work.names.cluster, ends)
    return Certificates(findings=tuple(work.findings), expiries=tuple(work.expiries))


class _Reconciliation:
    """One reconciliation of the Secrets of a cluster."""

    def __init__(self, cluster: Resource[KafkaCluster], context: Context) -> None:
        self._meta: Metadata = cluster.meta
        self._spec: CertificatesSpec = cluster.body.spec.certificates
        self._secrets = ClusterSecrets(cluster.meta, context)
        self.names = ClusterNames(cluster.meta.name, cluster.meta.namespace)
        self.findings: list[Finding] = []
        self.expiries: list[CertificateStatus] = []
        self.failed = False
        self.authorities = Authorities(
            cluster, self._secrets, context, findings=self.findings, expiries=self.expiries
        )

    def attempt(self, step: Callable[[], Made]) -> Made | None:
        """What a step makes; None, and a finding, if it cannot be done now."""
        try:
            return step()
        except CertificatesUnavailableError as error:
            self.failed = True
            if error.finding not in self.findings:
                self.findings.append(error.finding)
            return None

    def listeners(
        self,
        listeners: Collection[Listener],
        hosts: Mapping[str, Collection[str]],
        in_use: Callable[[str], bool],
    ) -> ListenerCertificates:
        """The certificates that listeners bring; one that cannot be used gates nothing else."""

        def get(name: str) -> Document | None:
            try:
                return self._secrets.get(name)
            except CertificatesUnavailableError as error:
                raise CertificateError(error.finding.message) from error

        stores, trusted = map(self._secrets.own, (self.names.broker_tls, self.names.public_ca))
        shown = Shown(
            stores=SecretView.of(stores) if stores is not None else None,
            trusted=SecretView.of(trusted) if trusted is not None else None,
            in_use=in_use,
        )
        found = listener_certificates(listeners, shown, get=get, hosts=hosts, now=self._secrets.now)
        self.findings += found.findings
        self.expiries += found.expiries
        return found

    def publish(self, authority: Authority, own: ListenerCertificates) -> None:
        """What clients trust, in a Secret that has no key."""
        name = self.names.public_ca
        data = {TRUSTED: authority.bundle, **own.trusted}
        body = secret(name, self._meta, data, annotations={})
        self._secrets.apply(body, self._secrets.own(name), "what clients trust")

    def admin_token(self) -> str:
        """What admin ports ask for; another one is made where a person has deleted it."""
        name = self.names.admin_token
        found = self._secrets.own(name)
        token = SecretView.of(found).text(TOKEN) if found is not None else secrets.token_hex(32)
        if not TOKEN_FORM.fullmatch(token):
            text = (
                f"Secret {name} is damaged: {TOKEN} must be 32 characters or more, without spaces"
            )
            remedy = "delete the Secret, and another token is made"
            finding = Finding(reason=Reason.REFUSED, message=f"{text}; {remedy}")
            raise CertificatesUnavailableError(finding)
        body = secret(name, self._meta, {TOKEN: token}, annotations={})
        self._secrets.apply(body, found, "token of the admin ports")
        return token

    def operator(self, cluster_ca: Authority) -> None:
        """The operator's certificate, and the authorities it trusts."""
        names = self.names
        self._party(
            cluster_ca,
            label="operator",
            name=names.operator_tls,
            store=OPERATOR_STORE,
            common_name=names.operator,
        )

    def zookeeper(self, cluster_ca: Authority) -> None:
        """The certificate of the ensemble's members, and the authorities they trust."""
        names = self.names
        self._party(
            cluster_ca,
            label="zookeeper",
            name=names.zookeeper_tls,
            store=ZOOKEEPER_STORE,
            common_name=names.zookeeper,
            hosts=zookeeper_hosts(names),
        )

    def _party(
        self,
        cluster_ca: Authority,
        *,
        label: str,
        name: str,
        store: str,
        common_name: str,
        hosts: Collection[str] = (),
    ) -> None:
        """A Secret with a certificate of the cluster's authority, and that authority as trust."""
        found = self._secrets.own(name)
        before = _pair_in(found, store)
        reason, pair = self._issued(before, cluster_ca, common_name, hosts)
        data = {store: pair.key + pair.certificate, CLUSTER_TRUST: cluster_ca.bundle}
        body = secret(name, self._meta, data, annotations={})
        self._secrets.apply(body, found, f"certificate issued: {reason}" if reason else "trust")
        not_after = read_certificate(pair.certificate).not_after
        self.expiries.append(CertificateStatus(name=label, not_after=format_time(not_after)))

    def broker(
        self,
        cluster_ca: Authority | None,
        clients_ca: Authority | None,
        own: ListenerCertificates,
        hosts: Collection[str],
        token: str | None = "",
    ) -> None:
        """The certificate of all brokers, those of listeners, the authorities they trust, and in a
        secured cluster the token.

        Of an authority or a token that cannot be used they keep what they have of it.
        """
        name = self.names.broker_tls
        found = self._secrets.own(name)
        if found is None and None in (cluster_ca, clients_ca, token):
            return
        view = SecretView.of(found) if found is not None else None
        data = {key: view.text(key) if view else "" for key in BROKER_KEYS}
        if token != "":
            data[ADMIN_TOKEN] = token or (view.text(ADMIN_TOKEN) if view else "")
        before, reason = _pair_in(found, KEY_STORE), ""
        pair = before
        if cluster_ca is not None:
            issuing = functools.partial(self._issued, before, cluster_ca, self.names.broker, hosts)
            issued = self.attempt(issuing)
            if issued is not None:
                reason, pair = issued
                data[KEY_STORE] = pair.key + pair.certificate
            elif found is None:
                return
            data[CLUSTER_TRUST] = cluster_ca.bundle
        if clients_ca is not None:
            data[CLIENTS_TRUST] = clients_ca.bundle
        data |= {key: text or data[KEY_STORE] for key, text in own.stores.items()}
        body = secret(name, self._meta, data, annotations={})
        changes = [f"certificate issued: {reason}"] if reason else []
        replaced = [key for key in own.stores if view is None or view.text(key) != data[key]]
        changes += [f"{key} replaced" for key in sorted(replaced)]
        self._secrets.apply(body, found, "; ".join(changes) or "trust")
        if cluster_ca is None or pair is None:
            return
        not_after = read_certificate(pair.certificate).not_after
        self.expiries.append(CertificateStatus(name="broker", not_after=format_time(not_after)))

    def _issued(
        self, before: KeyPair | None, authority: Authority, name: str, hosts: Collection[str]
    ) -> tuple[str, KeyPair]:
        """The certificate that will do, or a new one and why."""
        found = None
        if before is not None:
            try:
                check_pair(before)
                found = read_certificate(before.certificate)
            except CertificateError as error:
                logger.debug("certificate %s cannot be used: %s", name, error)
        validity = timedelta(days=self._spec.validity_days)
        issuing, above = issuing_for(found, authority)
        reason = issue_reason(
            found,
            authority=above,
            common_name=name,
            hosts=hosts,
            now=self._secrets.now,
            validity=validity,
        )
        if before is not None and found is not None and not reason:
            return "", before
        try:
            pair = issue(
                issuing,
                name,
                hosts=hosts_to_name(hosts, found) if hosts else (),
                organization=ORGANIZATION,
                now=self._secrets.now,
                validity=validity,
            )
        except CertificateError as error:
            text = f"no certificate can be issued for {name} ({reason}): {error}; replace it"
            raise CertificatesUnavailableError(
                Finding(reason=Reason.CERTIFICATE_AUTHORITY_INVALID, message=text)
            ) from error
        return reason, pair


def _pair_in(found: Document | None, key: str) -> KeyPair | None:
    return pair_of(SecretView.of(found).text(key)) if found is not None else None
