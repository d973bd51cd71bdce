"""The command line on Apache Kafka: the same tests that it passes on our broker.

A command that worked on ours only would be in league with our misunderstandings.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from barnabas_broker.testing import Broker, topics
from tests.broker.cli.conftest import Run, run_command
from tests.broker.cli.test_configs import *  # noqa: F403
from tests.broker.cli.test_consume import *  # noqa: F403
from tests.broker.cli.test_offsets import *  # noqa: F403
from tests.broker.cli.test_produce import *  # noqa: F403
from tests.broker.cli.test_topics import *  # noqa: F403
from tests.oracle.apache import ApacheKafka, run_tool


class ApacheBroker:
    """Apache's broker with the face that the fixtures expect of ours."""

    running = True

    def __init__(self, kafka: ApacheKafka) -> None:
        self.bootstrap_servers = kafka.bootstrap
        self.log_dir: Path = kafka.log_dirs[0]
        self._address = ("127.0.0.1", kafka.port)

    def create_topic(self, name: str, **kwargs: Any) -> str:
        """As on ours."""
        kwargs["config"] = {key: str(value) for key, value in kwargs.get("config", {}).items()}
        topics.create(self._address, name, **kwargs)
        return name

    def delete_topic(self, name: str) -> None:
        """As on ours."""
        topics.delete(self._address, name)


@pytest.fixture(scope="module")
def kafka_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """Apache Kafka in place of our broker."""
    directory = tmp_path_factory.mktemp("apache")
    # Changing message.max.bytes makes it a new cleaner, whose buffer must fit the small heap twice.
    small = {"log.cleaner.dedupe.buffer.size": "8388608"}
    with ApacheKafka(directory=directory, heap="256M", overrides=small) as kafka:
        yield cast("Broker", ApacheBroker(kafka))


@pytest.fixture
def run(kafka_broker: Broker) -> Run:
    """Run a client command against Apache's broker."""

    def against_apache(*args: str, **kwargs: Any) -> Any:
        return run_command(*args, bootstrap=kafka_broker.bootstrap_servers, **kwargs)

    return against_apache


@pytest.mark.kafka_topic(partitions=1)
@pytest.mark.parametrize("compression", ["none", "zstd"])
def test_dump_log_prints_what_kafkas_tool_prints(
    run: Run, kafka_broker: Broker, kafka_topic: str, compression: str
) -> None:
    """Letter for letter, on a segment that Apache's broker wrote."""
    lines = b"".join(b"%d:value %d\n" % (number, number) for number in range(100))
    run("produce", kafka_topic, "--key-separator", ":", "--header", "a=b",
        "--compression", compression, stdin=lines)  # fmt: skip
    log = str(kafka_broker.log_dir / f"{kafka_topic}-0" / "00000000000000000000.log")
    tool = "kafka.tools.DumpLogSegments"
    for theirs, ours in ((["--print-data-log"],) * 2, (["--deep-iteration"], ["--deep"]), ([], [])):
        expected = run_tool(tool, "--files", log, *theirs).stdout
        assert run("dump-log", log, *ours).stdout == expected
