"""One Spark session and one broker for the whole run: a JVM takes seconds to start."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas_broker.testing import Broker
from barnabas_pipelines import session
from tests.pipelines.spark.archives import Sender


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The session as a pipeline has it."""
    work = tmp_path_factory.mktemp("work")
    connector = session.connector_jars()
    started = session.start("tests", master="local[2]", work=work, connector=connector)
    yield started
    started.stop()


@pytest.fixture
def sender(kafka_broker: Broker) -> Sender:
    """Sends to the session's broker."""
    return Sender(kafka_broker.bootstrap_servers)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """The directory that stands for /data."""
    path = tmp_path / "data"
    path.mkdir()
    return path
