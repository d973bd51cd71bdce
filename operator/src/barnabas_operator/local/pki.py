"""The certificates of a cluster on this machine.

authority.pem, authority.key    what clients trust, and what signs; `barnabas pki --dir` takes them
broker.pem                      key and certificate of the brokers
cluster-ca.crt, clients-ca.crt  what the brokers trust: that authority
operator.pem                    key and certificate by which `barnabas local` comes to the brokers
admin-token                     what admin ports ask for

Each file is written in one step. The authority's certificate comes after its key: a key without a
certificate has signed nothing.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from barnabas_kafka.certificates import (
    AUTHORITY_CERTIFICATE,
    AUTHORITY_KEY,
    CertificateError,
    KeyPair,
    check_authority,
    check_pair,
    create_authority,
    issue,
    pair_of,
    read_certificate,
)
from barnabas_operator.api.certificates import CertificateStatus
from barnabas_operator.api.clusters import KafkaCluster
from barnabas_operator.api.reading import Resource
from barnabas_operator.brokers import ClientTls
from barnabas_operator.local.processes import write_atomically
from barnabas_operator.local.state import LocalError
from barnabas_operator.names import ORGANIZATION, ClusterNames
from barnabas_operator.plan.certificates import AUTHORITY_DAYS, format_time, issue_reason
from barnabas_operator.resources.certificates import (
    ADMIN_TOKEN,
    CLIENTS_TRUST,
    CLUSTER_TRUST,
    KEY_STORE,
    OPERATOR_STORE,
)

HOSTS: Final = frozenset({"127.0.0.1", "::1", "localhost"})
TOKEN_BYTES: Final = 24


@dataclass(frozen=True, slots=True)
class Pki:
    """The directory of the certificates."""

    directory: Path

    def ensure(self, cluster: Resource[KafkaCluster], *, repair: bool = False) -> None:
        """Have everything there and valid; brokers read again what has changed.

        Raises LocalError where the authority cannot be used, unless `repair` replaces it.
        """
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.directory.chmod(0o700)
        now = datetime.now(UTC)
        authority = self._authority(cluster.meta.name, now, repair=repair)
        for name in (CLUSTER_TRUST, CLIENTS_TRUST):
            self._write(name, authority.certificate)
        names = ClusterNames(cluster.meta.name, cluster.meta.namespace)
        validity = timedelta(days=cluster.body.spec.certificates.validity_days)
        above = read_certificate(authority.certificate)
        for store, common_name, hosts in (
            (KEY_STORE, names.broker, HOSTS),
            (OPERATOR_STORE, names.operator, frozenset[str]()),
        ):
            pair = self._pair(store)
            found = read_certificate(pair.certificate) if pair else None
            if issue_reason(
                found, authority=above, common_name=common_name, hosts=hosts,
                now=now, validity=validity,
            ):  # fmt: skip
                issued = issue(
                    authority, common_name, hosts=hosts, organization=ORGANIZATION,
                    now=now, validity=validity,
                )  # fmt: skip
                self._write(store, issued.key + issued.certificate)
        if not self._read(ADMIN_TOKEN).strip():
            self._write(ADMIN_TOKEN, secrets.token_urlsafe(TOKEN_BYTES))

    @property
    def authority(self) -> KeyPair:
        """What signs; `ensure` has checked it."""
        return KeyPair(certificate=self.trusted, key=self._read(AUTHORITY_KEY))

    @property
    def trusted(self) -> str:
        """What clients trust, PEM; empty if there is none."""
        return self._read(AUTHORITY_CERTIFICATE)

    @property
    def operator(self) -> ClientTls:
        """What is shown to brokers. Raises LocalError where that is damaged."""
        pair = self._pair(OPERATOR_STORE)
        if pair is None or not self.trusted:
            text = f"{self.directory / OPERATOR_STORE} is missing or damaged"
            raise LocalError(f"{text}; `barnabas local up FILE` issues it again")
        return ClientTls(certificate=pair.certificate, key=pair.key, trusted=self.trusted)

    def expiries(self) -> tuple[CertificateStatus, ...]:
        """When the certificates expire, as far as they can be read."""
        found = []
        for name, file in (("cluster-ca", AUTHORITY_CERTIFICATE), ("broker", KEY_STORE)):
            try:
                view = read_certificate(self._read(file))
            except CertificateError:
                continue
            found.append(CertificateStatus(name=name, not_after=format_time(view.not_after)))
        return tuple(found)

    def _authority(self, cluster: str, now: datetime, *, repair: bool) -> KeyPair:
        if self.trusted:
            try:
                check_authority(self.authority, now=now)
            except CertificateError as error:
                if not repair:
                    text = f"the development authority in {self.directory} cannot be used: {error}"
                    remedy = "`barnabas local up FILE --repair` replaces it; clients read it again"
                    raise LocalError(f"{text}; {remedy}") from error
            else:
                return self.authority
        created = create_authority(f"{cluster} development", now=now, days=AUTHORITY_DAYS)
        self._write(AUTHORITY_CERTIFICATE, "")
        self._write(AUTHORITY_KEY, created.key)
        self._write(AUTHORITY_CERTIFICATE, created.certificate)
        return created

    def _pair(self, store: str) -> KeyPair | None:
        pair = pair_of(self._read(store))
        try:
            if pair is not None:
                check_pair(pair)
        except CertificateError:
            return None
        return pair

    def _read(self, name: str) -> str:
        try:
            return self.directory.joinpath(name).read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return ""
        except OSError as error:
            raise LocalError(f"cannot read {error.filename}: {error.strerror}") from error

    def _write(self, name: str, text: str) -> None:
        """Write a file if it is another one; no other user of the machine reads it."""
        if not text or self._read(name) != text:
            try:
                write_atomically(self.directory / name, text, private=True)
            except OSError as error:
                raise LocalError(f"cannot write {error.filename}: {error.strerror}") from error
