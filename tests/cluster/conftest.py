"""One cluster of three brokers for the tests of a module; each leaves it whole."""

import re
from collections.abc import Iterator

import pytest
from kazoo.client import KazooClient

from tests.cluster.running import Cluster, on_record
from tests.gaps import pytest_terminal_summary

__all__ = ["pytest_terminal_summary"]


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Three brokers, for the module."""
    with Cluster(tmp_path_factory.mktemp("cluster")) as started:
        yield started


@pytest.fixture
def cluster(three: Cluster) -> Iterator[Cluster]:
    """Three brokers that all run; whoever a test has stopped is started again after it."""
    yield three
    three.start_missing()


@pytest.fixture
def znodes(cluster: Cluster) -> Iterator[KazooClient]:
    """What is on record."""
    with on_record(cluster) as client:
        yield client


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """A name for this test's topic."""
    return re.sub(r"[^a-zA-Z0-9._-]", "-", request.node.name)
