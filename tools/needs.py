"""The programs that suites of real processes run, how to find them, and Debian's packages of them.

They are Java 17 or newer and Maven (Apache Kafka's own clients and tools), kcat, Go and Node.js
(the quickstarts), Redis (a recipe of the cookbook), strace, and gcc and the tools of two file
systems (disks that fail).
`tools.testrun.requirements` says which of them a machine lacks, and installs them as root.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass

JAVA_LEAST = 17
GO_LEAST = 21
"""From this one on, Go downloads the toolchain that a module asks for."""
_JAVA_VERSION = re.compile(r'version "(?:1\.)?([0-9]+)')
_GO_VERSION = re.compile(r"go1\.([0-9]+)")


@dataclass(frozen=True, slots=True)
class Need:
    """A program, how to see that it is good enough, and Debian's package of it."""

    program: str
    is_met: Callable[[], bool]
    package: str
    words: str


def java_major(answer: str) -> int | None:
    """The major version in the answer of `java -version`, or None where it has none."""
    found = _JAVA_VERSION.search(answer)
    return int(found.group(1)) if found else None


def has_java() -> bool:
    """Whether a Java compiler and a new enough Java are on the path."""
    if shutil.which("java") is None or shutil.which("javac") is None:
        return False
    asked = subprocess.run(["java", "-version"], capture_output=True, text=True, check=False)
    major = java_major(asked.stderr + asked.stdout)
    return major is not None and major >= JAVA_LEAST


def has_go() -> bool:
    """Whether a new enough Go is on the path."""
    if shutil.which("go") is None:
        return False
    asked = subprocess.run(["go", "env", "GOVERSION"], capture_output=True, text=True, check=False)
    found = _GO_VERSION.match(asked.stdout)
    return found is not None and int(found[1]) >= GO_LEAST


def on_path(program: str) -> Callable[[], bool]:
    """Whether a program is on the path, asked anew each time."""
    return lambda: shutil.which(program) is not None


NEEDS = (
    Need("java", has_java, "default-jdk-headless", f"a JDK, version {JAVA_LEAST} or newer"),
    Need("mvn", on_path("mvn"), "maven", "Maven"),
    Need("kcat", on_path("kcat"), "kcat", "kcat"),
    Need("go", has_go, "golang-go", f"Go 1.{GO_LEAST} or newer"),
    Need("npm", on_path("npm"), "npm", "Node.js with npm"),
    Need("gcc", on_path("gcc"), "build-essential", "gcc with the C library's headers"),
    Need("mkfs.ext4", on_path("mkfs.ext4"), "e2fsprogs", "mkfs.ext4"),
    Need("redis-server", on_path("redis-server"), "redis-server", "redis-server"),
    Need("strace", on_path("strace"), "strace", "strace"),
    Need("zsh", on_path("zsh"), "zsh", "zsh"),
    Need("fish", on_path("fish"), "fish", "fish"),
    Need("xfs_io", on_path("xfs_io"), "xfsprogs", "xfs_io and mkfs.xfs"),
)


def missing(needs: tuple[Need, ...] = NEEDS) -> list[Need]:
    """The needs that this machine does not meet."""
    return [need for need in needs if not need.is_met()]


def can_install() -> bool:
    """Whether this process may install Debian packages."""
    return os.geteuid() == 0 and shutil.which("apt-get") is not None


def install(packages: list[str]) -> bool:
    """Install Debian packages; returns whether apt-get was content."""
    quiet = dict(os.environ, DEBIAN_FRONTEND="noninteractive")
    steps = (
        ["apt-get", "update", "-qq"],
        ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *packages],
    )
    return all(
        subprocess.run(step, env=quiet, stdout=sys.stderr, check=False).returncode == 0
        for step in steps
    )
