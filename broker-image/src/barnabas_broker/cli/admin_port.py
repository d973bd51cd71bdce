"""What a broker answers on its admin port: may it be restarted, has it caught up?"""

from __future__ import annotations

import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from barnabas_broker.cli.errors import CommandError, InputError

ANSWER_BYTES_MAX: Final = 1 << 20
EVERYWHERE: Final = frozenset({"", "0.0.0.0", "::", "[::]"})  # noqa: S104 - compared, not bound
UNFIT: Final = 503
UNAUTHENTICATED: Final = 401


@dataclass(frozen=True, slots=True)
class Verdict:
    """Yes or no, and the rest of the response, as it came."""

    yes: bool
    body: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class AdminPortClient:
    """Credentials for admin ports, how long they may take, and what to trust over HTTPS."""

    timeout_s: float
    token: str | None = field(default=None, repr=False)
    tls: ssl.SSLContext | None = None
    """None trusts the authorities of the machine."""


def admin_client(
    timeout_s: float, properties: Mapping[str, str], token_file: Path | None
) -> AdminPortClient:
    """With the first token of a file, and the certificates of client properties.

    Raises InputError for files that cannot be used.
    """
    token = None
    if token_file is not None:
        try:
            token = next(iter(token_file.read_text("ascii").split()), None)
        except (OSError, ValueError) as error:
            raise InputError(f"{token_file}: {error}") from None
        if token is None:
            raise InputError(f"{token_file}: there is no token in it")
    authorities = properties.get("ssl.ca.location"), properties.get("ssl.ca.pem")
    identity = properties.get("ssl.certificate.location")
    if not any((*authorities, identity)):
        return AdminPortClient(timeout_s, token)
    try:
        tls = ssl.create_default_context(cafile=authorities[0], cadata=authorities[1])
        if identity:
            password = properties.get("ssl.key.password", "")
            tls.load_cert_chain(identity, properties.get("ssl.key.location"), password)
    except (OSError, ValueError) as error:  # SSLError is an OSError.
        raise InputError(f"certificates for the admin port: {error}") from None
    return AdminPortClient(timeout_s, token, tls)


def admin_url(listener: str, broker_host: str, *, tls: bool = False) -> str | None:
    """Where `barnabas.admin.listener` is reached; None where there is none, or it is unknown.

    A broker that listens on all addresses is reached where clients reach it. Port 0 is one that
    the system chose.
    """
    host, colon, port = listener.rpartition(":")
    if not colon or not port.isdigit() or int(port) == 0:
        return None
    if host in EVERYWHERE:
        host = f"[{broker_host}]" if ":" in broker_host else broker_host
    return f"{'https' if tls else 'http'}://{host}:{port}"


def may_restart(url: str, client: AdminPortClient) -> Verdict:
    """`GET /restart-check`; CommandError where no broker of ours answers."""
    return _ask(url, "/restart-check", "mayRestart", client)


def has_caught_up(url: str, client: AdminPortClient) -> Verdict:
    """`GET /in-sync`; CommandError where no broker of ours answers."""
    return _ask(url, "/in-sync", "inSync", client)


def risks(verdict: Verdict, group: str) -> list[str]:
    """The partitions of `atRisk` or `unavoidable`, each with why; those left out are counted."""
    section = verdict.body.get(group)
    if not isinstance(section, Mapping):
        return []
    named = [
        f"{each.get('topic')}-{each.get('partition')}: {each.get('reason')}"
        for each in section.get("partitions", [])
        if isinstance(each, Mapping)
    ]
    left = section.get("count", 0) - len(named)
    return [*named, f"and {left} more"] if left > 0 else named


def _ask(url: str, path: str, answer: str, client: AdminPortClient) -> Verdict:
    request = urllib.request.Request(f"{url}{path}")  # noqa: S310 - checked where a user gives one
    if client.token is not None:
        request.add_unredirected_header("Authorization", f"Bearer {client.token}")
    try:
        with urllib.request.urlopen(  # noqa: S310
            request, timeout=client.timeout_s, context=client.tls
        ) as response:
            data = response.read(ANSWER_BYTES_MAX)
    except urllib.error.HTTPError as error:
        with error:
            if error.code == UNAUTHENTICATED:
                shown = "the token is refused" if client.token else "give --admin-token-file"
                raise CommandError(f"{url}{path} needs a token or a certificate: {shown}") from None
            if error.code != UNFIT:
                raise CommandError(f"{url}{path} answers {error.code} {error.reason}") from None
            data = error.read(ANSWER_BYTES_MAX)
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        raise CommandError(f"no answer from {url}{path}: {reason}") from None
    try:
        body = json.loads(data)
    except ValueError:
        body = None
    if not isinstance(body, dict) or not isinstance(body.get(answer), bool):
        raise CommandError(f"what answers at {url} is not the admin port of a Barnabas broker")
    return Verdict(body[answer], body)
