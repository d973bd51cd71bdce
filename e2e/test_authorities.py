"""The cluster's certificate authority is replaced under load, and nothing is restarted.

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
from e2e.load import Load
from e2e.quickstart import MAIN
from e2e.test_users import client, more, processes, produce, read, secured, shown_certificate
from tests.waiting import ANSWER, RUN, seconds

pytestmark = pytest.mark.soak
__all__ = ["secured"]
# Two overlaps, and what files take to reach pods.
REPLACEMENT: Final = 3 * RUN
BEGIN: Final = "BEGIN CERTIFICATE"


@pytest.mark.timeout(6 * RUN)
def test_an_authority_is_replaced_under_load(secured: Cluster) -> None:
    """Clients that read `ca.crt` in the first step go on to the end; the old one ends then."""
    before, running = read(secured), processes(secured)
    old = client(secured, "shop")
    handshake(old)
    shown = shown_certificate(old)
    asked = "barnabas.io/rotate-cluster-ca=1"
    secured.kubectl("annotate", "kafkacluster/secured", "-n", MAIN, asked)
    both = trusting(secured, 2)
    with Load(both, "invoices") as load:
        secured.wait_for(
            "a certificate of the new authority",
            lambda: shown_certificate(old),
            until=lambda found: found != shown,
            namespaces=(MAIN,),
            within=REPLACEMENT,
        )
        more(secured, load)
        alone = trusting(secured, 1)
        assert alone["ssl.ca.pem"] not in old["ssl.ca.pem"]
        assert produce(alone, b"with the new authority") is None
        assert produce(both, b"with both") is None
        with pytest.raises(ssl.SSLCertVerificationError):
            handshake(old)
        more(secured, load)
    assert load.failures == []
    found = read(secured)
    acknowledged = {**before, **load.acknowledged}
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
