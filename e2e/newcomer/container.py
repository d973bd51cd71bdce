"""A clean machine in a container, with the files of this checkout and nothing else of it.

`python -m e2e.newcomer.container README.md` plays documents there, and then those of
docs/quickstarts; `--base` names one of `e2e.newcomer.bases`, or is `all`.
"""

from __future__ import annotations

import argparse
import io
import os
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from e2e.commands import ROOT, CommandError, run
from e2e.newcomer import bases
from tests.waiting import RUN

BASE: Final = "debian-13"
QUICKSTARTS: Final = "docs/quickstarts/"
# What the quickstarts say one needs, as packages of every base.
PACKAGES: Final = {
    "python.md": "python3-venv",
    "kcat.md": "kcat",
    "node.md": "nodejs npm",
    "java.md": "default-jdk-headless maven",
    "go.md": "",
}
# Go's own guide has one unpack it there; no base has one that is new enough.
GO: Final = Path("/usr/local/go")
HOME: Final = "/home/newcomer"
UID: Final = 1234
DOCKERFILE: Final = Path(__file__).with_name("Dockerfile")


def checkout() -> bytes:
    """An archive of the files that git knows, or would add, as the newcomer's own."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        names = sorted(filter(None, listed.decode().split("\0")))
        # With their directories, which would be root's otherwise.
        folders = {str(folder) for name in names for folder in Path(name).parents}
        for name in (*sorted(folders), *names):
            if (ROOT / name).exists():
                archive.add(ROOT / name, f"barnabas/{name}", recursive=False, filter=_owned)
    return content.getvalue()


def copy_into(directory: Path) -> Path:
    """The same as a clone there, of the user who calls this."""

    def mine(entry: tarfile.TarInfo, _path: str) -> tarfile.TarInfo:
        entry.uid, entry.gid = os.getuid(), os.getgid()
        return entry

    with tarfile.open(fileobj=io.BytesIO(checkout())) as archive:
        archive.extractall(directory, filter=mine)
    return directory / "barnabas"


def _owned(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = UID
    return entry


@contextmanager
def machine(base: str = BASE) -> Iterator[str]:
    """The name of a container with the checkout in the newcomer's home; removed afterwards.

    Raises CommandError.
    """
    given = f"--build-arg=BASE={bases.image(base)}"
    context = bases.context(DOCKERFILE)
    image = run("docker", "build", "--quiet", given, "-", stdin=context, within=2 * RUN)
    name = image.decode().strip()
    command = ("docker", "run", "--detach", "--init", *bases.trust(), name, "sleep", "infinity")
    made = run(*command).decode().strip()
    try:
        run("docker", "cp", "-", f"{made}:{HOME}", stdin=checkout())
        yield made
    finally:
        run("docker", "rm", "--force", "--volumes", made)


def play(container: str, *documents: str) -> str:
    """Play documents there as the newcomer; what they print. Raises CommandError."""
    return _module(container, "e2e.newcomer.play", *documents)


def follow(container: str, *pages: str) -> str:
    """Follow quickstarts there, with what they ask for; what was done. Raises CommandError.

    The README has been played, so Barnabas is installed.
    """
    packages = " ".join(PACKAGES[page] for page in pages)
    install = f"apt-get update -qq && apt-get install -y -qq --no-install-recommends {packages}"
    run("docker", "exec", "--user", "root", container, "sh", "-c", install, within=2 * RUN)
    if "go.md" in pages:
        run("docker", "cp", str(GO), f"{container}:{GO}")
    return _module(container, "e2e.newcomer.quickstarts", *pages)


def _module(container: str, name: str, *arguments: str) -> str:
    command = ("docker", "exec", container, "python3", "-m", name, *arguments)
    return run(*command, within=4 * RUN).decode()


def main(arguments: Sequence[str]) -> int:
    """Play documents on clean machines."""
    parser = argparse.ArgumentParser(prog="python -m e2e.newcomer.container")
    parser.add_argument("documents", nargs="*", default=["README.md"])
    parser.add_argument("--base", default=BASE, choices=[*bases.BASES, "all"])
    options = parser.parse_args(arguments)
    pages = [each.removeprefix(QUICKSTARTS) for each in options.documents if QUICKSTARTS in each]
    documents = [each for each in options.documents if QUICKSTARTS not in each]
    failed = 0
    for base in bases.BASES if options.base == "all" else [options.base]:
        try:
            with machine(base) as container:
                reported = play(container, *documents)
                reported += follow(container, *pages) if pages else ""
        except CommandError as error:
            reported, failed = str(error), failed + 1
        sys.stdout.write(f"==== {base}\n{reported}\n")
        sys.stdout.flush()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
