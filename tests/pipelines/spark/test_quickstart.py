"""The quickstart of Spark runs as printed."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from barnabas_broker.testing import Broker
from tests.quickstarts import pages


def test_the_quickstart_runs_as_printed(fresh_kafka_broker: Broker, tmp_path: Path) -> None:
    """With Spark's own way of bringing the connector, as a user without our jars has it."""
    commands = Path(sys.executable).parent
    pages.follow(
        "spark.md",
        tmp_path,
        bootstrap=fresh_kafka_broker.bootstrap_servers,
        variables={"PATH": f"{commands}{os.pathsep}{os.environ['PATH']}"},
    )
