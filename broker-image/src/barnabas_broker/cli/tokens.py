"""`barnabas tokens`: create, list, renew and expire delegation tokens."""

from __future__ import annotations

import base64
import binascii
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import click

from barnabas_broker.cli.admin import call
from barnabas_broker.cli.client import Connection, connection_options
from barnabas_broker.cli.errors import InputError
from barnabas_broker.cli.output import done, output_option, print_json, print_table, results_option
from barnabas_kafka.client.tokens import (
    DelegationToken,
    create_delegation_token,
    describe_delegation_tokens,
    expire_delegation_token,
    renew_delegation_token,
)

COLUMNS = ("token id", "owner", "requester", "renewers", "issued", "expires", "until")

Command = Callable[..., Any]


def hmac_option(command: Command) -> Command:
    """Which token: by its HMAC, which is a secret."""
    return click.option(
        "--hmac", "text", required=True, metavar="BASE64",
        help="The token's HMAC; - reads it from the standard input, where no other user sees it.",
    )(command)  # fmt: skip


@click.group()
def tokens() -> None:
    """Create, list, renew and expire delegation tokens."""


@tokens.command()
@click.option("--owner", help="For this user, as User:name; by default for yourself.")
@click.option("--renewer", multiple=True, help="A user that may renew and expire it.")
@click.option("--max-lifetime-ms", type=int, default=-1, help="No longer than the brokers allow.")
@output_option
@connection_options
def create(
    connection: Connection,
    output: str,
    owner: str | None,
    renewer: tuple[str, ...],
    max_lifetime_ms: int,
) -> None:
    """Create a token, and print it with its HMAC."""
    for each in (*renewer, *([] if owner is None else [owner])):
        check_principal(each)
    operation = create_delegation_token(renewer, owner=owner, max_lifetime_ms=max_lifetime_ms)
    token = call(connection, operation)
    if output == "json":
        print_json(_row(token) | {"hmac": hmac_text(token)})
        return
    click.echo(f"Token id: {token.token_id}")
    click.echo(f"HMAC: {hmac_text(token)}")
    click.echo(f"Owner: {token.owner}")
    click.echo(f"Expires: {_time(token.expires_at_ms)}, renewable until {_time(token.max_at_ms)}")


@tokens.command("list")
@click.option("--owner", multiple=True, help="Only those of this user, as User:name.")
@click.option("--show-hmac", is_flag=True, help="Print the HMACs, too, which are secrets.")
@output_option
@connection_options
def list_(connection: Connection, output: str, owner: tuple[str, ...], show_hmac: bool) -> None:
    """List the tokens that you may see, without their HMACs."""
    for each in owner:
        check_principal(each)
    found = call(connection, describe_delegation_tokens(owner or None))
    rows = [
        _row(token) | ({"hmac": hmac_text(token)} if show_hmac else {})
        for token in sorted(found, key=lambda token: (token.owner, token.issued_at_ms))
    ]
    if output == "json":
        print_json(rows)
    elif rows:
        print_table([*COLUMNS, *(["HMAC"] if show_hmac else [])], [[*row.values()] for row in rows])
    else:
        click.echo("There are no such tokens.")


@tokens.command()
@hmac_option
@click.option("--period-ms", type=int, default=-1, help="By default what the brokers have set.")
@results_option
@connection_options
def renew(connection: Connection, text: str, period_ms: int) -> None:
    """Have a token expire later."""
    until_ms = call(connection, renew_delegation_token(given_hmac(text), period_ms))
    done(f"The token expires at {_time(until_ms)}.", {"expires": _time(until_ms)})


@tokens.command()
@hmac_option
@click.option("--period-ms", type=int, default=-1, help="In that time instead of now.")
@results_option
@connection_options
def expire(connection: Connection, text: str, period_ms: int) -> None:
    """Have a token expire, now or soon."""
    until_ms = call(connection, expire_delegation_token(given_hmac(text), period_ms))
    if period_ms < 0:
        done("The token is removed.", {"removed": True})
    else:
        done(f"The token expires at {_time(until_ms)}.", {"expires": _time(until_ms)})


def given_hmac(text: str) -> bytes:
    """The HMAC of an option; raises InputError, without what was given."""
    text = sys.stdin.readline() if text == "-" else text
    try:
        return base64.b64decode(text.strip(), validate=True)
    except (binascii.Error, ValueError):
        raise InputError("the HMAC of a token is base64") from None


def hmac_text(token: DelegationToken) -> str:
    """The HMAC as clients take it for a password."""
    return base64.b64encode(token.hmac).decode()


def check_principal(text: str) -> None:
    """Raise InputError for what is no principal."""
    kind, colon, name = text.partition(":")
    if not (kind and colon and name):
        raise InputError(f"a principal is written User:name, not {text}")


def _row(token: DelegationToken) -> dict[str, Any]:
    return {
        "token_id": token.token_id,
        "owner": token.owner,
        "requester": token.requester,
        "renewers": list(token.renewers),
        "issued": _time(token.issued_at_ms),
        "expires": _time(token.expires_at_ms),
        "until": _time(token.max_at_ms),
    }


def _time(at_ms: int) -> str:
    """UTC to the second; a time beyond calendars as milliseconds."""
    try:
        return datetime.fromtimestamp(at_ms // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError, OSError):
        return str(at_ms)
