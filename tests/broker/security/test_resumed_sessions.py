"""TLS sessions that clients resume, at the moment in which their certificates expire."""

import ssl
from pathlib import Path

import pytest

from barnabas_broker.security.resumed_sessions import outlives_certificate
from tests.oracle.certificates import Certificate

AUTHORITY = Certificate("authority")


def resumed(server: ssl.SSLContext, client: ssl.SSLContext) -> list[ssl.SSLObject]:
    """The server's side of a session, and of the same session once more."""
    sides: list[ssl.SSLObject] = []
    session = None
    for _ in range(2):
        to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
        ours = server.wrap_bio(to_server, to_client, server_side=True)
        theirs = client.wrap_bio(to_client, to_server, session=session)
        for _ in range(4):
            for side in (theirs, ours):
                try:
                    side.do_handshake()
                except ssl.SSLWantReadError:
                    continue
        session = theirs.session
        sides.append(ours)
    return sides


@pytest.mark.parametrize("shown", [True, False], ids=["certificate", "none"])
def test_a_resumed_session_ends_with_its_certificate(tmp_path: Path, *, shown: bool) -> None:
    """A new session was verified, and one without a certificate has nothing that expires."""
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    broker = Certificate("broker", AUTHORITY, host="localhost")
    server.load_cert_chain(broker.write_pem(tmp_path / "broker.pem"))
    server.load_verify_locations(cadata=AUTHORITY.pem.decode())
    server.verify_mode = ssl.CERT_OPTIONAL
    server.maximum_version = ssl.TLSVersion.TLSv1_2
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname = False
    client.load_verify_locations(cadata=AUTHORITY.pem.decode())
    alice = Certificate("alice", AUTHORITY)
    if shown:
        client.load_cert_chain(alice.write_pem(tmp_path / "alice.pem"))
    first, again = resumed(server, client)
    assert again.session_reused
    details = again.getpeercert() or {"notAfter": "Jan  1 00:00:00 2100 GMT"}
    end_s = ssl.cert_time_to_seconds(str(details["notAfter"]))
    assert not outlives_certificate(first, end_s)
    assert not outlives_certificate(again, end_s - 1)
    assert outlives_certificate(again, end_s) is shown
