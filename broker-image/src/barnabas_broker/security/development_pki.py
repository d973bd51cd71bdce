"""A certificate authority for development and tests: a directory with its key and certificate.

`authority.pem` is what clients trust, `authority.key` signs. Issued certificates are one PEM file
each, key and chain, which brokers and clients take as a key store. Production has an authority of
its own: this one keeps its key in a file, and cannot revoke.
"""

from __future__ import annotations

import datetime as dt
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from barnabas_kafka.certificates import (
    AUTHORITY_CERTIFICATE,
    AUTHORITY_KEY,
    CertificateError,
    KeyPair,
    check_authority,
    create_authority,
    issue,
)

AUTHORITY_DAYS: Final = 3650

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class Authority:
    """One that signs."""

    def __init__(self, directory: Path) -> None:
        """Read it; raises CertificateError where there is none."""
        self._directory = directory
        self._pair = KeyPair(
            certificate=read_text(self.trust), key=read_text(directory / AUTHORITY_KEY)
        )
        try:
            check_authority(self._pair, now=None)
        except CertificateError as error:
            raise CertificateError(f"{directory}: {error}") from None

    @classmethod
    def init(cls, directory: Path, name: str) -> Authority:
        """Create one; raises CertificateError if the directory has one."""
        directory.mkdir(parents=True, exist_ok=True)
        pair = create_authority(name, now=dt.datetime.now(dt.UTC), days=AUTHORITY_DAYS)
        write_new(directory / AUTHORITY_KEY, pair.key, private=True)
        write_new(directory / AUTHORITY_CERTIFICATE, pair.certificate, private=False)
        return cls(directory)

    @property
    def trust(self) -> Path:
        """The trust store."""
        return self._directory / AUTHORITY_CERTIFICATE

    def issue(
        self, name: str, hosts: Sequence[str], *, days: int, file: Path | None = None
    ) -> Path:
        """Write a key with its certificate to a new file; raises CertificateError."""
        if file is None and _NAME.fullmatch(name) is None:
            text = "give a file name, or a name of letters, digits, '.', '-', '_'"
            raise CertificateError(f"{name}: {text}")
        file = file or self._directory / f"{name}.pem"
        now, validity = dt.datetime.now(dt.UTC), dt.timedelta(days=days)
        pair = issue(self._pair, name, hosts=hosts, now=now, validity=validity)
        write_new(file, pair.key + pair.certificate + self._pair.certificate, private=True)
        return file


def read_text(file: Path) -> str:
    """What is in a PEM file; raises CertificateError if it cannot be read."""
    try:
        return file.read_text(encoding="ascii", errors="replace")
    except OSError as error:
        raise CertificateError(f"{file}: {error.strerror}") from None


def write_new(file: Path, text: str, *, private: bool) -> None:
    """Write a file that does not exist yet; no other user ever reads a private one."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    try:
        descriptor = os.open(file, flags, 0o600 if private else 0o644)
    except FileExistsError:
        raise CertificateError(f"{file} exists; it is not replaced") from None
    except OSError as error:
        raise CertificateError(f"{file}: {error.strerror}") from None
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)
