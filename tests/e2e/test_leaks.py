"""What of a Secret is looked for elsewhere."""

from __future__ import annotations

from e2e.leaks import hidden

LINE = "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg"
KEY = f"-----BEGIN PRIVATE KEY-----\n{LINE}\nshort\n-----END PRIVATE KEY-----\n"


def test_lines_of_every_private_key() -> None:
    """Under whatever name, also where a certificate or another key follows."""
    other = LINE[::-1]
    text = KEY + "-----BEGIN CERTIFICATE-----\npublic\n" + KEY.replace(LINE, other)
    assert list(hidden("broker.pem", text.encode())) == [LINE, other]


def test_passwords_and_tokens_by_their_names() -> None:
    """Not short ones, which are ordinary words, nor other texts, nor what is no text."""
    assert list(hidden("password", b"x" * 32)) == ["x" * 32]
    assert list(hidden("password", b"orders")) == []
    assert list(hidden("username", b"x" * 32)) == []
    assert list(hidden("user.p12", b"\x00\xff" * 32)) == []
