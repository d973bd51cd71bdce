"""Sessions, requests and watches as a client's frames meet them, in a time of the test's own."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from kazoo.exceptions import NoNodeError as KazooNoNodeError
from kazoo.exceptions import RuntimeInconsistency
from kazoo.protocol import serialization as kazoo
from kazoo.security import CREATOR_ALL_ACL, OPEN_ACL_UNSAFE

from barnabas_zookeeper import journal, wire
from barnabas_zookeeper.service import UNIMPLEMENTED, Client, HangUpError, Service
from barnabas_zookeeper.tree import Tree
from barnabas_zookeeper.wire import MalformedRequestError, Op
from tests.zookeeper.running import connected, plain, running

TICK_MS = 1000
TIMEOUT_MS = 4000
SECRET = b"sixteen letters."


class Play:
    """A service with clients that speak kazoo's frames; `now` is the only clock."""

    def __init__(self, tree: Tree | None = None) -> None:
        self.now = 1_000_000
        self.service = Service(
            tree or Tree(), tick_ms=TICK_MS, first_session=100, new_password=lambda: SECRET
        )
        self.service.start(now_ms=self.now, uptime_ms=self.now)
        self.lines = [*journal.encode_snapshot(Tree())]

    def join(self, session: int = 0, password: bytes = SECRET, *, last_zxid: int = 0) -> Client:
        """Connect; raises HangUpError."""
        client = Client("127.0.0.1")
        frame = kazoo.Connect(0, last_zxid, TIMEOUT_MS, session, password, False).serialize()
        self.service.connect(client, bytes(frame), now_ms=self.now, uptime_ms=self.now)
        return client

    def send(self, client: Client, request: Any, xid: int = 1) -> None:
        """Send one request."""
        self.raw(client, kazoo.int_int_struct.pack(xid, request.type) + request.serialize())

    def raw(self, client: Client, frame: bytes | bytearray) -> None:
        """Send a frame."""
        self.service.handle(client, bytes(frame), now_ms=self.now, uptime_ms=self.now)

    def ask(self, client: Client, request: Any) -> Any:
        """Send one request and read its reply: the result, or the number of the error."""
        self.service.outbox.clear()
        self.send(client, request)
        mine = [data for to, data in self.service.outbox if to is client]
        xid, _, error = kazoo.reply_header_struct.unpack_from(mine[-1])
        assert xid == 1
        if error or not hasattr(request, "deserialize"):
            return error
        return request.deserialize(mine[-1], kazoo.reply_header_struct.size)

    def heard(self) -> list[tuple[Client, int, str]]:
        """Who was told of what, and clear the outbox."""
        response = []
        for client, data in self.service.outbox:
            header = kazoo.reply_header_struct
            if header.unpack_from(data)[0] == wire.NOTIFICATION_XID:
                kind, _ = kazoo.int_int_struct.unpack_from(data, header.size)
                response.append((client, kind, kazoo.read_string(data, header.size + 8)[0]))
        self.service.outbox.clear()
        return response


def create(path: str, data: bytes = b"", flags: int = 0, acl: Sequence[Any] = ()) -> Any:
    """A request."""
    return kazoo.Create(path, data, acl or OPEN_ACL_UNSAFE, flags)


def test_a_session_goes_on_after_its_connection() -> None:
    """What was ephemeral stays as long as the client comes back in time, with its password."""
    play = Play()
    first = play.join()
    assert first.session == 100
    play.ask(first, create("/here", flags=1))
    play.service.left(first)
    play.now += TIMEOUT_MS
    play.service.expire(now_ms=play.now, uptime_ms=play.now)
    again = play.join(first.session)
    assert again.session == first.session
    assert play.ask(again, kazoo.Exists("/here", False)).ephemeralOwner == first.session


def test_a_silent_session_expires() -> None:
    """Its znodes go, whoever watches hears, and it cannot be gone on with."""
    play = Play()
    quiet, other = play.join(), play.join()
    play.ask(quiet, create("/here", flags=1))
    play.ask(other, kazoo.Exists("/here", True))
    play.now += TIMEOUT_MS
    play.send(other, kazoo.Ping(), xid=wire.PING_XID)
    play.service.outbox.clear()
    assert play.service.expire(now_ms=play.now, uptime_ms=play.now) == []
    play.now += 1
    assert play.service.expire(now_ms=play.now, uptime_ms=play.now) == [quiet]
    assert play.heard() == [(other, 2, "/here")]
    with pytest.raises(HangUpError):
        play.send(quiet, kazoo.Ping())
    with pytest.raises(HangUpError, match="0x64 has expired"):
        play.join(quiet.session)
    response, _ = kazoo.Connect.deserialize(play.service.outbox[-1][1], 0)
    assert (response.session_id, response.time_out) == (0, 0)


def test_a_wrong_password_does_not_get_a_session() -> None:
    """Knowing the number of a session is not enough to take it over."""
    play = Play()
    client = play.join()
    with pytest.raises(HangUpError):
        play.join(client.session, b"guessed")
    assert play.ask(client, kazoo.Exists("/", False)) is not None


def test_a_resumed_session_closes_the_previous_connection() -> None:
    """The connection before is hung up on when it says anything more."""
    play = Play()
    before = play.join()
    after = play.join(before.session)
    with pytest.raises(HangUpError):
        play.send(before, kazoo.Ping())
    play.service.left(before)
    assert play.ask(after, kazoo.Exists("/", False)) is not None


def test_a_client_with_a_newer_zxid_is_refused() -> None:
    """A client that has seen more than there is here is not told less."""
    with pytest.raises(HangUpError, match="this is the past"):
        Play().join(last_zxid=1 << 40)


def test_closing_a_session_is_answered_first() -> None:
    """The reply tells the client that its znodes are gone."""
    play = Play()
    client = play.join()
    play.ask(client, create("/here", flags=1))
    play.service.outbox.clear()
    with pytest.raises(HangUpError):
        play.send(client, kazoo.CloseInstance)
    assert len(play.service.outbox) == 1
    assert play.service.tree.exists("/here") is None


def test_a_transaction_happens_all_or_not() -> None:
    """Each operation is told what became of it; those after the refused one were not tried."""
    play = Play()
    client = play.join()
    made = play.ask(client, kazoo.Transaction([create("/a", b"x"), kazoo.SetData("/a", b"y", 0)]))
    assert (made[0], made[1].version) == ("/a", 1)
    refused = play.ask(
        client,
        kazoo.Transaction([create("/b"), kazoo.Delete("/none", -1), kazoo.CheckVersion("/a", 1)]),
    )
    assert [type(each).__name__ for each in refused] == [
        "RolledBackError",
        KazooNoNodeError.__name__,
        RuntimeInconsistency.__name__,
    ]
    assert play.service.tree.exists("/b") is None


def test_access_is_asked_for_each_operation() -> None:
    """What was made for its maker alone nobody else reads, writes, lists or fills."""
    play = Play()
    maker, other = play.join(), play.join()
    play.ask(maker, kazoo.Auth(0, "digest", "me:secret"))
    assert play.ask(maker, create("/mine", b"x", acl=CREATOR_ALL_ACL)) == "/mine"
    refusals = [
        play.ask(other, request)
        for request in (
            kazoo.GetData("/mine", False),
            kazoo.SetData("/mine", b"", -1),
            kazoo.GetChildren("/mine", False),
            kazoo.GetACL("/mine"),
            kazoo.SetACL("/mine", OPEN_ACL_UNSAFE, -1),
            create("/mine/b"),
            kazoo.Delete("/mine/b", -1),
        )
    ]
    assert refusals == [-102] * 7
    assert play.ask(maker, kazoo.GetData("/mine", False))[0] == b"x"
    assert play.ask(other, create("/theirs", acl=CREATOR_ALL_ACL)) == -114
    with pytest.raises(HangUpError, match="no scheme sasl"):
        play.send(other, kazoo.Auth(0, "sasl", "x"))


def test_reset_watches_deliver_missed_events() -> None:
    """After a reconnect a client says what it watched, and since when."""
    play = Play()
    client = play.join()
    for path in ("/same", "/changed", "/gone", "/parent"):
        play.ask(client, create(path))
    since = play.service.tree.zxid
    for request in (
        kazoo.SetData("/changed", b"", -1),
        kazoo.Delete("/gone", -1),
        create("/parent/child"),
        create("/new"),
    ):
        play.ask(client, request)
    play.heard()
    frame = b"".join(
        (
            kazoo.int_int_struct.pack(-8, Op.SET_WATCHES),
            kazoo.long_struct.pack(since),
            wire.strings(["/same", "/changed", "/gone"]),
            wire.strings(["/new", "/never"]),
            wire.strings(["/parent", "/same"]),
        )
    )
    play.raw(client, frame)
    assert [(kind, path) for _, kind, path in play.heard()] == [
        (3, "/changed"), (2, "/gone"), (4, "/parent"), (1, "/new"),
    ]  # fmt: skip
    play.ask(client, create("/never"))
    play.ask(client, create("/same/child"))
    assert [(kind, path) for _, kind, path in play.heard()] == [(4, "/same")]


@pytest.mark.parametrize("recursive", [False, True])
def test_persistent_watches_stay(recursive: bool) -> None:
    """They hear of each change until they are taken back, recursive ones of all below, too."""
    play = Play()
    client = play.join()
    frame = wire.string("/p") + wire.number(int(recursive))
    play.raw(client, kazoo.int_int_struct.pack(1, Op.ADD_WATCH) + frame)
    for request in (create("/p"), create("/p/c"), kazoo.SetData("/p", b"", -1)):
        play.send(client, request)
    below = (1, "/p/c") if recursive else (4, "/p")
    assert [(kind, path) for _, kind, path in play.heard()] == [(1, "/p"), below, (3, "/p")]
    taken_back = kazoo.int_int_struct.pack(1, Op.REMOVE_WATCHES) + wire.string("/p")
    play.raw(client, taken_back + wire.number(3))
    play.send(client, kazoo.SetData("/p", b"", -1))
    assert play.heard() == []
    play.raw(client, taken_back + wire.number(3))
    assert kazoo.reply_header_struct.unpack_from(play.service.outbox[-1][1])[2] == -121


def test_every_change_is_in_the_journal() -> None:
    """Reading the lines gives the same znodes and sessions, so a restart changes nothing."""
    play = Play()
    client = play.join()
    play.ask(client, create("/a", b"x"))
    play.ask(client, create("/a/s-", flags=3))
    play.ask(client, kazoo.Transaction([create("/b"), kazoo.Delete("/none", -1)]))
    read = journal.decode([*play.lines, *play.service.lines]).tree
    assert list(read.save()) == list(play.service.tree.save())
    restarted = Play(read)
    assert restarted.join(client.session).session == client.session
    assert restarted.join().session == client.session + 1
    assert restarted.service.tree.children("/a") == ["s-0000000000"]


def test_sasl_is_answered_by_no_token() -> None:
    """As by a member of Apache's without it; the client stays who it was."""
    play = Play()
    client = play.join()
    assert play.ask(client, kazoo.SASL(b"")) == (None, 20)
    assert [identity.scheme for identity in client.identities] == ["world", "ip"]


def test_unsupported_requests_are_refused() -> None:
    """Reconfiguration has nothing to reconfigure; a request of nonsense ends the connection."""
    play = Play()
    client = play.join()
    assert play.ask(client, kazoo.Reconfig("", "", "", -1)) == UNIMPLEMENTED
    with pytest.raises(MalformedRequestError):
        play.raw(client, b"\0\0\0\x01")
    with pytest.raises(MalformedRequestError, match="kind 4"):
        play.send(client, create("/container", flags=4))
    with pytest.raises(MalformedRequestError, match="operation 11"):
        play.send(client, kazoo.Transaction([kazoo.PingInstance]))


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

    async def scenario() -> None:
        async with running(tmp_path) as started, connected(started), plain(started) as probe:
            probe.writer.write(command.encode())
            assert said in (await probe.until_closed()).decode()

    asyncio.run(scenario())
