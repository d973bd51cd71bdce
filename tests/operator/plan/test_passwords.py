"""Which password a user has."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from typing import Any

import pytest

from barnabas_operator.api.reading import read_user
from barnabas_operator.plan.passwords import Password, SecretView, choose_password
from barnabas_operator.plan.topics import Refusal
from barnabas_operator.plan.user_ledger import User
from tests.operator import examples

REFERENCE = {"passwordSecretRef": {"name": "given", "key": "word"}}


def _user(rotate: str = "", authentication: Any = None) -> User:
    document = examples.user(authentication=authentication or {})
    if rotate:
        document["metadata"]["annotations"] = {"barnabas.io/rotate": rotate}
    return read_user(document)


def _secret(data: Mapping[str, bytes], rotated: str = "") -> SecretView:
    notes = {"barnabas.io/rotate": rotated} if rotated else {}
    encoded = {key: b64encode(value).decode() for key, value in data.items()}
    return SecretView.of({"metadata": {"name": "s", "annotations": notes}, "data": encoded})


def _chosen(user: User, given: SecretView | None, own: SecretView | None) -> str:
    found = choose_password(user, given=given, own=own, generate=lambda: "new")
    assert isinstance(found, Password)
    return found.value


def test_one_is_generated_and_then_kept() -> None:
    """Until the annotation has another value than the Secret has noted."""
    assert _chosen(_user(), None, None) == "new"
    assert _chosen(_user(), None, _secret({"password": b"old"})) == "old"
    assert _chosen(_user("2"), None, _secret({"password": b"old"}, "2")) == "old"
    assert _chosen(_user("3"), None, _secret({"password": b"old"}, "2")) == "new"
    assert _chosen(_user("3"), None, _secret({"password": b"old"})) == "new"
    assert _chosen(_user(), None, _secret({"password": b"old"}, "2")) == "old"


@pytest.mark.parametrize("data", [{}, {"password": b""}, {"password": b"\xff"}])
def test_a_secret_without_a_password_gets_one(data: dict[str, bytes]) -> None:
    """Somebody has edited it."""
    assert _chosen(_user(), None, _secret(data)) == "new"


def test_a_given_one_counts_whatever_the_own_secret_has() -> None:
    """The key is that of the spec."""
    given = _secret({"word": "pencil ü".encode()})
    assert (
        _chosen(_user(authentication=REFERENCE), given, _secret({"password": b"old"})) == "pencil ü"
    )


@pytest.mark.parametrize(
    ("word", "problem"),
    [
        (b"", "is empty"),
        (b"x\n", "ends with a line break"),
        (b"x" * 1025, "has 1025 characters"),
        (b"\xff", "is not UTF-8"),
        (b" x", "begins or ends with a space"),
        (b"a\nb", "characters without a glyph"),
        (b"a\x00b", "characters without a glyph"),
    ],
)
def test_given_ones_that_a_client_could_not_read(word: bytes, problem: str) -> None:
    """The message names the Secret, and nothing of what is in it."""
    found = choose_password(
        _user(authentication=REFERENCE),
        given=_secret({"word": word}),
        own=None,
        generate=lambda: "new",
    )
    assert isinstance(found, Refusal)
    assert found.reason == "InvalidPassword"
    assert problem in found.message


def test_a_given_secret_without_the_key() -> None:
    """The message names the key."""
    given = _secret({"password": b"x"})
    found = choose_password(
        _user(authentication=REFERENCE), given=given, own=None, generate=lambda: "new"
    )
    assert isinstance(found, Refusal)
    assert found.message == "Secret given has no key word"


def test_passwords_are_in_no_representation() -> None:
    """Of a Secret and of the choice: an exception or a debugger would show them."""
    secret = _secret({"password": b"pencil"})
    found = choose_password(_user(), given=None, own=secret, generate=lambda: "new")
    assert "pencil" not in repr(secret) + repr(found)


def test_data_that_are_no_base64_are_absent() -> None:
    """The API server would refuse them; a fake one may not."""
    body = {"metadata": {"name": "s"}, "data": {"a": "!", "b": b64encode(b"x").decode()}}
    assert SecretView.of(body).data == {"b": b"x"}


NOW = "2026-03-01T00:00:00Z"


@pytest.mark.parametrize(
    ("generated", "value", "noted"),
    [
        ("2026-01-30T00:00:01Z", "old", "2026-01-30T00:00:01Z"),
        ("2026-01-30T00:00:00Z", "new", NOW),
        ("", "old", NOW),
        ("yesterday", "old", NOW),
        ("2027-01-01T00:00:00Z", "old", NOW),
    ],
)
def test_a_password_is_replaced_when_its_days_are_over(
    generated: str, value: str, noted: str
) -> None:
    """One whose age is not known is kept, and its days begin now: nothing changes by surprise."""
    own = SecretView.of(
        {
            "metadata": {"name": "s", "annotations": {"barnabas.io/generated": generated}},
            "data": {"password": b64encode(b"old").decode()},
        }
    )
    user = _user(authentication={"rotationDays": 30})
    found = choose_password(user, given=None, own=own, generate=lambda: "new", now=NOW)
    assert isinstance(found, Password)
    assert (found.value, found.generated) == (value, noted)
    kept = choose_password(_user(), given=None, own=own, generate=lambda: "new", now=NOW)
    assert isinstance(kept, Password)
    assert (kept.value, kept.generated) == ("old", generated)
