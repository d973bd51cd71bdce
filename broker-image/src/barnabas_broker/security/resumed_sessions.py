"""TLS sessions that clients resume, whose certificates are not verified again.

Servers here give no tickets. TLS 1.2 resumes a session by its id as well, for two hours, with the
context that it began with: a context of other trust has no sessions of an earlier one, but a
certificate may expire meanwhile.
"""

import ssl


def outlives_certificate(tls: ssl.SSLObject, now_s: float) -> bool:
    """Whether a session was resumed whose client's certificate has expired since it began."""
    shown = tls.getpeercert() if tls.session_reused else None
    return shown is not None and ssl.cert_time_to_seconds(str(shown["notAfter"])) <= now_s
