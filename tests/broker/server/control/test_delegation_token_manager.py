"""Delegation tokens of a running broker: issued, shown, renewed, expired, and logged in with."""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from barnabas_broker.security.delegation_tokens import TokenInformation
from barnabas_broker.security.principals import ANONYMOUS
from barnabas_broker.security.sasl_settings import PLAIN_MODULE
from barnabas_broker.server.control.delegation_token_manager import DelegationTokenManager
from barnabas_broker.server.node.broker_server import BrokerServer
from barnabas_broker.zk.store import CoordinationError
from barnabas_kafka.client import Scram
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.messages.create_delegation_token import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
)
from barnabas_kafka.protocol.messages.describe_delegation_token import (
    DescribedDelegationTokenRenewer,
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
)
from barnabas_kafka.protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest
from barnabas_kafka.protocol.messages.metadata import MetadataRequest
from barnabas_kafka.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest
from barnabas_kafka.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from barnabas_kafka.protocol.messages.sasl_handshake import SaslHandshakeRequest
from barnabas_kafka.settings.broker import BrokerSettings
from tests.broker.controller.ensemble import Ensemble
from tests.broker.server.network.test_jwks_endpoint import is_over
from tests.broker.server.network.test_sasl_authenticator import connect, log_in, principals
from tests.broker.server.running import Wire, running_node
from tests.oracle.certificates import Certificate
from tests.waiting import wait_for

USERS = ("alice", "bob", "carol", "root", "teller")
SECRET = "of all brokers"
SETTINGS = {
    "listeners": "PLAINTEXT://127.0.0.1:0,SASL://127.0.0.1:0,TLS://127.0.0.1:0",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SASL:SASL_PLAINTEXT,TLS:SSL",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
    "connection.failed.authentication.delay.ms": "1",
    "listener.name.sasl.plain.sasl.jaas.config": f"{PLAIN_MODULE} required "
    + " ".join(f'user_{name}="{name}"' for name in USERS)
    + ";",
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "super.users": "User:root",
    "delegation.token.expiry.check.interval.ms": "100",
    "delegation.token.max.lifetime.ms": "1000000",
    "delegation.token.expiry.time.ms": "500000",
}


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerServer]:
    """A broker with tokens, and ACLs by which nobody but root sees others'."""
    files = tmp_path_factory.mktemp("certificates")
    own = Certificate("broker", Certificate("authority"), host="localhost")
    tls = {"ssl.keystore.location": str(own.write_pem(files / "broker.pem"))}
    settings = {**SETTINGS, **tls, "delegation.token.secret.key": SECRET}
    with running_node(tmp_path_factory.mktemp("data"), settings) as started:
        yield started


def as_user(node: BrokerServer, name: str) -> Wire:
    """A connection of a user."""
    wire = connect(node, "SASL")
    assert log_in(wire, name, name).error_code == ErrorCode.NONE
    return wire


def create(wire: Wire, version: int = 3, **fields: Any) -> Any:
    """The answer to CreateDelegationToken."""
    renewers = fields.pop("renewers", ())
    request = CreateDelegationTokenRequest(
        **{"max_lifetime_ms": -1, **fields},
        renewers=[CreatableRenewers(principal_type="User", principal_name=it) for it in renewers],
    )
    return wire.ask(request, version)


def renew(wire: Wire, token_hmac: bytes, period_ms: int = -1, version: int = 2) -> Any:
    """The answer to RenewDelegationToken."""
    return wire.ask(
        RenewDelegationTokenRequest(hmac=token_hmac, renew_period_ms=period_ms), version
    )


def expire(wire: Wire, token_hmac: bytes, period_ms: int = -1, version: int = 2) -> Any:
    """The answer to ExpireDelegationToken."""
    return wire.ask(
        ExpireDelegationTokenRequest(hmac=token_hmac, expiry_time_period_ms=period_ms), version
    )


def seen(wire: Wire, *owners: str, version: int = 3) -> list[Any]:
    """The tokens that a client is shown; of all owners without names."""
    wanted = [
        DescribeDelegationTokenOwner(principal_type="User", principal_name=it) for it in owners
    ]
    answer = wire.ask(DescribeDelegationTokenRequest(owners=wanted or None), version)
    assert answer.error_code == ErrorCode.NONE
    tokens: list[Any] = answer.tokens
    return tokens


def log_in_with(wire: Wire, token: Any, mechanism: Any = "SCRAM-SHA-512") -> Any:
    """Authenticate with a token; the last response."""
    assert wire.ask(SaslHandshakeRequest(mechanism=mechanism), 1).error_code == ErrorCode.NONE
    password = base64.b64encode(bytes(token.hmac)).decode()
    client = Scram(token.token_id, password, mechanism, delegation_token=True).start("nonce")
    message: bytes | None = client.first()
    while message is not None:
        response = wire.ask(SaslAuthenticateRequest(auth_bytes=message), 2)
        message = None if response.error_code else client.answer(response.auth_bytes)
    return response


@pytest.mark.parametrize("version", range(4))
def test_a_token_is_issued_and_shown(node: BrokerServer, version: int) -> None:
    """To its owner, in every version."""
    with as_user(node, "alice") as wire:
        made = create(wire, version, renewers=("bob",), max_lifetime_ms=600_000)
        assert (made.error_code, made.principal_name) == (ErrorCode.NONE, "alice")
        assert made.max_timestamp_ms == made.issue_timestamp_ms + 600_000
        assert made.expiry_timestamp_ms == made.issue_timestamp_ms + 500_000
        (shown,) = (it for it in seen(wire, version=version) if it.token_id == made.token_id)
        assert bytes(shown.hmac) == bytes(made.hmac)
        assert len(shown.hmac) == 64
        assert shown.renewers == [
            DescribedDelegationTokenRenewer(principal_type="User", principal_name="bob")
        ]
        assert expire(wire, made.hmac, version=min(version, 2)).error_code == ErrorCode.NONE
        assert made.token_id not in {it.token_id for it in seen(wire)}


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_logging_in_with_a_token(node: BrokerServer, mechanism: str) -> None:
    """The client is the owner until the token expires, and gets no tokens by it."""
    with as_user(node, "alice") as wire, connect(node, "SASL") as other:
        made = create(wire)
        assert "User:carol" not in principals(node)
        response = log_in_with(other, made, mechanism)
        assert response.error_code == ErrorCode.NONE
        assert 0 < response.session_lifetime_ms <= 500_000
        assert other.ask(MetadataRequest(topics=None), 9).brokers
        assert {str(it) for it in principals(node)} >= {"User:alice"}
        refused = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
        answer = create(other)
        assert (answer.error_code, answer.token_id, bytes(answer.hmac)) == (refused, "", b"")
        assert renew(other, made.hmac).error_code == refused
        assert expire(other, made.hmac).error_code == refused
        described = other.ask(DescribeDelegationTokenRequest(owners=None), 3)
        assert (described.error_code, described.tokens) == (refused, [])
        assert expire(wire, made.hmac).error_code == ErrorCode.NONE
    with connect(node, "SASL") as other:
        answer = log_in_with(other, made, mechanism)
        assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert other.closed_by_broker()


def test_sessions_end_with_their_token(node: BrokerServer) -> None:
    """As it was when the client authenticated."""
    with as_user(node, "alice") as wire, connect(node, "SASL") as other:
        made = create(wire)
        until = expire(wire, made.hmac, 300).expiry_timestamp_ms
        assert until < made.expiry_timestamp_ms
        assert log_in_with(other, made).session_lifetime_ms <= 300
        wait_for("the end of the session", lambda: is_over(other))


def test_expired_tokens_are_removed(node: BrokerServer) -> None:
    """By the controller."""
    with as_user(node, "alice") as wire:
        made = create(wire, max_lifetime_ms=1)
        tokens = node.broker.security.tokens
        assert tokens is not None
        cache = tokens.cache
        wait_for("its end", lambda: made.token_id not in cache.tokens)
        assert renew(wire, made.hmac).error_code == ErrorCode.DELEGATION_TOKEN_NOT_FOUND


def test_owner_and_renewers_may_renew_and_expire(node: BrokerServer) -> None:
    """Owner and renewers, but not who sees it."""
    with (
        as_user(node, "alice") as alice,
        as_user(node, "bob") as bob,
        as_user(node, "root") as root,
    ):
        made = create(alice, renewers=("bob",))
        renewed = renew(bob, made.hmac, 600_000)
        assert renewed.error_code == ErrorCode.NONE
        assert renewed.expiry_timestamp_ms > made.expiry_timestamp_ms
        assert made.token_id in {it.token_id for it in seen(bob)}
        assert made.token_id in {it.token_id for it in seen(root)}
        mismatch = ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
        assert renew(root, made.hmac).error_code == mismatch
        answer = expire(root, made.hmac)
        assert (answer.error_code, answer.expiry_timestamp_ms) == (mismatch, -1)
        missing = ErrorCode.DELEGATION_TOKEN_NOT_FOUND
        assert renew(alice, b"no such").error_code == missing
        assert expire(alice, b"").error_code == missing
        assert expire(bob, made.hmac).error_code == ErrorCode.NONE


def test_tokens_for_other_users(node: BrokerServer) -> None:
    """KIP-373: with CreateTokens on the user; who asked for it sees it, but may not renew it."""
    other: dict[str, Any] = {"owner_principal_type": "User", "owner_principal_name": "carol"}
    with as_user(node, "root") as root, as_user(node, "alice") as alice:
        made = create(root, **other)
        assert (made.error_code, made.principal_name) == (ErrorCode.NONE, "carol")
        assert made.token_requester_principal_name == "root"
        refused = create(alice, **other)
        assert refused.error_code == ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
        assert (refused.principal_name, refused.expiry_timestamp_ms) == ("carol", -1)
        assert made.token_id in {it.token_id for it in seen(root, "carol")}
        assert made.token_id not in {it.token_id for it in seen(root, "alice")}
        assert made.token_id not in {it.token_id for it in seen(alice)}
        mismatch = ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
        assert renew(root, made.hmac).error_code == mismatch
    with connect(node, "SASL") as wire:
        assert log_in_with(wire, made).error_code == ErrorCode.NONE
        assert "User:carol" in principals(node)


def test_renewers_are_users(node: BrokerServer) -> None:
    """Nothing else can authenticate."""
    renewer = CreatableRenewers(principal_type="Group", principal_name="x")
    with as_user(node, "alice") as wire:
        request = CreateDelegationTokenRequest(max_lifetime_ms=-1, renewers=[renewer])
        assert wire.ask(request, 3).error_code == ErrorCode.INVALID_PRINCIPAL_TYPE


def test_no_owners_are_no_tokens(node: BrokerServer) -> None:
    """An empty list is not the list of all."""
    with as_user(node, "alice") as wire:
        create(wire)
        answer = wire.ask(DescribeDelegationTokenRequest(owners=[]), 3)
        assert (answer.error_code, answer.tokens) == (ErrorCode.NONE, [])


@pytest.mark.parametrize("listener", ["PLAINTEXT", "TLS"])
def test_no_tokens_without_authentication(node: BrokerServer, listener: str) -> None:
    """In plain text, and over TLS without a client certificate."""
    refused = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    with connect(node, listener) as wire:
        if listener == "TLS":
            context = ssl.create_default_context()
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            wire.socket = context.wrap_socket(wire.socket)
        assert create(wire).error_code == refused
        assert renew(wire, b"").error_code == refused
        assert expire(wire, b"").error_code == refused
        assert wire.ask(DescribeDelegationTokenRequest(owners=None), 3).error_code == refused


def test_tokens_are_bounded(node: BrokerServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """No user fills the memory of all brokers."""
    monkeypatch.setattr("barnabas_broker.server.control.delegation_token_manager.TOKENS_MAX", 0)
    with as_user(node, "alice") as wire:
        assert create(wire).error_code == ErrorCode.POLICY_VIOLATION


def test_one_owner_does_not_use_up_the_tokens_of_all(
    node: BrokerServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who has all of a share is refused, also where another asks for it; others are not."""
    of = "barnabas_broker.server.control.delegation_token_manager.TOKENS_OF_OWNER_MAX"
    with as_user(node, "alice") as alice, as_user(node, "bob") as bob:
        assert create(alice).error_code == ErrorCode.NONE
        assert create(bob).error_code == ErrorCode.NONE
        manager = node.broker.security.tokens
        assert manager is not None
        had = sum(it.owner.name == "alice" for it in manager.cache.tokens.values())
        monkeypatch.setattr(of, had + 1)
        assert create(alice).error_code == ErrorCode.NONE
        assert create(alice).error_code == ErrorCode.POLICY_VIOLATION
        monkeypatch.setattr(of, 1000)
        assert create(bob).error_code == ErrorCode.NONE


def test_tokens_outlive_the_broker_and_need_its_secret(tmp_path: Path) -> None:
    """The old name of the setting does, too; without a secret there are no tokens."""
    settings = {
        name: value for name, value in SETTINGS.items() if not name.startswith("authorizer")
    }
    settings["listeners"] = "PLAINTEXT://127.0.0.1:0,SASL://127.0.0.1:0"
    old_name = {**settings, "delegation.token.master.key": SECRET}
    with running_node(tmp_path, old_name) as first, as_user(first, "alice") as wire:
        made = create(wire)
        assert made.error_code == ErrorCode.NONE
    with running_node(tmp_path, {**settings, "delegation.token.secret.key": SECRET}) as second:
        with connect(second, "SASL") as wire:
            assert log_in_with(wire, made).error_code == ErrorCode.NONE
        with as_user(second, "alice") as wire:
            assert [it.token_id for it in seen(wire)] == [made.token_id]
    with running_node(tmp_path, settings) as third:
        disabled = ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
        with as_user(third, "alice") as wire:
            assert create(wire).error_code == disabled
            assert renew(wire, made.hmac).error_code == disabled
            assert expire(wire, made.hmac).error_code == disabled
            described = wire.ask(DescribeDelegationTokenRequest(owners=None), 3)
            assert described.error_code == disabled
        with connect(third, "SASL") as wire:
            assert log_in_with(wire, made).error_code == ErrorCode.SASL_AUTHENTICATION_FAILED


def test_expired_tokens_stay_while_zookeeper_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first that cannot be removed ends the attempt: thousands would each wait as long."""
    tried: list[str] = []

    async def scenario() -> None:
        rules = BrokerSettings.from_mapping({})
        store = Ensemble().session()
        manager = DelegationTokenManager(store, rules, "secret", clock_ms=lambda: 1)
        now = TokenInformation("", ANONYMOUS, ANONYMOUS, (), 0, 0, 0)
        manager.cache.publish({name: replace(now, id=name) for name in ("a", "b")})

        def change(token_id: str, *_: Any, **__: Any) -> None:
            tried.append(token_id)
            raise CoordinationError("ZooKeeper cannot be reached")

        monkeypatch.setattr(manager._tokens, "change", change)
        try:
            with pytest.raises(CoordinationError):
                await manager.remove_expired()
        finally:
            await manager.stop()

    asyncio.run(scenario())
    assert tried == ["a"]
