"""`kafka-delegation-tokens`: create, renew, expire and describe delegation tokens.

The lines are those of Apache's `DelegationTokenCommand`, but that an HMAC which was given is not
printed again: it is a secret.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final

import click

from barnabas_broker.cli.admin import AdminSession
from barnabas_broker.cli.client import Connection
from barnabas_broker.cli.errors import CommandError, InputError
from barnabas_broker.cli.kafka.tool import connected, tool
from barnabas_broker.cli.tokens import check_principal, given_hmac, hmac_text
from barnabas_kafka.client.tokens import (
    DelegationToken,
    create_delegation_token,
    describe_delegation_tokens,
    expire_delegation_token,
    renew_delegation_token,
)

NEEDED: Final = {
    "create": ("max_life_time_period",),
    "renew": ("hmac", "renew_time_period"),
    "expire": ("hmac", "expiry_time_period"),
    "describe": (),
}
EXCLUDED: Final = {
    "create": ("hmac", "renew_time_period", "expiry_time_period"),
    "renew": ("renewer_principal", "max_life_time_period", "expiry_time_period", "owner_principal"),
    "expire": ("max_life_time_period", "renew_time_period", "owner_principal"),
    "describe": ("renew_time_period", "max_life_time_period", "hmac", "expiry_time_period"),
}
"""Which options an action has to have, and which it cannot have."""

LINE: Final = "\n%-15s %-30s %-15s %-15s %-25s %-15s %-15s %-15s"
HEADINGS: Final = (
    "TOKENID", "HMAC", "OWNER", "REQUESTER", "RENEWERS", "ISSUEDATE", "EXPIRYDATE", "MAXDATE",
)  # fmt: skip


@tool("kafka-delegation-tokens")
@click.option("--create", is_flag=True, help="Create a token.")
@click.option("--renew", is_flag=True, help="Have a token expire later.")
@click.option("--expire", is_flag=True, help="Have a token expire.")
@click.option("--describe", is_flag=True, help="Describe tokens.")
@click.option("--owner-principal", multiple=True, help="The owner, as User:name.")
@click.option("--renewer-principal", multiple=True, help="A user that may renew the token.")
@click.option("--max-life-time-period", type=int, help="In milliseconds; -1: the broker's.")
@click.option("--renew-time-period", type=int, help="In milliseconds; -1: the broker's.")
@click.option("--expiry-time-period", type=int, help="In milliseconds; -1: now.")
@click.option("--hmac", help="The token's HMAC in base64.")
@connected()
def main(connection: Connection, **options: Any) -> None:
    """Create, renew, expire and describe delegation tokens."""
    action = _action(options)
    try:
        with AdminSession(connection) as session:
            ACTIONS[action](session, options)
    except InputError as error:
        raise CommandError(error.message) from None


def _action(options: dict[str, Any]) -> str:
    """The one action that is asked for; raises UsageError."""
    actions = [name for name in NEEDED if options[name]]
    if len(actions) != 1:
        raise click.UsageError(
            "Command must include exactly one action: --create, --renew, --expire or --describe"
        )
    (action,) = actions
    for name in NEEDED[action]:
        if options[name] is None:
            raise click.UsageError(f'Missing required argument "[{name.replace("_", "-")}]"')
    for name in EXCLUDED[action]:
        if options[name] not in (None, ()):
            option = name.replace("_", "-")
            raise click.UsageError(f'Option "[{action}]" can\'t be used with option "[{option}]"')
    for principal in (*options["owner_principal"], *options["renewer_principal"]):
        check_principal(principal.strip())
    return action


def _create(session: AdminSession, options: dict[str, Any]) -> None:
    renewers = _principals(options["renewer_principal"])
    period_ms = options["max_life_time_period"]
    click.echo(
        f"Calling create token operation with renewers :{_listed(renewers)} ,"
        f" max-life-time-period :{period_ms}"
    )
    owner = next(iter(_principals(options["owner_principal"])), None)
    token = session.call(create_delegation_token(renewers, owner=owner, max_lifetime_ms=period_ms))
    click.echo(f"Created delegation token with tokenId : {token.token_id}")
    _print([token])


def _renew(session: AdminSession, options: dict[str, Any]) -> None:
    period_ms = options["renew_time_period"]
    until_ms = session.call(renew_delegation_token(given_hmac(options["hmac"]), period_ms))
    click.echo(f"Completed renew operation. New expiry date : {_date(until_ms)}")


def _expire(session: AdminSession, options: dict[str, Any]) -> None:
    period_ms = options["expiry_time_period"]
    until_ms = session.call(expire_delegation_token(given_hmac(options["hmac"]), period_ms))
    click.echo(f"Completed expire operation. New expiry date : {_date(until_ms)}")


def _describe(session: AdminSession, options: dict[str, Any]) -> None:
    owners = _principals(options["owner_principal"])
    if owners:
        click.echo(f"Calling describe token operation for owners: {_listed(owners)}")
    else:
        click.echo("Calling describe token operation for current user.")
    found = session.call(describe_delegation_tokens(owners or None))
    click.echo(f"Total number of tokens : {len(found)}", nl=False)
    _print(found)


def _principals(given: Iterable[str]) -> list[str]:
    return [each.strip() for each in given]


def _listed(principals: Iterable[str]) -> str:
    return f"[{', '.join(principals)}]"


def _print(tokens: Iterable[DelegationToken]) -> None:
    click.echo(LINE % HEADINGS)
    for token in tokens:
        times = (token.issued_at_ms, token.expires_at_ms, token.max_at_ms)
        dates = tuple(_date(at_ms) for at_ms in times)
        names = (token.token_id, hmac_text(token), token.owner, token.requester)
        click.echo(LINE % (*names, _listed(token.renewers), *dates))


def _date(at_ms: int) -> str:
    """In the time zone of this machine, as Java's SimpleDateFormat has it."""
    try:
        return datetime.fromtimestamp(at_ms // 1000).astimezone().strftime("%Y-%m-%dT%H:%M")
    except (ValueError, OverflowError, OSError):
        return str(at_ms)


ACTIONS: Final = {"create": _create, "renew": _renew, "expire": _expire, "describe": _describe}
