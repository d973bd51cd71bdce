"""How a pipeline's clients reach the brokers: addresses, and the Secret of a KafkaUser as files.

A directory has the keys of the Secret as files, as Kubernetes mounts it. Kafka's clients read
passwords, certificates and keys from these files themselves, whenever one is created (KIP-421):
Spark is given the names of the files only. So no secret is in its options, plans, logs or user
interface, and a client that is created after the Secret changed has what is in it by then.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from barnabas_pipelines.errors import SpecError

PROVIDER: Final = "directory"
PROVIDER_CLASS: Final = "org.apache.kafka.common.config.provider.DirectoryConfigProvider"
# The keys of the Secret that are read.
SERVERS: Final = "bootstrap.servers"
PROTOCOL: Final = "security.protocol"
MECHANISM: Final = "sasl.mechanism"
LOGIN: Final = "sasl.jaas.config"
TRUSTED: Final = "ca.crt"
CERTIFICATE: Final = "user.crt"
KEY: Final = "user.key"
KEYS: Final = (SERVERS, PROTOCOL, MECHANISM, LOGIN, TRUSTED, CERTIFICATE, KEY)
PROTOCOLS: Final = ("SASL_SSL", "SASL_PLAINTEXT", "SSL")
# They have a meaning in Kafka's references to files, and in its list of allowed directories.
RESERVED: Final = frozenset(":,{}")


@dataclass(frozen=True, slots=True)
class UserFiles:
    """The Secret of a KafkaUser, as files of a directory."""

    directory: Path

    def bootstrap_servers(self) -> str:
        """The addresses of the user's listener; raises SpecError."""
        return self._text(SERVERS)

    def properties(self) -> dict[str, str]:
        """The properties of a Java client, with references to the files; raises SpecError."""
        place = str(self.directory)
        if not self.directory.is_absolute() or RESERVED & set(place):
            raise SpecError(f"--kafka-user {place}: give an absolute path without : , {{ and }}")
        protocol = self._text(PROTOCOL)
        if protocol not in PROTOCOLS:
            text = f"{PROTOCOL} is {protocol!r}, must be one of {', '.join(PROTOCOLS)}"
            raise SpecError(f"{self.directory / PROTOCOL}: {text}")
        found = {
            PROTOCOL: protocol,
            "config.providers": PROVIDER,
            f"config.providers.{PROVIDER}.class": PROVIDER_CLASS,
            f"config.providers.{PROVIDER}.param.allowed.paths": place,
        }
        if protocol.startswith("SASL"):
            found |= {MECHANISM: self._text(MECHANISM), LOGIN: self._reference(LOGIN)}
        # Without it the listener's certificate is of an authority that Java trusts.
        if protocol.endswith("SSL") and (self.directory / TRUSTED).exists():
            trusted = self._reference(TRUSTED)
            found |= {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": trusted}
        if protocol == "SSL":
            found |= {
                "ssl.keystore.type": "PEM",
                "ssl.keystore.certificate.chain": self._reference(CERTIFICATE),
                "ssl.keystore.key": self._reference(KEY),
            }
        return found

    def version(self) -> str | None:
        """Another one after each change of what is read; None while the files are being changed."""
        digest = hashlib.sha256()
        try:
            for name in KEYS:
                file = self.directory / name
                content = file.read_bytes() if file.exists() else b""
                digest.update(b"%d:" % len(content) + content)
        except OSError:
            return None
        return digest.hexdigest()

    def _text(self, name: str) -> str:
        """What a file says, which is no secret."""
        try:
            return (self.directory / name).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise self._unreadable(name, error) from error

    def _reference(self, name: str) -> str:
        """The content of a file, as Kafka's clients resolve it."""
        file = self.directory / name
        try:
            file.open("rb").close()
        except OSError as error:
            raise self._unreadable(name, error) from error
        return f"${{{PROVIDER}:{self.directory}:{name}}}"

    def _unreadable(self, name: str, error: OSError | UnicodeDecodeError) -> SpecError:
        reason = error.strerror if isinstance(error, OSError) else "it is no UTF-8 text"
        text = f"cannot read {self.directory / name}: {reason}"
        return SpecError(f"{text}; --kafka-user needs the keys of a KafkaUser's Secret as files")


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """The addresses of the brokers, and the credentials for them.

    Without `bootstrap` the addresses are those in the Secret of the user.
    """

    bootstrap: str | None = None
    user: UserFiles | None = None

    def servers(self) -> str:
        """The addresses of brokers, as of now; raises SpecError."""
        if self.bootstrap:
            return self.bootstrap
        return self.user.bootstrap_servers() if self.user else ""

    def properties(self) -> dict[str, str]:
        """The properties of a Java client, as of now; raises SpecError."""
        own = self.user.properties() if self.user else {}
        return {SERVERS: self.servers(), **own}

    def version(self) -> str | None:
        """Another one after each change of the user's Secret; None while it is being changed."""
        return self.user.version() if self.user else ""
