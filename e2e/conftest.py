"""One Kubernetes, one operator and one quickstart for all scenarios, in the order they are told.

Scenarios build on each other: the same cluster is installed, used, hurt, handed to another
installation and removed. `KEEP=1` leaves Kubernetes running for a look.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from e2e import evidence
from e2e.cluster import (
    CannotRunKindError,
    Cluster,
    check_kind_can_run,
    cluster_of_this_source,
)
from e2e.commands import ROOT
from e2e.load import Gap, Load
from e2e.quickstart import BRIEF, MAIN, Quickstart, install_with_helm
from tests.environment import isolate
from tests.gaps import LONGEST_GAP, pytest_terminal_summary
from tests.waiting import RUN, seconds

isolate()
__all__ = ["pytest_terminal_summary"]

ORDER: Final = (
    "test_newcomer", "test_install", "test_quickstart", "test_topics", "test_skew",
    "test_refusals", "test_healing", "test_three_racks", "test_users", "test_secured",
    "test_listeners", "test_cert_manager", "test_authorities", "test_removal", "test_manifest",
    "test_topology_labels",
)  # fmt: skip
# Drift that no event tells of is reverted at the next resync, every 30 s by default.
RESYNC_S: Final = 5
LEVEL: Final = "pod-security.kubernetes.io/enforce"
EVIDENCE: Final = ROOT / ".cache" / "e2e"
CLUSTER: Final = pytest.StashKey[Cluster]()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the scenarios in their order and give them their time."""
    items.sort(key=lambda item: ORDER.index(Path(item.path).stem))
    # The first test waits for images and cluster, too.
    limit_s = seconds(2 * RUN)
    for item in items:
        item.add_marker(pytest.mark.timeout(limit_s))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Keep the evidence of a failure."""
    report = yield
    cluster = item.config.stash.get(CLUSTER, None)
    if report.failed and cluster is not None:
        directory = EVIDENCE / item.name.replace("/", "-")
        evidence.collect(cluster, directory, (MAIN, BRIEF))
        report.sections.append(("evidence", f"logs, events and resources are in {directory}"))
    return report


@pytest.fixture(scope="session")
def kubernetes(pytestconfig: pytest.Config) -> Iterator[Cluster]:
    """A cluster of 1 + 3 nodes that has the images of this very source."""
    try:
        check_kind_can_run()
    except CannotRunKindError as error:
        # Never skipped: where kind cannot run, nothing of all this has been shown.
        pytest.exit(f"scenarios need kind: {error}", returncode=1)
    with cluster_of_this_source("barnabas-e2e", keep=_keep()) as cluster:
        pytestconfig.stash[CLUSTER] = cluster
        yield cluster


@pytest.fixture
def report_gap(
    request: pytest.FixtureRequest, record_property: Callable[[str, object], None]
) -> Callable[[Load], Gap]:
    """Shows, at the end of the run, the longest gap of a load; returns it."""

    def report(load: Load) -> Gap:
        record_property(LONGEST_GAP, f"{load.longest_gap}: {request.node.name}")
        return load.longest_gap

    return report


def _keep() -> bool:
    return os.environ.get("KEEP", "") not in ("", "0")


@pytest.fixture(scope="session")
def operator(kubernetes: Cluster) -> Cluster:
    """The same cluster with the operator in it, installed by Helm; all pods are restricted."""
    for namespace in (MAIN, BRIEF):
        kubernetes.kubectl("create", "namespace", namespace)
        kubernetes.kubectl("label", "namespace", namespace, f"{LEVEL}=restricted")
    install_with_helm(
        kubernetes,
        watch=(MAIN, BRIEF),
        resync_s=RESYNC_S,
        priority_class="system-cluster-critical",
    )
    return kubernetes


@pytest.fixture(scope="session")
def quickstart(operator: Cluster) -> Quickstart:
    """The quickstart, applied and ready."""
    started = Quickstart(operator)
    started.apply()
    started.wait_until_ready()
    return started


@pytest.fixture
def sent(quickstart: Quickstart) -> dict[Any, Any]:
    """What the topic `packages` has, by place."""
    return quickstart.read("packages")
