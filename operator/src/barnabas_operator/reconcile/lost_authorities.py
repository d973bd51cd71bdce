"""An authority whose Secret was deleted: its key is gone, and what it has issued is still valid.

Brokers and clients still trust its certificate. So another authority follows as in
any replacement: the certificates that the lost one has issued are kept for the overlap, and it is
trusted meanwhile. Only what has to be issued in that time is of the one that follows.
"""

from __future__ import annotations

from barnabas_kafka.certificates import (
    CertificateError,
    CertificateView,
    KeyPair,
    read_certificate,
    split_bundle,
)
from barnabas_operator.plan.certificates import Authority


def former_certificates(bundle: str) -> tuple[str, ...]:
    """The certificates that are trusted already, the one that issued first; none if unreadable."""
    found = split_bundle(bundle)
    try:
        for each in found:
            read_certificate(each)
    except CertificateError:
        return ()
    return found


def issuing_for(
    found: CertificateView | None, authority: Authority
) -> tuple[KeyPair, CertificateView]:
    """The authority that issues the next certificate, and the one that issued the present one."""
    current = read_certificate(authority.current.certificate)
    if authority.current.key or authority.next is None:
        return authority.current, current
    kept = found is not None and (
        (found.authority_key_id, found.issuer) == (current.key_id, current.subject)
    )
    return authority.next, current if kept else read_certificate(authority.next.certificate)
