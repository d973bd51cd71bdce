"""What clients of a user need, as files: those that its Secret has on Kubernetes, and their names.

Only their owner can read them. The version of the password is when its file was written: another
password written there takes effect with the next `up`.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from barnabas_operator.local.processes import write_atomically
from barnabas_operator.local.state import LocalError
from barnabas_operator.plan.passwords import PASSWORD_KEY, SecretView
from barnabas_operator.resources.certificates import TRUSTED
from barnabas_operator.resources.user_certificate import (
    STORE_PASSWORD,
    USER_CERTIFICATE,
    USER_KEY,
    USER_STORE,
)

COMMAND_CONFIG: Final = "client.properties"
BOOTSTRAP_KEY: Final = "bootstrap.servers"
_NOTES: Final = "annotations.json"
_UNFINISHED: Final = ".new"
# What only users with a password have, with a certificate, with TLS, or once rotated.
_OF_SOME: Final = frozenset(
    {
        PASSWORD_KEY, "sasl.mechanism", "sasl.jaas.config",
        USER_CERTIFICATE, USER_KEY, USER_STORE, STORE_PASSWORD,
        TRUSTED, _NOTES,
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class UserDirectory:
    """The directory of one user."""

    path: Path

    @property
    def command_config(self) -> Path:
        """What `--command-config` of the commands takes."""
        return self.path / COMMAND_CONFIG

    @property
    def version(self) -> str:
        """Another one whenever the password was written; empty where there is none."""
        try:
            found = self.path.joinpath(PASSWORD_KEY).stat()
        except OSError:
            return ""
        return f"{found.st_ino}/{found.st_mtime_ns}"

    def bootstrap_servers(self) -> str:
        """Where the user connects; empty where its files were not written yet."""
        own = self.read()
        return own.text(BOOTSTRAP_KEY) if own else ""

    def read(self) -> SecretView | None:
        """What there is; None if there is nothing. Raises LocalError."""
        if not self.path.is_dir():
            return None
        data: dict[str, bytes] = {}
        try:
            for file in self.path.iterdir():
                if file.is_file() and not file.name.endswith(_UNFINISHED):
                    data[file.name] = file.read_bytes()
        except OSError as error:
            raise LocalError(f"cannot read {error.filename}: {error.strerror}") from error
        notes = _parsed(data.pop(_NOTES, b""))
        if not data:
            return None
        if PASSWORD_KEY in data:
            # Editors and `echo` end a file with a line break.
            data[PASSWORD_KEY] = data[PASSWORD_KEY].removesuffix(b"\n").removesuffix(b"\r")
        return SecretView(name=str(self.path), version=self.version, annotations=notes, data=data)

    def write(self, data: Mapping[str, bytes], notes: Mapping[str, str]) -> bool:
        """Have these files, the password first, and none of another kind of user; whether any was
        written. What a person put beside them stays. Raises LocalError.
        """
        wanted = dict(data)
        if any(notes.values()):
            wanted[_NOTES] = json.dumps({k: v for k, v in notes.items() if v}).encode()
        changed = False
        try:
            for folder in (self.path.parent, self.path):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                folder.chmod(0o700)
            for name in sorted(wanted, key=lambda each: each != PASSWORD_KEY):
                if self._holds(name, wanted[name]):
                    continue
                write_atomically(self.path / name, wanted[name], private=True)
                changed = True
            unfinished = {f"{name}{_UNFINISHED}" for name in _OF_SOME | wanted.keys()}
            for name in unfinished | _OF_SOME - wanted.keys():
                self.path.joinpath(name).unlink(missing_ok=True)
        except OSError as error:
            raise LocalError(f"cannot write {error.filename}: {error.strerror}") from error
        return changed

    def remove(self) -> None:
        """Remove all of it."""
        shutil.rmtree(self.path, ignore_errors=True)

    def _holds(self, name: str, content: bytes) -> bool:
        file = self.path / name
        try:
            found = file.read_bytes()
            if found == content:
                file.chmod(0o600)
        except FileNotFoundError:
            return False
        return found == content


def _parsed(text: bytes) -> dict[str, str]:
    try:
        found = json.loads(text or b"{}")
    except ValueError:
        return {}
    return {str(k): str(v) for k, v in found.items()} if isinstance(found, dict) else {}
