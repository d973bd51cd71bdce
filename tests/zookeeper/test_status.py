"""The commands of four letters, as probes send them."""

import asyncio
from pathlib import Path

import pytest

from tests.zookeeper.running import connected, plain, running


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("ruok", "imok"),
        ("isro", "rw"),
        ("srvr", "\nMode: standalone\nNode count: 4\n"),
        ("stat", "\nConnections: 1\n"),
        ("mntr", "zk_global_sessions\t1\n"),
    ],
)
def test_commands(tmp_path: Path, command: str, said: str) -> None:
    """What Apache's says in its words, and then the connection is closed."""

    async def story() -> None:
        async with running(tmp_path) as started, connected(started), plain(started) as probe:
            probe.writer.write(command.encode())
            assert said in (await probe.until_closed()).decode()

    asyncio.run(story())
