"""TLS sessions that clients resume, whose certificates are not verified again.

Servers here give no tickets. TLS 1.2 resumes a session by its id as well, for two hours, with the
context that it began with: a context of other trust has no sessions of an earlier one, but a
certificate may expire meanwhile. Python cannot have OpenSSL keep fewer sessions, so that a context
that keeps many is replaced.
"""

import ssl
from typing import Final

SESSIONS_MAX: Final = 1_000
"""Sessions of a context, at 1 KiB each, and 10 KiB with a certificate. OpenSSL keeps 20,480."""


def keeps_many(context: ssl.SSLContext) -> bool:
    """Whether to accept the next connections with a context without sessions."""
    return context.session_stats()["number"] > SESSIONS_MAX


def outlives_certificate(tls: ssl.SSLObject, now_s: float) -> bool:
    """Whether a session was resumed whose client's certificate has expired since it began."""
    shown = tls.getpeercert() if tls.session_reused else None
    return shown is not None and ssl.cert_time_to_seconds(str(shown["notAfter"])) <= now_s
