"""The process: durable before it tells, bounded by its clients, one for a directory."""

import asyncio
import os
from pathlib import Path

import pytest
from kazoo.protocol import serialization as kazoo
from kazoo.security import OPEN_ACL_UNSAFE

from barnabas_zookeeper import journal_file, server
from barnabas_zookeeper.server import Options, Server, ServerError
from tests.zookeeper.running import connected, plain, running


def create(path: str, data: bytes = b"") -> kazoo.Create:
    """A request."""
    return kazoo.Create(path, data, OPEN_ACL_UNSAFE, 0)


def test_acknowledged_changes_are_on_disk(tmp_path: Path) -> None:
    """A reader of the file sees each answered change; a restart serves it."""

    async def scenario() -> None:
        async with running(tmp_path) as first, connected(first) as client:
            for number in range(20):
                assert await client.request(create(f"/n{number}")) == 0
                assert journal_file.read(tmp_path / server.FILE_NAME).exists(f"/n{number}")
        async with running(tmp_path) as again, connected(again) as client:
            assert await client.request(kazoo.Exists("/n19", False)) == 0
            assert await client.request(kazoo.Exists("/n20", False)) == -101

    asyncio.run(scenario())


def test_a_disk_that_fails_ends_the_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody is told that something was kept which was not."""

    def full(descriptor: int, data: bytes) -> None:
        raise OSError(28, os.strerror(28))

    async def scenario() -> None:
        started = await Server.open(Options(data_directory=tmp_path, port=0))
        serving = asyncio.create_task(started.serve())
        async with connected(started) as client:
            monkeypatch.setattr(journal_file, "write", full)
            asking = asyncio.create_task(client.request(create("/a")))
            with pytest.raises(ServerError, match=r"journal cannot be written: No space left"):
                await serving
            started.close()
            with pytest.raises(asyncio.IncompleteReadError):
                await asking

    asyncio.run(scenario())


def test_the_journal_does_not_grow_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once it is twice as large as what it says, a snapshot takes its place."""
    monkeypatch.setattr(server, "JOURNAL_BYTES_LEAST", 10_000)

    async def scenario() -> None:
        async with running(tmp_path) as started, connected(started) as client:
            await client.request(create("/a"))
            sizes = []
            for _ in range(100):
                assert await client.request(kazoo.SetData("/a", b"x" * 500, -1)) == 0
                sizes.append((tmp_path / server.FILE_NAME).stat().st_size)
            assert max(sizes) < 12_000

    asyncio.run(scenario())
    assert journal_file.read(tmp_path / server.FILE_NAME).get("/a")[1].version == 100


def test_a_directory_has_one_server(tmp_path: Path) -> None:
    """Two writers of one journal would destroy it."""

    async def scenario() -> None:
        async with running(tmp_path):
            with pytest.raises(ServerError, match="another process uses this directory"):
                await Server.open(Options(data_directory=tmp_path, port=0))

    asyncio.run(scenario())


def test_a_port_in_use_is_named(tmp_path: Path) -> None:
    """One line that says where; the directory is free again."""

    async def scenario() -> None:
        async with running(tmp_path / "a") as started:
            options = Options(data_directory=tmp_path / "b", port=started.port)
            with pytest.raises(ServerError, match=rf"cannot listen at 127\.0\.0\.1:{started.port}"):
                await Server.open(options)
            async with running(tmp_path / "b"):
                pass

    asyncio.run(scenario())


def test_a_damaged_journal_is_not_served(tmp_path: Path) -> None:
    """What no crash explains is told, and left as it is."""
    (tmp_path / server.FILE_NAME).write_bytes(b"not a journal\n")
    with pytest.raises(ServerError, match="is damaged"):
        asyncio.run(Server.open(Options(data_directory=tmp_path, port=0)))


@pytest.mark.parametrize(
    "sent",
    [b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff", b"\0\0\0\x04abcd", b"GET / HTTP/1.1\r\n\r\n"],
)
def test_nonsense_is_hung_up_on(tmp_path: Path, sent: bytes) -> None:
    """A frame too large, of negative length, or that is no request; others are served."""

    async def scenario() -> None:
        async with running(tmp_path) as started, plain(started) as stranger:
            stranger.writer.write(sent)
            assert await stranger.until_closed() == b""
            async with connected(started) as client:
                assert await client.request(create("/a")) == 0

    asyncio.run(scenario())


def test_one_address_has_so_many_connections(tmp_path: Path) -> None:
    """As maxClientCnxns of zoo.cfg; who leaves makes room."""

    async def scenario() -> None:
        async with running(tmp_path, connections_per_address=2) as started:
            async with connected(started), connected(started):
                async with plain(started) as third:
                    assert await asyncio.gather(third.until_closed(), return_exceptions=True)
                assert len(started.connections) == 2
            while started.connections:  # noqa: ASYNC110 - the server tells nobody.
                await asyncio.sleep(0)
            async with connected(started) as client:
                assert await client.request(kazoo.Exists("/", False)) == 0

    asyncio.run(scenario())


def test_requests_of_a_client_are_answered_in_their_order(tmp_path: Path) -> None:
    """More at once than wait for a turn; reading goes on when they were served."""

    async def scenario() -> None:
        async with running(tmp_path) as started, connected(started) as client:
            for xid in range(1000):
                frame = kazoo.int_int_struct.pack(xid, 3) + kazoo.Exists("/", False).serialize()
                client.writer.write(len(frame).to_bytes(4, "big") + bytes(frame))
            for xid in range(1000):
                length = int.from_bytes(await client.reader.readexactly(4), "big")
                response = await client.reader.readexactly(length)
                assert kazoo.reply_header_struct.unpack_from(response)[0] == xid

    asyncio.run(scenario())
