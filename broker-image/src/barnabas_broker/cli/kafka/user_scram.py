"""`kafka-configs --entity-type users`: SCRAM credentials, through brokers or in ZooKeeper itself.

With --zookeeper no broker has to run. So the users are created with which brokers authenticate
to each other: there is no broker to ask before the first one runs.
"""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import click

from barnabas_broker.cli.client import Connection
from barnabas_broker.cli.errors import CommandError
from barnabas_broker.cli.kafka.tool import note
from barnabas_broker.cli.zookeeper_client import writer_credentials
from barnabas_broker.invariants import violated
from barnabas_kafka.client import (
    ScramCredential,
    alter_scram_credentials,
    describe_scram_credentials,
)
from barnabas_kafka.client.sasl import ITERATIONS_MIN, ScramMechanism, salted_password
from barnabas_kafka.errors import ErrorCode

TIMEOUT_MS: Final = 30_000
"""As in Kafka's tool, for session and connection."""

ITERATIONS_MAX: Final = 16_384
SALT_BYTES: Final = 24
MECHANISMS: Final[Mapping[str, ScramMechanism]] = {
    "SCRAM-SHA-256": "SCRAM-SHA-256",
    "SCRAM-SHA-512": "SCRAM-SHA-512",
}
_VALUE: Final = re.compile(r"(?:iterations=([0-9]*),)?password=(.*)", re.DOTALL)
"""What Kafka's tool takes (`ConfigCommand.preProcessScramCredentials`)."""

Iterations = Mapping[str, Mapping[ScramMechanism, int]]


class Change(NamedTuple):
    """What becomes of the credentials of one user."""

    user: str
    additions: list[ScramCredential]
    removals: list[ScramMechanism]


def read_change(user: str, additions: Mapping[str, str], removals: list[str]) -> Change:
    """The change that settings ask for; raises UsageError for what is no SCRAM credential."""
    return Change(
        user,
        [_credential(user, name, value) for name, value in additions.items()],
        [_mechanism(name) for name in removals],
    )


def _mechanism(name: str) -> ScramMechanism:
    if name not in MECHANISMS:
        known = " and ".join(MECHANISMS)
        raise click.UsageError(f"{name} is not supported for users: {known} are")
    return MECHANISMS[name]


def _credential(user: str, name: str, value: str) -> ScramCredential:
    mechanism = _mechanism(name)
    match = _VALUE.fullmatch(value)
    if match is None or not match[2]:
        # The value is left out, for it may hold the password.
        raise click.UsageError(f"Invalid value for {name}: [iterations=N,password=...] is needed")
    iterations = int(match[1]) if match[1] else ITERATIONS_MIN
    if not ITERATIONS_MIN <= iterations <= ITERATIONS_MAX:
        raise click.UsageError(
            f"{name}: iterations={iterations} is not between {ITERATIONS_MIN} and {ITERATIONS_MAX}"
        )
    return ScramCredential(user, match[2], mechanism, iterations)


def alter_through_brokers(connection: Connection, change: Change) -> None:
    """Have the controller set and remove credentials."""
    from barnabas_broker.cli.admin import call

    removals = [(change.user, mechanism) for mechanism in change.removals]
    results = call(connection, alter_scram_credentials(change.additions, removals))
    for user, error in results.errors.items():
        raise CommandError(f"user {user}: {error}", code=error.code)
    click.echo(f"Completed updating config for user {change.user}.")


def describe_through_brokers(connection: Connection, user: str | None) -> None:
    """Show mechanisms and iterations as a broker reports them."""
    from barnabas_broker.cli.admin import call

    try:
        found = call(connection, describe_scram_credentials(None if user is None else [user]))
    except CommandError as error:
        if error.code != ErrorCode.RESOURCE_NOT_FOUND:
            raise
    else:
        _show(found)


def alter_in_zookeeper(connect: str, config: Path | None, change: Change) -> None:
    """Write the credentials of a user where brokers read them, and notify running brokers."""
    from barnabas_broker.controller.startup import make_parents
    from barnabas_broker.controller.writes import change_config
    from barnabas_broker.zk.znodes import ConfigZnode
    from barnabas_zookeeper.errors import ZooKeeperError

    note("--zookeeper is for users with which brokers authenticate to each other; "
         "use --bootstrap-server once they run")  # fmt: skip
    znode = ConfigZnode.for_user(change.user)
    with _store(connect, config, make_chroot=True) as store:
        now_ms = time.time_ns() // 1_000_000
        make_parents(store, now_ms=now_ms)
        stored = _read(store, znode)
        if missing := [each for each in change.removals if each not in stored]:
            raise CommandError(f"Invalid config(s): {','.join(missing)}")
        for mechanism in change.removals:
            del stored[mechanism]
        stored |= {each.mechanism: _stored(each) for each in change.additions}
        try:
            store.commit(change_config(store, znode, stored, now_ms=now_ms), now_ms=now_ms)
        except ZooKeeperError as error:
            raise CommandError(f"{znode.path} was changed meanwhile ({error}): try again") from None
    click.echo(f"Completed updating config for entity: user-principal '{change.user}'.")


def describe_in_zookeeper(connect: str, config: Path | None, user: str | None) -> None:
    """Show mechanisms and iterations, not the keys that are stored, as a broker would."""
    from barnabas_broker.security.scram import ScramCredential as Stored
    from barnabas_broker.zk.znodes import CONFIG_USERS, ConfigZnode
    from barnabas_zookeeper.errors import NoNodeError

    with _store(connect, config, make_chroot=False) as store:
        try:
            names = store.children(f"/config/{CONFIG_USERS}")
        except NoNodeError:
            names = []
        found: dict[str, dict[ScramMechanism, int]] = {}
        for znode in (ConfigZnode(CONFIG_USERS, name) for name in names):
            if user not in (None, znode.user):
                continue
            stored = _read(store, znode)
            try:
                found[znode.user] = {
                    mechanism: Stored.parse(stored[name]).iterations
                    for name, mechanism in MECHANISMS.items()
                    if name in stored
                }
            except ValueError as error:
                raise CommandError(f"{znode.path}: {error}") from None
    _show(found)


def _show(found: Iterations) -> None:
    for user, iterations in sorted(found.items()):
        if iterations:
            iterations_text = ", ".join(
                f"{name}=iterations={it}" for name, it in sorted(iterations.items())
            )
            click.echo(
                f"SCRAM credential configs for user-principal '{user}' are {iterations_text}"
            )


def _read(store: Any, znode: Any) -> dict[str, str]:
    from barnabas_broker.zk.znodes import MalformedZnodeError

    (found,) = store.get_many([znode.path])
    try:
        return {} if found is None else znode.decode(found[0])
    except MalformedZnodeError as error:
        raise CommandError(str(error)) from None


def _stored(credential: ScramCredential) -> str:
    from barnabas_broker.security.scram import ScramCredential as Stored
    from barnabas_broker.security.scram import ScramMechanism as Mechanism

    salt = secrets.token_bytes(SALT_BYTES)
    mechanism, iterations = credential.mechanism, credential.iterations
    salted = salted_password(mechanism, credential.password, salt, iterations)
    of = Mechanism.of(mechanism)
    assert of is not None, violated("the mechanism was looked up by its name")
    return Stored.from_salted_password(of, salted, salt, iterations).format()


@contextmanager
def _store(connect: str, config: Path | None, *, make_chroot: bool) -> Iterator[Any]:
    from barnabas_broker.zk.session import SessionStore
    from barnabas_broker.zk.store import CoordinationError

    try:
        store = SessionStore(
            connect, session_timeout_ms=TIMEOUT_MS, credentials=writer_credentials(config)
        )
        try:
            store.open(connection_timeout_ms=TIMEOUT_MS, make_chroot=make_chroot)
            yield store
        finally:
            store.close()
    except CoordinationError as error:
        raise CommandError(str(error)) from None
