"""The certificates that listeners bring: read from their Secrets, checked, and given to brokers.

Brokers do not mount these Secrets: one that is missing, or has a key of another certificate, would
keep them from starting. What can be used is put into the brokers' own Secret, chain and key in one
file, which brokers read again while they run. Until there is something to be used a listener shows
the cluster's certificate, and afterwards what it showed last.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from barnabas_kafka.certificates import (
    CertificateError,
    CertificateView,
    ServerIdentity,
    is_named,
    pair_of,
    read_certificate,
    server_identity,
)
from barnabas_operator.api.certificates import CertificateChainAndKey, CertificateStatus
from barnabas_operator.api.listeners import Listener
from barnabas_operator.kube import Document
from barnabas_operator.plan.certificates import expires_soon, format_time
from barnabas_operator.plan.findings import Finding, Reason
from barnabas_operator.plan.passwords import SecretView
from barnabas_operator.resources.certificates import (
    KEY_STORE,
    LISTENER_PREFIX,
    TRUSTED,
    listener_store,
    listener_trust,
)

# A Secret holds a megabyte, and the brokers' one has what all listeners show.
LONGEST: Final = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerCertificates:
    """What brokers are to show by their listeners, and what clients are to trust."""

    # By the keys of the brokers' Secret; an empty one is that of the brokers' own certificate.
    stores: Mapping[str, str] = field(default_factory=dict, repr=False)
    # By the keys of the Secret for clients; none where they trust the cluster's authority alone.
    trusted: Mapping[str, str] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    expiries: tuple[CertificateStatus, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What brokers and clients have had until now."""

    # The brokers' Secret, and the one for clients.
    stores: SecretView | None
    trusted: SecretView | None
    # Whether running brokers may still read a file of their Secret.
    in_use: Callable[[str], bool] = lambda _: False

    def store(self, key: str) -> str:
        """What a listener showed of its own; empty if that was the brokers' certificate."""
        if self.stores is None or self.stores.text(key) == self.stores.text(KEY_STORE):
            return ""
        return self.stores.text(key)

    def trust(self, key: str) -> dict[str, str]:
        """What clients of a listener trusted beside, by its key."""
        known = self.trusted is not None and key in self.trusted.data
        return {key: self.trusted.text(key)} if self.trusted is not None and known else {}

    def still_read(self) -> set[str]:
        """The listeners whose files running brokers may read."""
        keys = self.stores.data if self.stores is not None else ()
        found = (key for key in keys if key.startswith(LISTENER_PREFIX) and self.in_use(key))
        return {key.removeprefix(LISTENER_PREFIX).removesuffix(".pem") for key in found}


def listener_certificates(
    listeners: Collection[Listener],
    shown: Shown,
    *,
    get: Callable[[str], Document | None],
    hosts: Mapping[str, Collection[str]],
    now: datetime,
) -> ListenerCertificates:
    """One pass; `get` reads a Secret by its name, and raises CertificateError if it may not.

    `hosts` are those by which clients reach each listener.
    """
    stores: dict[str, str] = {}
    trusted: dict[str, str] = {}
    findings: list[Finding] = []
    expiries: list[CertificateStatus] = []
    for name in shown.still_read():
        stores[listener_store(name)] = shown.store(listener_store(name))
        trusted |= shown.trust(listener_trust(name))
    for each in listeners:
        if (source := each.own_certificate) is None:
            continue
        store, trust = listener_store(each.name), listener_trust(each.name)
        place = f"listener {each.name}: Secret {source.secret_name}"
        try:
            secret = get(source.secret_name)
            if secret is None and each.issuer is not None:
                # The plan says what the issuer waits for.
                stores[store] = shown.store(store)
                trusted |= shown.trust(trust) if stores[store] else {}
                continue
            identity = _identity(source, secret, now)
            stores[store] = identity.pair.key + identity.pair.certificate
            trusted[trust] = identity.authorities
        except CertificateError as error:
            stores[store] = shown.store(store)
            trusted |= shown.trust(trust) if stores[store] else {}
            goes_on = "the one before" if stores[store] else "the cluster's certificate"
            text = f"{place}: {error}; the listener shows {goes_on}"
            findings.append(Finding(reason=Reason.LISTENER_CERTIFICATE_INVALID, message=text))
        if (pair := pair_of(stores[store])) is not None:
            view = read_certificate(pair.certificate)
            ends = format_time(view.not_after)
            expiries.append(CertificateStatus(name=f"{LISTENER_PREFIX}{each.name}", not_after=ends))
            findings += _warnings(place, view, hosts.get(each.name, ()), now)
    return ListenerCertificates(
        stores=stores, trusted=trusted, findings=tuple(findings), expiries=tuple(expiries)
    )


def _identity(
    source: CertificateChainAndKey, found: Document | None, now: datetime
) -> ServerIdentity:
    """What a Secret holds. Raises CertificateError."""
    if found is None:
        raise CertificateError("it does not exist; create it")
    view = SecretView.of(found)
    for key in (source.certificate, source.key):
        if not view.text(key):
            raise CertificateError(f"it has no key {key}, or an empty one")
    keys = {source.certificate, source.key, TRUSTED} & view.data.keys()
    if sum(len(view.data[key]) for key in keys) > LONGEST:
        raise CertificateError(f"chain, key and {TRUSTED} have more than {LONGEST} bytes")
    return server_identity(
        view.text(source.certificate),
        view.text(source.key),
        authorities=view.text(TRUSTED),
        now=now,
    )


def _warnings(
    place: str, view: CertificateView, hosts: Collection[str], now: datetime
) -> Iterator[Finding]:
    """What does not keep a certificate from being shown."""
    if expires_soon(view, now):
        text = f"{place}: the certificate expires at {format_time(view.not_after)}; replace it"
        yield Finding(reason=Reason.CERTIFICATE_EXPIRES, message=text)
    if missing := sorted(host for host in hosts if not is_named(host, view.hosts)):
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        text = f"{place}: the certificate does not name {missing[0]}{more}"
        remedy = "clients that verify hosts refuse it; issue it for what the listener advertises"
        yield Finding(reason=Reason.CERTIFICATE_LACKS_HOSTS, message=f"{text}; {remedy}")
