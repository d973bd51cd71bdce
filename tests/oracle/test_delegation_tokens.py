"""Delegation tokens of a broker of ours and of Apache's on one ZooKeeper, alike for clients."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
from click.testing import CliRunner

from barnabas_broker.cli.kafka import delegation_tokens
from barnabas_broker.security.sasl_settings import PLAIN_MODULE, SCRAM_MODULE
from barnabas_kafka.client import Scram
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.messages.create_delegation_token import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
)
from barnabas_kafka.protocol.messages.describe_delegation_token import (
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
)
from barnabas_kafka.protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest
from barnabas_kafka.protocol.messages.metadata import MetadataRequest
from barnabas_kafka.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest
from barnabas_kafka.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from barnabas_kafka.protocol.messages.sasl_handshake import SaslHandshakeRequest
from tests.broker.server.running import Wire, running_node
from tests.oracle.apache import ApacheKafka, ZooKeeper, free_port, run_tool
from tests.waiting import wait_for

pytestmark = pytest.mark.jvm

USERS: Final = ("alice", "bob", "carol", "root")
SECRET: Final = "of all brokers"
TOOL: Final = "org.apache.kafka.tools.DelegationTokenCommand"
SETTINGS: Final = {
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SASL:SASL_PLAINTEXT",
    "inter.broker.listener.name": "PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
    "connection.failed.authentication.delay.ms": "1",
    "listener.name.sasl.plain.sasl.jaas.config": f"{PLAIN_MODULE} required "
    + " ".join(f'user_{name}="{name}"' for name in USERS)
    + ";",
    **{
        f"listener.name.sasl.scram-sha-{size}.sasl.jaas.config": f"{SCRAM_MODULE} required;"
        for size in (256, 512)
    },
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "super.users": "User:root;User:ANONYMOUS",
    "delegation.token.secret.key": SECRET,
    "delegation.token.max.lifetime.ms": "1000000",
    "delegation.token.expiry.time.ms": "500000",
    "offsets.topic.replication.factor": "1",
}


@dataclass(frozen=True)
class Sides:
    """Ports of both brokers: with SASL, and in plain text."""

    sasl: tuple[int, int]
    plaintext: tuple[int, int]

    def both(self, ask: Any) -> Any:
        """What Apache answers on a connection of that kind; ours is the same."""
        ours, theirs = (ask(port) for port in self.sasl)
        assert ours == theirs
        return theirs


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sides]:
    """Two brokers of one cluster."""
    with ExitStack() as stack:
        directory = tmp_path_factory.mktemp("zookeeper")
        zookeeper = stack.enter_context(ZooKeeper(directory=directory))
        port = free_port()
        kafka = ApacheKafka(heap="384M", zookeeper=zookeeper.connect, broker_id=1)
        kafka.settings |= SETTINGS
        kafka.settings["listeners"] = f"PLAINTEXT://127.0.0.1:{kafka.port},SASL://127.0.0.1:{port}"
        stack.enter_context(kafka)
        given = {
            **SETTINGS,
            "broker.id": "2",
            "listeners": "PLAINTEXT://127.0.0.1:0,SASL://127.0.0.1:0",
            "zookeeper.connect": zookeeper.connect,
            "zookeeper.session.timeout.ms": "40000",
        }
        node = stack.enter_context(running_node(tmp_path_factory.mktemp("data"), given))
        ports = {each.name: each.port for each in node.listeners}
        yield Sides((ports["SASL"], port), (ports["PLAINTEXT"], kafka.port))


def as_user(port: int, name: str) -> Wire:
    """A connection of a user."""
    wire = Wire(port)
    assert wire.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1).error_code == 0
    answer = wire.ask(SaslAuthenticateRequest(auth_bytes=f"\0{name}\0{name}".encode()), 2)
    assert answer.error_code == 0
    return wire


def create(port: int, name: str = "alice", version: int = 3, **fields: Any) -> Any:
    """The answer to CreateDelegationToken."""
    with as_user(port, name) as wire:
        return wire.ask(CreateDelegationTokenRequest(**{"max_lifetime_ms": -1, **fields}), version)


def answer(port: int, name: str, request: Any, version: int) -> Any:
    """The answer to another request."""
    with as_user(port, name) as wire:
        return wire.ask(request, version)


def log_in(port: int, token_id: str, token_hmac: bytes, mechanism: Any) -> bool:
    """Whether a client is let in by a token, and served."""
    with Wire(port) as wire:
        assert wire.ask(SaslHandshakeRequest(mechanism=mechanism), 1).error_code == 0
        password = base64.b64encode(token_hmac).decode()
        client = Scram(token_id, password, mechanism, delegation_token=True).start("nonce")
        message: bytes | None = client.first()
        while message is not None:
            response = wire.ask(SaslAuthenticateRequest(auth_bytes=message), 2)
            if response.error_code:
                return False
            message = client.answer(response.auth_bytes)
        refused = wire.ask(CreateDelegationTokenRequest(max_lifetime_ms=-1), 3).error_code
        assert refused == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
        return bool(wire.ask(MetadataRequest(topics=None), 9).brokers)


def known_to_both(sides: Sides, token_id: str, token_hmac: bytes) -> None:
    """Wait until it does not matter which broker a tool asks."""
    for port in sides.sasl:
        wait_for("the token", partial(log_in, port, token_id, token_hmac, "SCRAM-SHA-512"))


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
@pytest.mark.parametrize("issuer", [0, 1], ids=["ours", "Apache's"])
def test_each_takes_the_others_tokens(sides: Sides, issuer: int, mechanism: str) -> None:
    """Issued by one, logged in with, shown, renewed and expired at the other."""
    here, there = sides.sasl[issuer], sides.sasl[1 - issuer]
    made = create(here, renewers=[CreatableRenewers(principal_type="User", principal_name="bob")])
    assert made.error_code == 0
    wait_for("the token", lambda: log_in(there, made.token_id, made.hmac, mechanism))
    assert log_in(here, made.token_id, made.hmac, mechanism)
    shown = [answer(it, "bob", DescribeDelegationTokenRequest(owners=None), 3) for it in sides.sasl]
    assert shown[0] == shown[1]
    assert made.token_id in {it.token_id for it in shown[0].tokens}
    renewal = RenewDelegationTokenRequest(hmac=made.hmac, renew_period_ms=900_000)
    renewed = answer(there, "bob", renewal, 2)
    assert renewed.expiry_timestamp_ms > made.expiry_timestamp_ms

    def expiry() -> int:
        found = answer(here, "alice", DescribeDelegationTokenRequest(owners=None), 3)
        times = {it.token_id: it.expiry_timestamp for it in found.tokens}
        until: int = times[made.token_id]
        return until

    wait_for("the renewal", expiry, until=lambda it: it == renewed.expiry_timestamp_ms)
    end = ExpireDelegationTokenRequest(hmac=made.hmac, expiry_time_period_ms=-1)
    assert answer(there, "alice", end, 2).error_code == 0
    wait_for("its end", lambda: not log_in(here, made.token_id, made.hmac, mechanism))


@pytest.mark.parametrize("version", range(4))
def test_created_alike(sides: Sides, version: int) -> None:
    """But for ids, HMACs and times."""

    def ask(port: int) -> Any:
        made = create(port, version=version)
        lives = made.max_timestamp_ms - made.issue_timestamp_ms
        expires = made.expiry_timestamp_ms - made.issue_timestamp_ms
        names = made.principal_type, made.principal_name, made.token_requester_principal_name
        return made.error_code, lives, expires, names, len(made.token_id), len(made.hmac)

    sides.both(ask)


CAROL: Final[dict[str, Any]] = {"owner_principal_type": "User", "owner_principal_name": "carol"}
REFUSED: Final[dict[str, Any]] = {
    "for another user": ("alice", CreateDelegationTokenRequest(max_lifetime_ms=-1, **CAROL), 3),
    "a renewer that is no user": (
        "alice",
        CreateDelegationTokenRequest(
            max_lifetime_ms=-1,
            renewers=[CreatableRenewers(principal_type="Group", principal_name="x")],
        ),
        3,
    ),
    "renewing none": ("alice", RenewDelegationTokenRequest(hmac=b"none", renew_period_ms=-1), 2),
    "expiring none": (
        "alice", ExpireDelegationTokenRequest(hmac=b"", expiry_time_period_ms=-1), 2,
    ),
    "no owners": ("alice", DescribeDelegationTokenRequest(owners=[]), 3),
    "another's tokens": (
        "carol",
        DescribeDelegationTokenRequest(
            owners=[DescribeDelegationTokenOwner(principal_type="User", principal_name="alice")]
        ),
        3,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused_alike(sides: Sides, name: str) -> None:
    """The whole answers are the same."""
    user, request, version = REFUSED[name]
    sides.both(lambda port: answer(port, user, request, version))


def test_refused_alike_in_plain_text(sides: Sides) -> None:
    """Where anybody could read the token."""
    for request, version in (
        (CreateDelegationTokenRequest(max_lifetime_ms=-1), 3),
        (RenewDelegationTokenRequest(hmac=b"x"), 2),
        (ExpireDelegationTokenRequest(hmac=b"x"), 2),
        (DescribeDelegationTokenRequest(owners=None), 3),
    ):
        found = []
        for port in sides.plaintext:
            with Wire(port) as wire:
                found.append(wire.ask(request, version))
        assert found[0] == found[1]
        assert found[0].error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED


def test_others_may_not_renew_alike(sides: Sides) -> None:
    """Not even super users; a token for another user is the user's, not the requester's."""

    def ask(port: int) -> Any:
        made = create(port, "root", **CAROL)
        renewal = RenewDelegationTokenRequest(hmac=made.hmac, renew_period_ms=-1)
        end = ExpireDelegationTokenRequest(hmac=made.hmac, expiry_time_period_ms=5)
        found = [
            answer(port, name, request, 2).error_code
            for request in (renewal, end)
            for name in ("root", "alice", "carol")
        ]
        return made.error_code, made.principal_name, made.token_requester_principal_name, found

    sides.both(ask)


def test_apaches_tool(sides: Sides, tmp_path: Path) -> None:
    """`kafka-delegation-tokens` of 3.9.1 on our broker."""
    config = tmp_path / "client.properties"
    config.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.jaas.config="
        f'{PLAIN_MODULE} required username="alice" password="alice";\n'
    )
    common = (
        "--bootstrap-server", f"127.0.0.1:{sides.sasl[0]}", "--command-config", str(config),
    )  # fmt: skip

    def run(*args: str) -> str:
        done = run_tool(TOOL, *common, *args, version="3.9.1")
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    made = run("--create", "--max-life-time-period", "-1", "--renewer-principal", "User:bob")
    token_id, token_hmac = re.findall(r"^(\S{22})\s+(\S{88})\s", made, re.MULTILINE)[0]
    known_to_both(sides, token_id, base64.b64decode(token_hmac))
    assert token_id in run("--describe", "--owner-principal", "User:alice")
    assert "renew" in run("--renew", "--renew-time-period", "-1", "--hmac", token_hmac)
    run("--expire", "--expiry-time-period", "-1", "--hmac", token_hmac)
    owner = ("--owner-principal", "User:alice")
    wait_for("its end", lambda: token_id not in run("--describe", *owner))


def test_the_tools_print_the_same(sides: Sides, tmp_path: Path) -> None:
    """Of the same tokens, Apache's and ours."""
    made = create(sides.sasl[0], "carol", max_lifetime_ms=77_000_000)
    known_to_both(sides, made.token_id, made.hmac)
    config = tmp_path / "client.properties"
    config.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.jaas.config="
        f'{PLAIN_MODULE} required username="carol" password="carol";\n'
    )
    for port in sides.sasl:
        address = ("--bootstrap-server", f"127.0.0.1:{port}", "--command-config", str(config))
        # Without an owner Apache's tool asks for the tokens of none, ours for all.
        given = [*address, "--describe", "--owner-principal", "User:carol"]
        theirs = run_tool(TOOL, *given, version="3.9.1")
        assert theirs.returncode == 0, theirs.stderr
        ours = CliRunner().invoke(delegation_tokens.main, given)
        # Tokens of other tests expire meanwhile.
        [token] = (line for line in theirs.stdout.splitlines() if made.token_id in line)
        assert token in ours.stdout.splitlines()
        assert ours.stdout.splitlines()[:2] == theirs.stdout.splitlines()[:2]


def test_a_java_client_with_a_token(sides: Sides, tmp_path: Path) -> None:
    """Its login module has `tokenauth="true"`; topics are listed for the token's owner."""
    made = create(sides.sasl[0], "root")
    known_to_both(sides, made.token_id, made.hmac)
    password = base64.b64encode(made.hmac).decode()
    config = tmp_path / "client.properties"
    config.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-256\nsasl.jaas.config="
        f'{SCRAM_MODULE} required username="{made.token_id}" password="{password}" '
        'tokenauth="true";\n'
    )
    address = ("--bootstrap-server", f"127.0.0.1:{sides.sasl[0]}")
    done = run_tool(
        "org.apache.kafka.tools.TopicCommand", *address, "--command-config", str(config),
        "--create", "--topic", "by-token", "--replica-assignment", "2", version="3.9.1",
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
