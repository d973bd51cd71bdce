"""Key stores and trust stores: files in Java's formats, read into a context of Python's.

PEM files are text: certificates, and in a key store a private key, which may be encrypted. PKCS12
files are what `keytool` writes since Java 9, whatever their names, and what Java's type JKS reads,
too (keystore.type.compat in java.security). A file in the older format JKS is refused with the
command that converts it. Private keys out of PKCS12 go to OpenSSL by way of memory, not of a disk.
"""

from __future__ import annotations

import os
import re
import ssl
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.serialization.pkcs12 import PKCS12KeyAndCertificates

PEM: Final = "PEM"
PKCS12: Final = "PKCS12"
JKS: Final = "JKS"

_JKS_MAGIC: Final = b"\xfe\xed\xfe\xed"
_TOO_WEAK: Final = frozenset({"CA_MD_TOO_WEAK", "CA_KEY_TOO_SMALL", "EE_KEY_TOO_SMALL"})
"""What OpenSSL says of certificates below its security level 2; Java shows and trusts them."""
_PEM_BLOCK: Final = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----([A-Za-z0-9+/=\s]+)-----END \1-----")
_ENDINGS: Final = {".pem": PEM, ".p12": PKCS12, ".pfx": PKCS12, ".jks": JKS}


class StoreError(Exception):
    """A store cannot be used; the message is one line that says which, why, and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """A file of keys or certificates. The file's name gives `kind` where it is not set."""

    path: Path
    kind: str | None = None
    password: str | None = field(default=None, repr=False)

    @property
    def format(self) -> str:
        """PEM or PKCS12; raises StoreError where it is neither, or unknown.

        The types JKS and PKCS12 mean either format, as in Java: what the file begins with decides.
        """
        kind = self.kind.upper() if self.kind else _ENDINGS.get(self.path.suffix.lower())
        if kind is None:
            endings = ", ".join(_ENDINGS)
            raise StoreError(
                f"{self.path}: give the type of the store, or end its name in {endings}"
            )
        if kind in (JKS, PKCS12) and _read(self).startswith(_JKS_MAGIC):
            raise StoreError(
                f"{self.path}: JKS is not read; make a PKCS12 store of it: keytool -importkeystore "
                f"-srckeystore {self.path.name} -destkeystore {self.path.stem}.p12 "
                "-deststoretype PKCS12"
            )
        if kind not in (PEM, PKCS12, JKS):
            raise StoreError(f"{self.path}: the type {kind} is not read, only {PEM} and {PKCS12}")
        return PEM if kind == PEM else PKCS12


def named_by_ending(path: Path) -> bool:
    """Whether the end of a file's name says which format it has."""
    return path.suffix.lower() in _ENDINGS


def load_identity(context: ssl.SSLContext, store: Store) -> None:
    """Have a context show the certificate of a key store. Raises StoreError."""
    if store.format == PEM:
        _load_chain(context, str(store.path), str(store.path), store.password)
        return
    _load_text(context, str(store.path), identity_pem(store), None)


def identity_pem(store: Store) -> bytes:
    """Private key and certificates of a key store as PEM; the key of a PEM file as it is.

    Only the key of a PEM file may still need the store's password. Raises StoreError.
    """
    if store.format == PEM:
        return _read(store)
    from cryptography.hazmat.primitives.serialization import (  # Late, a third of a second.
        Encoding,
        NoEncryption,
        PrivateFormat,
    )

    found = _pkcs12(store)
    if found.key is None or found.cert is None:
        raise StoreError(f"{store.path}: there is no private key with a certificate in it")
    chain = [found.cert, *found.additional_certs]
    text = found.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return text + b"".join(each.certificate.public_bytes(Encoding.PEM) for each in chain)


def load_trust(context: ssl.SSLContext, store: Store) -> None:
    """Have a context trust the certificates of a trust store, and no others.

    Each is an anchor, also one that another has signed, as in Java. Raises StoreError.
    """
    _trust(context, str(store.path), trust_pem(store))


def trust_pem(store: Store) -> str:
    """The certificates of a trust store as PEM. Raises StoreError."""
    if store.format == PEM:
        text = _read(store).decode("ascii", "replace")
    else:
        from cryptography.hazmat.primitives.serialization import Encoding

        found = _pkcs12(store)
        held = ([found.cert] if found.cert is not None else []) + found.additional_certs
        text = "".join(each.certificate.public_bytes(Encoding.PEM).decode() for each in held)
    if "-----BEGIN" not in text:
        raise StoreError(f"{store.path}: there is no certificate in it")
    return text


def load_pem_identity(
    context: ssl.SSLContext, *, key: str, chain: str, password: str | None
) -> None:
    """Have a context show a certificate whose key and chain are settings. Raises StoreError."""
    text = f"{pem_blocks(key)}{pem_blocks(chain)}".encode()
    _load_text(context, "the inline PEM key store", text, password)


def load_pem_trust(context: ssl.SSLContext, certificates: str) -> None:
    """Have a context trust the certificates of a setting, and none but them. Raises StoreError."""
    text = pem_blocks(certificates)
    if not text:
        raise StoreError("the inline PEM trust store: there is no certificate in it")
    _trust(context, "the inline PEM trust store", text)


def pem_blocks(text: str) -> str:
    """The PEM blocks of a setting's value with their line breaks.

    A properties file holds a value in one line, so Kafka takes any white space for a line break.
    """
    return "".join(
        "\n".join((f"-----BEGIN {kind}-----", *body.split(), f"-----END {kind}-----\n"))
        for kind, body in _PEM_BLOCK.findall(text)
    )


def _trust(context: ssl.SSLContext, name: str, text: str) -> None:
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    try:
        context.load_verify_locations(cadata=text)
    except (ssl.SSLError, ValueError) as error:
        raise StoreError(f"{name}: its certificates cannot be read ({error})") from error


def _load_text(context: ssl.SSLContext, name: str, text: bytes, password: str | None) -> None:
    """Load PEM by way of memory: a private key is never written to a disk."""
    descriptor = os.memfd_create("key store", os.MFD_CLOEXEC)
    try:
        with open(descriptor, "wb", closefd=False) as file:
            file.write(text)
        _load_chain(context, name, f"/proc/self/fd/{descriptor}", password)
    finally:
        os.close(descriptor)


def _load_chain(context: ssl.SSLContext, name: str, file: str, password: str | None) -> None:
    try:
        # Without a password OpenSSL would ask the terminal for one.
        context.load_cert_chain(file, password=password or "")
    except ssl.SSLError as error:
        if error.reason in _TOO_WEAK:
            weak = "a certificate has a key below 2048 bits (RSA) or is signed with SHA-1"
            raise StoreError(f"{name}: {weak} ({error.reason}); replace it") from error
        wrong = "the password is wrong, or it does not hold a private key and its certificate"
        raise StoreError(f"{name}: {wrong} ({error.reason or error})") from error
    except OSError as error:
        raise StoreError(f"{name}: {error.strerror}") from error


def _pkcs12(store: Store) -> PKCS12KeyAndCertificates:
    from cryptography.hazmat.primitives.serialization.pkcs12 import load_pkcs12

    password = None if store.password is None else store.password.encode()
    content = _read(store)
    if b"-----BEGIN" in content:
        raise StoreError(f"{store.path}: it is a PEM file; give {PEM} as the type of the store")
    try:
        return load_pkcs12(content, password)
    except ValueError as error:
        wrong = "the password is wrong, or it is no PKCS12 store"
        raise StoreError(f"{store.path}: {wrong} ({error})") from error


def _read(store: Store) -> bytes:
    try:
        return store.path.read_bytes()
    except OSError as error:
        raise StoreError(f"{store.path}: {error.strerror}") from error
