"""Our ZooKeeper for development and Apache's, asked the same by kazoo: the answers are the same."""

from __future__ import annotations

import queue
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import KazooException
from kazoo.protocol.states import WatchedEvent
from kazoo.security import CREATOR_ALL_ACL, make_digest_acl

from tests.oracle.apache import OwnZooKeeper, ZooKeeper
from tests.waiting import ANSWER, START, seconds

#: As long as servers grant: no scenario is about a session that ends by itself.
LONGEST_SESSION_S = 40.0


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ZooKeeper, ZooKeeper]]:
    """Apache's and ours, for all scenarios."""
    directory = tmp_path_factory.mktemp("zookeepers")
    with (
        ZooKeeper(directory=directory / "apache") as apache,
        OwnZooKeeper(directory=directory / "own") as own,
    ):
        yield apache, own


class Teller:
    """Asks one server and writes down what it answered, without what differs by nature."""

    def __init__(self, server: ZooKeeper, name: str) -> None:
        self.server = server
        self.chroot = f"/{name}"
        self.said: list[object] = []
        self.heard: queue.Queue[WatchedEvent] = queue.Queue()
        with self.session(chroot="") as client:
            client.create(self.chroot)

    @contextmanager
    def session(self, chroot: str | None = None) -> Iterator[KazooClient]:
        """A client below the scenario's own znode."""
        where = self.chroot if chroot is None else chroot
        client = KazooClient(f"{self.server.connect}{where}", timeout=LONGEST_SESSION_S)
        client.start(seconds(START))
        try:
            yield client
        finally:
            client.stop()
            client.close()

    def ask(self, call: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """Call, and write down the result or the error."""
        try:
            result = call(*args, **options)
        except KazooException as error:
            self.said.append(type(error).__name__)
            return None
        self.said.append(_plain(result))
        return result

    def hear(self, count: int) -> None:
        """Write down so many events, which must come."""
        for _ in range(count):
            event = self.heard.get(timeout=seconds(ANSWER))
            self.said.append((event.type, event.path))


def _plain(result: Any) -> Any:
    """What a result says, whichever server and moment it is from."""
    if hasattr(result, "czxid"):
        own = result.ephemeralOwner != 0
        return (
            result.version, result.cversion, result.aversion, own,
            result.dataLength, result.numChildren, result.mzxid > result.czxid,
        )  # fmt: skip
    if isinstance(result, list | tuple):
        reported = [_plain(each) for each in result]
        return sorted(reported) if all(isinstance(each, str) for each in reported) else reported
    if isinstance(result, Exception):
        return type(result).__name__
    return result


def znodes(teller: Teller) -> None:
    """Creating, reading, changing, deleting, and all that is refused."""
    with teller.session() as client:
        for path, options in (
            ("/a", {}), ("/a", {}), ("/none/b", {}), ("/a/s-", {"sequence": True}),
            ("/a/s-", {"sequence": True, "ephemeral": True}), ("/e", {"ephemeral": True}),
            ("/e/child", {}), ("/full", {"include_data": True}), ("/a/b/c", {"makepath": True}),
        ):  # fmt: skip
            teller.ask(client.create, path, b"data", **options)
        for call, args in (
            (client.get, ("/a",)), (client.get, ("/none",)), (client.exists, ("/e",)),
            (client.exists, ("/none",)), (client.get_children, ("/a",)),
            (client.get_children, ("/none",)), (client.set, ("/a", b"more")),
            (client.set, ("/a", b"", 7)), (client.set, ("/none", b"")), (client.get, ("/a",)),
            (client.delete, ("/a",)), (client.delete, ("/e", 3)), (client.delete, ("/e",)),
            (client.delete, ("/none",)), (client.sync, ("/a",)), (client.get_acls, ("/a",)),
            (client.create, ("/a/s-", b"", None, False, True)), (client.get, ("/a",)),
        ):  # fmt: skip
            teller.ask(call, *args)
        teller.ask(client.get_children, "/a", include_data=True)
        teller.ask(client.delete, "/a", recursive=True)
        teller.ask(client.get_children, "/")


def transactions(teller: Teller) -> None:
    """All operations or none, and what each was told."""
    with teller.session() as client:
        first = client.transaction()
        first.create("/t", b"x")
        first.create("/t/s-", sequence=True)
        first.set_data("/t", b"y")
        first.check("/t", 1)
        teller.ask(first.commit)
        second = client.transaction()
        second.delete("/t/s-0000000000")
        second.set_data("/t", b"z", version=7)
        second.create("/u")
        teller.ask(second.commit)
        teller.ask(client.get, "/t")
        teller.ask(client.get_children, "/t")
        teller.ask(client.transaction().commit)


def access(teller: Teller) -> None:
    """What only its maker may, and access that is not granted."""
    with teller.session() as client, teller.session() as other:
        teller.ask(client.add_auth, "digest", "me:secret")
        teller.ask(client.create, "/mine", b"x", acl=CREATOR_ALL_ACL)
        teller.ask(client.get_acls, "/mine")
        teller.ask(client.get, "/mine")
        for call, args in (
            (other.get, ("/mine",)), (other.exists, ("/mine",)), (other.set, ("/mine", b"")),
            (other.get_children, ("/mine",)), (other.get_acls, ("/mine",)),
            (other.create, ("/mine/b",)), (other.delete, ("/mine",)),
        ):  # fmt: skip
            teller.ask(call, *args)
        teller.ask(other.create, "/theirs", acl=CREATOR_ALL_ACL)
        readable = make_digest_acl("you", "too", read=True)
        teller.ask(client.set_acls, "/mine", [readable])
        teller.ask(client.set_acls, "/mine", [readable])
        teller.ask(other.add_auth, "digest", "you:too")
        teller.ask(other.get, "/mine")
        teller.ask(other.set, "/mine", b"")
        teller.ask(other.delete, "/mine")


def watches(teller: Teller) -> None:
    """Who hears of what."""
    with teller.session() as client, teller.session() as other:
        heard = teller.heard.put
        teller.ask(client.exists, "/w", watch=heard)
        other.create("/w", b"")
        teller.hear(1)
        teller.ask(client.get, "/w", watch=heard)
        teller.ask(client.get_children, "/w", watch=heard)
        other.create("/w/c", b"")
        teller.hear(1)
        other.set("/w", b"x")
        teller.hear(1)
        teller.ask(client.get, "/w", watch=heard)
        teller.ask(client.get_children, "/w", watch=heard)
        other.delete("/w", recursive=True)
        teller.hear(2)


def sessions(teller: Teller) -> None:
    """What is ephemeral goes with its session, and whoever watches hears."""
    with teller.session() as client:
        with teller.session() as brief:
            brief.create("/b", b"", ephemeral=True)
            teller.ask(client.exists, "/b", watch=teller.heard.put)
        teller.hear(1)
        teller.ask(client.exists, "/b")
        teller.ask(client.get_children, "/")


@pytest.mark.parametrize("scenario", [znodes, transactions, access, watches, sessions])
def test_the_same_is_answered(
    servers: tuple[ZooKeeper, ZooKeeper], scenario: Callable[[Teller], None]
) -> None:
    """A difference is a bug in ours."""
    apache, own = (Teller(server, scenario.__name__) for server in servers)
    scenario(apache)
    scenario(own)
    assert own.said == apache.said
    assert apache.said


@pytest.mark.parametrize("command", ["ruok", "srvr"])
def test_probes_read_the_same(servers: tuple[ZooKeeper, ZooKeeper], command: str) -> None:
    """Scripts look for the same words."""

    def say(server: ZooKeeper) -> list[str]:
        with socket.create_connection(("127.0.0.1", server.port), timeout=seconds(ANSWER)) as probe:
            probe.sendall(command.encode())
            said = b"".join(iter(lambda: probe.recv(4096), b"")).decode()
        return [line.partition(":")[0] for line in said.splitlines()]

    apache, own = map(say, servers)
    assert [line for line in own if line not in apache] == []
    assert ("Mode" in own) == ("Mode" in apache)
