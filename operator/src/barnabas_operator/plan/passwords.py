"""Which password a user has: a given one, the one that the user's Secret has, or a new one.

Passwords are in no `repr`, and no message here contains one.
"""

from __future__ import annotations

import binascii
from base64 import b64decode
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from barnabas_operator.api.users import GENERATED, ROTATE
from barnabas_operator.plan.topics import Refusal
from barnabas_operator.plan.user_ledger import User

PASSWORD_KEY: Final = "password"  # noqa: S105 - the name of a key
LONGEST: Final = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretView:
    """A Secret as the API server has it."""

    name: str
    version: str
    annotations: Mapping[str, str]
    data: Mapping[str, bytes] = field(repr=False)

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> SecretView:
        """From the object; what is no base64 is taken for absent."""
        meta = body["metadata"]
        data = {}
        for key, value in (body.get("data") or {}).items():
            try:
                data[key] = b64decode(value or "", validate=True)
            except (binascii.Error, ValueError):
                continue
        return cls(
            name=meta["name"],
            version=f"{meta.get('uid', '')}/{meta.get('resourceVersion', '')}",
            annotations=dict(meta.get("annotations") or {}),
            data=data,
        )

    def text(self, key: str) -> str:
        """A value as text; empty if there is none."""
        return self.data.get(key, b"").decode(errors="replace")


@dataclass(frozen=True, slots=True, kw_only=True)
class Password:
    """The password that a user is to have, and how it came about."""

    value: str = field(repr=False)
    # What the annotation of the resource said when the password was generated.
    rotation: str = ""
    # When it was generated, RFC 3339; empty where nothing asks for that.
    generated: str = ""
    reason: str = ""
    warning: str = ""


def choose_password(
    user: User,
    *,
    given: SecretView | None,
    own: SecretView | None,
    generate: Callable[[], str],
    now: str = "",
) -> Password | Refusal:
    """The password of a user; `given` is the Secret that the spec names, `own` the operator's.

    `now` is RFC 3339.
    """
    asked = user.meta.annotations.get(ROTATE, "")
    reference = user.body.spec.authentication.password_secret_ref
    if reference is not None:
        place = f"Secret {reference.name}"
        if given is None:
            text = f"{place} of spec.authentication.passwordSecretRef does not exist; create it"
            return Refusal("PasswordSecretNotFound", text)
        if reference.key not in given.data:
            return Refusal("InvalidPassword", f"{place} has no key {reference.key}")
        text, problem = _text(given.data[reference.key])
        if problem:
            return Refusal("InvalidPassword", f"{place}, key {reference.key}: {problem}")
        warning = ""
        if asked:
            warning = f"{ROTATE} has no effect on a given password; change {place} instead"
        return Password(value=text, warning=warning)
    days = user.body.spec.authentication.rotation_days
    text, problem = _text(own.data.get(PASSWORD_KEY, b"")) if own else ("", "")
    before = own.annotations if own else {}
    since = before.get(GENERATED, "")
    age = _age(since, now)
    if own is None:
        reason = "no Secret"
    elif asked and asked != before.get(ROTATE, ""):
        reason = f"{ROTATE}={asked}"
    elif problem:
        reason = f"{own.name}: {problem}"
    elif days is not None and age is not None and age >= timedelta(days=days):
        reason = f"it is {days} days old"
    else:
        # Of a password from before the schedule, or from a clock that was ahead, the age is not
        # known: its days begin now.
        since = now if days is not None and age is None else since
        return Password(value=text, rotation=before.get(ROTATE, ""), generated=since)
    rotation = asked or before.get(ROTATE, "")
    generated = now if days is not None else ""
    return Password(value=generate(), rotation=rotation, generated=generated, reason=reason)


def password_problem(own: SecretView | None) -> str:
    """What is wrong with the password that there is; empty if nothing, or if there is none."""
    found = own.data.get(PASSWORD_KEY, b"") if own else b""
    return _text(found)[1] if found else ""


def _age(since: str, now: str) -> timedelta | None:
    """How old a password is; None where that is unknown."""
    try:
        age = datetime.fromisoformat(now) - datetime.fromisoformat(since)
    except (ValueError, TypeError):
        return None
    return age if age >= timedelta() else None


def _text(data: bytes) -> tuple[str, str]:
    """A password and what is wrong with it; the files of clients could not hold what is refused."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return "", "the password is not UTF-8"
    if not text:
        return "", "the password is empty"
    if len(text) > LONGEST:
        return "", f"the password has {len(text)} characters, at most {LONGEST} are possible"
    if text.endswith(("\n", "\r")):
        return "", "the password ends with a line break; write it without one"
    if text != text.strip() or not text.isprintable():
        return "", "the password begins or ends with a space, or has characters without a glyph"
    return text, ""
