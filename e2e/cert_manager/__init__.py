"""cert-manager's own controllers, built from its Go module: no registry need have its images.

They run on this machine and reach the API server as kubectl does, with rights on the whole cluster.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from e2e.cluster import Cluster
from e2e.commands import ROOT, run
from tests.waiting import ANSWER, RUN, seconds

SOURCES: Final = Path(__file__).parent
PROGRAM: Final = ROOT / ".cache" / "go" / "cert-manager-controller"
LOG: Final = ROOT / ".cache" / "e2e" / "cert-manager.log"
MODULE: Final = "github.com/cert-manager/cert-manager"
# cert-manager's dependencies are large: minutes for the first build on two cores.
BUILD: Final = 6 * RUN


def install(cluster: Cluster) -> None:
    """Build the program, and apply cert-manager's definitions."""
    run("go", "build", "-o", str(PROGRAM), ".", cwd=SOURCES, within=BUILD)
    found = run("go", "list", "-m", "-f", "{{.Dir}}", MODULE, cwd=SOURCES).decode().strip()
    definitions = Path(found) / "deploy" / "crds"
    cluster.kubectl("apply", "--server-side", "-f", str(definitions))
    for name in ("certificates", "certificaterequests", "issuers"):
        cluster.wait_for_condition(f"crd/{name}.cert-manager.io", "Established", namespace="")


@contextmanager
def running(cluster: Cluster, namespace: str) -> Iterator[None]:
    """Its controllers, for one namespace."""
    LOG.parent.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, "KUBECONFIG": str(cluster.kubeconfig)}
    with LOG.open("wb") as log:
        process = subprocess.Popen(
            [PROGRAM, namespace], env=environment, stdout=log, stderr=subprocess.STDOUT
        )
        try:
            yield
        finally:
            process.terminate()
            process.wait(seconds(ANSWER))
