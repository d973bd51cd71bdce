"""A clean machine in a container, with the files of this checkout and nothing else of it.

`python -m e2e.newcomer.container README.md` plays documents there; `--base` names another image of
Debian's kin.
"""

from __future__ import annotations

import argparse
import io
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from e2e.commands import ROOT, CommandError, run

BASE: Final = "debian:trixie-slim"
IMAGE: Final = "barnabas-newcomer"
HOME: Final = "/home/newcomer"
UID: Final = 1234
DOCKERFILE: Final = Path(__file__).with_name("Dockerfile")


def checkout() -> bytes:
    """An archive of the files that git knows, or would add, as the newcomer's own."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        for name in sorted(filter(None, listed.decode().split("\0"))):
            if (ROOT / name).exists():
                archive.add(ROOT / name, f"barnabas/{name}", recursive=False, filter=_owned)
    return content.getvalue()


def _owned(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = UID
    return entry


@contextmanager
def machine(base: str = BASE) -> Iterator[str]:
    """The name of a container with the checkout in the newcomer's home; removed afterwards."""
    build = ("docker", "build", "--quiet", "--build-arg", f"BASE={base}", "--tag", IMAGE, "-")
    run(*build, stdin=DOCKERFILE.read_bytes())
    made = run("docker", "run", "--detach", "--init", IMAGE, "sleep", "infinity").decode().strip()
    try:
        run("docker", "cp", "-", f"{made}:{HOME}", stdin=checkout())
        yield made
    finally:
        run("docker", "rm", "--force", "--volumes", made)


def play(container: str, *documents: str) -> str:
    """Play documents there as the newcomer; what they print. Raises CommandError."""
    command = ("python3", "-m", "e2e.newcomer.play", *documents)
    return run("docker", "exec", container, *command).decode()


def main(arguments: Sequence[str]) -> int:
    """Play documents on a clean machine."""
    parser = argparse.ArgumentParser(prog="python -m e2e.newcomer.container")
    parser.add_argument("documents", nargs="*", default=["README.md"])
    parser.add_argument("--base", default=BASE)
    options = parser.parse_args(arguments)
    try:
        with machine(options.base) as container:
            sys.stdout.write(play(container, *options.documents))
    except CommandError as error:
        sys.stdout.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
