"""Apache ZooKeeper's server on this machine: which Java, which jars, and as which member.

Jars are looked for where `ZOOKEEPER_HOME` and `KAFKA_HOME` say, then in the places of the archives
unpacked by hand and of our image, then where Debian's package has them.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NoReturn

from barnabas_broker.cli.errors import CommandError
from barnabas_broker.log.files import replace_file
from barnabas_kafka.settings.properties import parse_properties

MAIN_CLASS: Final = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
JVM_FLAGS: Final = (
    "-Xmx512M",
    "-XX:+UseSerialGC",
    "-XX:+ExitOnOutOfMemoryError",
    "-Djava.awt.headless=true",
)
# Where jars are: what the variable names, with the subdirectory that distributions put them in.
HOMES: Final = (("ZOOKEEPER_HOME", "lib"), ("KAFKA_HOME", "libs"))
# The jar of Debian's package names those that it needs, but none that writes a log.
DEBIAN_JARS: Final = ("zookeeper.jar", "slf4j-log4j12.jar", "log4j-1.2.jar")
INSTALL: Final = (
    "install Apache ZooKeeper with a Java (Debian: apt-get install zookeeper), or unpack its "
    "archive and set ZOOKEEPER_HOME to it"
)
_SERVER: Final = re.compile(r"server\.([0-9]+)")


@dataclass(frozen=True, slots=True)
class Places:
    """Directories of jars that no variable names."""

    unpacked: tuple[Path, ...]
    """Of ZooKeeper's or Kafka's own archive."""
    debian: Path


PLACES: Final = Places(
    (Path("/opt/zookeeper/lib"), Path("/opt/kafka/libs")), debian=Path("/usr/share/java")
)


def java(environment: Mapping[str, str]) -> str:
    """The Java of JAVA_HOME, else of PATH; raises CommandError where there is none."""
    home, path = environment.get("JAVA_HOME"), environment.get("PATH")
    found = shutil.which("java", path=f"{home}/bin") if home else None
    found = found or shutil.which("java", path=path)
    if found is None:
        raise CommandError(f"ZooKeeper needs a Java, and there is none: {INSTALL}")
    return found


def class_path(environment: Mapping[str, str], places: Places = PLACES) -> str:
    """The jars, and a directory beside them that configures their logging.

    Raises CommandError where there are none.
    """
    named = [Path(environment[name]) / sub for name, sub in HOMES if environment.get(name)]
    for place in [*named, *places.unpacked]:
        if any(place.glob("zookeeper-[0-9]*.jar")):
            return f"{place}/*:{place.parent}/conf"
    if places.debian.joinpath(DEBIAN_JARS[0]).exists():
        return ":".join(str(places.debian / jar) for jar in DEBIAN_JARS)
    raise CommandError(f"no jars of Apache ZooKeeper are found: {INSTALL}")


def server_command(
    config: Path, environment: Mapping[str, str], places: Places = PLACES
) -> list[str]:
    """What runs a server with this configuration. Raises CommandError."""
    return _command(class_path(environment, places), config, environment)


def member_command(config: Path, environment: Mapping[str, str]) -> list[str]:
    """The same of a member whose configuration has a directory of its own. Raises CommandError.

    A log4j.properties or logback.xml in that directory counts before any other.
    """
    path = f"{config.parent.resolve()}:{class_path(environment)}"
    return _command(path, config, environment)


def _command(path: str, config: Path, environment: Mapping[str, str]) -> list[str]:
    return [java(environment), *JVM_FLAGS, "-cp", path, MAIN_CLASS, str(config)]


def claim(config: Path, number: int) -> None:
    """Hold a member's number against its configuration and the `myid` of its data directory.

    A directory without `myid` gets one. One of another member is refused with CommandError: to
    start on it would give one vote to the ensemble twice and could lose what was agreed.
    """
    settings = parse_properties(config.read_bytes(), origin=str(config))
    servers = {int(match[1]) for key in settings if (match := _SERVER.fullmatch(key))}
    if servers and number not in servers:
        known = ", ".join(map(str, sorted(servers)))
        raise CommandError(f"{config} has no server.{number}, only {known}")
    if not settings.get("dataDir"):
        raise CommandError(f"{config} has no dataDir")
    path = Path(settings["dataDir"]) / "myid"
    try:
        written = path.read_text("utf-8").strip()
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, f"{number}\n".encode())
        return
    if written != str(number):
        raise CommandError(
            f"{path} says server.{written}, and this is to be server.{number}: these are the data "
            "of another member; ZooKeeper is not started on them"
        )


def become_member(config: Path, number: int) -> NoReturn:
    """Replace this process by the server of a member; raises CommandError where it cannot be."""
    command = member_command(config, os.environ)
    try:
        claim(config, number)
        os.execv(command[0], command)  # noqa: S606 - the Java that was found
    except OSError as error:
        raise CommandError(f"{error.filename or command[0]}: {error.strerror}") from error
