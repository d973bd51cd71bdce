"""Two brokers for each module of tests, one of which has no fast routes."""

from collections.abc import Iterator

import pytest

from tests.broker.server.requests.fast.differential import Pair, running_pair


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """What one test leaves in the logs is in both."""
    with running_pair(tmp_path_factory.mktemp("pair")) as running:
        yield running
