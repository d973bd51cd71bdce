"""What clients of a user are given, before it becomes a Secret, or files of a directory."""

from __future__ import annotations

import secrets
from datetime import datetime, timedelta
from typing import Final

from barnabas_kafka.certificates import (
    CertificateError,
    CertificateView,
    KeyPair,
    check_pair,
    pkcs12,
    read_certificate,
)
from barnabas_operator.api.users import ROTATE
from barnabas_operator.plan.certificates import issue_reason
from barnabas_operator.plan.passwords import SecretView
from barnabas_operator.plan.user_ledger import User
from barnabas_operator.plan.users import Access, user_name
from barnabas_operator.resources.user_certificate import (
    STORE_PASSWORD,
    USER_CERTIFICATE,
    USER_KEY,
    USER_STORE,
    certificate_properties,
)
from barnabas_operator.resources.user_secret import MOUNT_PATH

# 192 random bits, 32 characters.
PASSWORD_BYTES: Final = 24


def generate_password() -> str:
    """A new password."""
    return secrets.token_urlsafe(PASSWORD_BYTES)


def own_pair(own: SecretView | None) -> KeyPair | None:
    """Certificate and key that a user has; None if they are not a pair."""
    if own is None:
        return None
    pair = KeyPair(certificate=own.text(USER_CERTIFICATE), key=own.text(USER_KEY))
    try:
        check_pair(pair)
    except CertificateError:
        return None
    return pair


def view_of(pair: KeyPair | None) -> CertificateView | None:
    """What the certificate of a pair says; None without one."""
    return read_certificate(pair.certificate) if pair else None


def reissue_reason(
    user: User,
    own: SecretView | None,
    pair: KeyPair | None,
    *,
    authority: CertificateView,
    now: datetime,
    validity: timedelta,
) -> str:
    """Why a user needs another certificate than its `pair`; empty if it needs none."""
    asked = user.meta.annotations.get(ROTATE, "")
    if own is not None and asked and asked != own.annotations.get(ROTATE, ""):
        return f"{ROTATE}={asked}"
    return issue_reason(
        view_of(pair), authority=authority, common_name=user_name(user), now=now, validity=validity
    )


def certificate_data(
    user: User,
    access: Access,
    pair: KeyPair,
    own: SecretView | None,
    *,
    mount_path: str = MOUNT_PATH,
) -> dict[str, bytes]:
    """What a user with a certificate has; `own` is what it has now if the certificate stays."""
    servers = access.servers(own.text("bootstrap.servers") if own else "")
    texts = certificate_properties(
        username=user_name(user),
        certificate=pair.certificate,
        key=pair.key,
        trusted=access.trusted,
        bootstrap_servers=servers,
        mount_path=mount_path,
    )
    data = {name: text.encode() for name, text in texts.items()}
    if own is not None and own.data.get(USER_STORE) and own.text(STORE_PASSWORD):
        # Each file of the same content is another one, with another salt.
        return {**data, **{name: own.data[name] for name in (USER_STORE, STORE_PASSWORD)}}
    password = generate_password()
    data[USER_STORE] = pkcs12(pair, name=user_name(user), password=password)
    data[STORE_PASSWORD] = password.encode()
    return data
