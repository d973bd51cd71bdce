"""The certificate authorities of a cluster, as its resource names them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from barnabas_operator.api.amounts import parse_duration_ms
from barnabas_operator.api.facts import DURATION, Between, Doc, Fewest, Longest, Pattern

SECRET_NAME = Pattern("^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$", "a name of lower-case letters and digits")
SECRET_KEY = Pattern("^[-._a-zA-Z0-9]+$", "a key of a Secret: letters, digits, dashes, dots, _")


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateAuthority:
    """An authority of your own."""

    secret_name: Annotated[
        str,
        Doc(
            "Secret in the cluster's namespace with a self-signed certificate and its key, as"
            " tls.crt and tls.key (what cert-manager writes), or ca.crt and ca.key."
        ),
        SECRET_NAME,
        Longest(253),
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateChainAndKey:
    """A certificate of your own with its key, in a Secret."""

    secret_name: Annotated[
        str,
        Doc(
            "Secret in the cluster's namespace, such as cert-manager writes. Its ca.crt, if it has"
            " one, is what KafkaUsers of the listener trust beside the cluster's own authority."
        ),
        SECRET_NAME,
        Fewest(1),
        Longest(253),
    ]
    certificate: Annotated[
        str,
        Doc("Its key with the certificate chain, PEM: the brokers' own certificate first."),
        SECRET_KEY,
        Longest(253),
    ] = "tls.crt"
    key: Annotated[
        str,
        Doc("Its key with the private key, PEM without a password: RSA or of an elliptic curve."),
        SECRET_KEY,
        Longest(253),
    ] = "tls.key"


@dataclass(frozen=True, slots=True, kw_only=True)
class IssuerReference:
    """An issuer of cert-manager, or of an external one that it knows."""

    name: Annotated[str, Doc("Name of the issuer."), Fewest(1), Longest(253)]
    kind: Annotated[
        str, Doc("Issuer, in the cluster's namespace, or ClusterIssuer."), Fewest(1), Longest(63)
    ] = "Issuer"
    group: Annotated[str, Doc("API group of the issuer."), Fewest(1), Longest(253)] = (
        "cert-manager.io"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificates:
    """Who issues the certificates of brokers and users, and for how long."""

    cluster_ca: Annotated[
        CertificateAuthority | None,
        Doc("Issues the certificates of the brokers; generated if absent."),
    ] = None
    clients_ca: Annotated[
        CertificateAuthority | None,
        Doc("Issues the certificates of KafkaUsers; generated if absent."),
    ] = None
    validity_days: Annotated[
        int,
        Doc("Days for which a certificate is issued; it is renewed after two thirds of them."),
        Between(1, 825),
    ] = 90
    rotation_overlap: Annotated[
        str,
        Doc(
            "How long each step lasts in which an authority is replaced: trust both, issue with the"
            " new one, trust the old one no longer. Clients read their Secrets again in each step."
        ),
        DURATION,
        Longest(20),
    ] = "1d"

    @property
    def overlap_seconds(self) -> float:
        """The overlap, at least as long as files take to reach all pods."""
        return max(parse_duration_ms(self.rotation_overlap) / 1000, SHORTEST_OVERLAP_S)


# Kubernetes brings a changed Secret into running pods within about two minutes.
SHORTEST_OVERLAP_S = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateStatus:
    """A certificate of the cluster, and when it expires."""

    name: Annotated[str, Doc("cluster-ca, clients-ca, or what the certificate is for.")]
    not_after: Annotated[str, Doc("When it expires.")]
