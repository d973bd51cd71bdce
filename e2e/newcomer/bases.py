"""The systems a newcomer may have, as images: from a registry, or from the distribution's archive.

Where no registry can be had, mmdebstrap (as root) makes the image from the mirror that it knows.
The certificate authorities that this machine's administrator added come along with every one.
"""

from __future__ import annotations

import io
import subprocess
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from e2e.commands import CommandError, run
from tests.waiting import RUN

AUTHORITIES: Final = Path("/usr/local/share/ca-certificates")
BUNDLE: Final = "/etc/ssl/certs/ca-certificates.crt"
# What OpenSSL and Go, pip and Node.js each call it. A login has them where there are authorities.
TRUST: Final = ("SSL_CERT_FILE", "PIP_CERT", "NODE_EXTRA_CA_CERTS")


@dataclass(frozen=True, slots=True)
class Base:
    """A system: the image a registry has, and the suite and components of its archive."""

    image: str
    suite: str
    components: str = "main"


BASES: Final = {
    "debian-12": Base("debian:bookworm-slim", "bookworm"),
    "debian-13": Base("debian:trixie-slim", "trixie"),
    "ubuntu-24.04": Base("ubuntu:24.04", "noble", "main,universe"),
    "ubuntu-26.04": Base("ubuntu:26.04", "resolute", "main,universe"),
}


def image(name: str) -> str:
    """The name of an image of that base, which is there. Raises CommandError."""
    base = BASES[name]
    built = f"barnabas-base:{name}"
    for each in (base.image, built):
        if _succeeds("docker", "image", "inspect", each):
            return each
    if _succeeds("docker", "pull", "--quiet", base.image):
        return base.image
    with tempfile.TemporaryDirectory(prefix="newcomer-base-") as place:
        root = str(Path(place, "root.tar"))
        options = ("--variant=minbase", "--include=apt", f"--components={base.components}")
        made = ("mmdebstrap", "--quiet", *options)
        try:
            run(*made, base.suite, root, within=2 * RUN)
        except FileNotFoundError:
            raise CommandError(made, "not installed", f"and no registry has {base.image}") from None
        run("docker", "import", root, built)
    return built


def authorities() -> list[Path]:
    """The certificates that this machine's administrator added."""
    return sorted(AUTHORITIES.glob("*.crt"))


def context(dockerfile: Path) -> bytes:
    """What `docker build` reads: the file, and a directory of the administrator's certificates."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        archive.add(dockerfile, "Dockerfile")
        directory = tarfile.TarInfo("authorities")
        directory.type, directory.mode = tarfile.DIRTYPE, 0o755
        archive.addfile(directory)
        for each in authorities():
            archive.add(each, f"authorities/{each.name}")
    return content.getvalue()


def trust() -> list[str]:
    """Options of `docker run`: the variables that name the certificates, where there are some."""
    return [f"--env={name}={BUNDLE}" for name in TRUST if authorities()]


def _succeeds(*command: str) -> bool:
    return subprocess.run(command, capture_output=True, check=False).returncode == 0
