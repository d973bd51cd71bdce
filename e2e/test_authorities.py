"""The certificate authorities of brokers and clients are replaced under load, without a restart.

Two of its steps last for five minutes each at least, so this is not in `make test`:

    python -m pytest e2e/test_authorities.py -m soak
"""

from __future__ import annotations

import socket
import ssl
from typing import Final

import pytest

from e2e import kafka
from e2e.cluster import Cluster
from e2e.java import JavaLoad, client_pod
from e2e.load import Load
from e2e.quickstart import MAIN
from e2e.test_users import client, more, processes, produce, read, secured, shown_certificate
from tests.waiting import ANSWER, ATTEMPT_S, RUN, seconds

pytestmark = pytest.mark.soak
__all__ = ["secured"]
# Two overlaps, and what files take to reach pods.
REPLACEMENT: Final = 3 * RUN
BEGIN: Final = "BEGIN CERTIFICATE"


# Without images and cluster, which have their own limits.
@pytest.mark.timeout(seconds(6 * RUN), func_only=True)
def test_authorities_are_replaced_under_load(secured: Cluster) -> None:
    """The brokers' and the clients', at once, under librdkafka and Java; the old ones end last.

    Clients that read `ca.crt` in the first step go on to the end, as do users who read their new
    certificates in the second.
    """
    before, running = read(secured), processes(secured)
    old, old_till = client(secured, "shop"), client(secured, "till")
    handshake(old)
    shown = shown_certificate(old)
    for authority in ("cluster-ca", "clients-ca"):
        asked = f"barnabas.io/rotate-{authority}=1"
        secured.kubectl("annotate", "kafkacluster/secured", "-n", MAIN, asked)
    both = trusting(secured, 2)
    with (
        client_pod(secured),
        Load(both, "invoices") as load,
        JavaLoad(secured, "shop", "invoices") as java_load,
    ):
        with Load(client(secured, "till"), "invoices") as till_load:
            new_till = secured.wait_for(
                "another certificate of till",
                lambda: client(secured, "till"),
                until=lambda it: it["ssl.certificate.pem"] != old_till["ssl.certificate.pem"],
                namespaces=(MAIN,),
                within=REPLACEMENT,
            )
            more(secured, load, java_load, till_load)
        with Load(new_till, "invoices") as new_till_load:
            more(secured, new_till_load)
            secured.wait_for(
                "a certificate of the new authority",
                lambda: shown_certificate(old),
                until=lambda found: found != shown,
                namespaces=(MAIN,),
                within=REPLACEMENT,
            )
            more(secured, load, java_load, new_till_load)
            alone = trusting(secured, 1)
            assert alone["ssl.ca.pem"] not in old["ssl.ca.pem"]
            assert produce(alone, b"with the new authority") is None
            assert produce(both, b"with both") is None
            with pytest.raises(ssl.SSLCertVerificationError):
                handshake(old)
            trust = {"ssl.ca.pem": alone["ssl.ca.pem"], "message.timeout.ms": int(1000 * ATTEMPT_S)}
            secured.wait_for(
                "the refusal of a certificate of the old clients' authority",
                lambda: produce({**old_till, **trust}, b"with the old certificate"),
                until=lambda error: error is not None,
                namespaces=(MAIN,),
                within=REPLACEMENT,
            )
            assert produce({**new_till, **trust}, b"with the new certificate") is None
            more(secured, load, java_load, new_till_load)
    loads = (load, java_load, till_load, new_till_load)
    assert [each.failures for each in loads] == [[]] * len(loads)
    found, acknowledged = read(secured), dict(before)
    for each in loads:
        acknowledged |= each.acknowledged
    assert {place: found.get(place) for place in acknowledged} == acknowledged
    assert processes(secured) == running
    secured.wait_ready("kafkacluster/secured", namespace=MAIN)


def handshake(given: kafka.Client) -> None:
    """Connect to a broker that the Secret's authorities have to have issued for."""
    host, _, port = given["bootstrap.servers"].rpartition(":")
    context = ssl.create_default_context(cadata=given["ssl.ca.pem"])
    with socket.create_connection((host, int(port)), timeout=seconds(ANSWER)) as plain:
        context.wrap_socket(plain, server_hostname=host).close()


def trusting(cluster: Cluster, authorities: int) -> kafka.Client:
    """The settings in the Secret, once it has so many authorities to trust."""
    return cluster.wait_for(
        f"{authorities} authorities in the Secret",
        lambda: client(cluster, "shop"),
        until=lambda found: found["ssl.ca.pem"].count(BEGIN) == authorities,
        namespaces=(MAIN,),
        within=REPLACEMENT,
    )
