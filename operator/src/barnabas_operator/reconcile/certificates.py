"""The certificates of a cluster: authorities, the brokers' certificate, what clients trust.

Secrets are read by name only. Neither logs, Events nor errors contain what is in them.
"""

from __future__ import annotations

import functools
import logging
import re
import secrets
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, TypeVar

from barnabas_kafka.certificates import (
    CertificateError,
    KeyPair,
    check_authority,
    check_pair,
    create_authority,
    issue,
    normalized,
    pair_of,
    read_certificate,
    split_bundle,
)
from barnabas_operator.api.certificates import CertificateAuthority, CertificateStatus
from barnabas_operator.api.certificates import Certificates as CertificatesSpec
from barnabas_operator.api.clusters import KafkaCluster
from barnabas_operator.api.conditions import STALLED
from barnabas_operator.api.listeners import Listener
from barnabas_operator.api.reading import Metadata, Resource
from barnabas_operator.kube import CLUSTERS, SECRETS, USERS, Document, KubeError
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
    hosts_to_name,
    issue_reason,
    no_earlier_than,
    parse_time,
    plan_authority,
)
from barnabas_operator.plan.findings import Finding, Reason
from barnabas_operator.plan.namespaces import cluster_namespace_of
from barnabas_operator.plan.passwords import SecretView
from barnabas_operator.reconcile.apply import short
from barnabas_operator.reconcile.context import Context, Regarding
from barnabas_operator.reconcile.listener_certificates import (
    ListenerCertificates,
    Shown,
    listener_certificates,
)
from barnabas_operator.reconcile.lost_authorities import former_certificates, issuing_for
from barnabas_operator.reconcile.namespaces import is_allowed, list_named, namespace_of
from barnabas_operator.reconcile.ownership import (
    apply_as_read,
    controller,
    is_begun,
    objection_to,
)
from barnabas_operator.resources.certificates import (
    ADMIN_TOKEN,
    CLIENTS_TRUST,
    CLUSTER_TRUST,
    KEY_STORE,
    OPERATOR_STORE,
    TOKEN,
    TRUSTED,
    ZOOKEEPER_STORE,
    authority_annotations,
    secret,
    zookeeper_hosts,
)
from barnabas_operator.resources.user_certificate import USER_CERTIFICATE

logger = logging.getLogger(__name__)

CERTIFICATE: Final = "tls.crt"
KEY: Final = "tls.key"
NEXT_CERTIFICATE: Final = "next.crt"
NEXT_KEY: Final = "next.key"
# A broker with a token that is too short, or none, does not start.
TOKEN_FORM: Final = re.compile(r"[!-~]{32,200}")
# Of a given authority: as cert-manager writes it, and as other operators do.
GIVEN_KEYS: Final = ((CERTIFICATE, KEY), (TRUSTED, "ca.key"))
BROKER_KEYS: Final = (KEY_STORE, CLUSTER_TRUST, CLIENTS_TRUST)

Made = TypeVar("Made")


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificates:
    """What came of a pass. Unless it is complete new pods may lack certificates."""

    complete: bool = True
    findings: tuple[Finding, ...] = ()
    expiries: tuple[CertificateStatus, ...] = ()


class CertificatesUnavailableError(Exception):
    """Why certificates cannot be had; a finding."""

    def __init__(self, finding: Finding) -> None:
        self.finding = finding
        super().__init__(finding.message)


def reconcile_certificates(
    cluster: Resource[KafkaCluster],
    hosts: Collection[str],
    context: Context,
    *,
    of_listeners: Mapping[str, Collection[str]],
    in_use: Callable[[str], bool],
) -> Certificates:
    """One pass. Raises KubeError.

    `hosts` are the names that brokers are reached by, `of_listeners` those of each listener.
    `in_use`: whether running brokers may read a file of their Secret.
    """
    if not cluster.body.spec.needs_certificates:
        context.expiries(cluster.meta.namespace, cluster.meta.name, {})
        return Certificates()
    work = _Pass(cluster, context)
    # Of the two authorities, the one that can be used goes on: certificates expire.
    cluster_ca = work.attempt(lambda: work.authority("cluster-ca"))
    clients_ca = work.attempt(lambda: work.authority("clients-ca"))
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


class _Pass:
    """One pass over the Secrets of a cluster."""

    def __init__(self, cluster: Resource[KafkaCluster], context: Context) -> None:
        self._cluster = cluster
        self._meta: Metadata = cluster.meta
        self._spec: CertificatesSpec = cluster.body.spec.certificates
        self._secured = cluster.body.spec.secured
        self._zookeeper_tls = cluster.body.zookeeper_tls
        self._context = context
        self.names = ClusterNames(cluster.meta.name, cluster.meta.namespace)
        self.findings: list[Finding] = []
        self.expiries: list[CertificateStatus] = []
        self.failed = False
        self._now = parse_time(context.now)
        # Secrets without data yet: as good as none.
        self._begun: dict[str, Document] = {}

    def attempt(self, step: Callable[[], Made]) -> Made | None:
        """What a step makes; None, and a finding, if it cannot be done now."""
        try:
            return step()
        except CertificatesUnavailableError as error:
            self.failed = True
            if error.finding not in self.findings:
                self.findings.append(error.finding)
            return None

    def authority(self, name: str) -> Authority:
        """An authority as it is to be, applied."""
        secret_name, source, annotation = {
            "cluster-ca": (self.names.cluster_ca, self._spec.cluster_ca, ROTATE_CLUSTER_CA),
            "clients-ca": (self.names.clients_ca, self._spec.clients_ca, ROTATE_CLIENTS_CA),
        }[name]
        found = self._own(secret_name)
        before = read_authority(found) if found is not None else None
        if before is None and self._secured and self._own(self.names.broker_tls) is not None:
            # Brokers that do not trust each other's new certificates for a while replicate nothing.
            text = f"Secret {secret_name} is lost, and the brokers' certificates are of it"
            remedy = f"restore it; or delete Secret {self.names.broker_tls}, too: then all are made"
            raise CertificatesUnavailableError(
                Finding(
                    reason=Reason.CERTIFICATE_AUTHORITY_INVALID,
                    message=f"{text}; {remedy} again, and clients have to trust a new authority",
                )
            )
        given = self._given(source) if source is not None else None
        if source is not None and given is None and before is None:
            raise CertificatesUnavailableError(self.findings.pop())
        change = plan_authority(
            before,
            given=given,
            # The user's own authority is replaced by the user.
            asked="" if source else self._meta.annotations.get(annotation, ""),
            now=self._now,
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
        notes = authority_annotations(since=format_time(after.since), rotation=after.rotation)
        self._apply(secret(secret_name, self._meta, data, annotations=notes), found, change.reason)
        not_after = read_certificate(after.current.certificate).not_after
        self.expiries.append(CertificateStatus(name=name, not_after=format_time(not_after)))
        if source is not None and not_after - self._now <= EXPIRY_WARNING:
            text = f"the certificate in Secret {source.secret_name} expires at"
            self._find(Reason.CERTIFICATE_EXPIRES, f"{text} {format_time(not_after)}; replace it")
        return after

    def _generated(self, name: str) -> KeyPair:
        """A new authority. Its name is unlike that of every other: clients trust both."""
        return create_authority(
            f"{self._meta.name} {name} {secrets.token_hex(4)}",
            organization=ORGANIZATION,
            now=self._now,
            days=AUTHORITY_DAYS,
        )

    def _former(self, name: str) -> tuple[str, ...]:
        """What is trusted although the authority's Secret is not there (any more)."""
        of_clients = name == "clients-ca"
        found = self._own(self.names.broker_tls if of_clients else self.names.public_ca)
        if found is None:
            return ()
        text = SecretView.of(found).text(CLIENTS_TRUST if of_clients else TRUSTED)
        return former_certificates(text)

    def listeners(
        self,
        listeners: Collection[Listener],
        hosts: Mapping[str, Collection[str]],
        in_use: Callable[[str], bool],
    ) -> ListenerCertificates:
        """The certificates that listeners bring; one that cannot be used gates nothing else."""

        def get(name: str) -> Document | None:
            try:
                return self._get(name)
            except CertificatesUnavailableError as error:
                raise CertificateError(error.finding.message) from error

        stores, trusted = map(self._own, (self.names.broker_tls, self.names.public_ca))
        shown = Shown(
            stores=SecretView.of(stores) if stores is not None else None,
            trusted=SecretView.of(trusted) if trusted is not None else None,
            in_use=in_use,
        )
        found = listener_certificates(listeners, shown, get=get, hosts=hosts, now=self._now)
        self.findings += found.findings
        self.expiries += found.expiries
        return found

    def publish(self, authority: Authority, own: ListenerCertificates) -> None:
        """What clients trust, in a Secret that has no key."""
        name = self.names.public_ca
        data = {TRUSTED: authority.bundle, **own.trusted}
        body = secret(name, self._meta, data, annotations={})
        self._apply(body, self._own(name), "what clients trust")

    def _lagging(self, name: str, authority: Authority) -> str:
        """What lacks the change of the present step of a replacement; empty if all have it.

        The step may have been written by an operator that ended before all else was.
        """
        trusting = authority.next is not None
        of_clients = name == "clients-ca"
        wanted: list[tuple[str, str]] = []
        if trusting:
            secret_name = self.names.broker_tls if of_clients else self.names.public_ca
            wanted = [(secret_name, CLIENTS_TRUST if of_clients else TRUSTED)]
        elif not of_clients:
            wanted = [(self.names.broker_tls, KEY_STORE)]
        if self._zookeeper_tls and not of_clients:
            members = CLUSTER_TRUST if trusting else ZOOKEEPER_STORE
            wanted.append((self.names.zookeeper_tls, members))
        if self._secured and not of_clients:
            operators = CLUSTER_TRUST if trusting else OPERATOR_STORE
            wanted.append((self.names.operator_tls, operators))
            if trusting:
                wanted.append((self.names.broker_tls, CLUSTER_TRUST))
        for place, item in wanted:
            found = self._get(place)
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

    def admin_token(self) -> str:
        """What admin ports ask for; another one is made where a person has deleted it."""
        name = self.names.admin_token
        found = self._own(name)
        token = SecretView.of(found).text(TOKEN) if found is not None else secrets.token_hex(32)
        if not TOKEN_FORM.fullmatch(token):
            text = (
                f"Secret {name} is damaged: {TOKEN} must be 32 characters or more, without spaces"
            )
            remedy = "delete the Secret, and another token is made"
            finding = Finding(reason=Reason.REFUSED, message=f"{text}; {remedy}")
            raise CertificatesUnavailableError(finding)
        body = secret(name, self._meta, {TOKEN: token}, annotations={})
        self._apply(body, found, "token of the admin ports")
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
        found = self._own(name)
        before = _pair_in(found, store)
        reason, pair = self._issued(before, cluster_ca, common_name, hosts)
        data = {store: pair.key + pair.certificate, CLUSTER_TRUST: cluster_ca.bundle}
        body = secret(name, self._meta, data, annotations={})
        self._apply(body, found, f"certificate issued: {reason}" if reason else "trust")
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
        found = self._own(name)
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
        notes = [f"certificate issued: {reason}"] if reason else []
        changed = [key for key in own.stores if view is None or view.text(key) != data[key]]
        notes += [f"{key} replaced" for key in sorted(changed)]
        self._apply(body, found, "; ".join(notes) or "trust")
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
            now=self._now,
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
                now=self._now,
                validity=validity,
            )
        except CertificateError as error:
            text = f"no certificate can be issued for {name} ({reason}): {error}; replace it"
            raise CertificatesUnavailableError(
                Finding(reason=Reason.CERTIFICATE_AUTHORITY_INVALID, message=text)
            ) from error
        return reason, pair

    def _given(self, source: CertificateAuthority) -> KeyPair | None:
        """The user's own authority; None, and a finding, if it cannot be used."""
        place = f"Secret {source.secret_name} of spec.certificates"
        body = self._get(source.secret_name)
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
            check_authority(pair, now=self._now)
            return normalized(pair)
        except CertificateError as error:
            self._find(Reason.CERTIFICATE_AUTHORITY_INVALID, f"{place}: {error}")
            return None

    def _find(self, reason: Reason, message: str) -> None:
        self.findings.append(Finding(reason=reason, message=message))

    def _own(self, name: str) -> Document | None:
        """A Secret of the cluster; one of another is neither read nor changed."""
        found = self._get(name)
        body = secret(name, self._meta, {}, annotations={})
        if found is not None and (objection := objection_to(found, body)):
            raise CertificatesUnavailableError(Finding(reason=Reason.REFUSED, message=objection))
        self._now = no_earlier_than(self._now, found)
        if found is not None and is_begun(found):
            self._begun[name] = found
            return None
        return found

    def _get(self, name: str) -> Document | None:
        try:
            return self._context.kube.get(SECRETS, self._meta.namespace, name)
        except KubeError as error:
            raise _unavailable(name, error) from error

    def _apply(self, body: Document, found: Document | None, reason: str) -> None:
        name = body["metadata"]["name"]
        if found is not None and not differs(body, found):
            return
        note = f"Secret {name}: {reason}"
        logger.info("KafkaCluster %s/%s: %s", self._meta.namespace, self._meta.name, note)
        try:
            apply_as_read(self._context.kube, body, found or self._begun.get(name))
        except KubeError as error:
            raise _unavailable(name, error) from error
        regarding = Regarding.of(CLUSTERS, self._meta)
        self._context.events.record(
            regarding, action="Certificates", reason="Certificates", note=note
        )


def differs(body: Document, found: Mapping[str, Any]) -> bool:
    """Whether a Secret has to be applied: it is to have this data, these notes and this owner."""
    meta, wanted = found["metadata"], body["metadata"]
    return not (
        body["data"] == (found.get("data") or {})
        and wanted["labels"].items() <= (meta.get("labels") or {}).items()
        and wanted.get("annotations", {}).items() <= (meta.get("annotations") or {}).items()
        and (controller(found) or {}).get("uid") == wanted["ownerReferences"][0]["uid"]
    )


def _unavailable(name: str, error: KubeError) -> Exception:
    """The error as a finding, if asking again would be answered the same."""
    if not error.refused:
        return error
    text = f"Secret {name} is refused: {short(error.message)}"
    if error.status == 403 and 'resource "secrets"' in error.message:
        text = "the operator may not get, create or patch Secrets"
        text += "; install the operator's chart with users=true"
    return CertificatesUnavailableError(Finding(reason=Reason.REFUSED, message=text))


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


def _pair_in(found: Document | None, key: str) -> KeyPair | None:
    return pair_of(SecretView.of(found).text(key)) if found is not None else None
