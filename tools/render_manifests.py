"""Renders the chart of the operator into plain manifests; with --check only compares.

Rendering needs Helm. Comparing does not: the first lines of a rendered file have the digests of
what it was rendered from and of what came out, so `make check` notices a chart that was changed
and a file that was edited on any machine. Where Helm is, the check renders anew all the same.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
CHART: Final = ROOT / "charts" / "barnabas-operator"
NAMESPACE: Final = "barnabas"
RELEASE: Final = "barnabas-operator"
# The oldest that the chart takes.
KUBE_VERSION: Final = "1.29.0"
NAMESPACE_OBJECT: Final = f"---\napiVersion: v1\nkind: Namespace\nmetadata:\n  name: {NAMESPACE}\n"


@dataclass(frozen=True, slots=True)
class Target:
    """A file to render: whether the CRDs and the namespace go into it, too."""

    path: str
    whole: bool


TARGETS: Final = (
    Target("manifests/install.yaml", whole=True),
    Target("manifests/base/operator.yaml", whole=False),
)


class NoHelmError(Exception):
    """Helm is needed and not there."""


def chart_digest(chart: Path) -> str:
    """The digest of all files of a chart, names and contents."""
    digest = hashlib.sha256()
    for path in sorted(path for path in chart.rglob("*") if path.is_file()):
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        digest.update(f"{path.relative_to(chart)} {content}\n".encode())
    return digest.hexdigest()


def sealed(body: str, chart: str) -> str:
    """A rendered file: digests, then the body."""
    own = hashlib.sha256(body.encode()).hexdigest()
    return (
        "# Rendered from charts/barnabas-operator by `make gen`; do not edit.\n"
        f"# chart {chart}\n# body  {own}\n{body}"
    )


def is_intact(text: str, chart: str) -> bool:
    """Whether a rendered file is of this chart and was not edited."""
    lines = text.split("\n", 3)
    return len(lines) == 4 and text == sealed(lines[3], chart)


def render(target: Target) -> str:
    """What a file should hold; raises NoHelmError."""
    helm = shutil.which("helm")
    if helm is None:
        raise NoHelmError("rendering needs helm: https://helm.sh/docs/intro/install")
    command = [
        helm, "template", RELEASE, str(CHART), "--namespace", NAMESPACE,
        "--kube-version", KUBE_VERSION,
    ]  # fmt: skip
    if target.whole:
        command.append("--include-crds")
    reported = subprocess.run(command, check=True, capture_output=True, text=True)
    body = (NAMESPACE_OBJECT if target.whole else "") + reported.stdout
    return sealed(body, chart_digest(CHART))


def main(arguments: list[str]) -> int:
    """Write the files, or compare them; returns the exit status."""
    check = "--check" in arguments
    stale = []
    for target in TARGETS:
        path = ROOT / target.path
        present = path.read_text(encoding="utf-8") if path.exists() else ""
        try:
            wanted = render(target)
        except NoHelmError as error:
            wanted = present if is_intact(present, chart_digest(CHART)) else ""
            if not check and not wanted:
                print(error, file=sys.stderr)
                return 1
        if wanted == present and present:
            continue
        stale.append(target.path)
        if not check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(wanted, encoding="utf-8")
    if check and stale:
        print(f"not as the chart has them: {', '.join(stale)}; run `make gen`")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
