"""The JAAS login file that KAFKA_OPTS names: what starts an Apache broker starts this one."""

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from barnabas_broker.security import jaas
from barnabas_broker.server.process.startup import StartupError

FILE_PROPERTY: Final = "java.security.auth.login.config"


def jvm_properties(options: str) -> dict[str, str]:
    """The properties among the options of a JVM; the last of a name counts.

    Raises StartupError for quotes that do not end.
    """
    try:
        words = shlex.split(options)
    except ValueError as error:
        raise StartupError(f"KAFKA_OPTS: {error}") from error
    pairs = (word.removeprefix("-D").partition("=") for word in words if word.startswith("-D"))
    return {name: value for name, _, value in pairs}


def login_file(properties: Mapping[str, str]) -> str:
    """The path that a JVM's properties give, in any of the forms Java takes; empty for none."""
    return properties.get(FILE_PROPERTY, "").removeprefix("=").removeprefix("file:")


def read_sections(file: str, named: str = f"-D{FILE_PROPERTY}") -> jaas.Sections:
    """The sections of a login file, which `named` gave. Raises StartupError."""
    try:
        return jaas.parse(Path(file).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise StartupError(f"{named}={file}: {reason}") from error
