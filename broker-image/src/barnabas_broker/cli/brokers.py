"""`barnabas brokers`: the live brokers, and the responses of their admin ports."""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from barnabas_broker.cli.admin_port import (
    AdminPortClient,
    Verdict,
    admin_client,
    admin_url,
    has_caught_up,
    may_restart,
    risks,
)
from barnabas_broker.cli.client import Connection, connection_options, failures
from barnabas_broker.cli.configs import describe_resource
from barnabas_broker.cli.errors import Attempts, CommandError, InputError, attempt
from barnabas_broker.cli.output import output_option, print_json, print_table
from barnabas_broker.cli.time_limits import DAY_S, Seconds

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient, ClusterMetadata

POLL_S = 0.5
ADMIN_LISTENER = "barnabas.admin.listener"
ADMIN_KEY_STORE = "barnabas.admin.ssl.keystore.location"

Ask = Callable[[str, AdminPortClient], Verdict]


@dataclass(frozen=True, slots=True)
class AdminPorts:
    """How the user says that admin ports are reached."""

    given: tuple[str, ...]
    token_file: Path | None

    def client(self, connection: Connection) -> AdminPortClient:
        """What is shown to each."""
        local = connection.local
        token_file = self.token_file or (local.admin_token if local else None)
        return admin_client(connection.timeout_s, connection.properties, token_file)


@dataclass(slots=True)
class Member:
    """A broker that lives, and what lies on it."""

    id: int
    host: str
    port: int
    rack: str | None
    controller: bool
    leads: int = 0
    preferred: int = 0
    replicas: int = 0
    in_sync: int = 0

    def row(self) -> dict[str, Any]:
        """As it is printed."""
        return {
            "broker": self.id,
            "address": f"{self.host}:{self.port}",
            "rack": self.rack,
            "controller": self.controller,
            "leads": self.leads,
            "preferred": self.preferred,
            "replicas": self.replicas,
            "in_sync": self.in_sync,
        }


def admin_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--admin` and `--admin-token-file`; the command is called with `ports`."""

    @click.option(
        "--admin",
        "given",
        multiple=True,
        metavar="ID=HOST:PORT",
        help=f"Where a broker's admin port is, if not where its {ADMIN_LISTENER} says; "
        "ID=https://HOST:PORT where it speaks TLS.",
    )
    @click.option(
        "--admin-token-file",
        "token_file",
        envvar="BARNABAS_ADMIN_TOKEN_FILE",
        show_envvar=True,
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="File with the bearer token of the admin ports.",
    )
    @functools.wraps(command)
    def with_ports(
        *args: Any, given: tuple[str, ...], token_file: Path | None, **kwargs: Any
    ) -> Any:
        return command(*args, ports=AdminPorts(given, token_file), **kwargs)

    return with_ports


def wait_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--wait`."""
    return click.option(
        "--wait",
        "wait_s",
        type=Seconds(zero=True, longest_s=DAY_S),
        default=0,
        metavar="SECONDS",
        help="Ask again for so long, until all say yes.",
    )(command)


@click.group()
def brokers() -> None:
    """List brokers, and ask whether they may be restarted."""


@brokers.command(name="list")
@output_option
@connection_options
def list_(output: str, connection: Connection) -> None:
    """Show the brokers that live: leaders and replicas on each, and how many are in sync.

    `preferred` counts the partitions that name the broker first: what it leads in the best order.
    """
    client, metadata = connection.admin()
    rows = [member.row() for member in _members(connection, client, metadata).values()]
    if output == "json":
        print_json(rows)
    else:
        _print(rows)


@brokers.command()
@click.argument("ids", nargs=-1, type=int, metavar="[BROKER]...")
@admin_options
@output_option
@connection_options
def describe(ids: tuple[int, ...], ports: AdminPorts, output: str, connection: Connection) -> None:
    """Show all that is known of brokers, with what they answer on their admin ports."""
    client, metadata = connection.admin()
    members = _chosen(_members(connection, client, metadata), ids)
    with Attempts() as attempts:
        urls = _urls(connection, client, members, ports.given, attempts)
        asking = ports.client(connection)
        rows = [
            member.row() | _replication_state(urls.get(member.id), asking) for member in members
        ]
        if output == "json":
            print_json(rows)
        else:
            _print_fields(rows)


def _print_fields(rows: Sequence[dict[str, Any]]) -> None:
    for index, each in enumerate(rows):
        if index:
            click.echo()
        for name, value in each.items():
            _print_field(name, value)


@brokers.command(name="safe-to-restart")
@click.argument("ids", nargs=-1, required=True, type=int, metavar="BROKER...")
@admin_options
@wait_option
@output_option
@connection_options
def safe_to_restart(
    ids: tuple[int, ...], ports: AdminPorts, wait_s: float, output: str, connection: Connection
) -> None:
    """Ask brokers whether they may be restarted; exits with 0 if so, else with 1.

    Each is asked about itself alone: restart one at a time. What no waiting makes better, like a
    partition with one replica, does not count against it, and is listed on standard error.
    """
    verdicts, attempts = _verdicts(connection, ids, ports, may_restart, wait_s)
    for broker, verdict in verdicts.items():
        for text in risks(verdict, "unavoidable"):
            click.echo(f"broker {broker}: {text}", err=True)
    if output == "json":
        print_json([{"broker": broker, **it.body} for broker, it in verdicts.items()])
    with attempts:
        for broker, verdict in verdicts.items():
            with attempts.one():
                if not verdict.yes:
                    reasons = "; ".join(risks(verdict, "atRisk"))
                    raise CommandError(f"broker {broker} may not be restarted: {reasons}")
            if verdict.yes and output != "json":
                click.echo(f"Broker {broker} may be restarted.")


@brokers.command(name="caught-up")
@click.argument("ids", nargs=-1, type=int, metavar="[BROKER]...")
@admin_options
@wait_option
@output_option
@connection_options
def caught_up(
    ids: tuple[int, ...], ports: AdminPorts, wait_s: float, output: str, connection: Connection
) -> None:
    """Ask brokers, or all, whether every replica on them is in sync; exits with 0 if so."""
    verdicts, attempts = _verdicts(connection, ids, ports, has_caught_up, wait_s)
    rows = [{"broker": broker, **it.body} for broker, it in verdicts.items()]
    if output == "json":
        print_json(rows)
    else:
        columns = ["broker", "percent", "replicas", "behind"]
        print_table(columns, [[row.get(column) for column in columns] for row in rows])
    late = [broker for broker, verdict in verdicts.items() if not verdict.yes]
    with attempts, attempts.one():
        if late:
            raise CommandError(f"not caught up: broker {', '.join(map(str, late))}")


def _members(
    connection: Connection, client: AdminClient, metadata: ClusterMetadata
) -> dict[int, Member]:
    what = "cannot describe the cluster"
    with failures(what):
        future = client.describe_cluster(request_timeout=connection.timeout_s)
    description = connection.wait(what, future)
    controller = description.controller.id if description.controller is not None else None
    members = {
        node.id: Member(node.id, node.host, node.port, node.rack or None, node.id == controller)
        for node in sorted(description.nodes, key=lambda node: node.id)
    }
    for topic in metadata.topics.values():
        for partition in topic.partitions.values():
            if partition.leader in members:
                members[partition.leader].leads += 1
            for index, broker in enumerate(partition.replicas):
                if broker in members:
                    members[broker].replicas += 1
                    members[broker].preferred += index == 0
                    members[broker].in_sync += broker in partition.isrs
    return members


def _chosen(members: dict[int, Member], ids: Sequence[int]) -> list[Member]:
    for broker in ids:
        if broker not in members:
            raise CommandError(f"there is no broker {broker}, or it does not run")
    return [members[broker] for broker in dict.fromkeys(ids)] if ids else list(members.values())


def _urls(
    connection: Connection,
    client: AdminClient,
    members: Sequence[Member],
    given: Sequence[str],
    attempts: Attempts | None = None,
) -> dict[int, str | None]:
    """The admin port of each; None where there is none.

    Brokers whose settings are not shown are left out, where `attempts` take the failure.
    """
    given_urls = dict(map(_given, given))
    if strangers := given_urls.keys() - {member.id for member in members}:
        raise InputError(f"--admin {min(strangers)}: it is none of the brokers asked")
    known = given_urls if connection.local is None else connection.local.admin_urls() | given_urls
    urls: dict[int, str | None] = {}
    for member in members:
        if member.id in known:
            urls[member.id] = known[member.id]
            continue
        with attempt(attempts):
            rows = describe_resource(connection, client, ("brokers", str(member.id)))
            settings = {row["name"]: row["value"] for row in rows}
            listener, tls = settings.get(ADMIN_LISTENER), bool(settings.get(ADMIN_KEY_STORE))
            urls[member.id] = admin_url(listener or "", member.host, tls=tls)
    return urls


def _given(text: str) -> tuple[int, str]:
    broker, _, address = text.partition("=")
    scheme = "https" if address.startswith("https://") else "http"
    host, _, port = address.removeprefix(f"{scheme}://").rstrip("/").rpartition(":")
    if not broker.isdigit() or not host or not port.isdigit():
        raise InputError(f"--admin takes ID=HOST:PORT, not {text!r}")
    return int(broker), f"{scheme}://{host}:{port}"


def _reached(broker: int, url: str | None) -> str:
    if url is None:
        raise CommandError(
            f"broker {broker} does not say where its admin port is: "
            f"set {ADMIN_LISTENER}, or give --admin {broker}=HOST:PORT"
        )
    return url


def _verdicts(
    connection: Connection, ids: Sequence[int], ports: AdminPorts, ask: Ask, wait_s: float
) -> tuple[dict[int, Verdict], Attempts]:
    """What each says, asked again until all say yes or the time is over.

    While there is time, a broker that is not there or does not answer has not said yes. Those that
    did not answer in the end are failures of the attempts.
    """
    give_up_at = time.monotonic() + wait_s
    pause = threading.Event()
    while True:
        try:
            attempts = Attempts()
            verdicts = _ask_once(connection, ids, ports, ask, attempts)
            left_s = give_up_at - time.monotonic()
            all_yes = all(verdict.yes for verdict in verdicts.values()) and not attempts.failed
            if left_s <= 0 or all_yes:
                return verdicts, attempts
        except InputError:
            raise
        except CommandError:
            left_s = give_up_at - time.monotonic()
            if left_s <= 0:
                raise
        pause.wait(min(POLL_S, left_s))


def _ask_once(
    connection: Connection, ids: Sequence[int], ports: AdminPorts, ask: Ask, attempts: Attempts
) -> dict[int, Verdict]:
    client, metadata = connection.admin()
    members = _chosen(_members(connection, client, metadata), ids)
    urls = _urls(connection, client, members, ports.given, attempts)
    asking = ports.client(connection)
    verdicts = {}
    for broker, url in urls.items():
        with attempts.one():
            verdicts[broker] = ask(_reached(broker, url), asking)
    return verdicts


def _replication_state(url: str | None, asking: AdminPortClient) -> dict[str, Any]:
    """What the admin port answers, None where it does not."""
    row: dict[str, Any] = {
        "admin": url, "may_restart": None, "at_risk": [], "unavoidable": [], "caught_up": None,
    }  # fmt: skip
    if url is None:
        return row
    try:
        restart = may_restart(url, asking)
        verdict = has_caught_up(url, asking)
    except CommandError as error:
        error.show()
        return row
    return row | {
        "may_restart": restart.yes,
        "at_risk": risks(restart, "atRisk"),
        "unavoidable": risks(restart, "unavoidable"),
        "caught_up": verdict.body.get("percent"),
    }


def _print(rows: Sequence[dict[str, Any]]) -> None:
    if rows:
        columns = list(rows[0])
        headings = [column.replace("_", " ") for column in columns]
        print_table(headings, [list(row.values()) for row in rows])


def _print_field(name: str, value: Any) -> None:
    label = f"{name.replace('_', ' ')}:"
    if isinstance(value, list):
        for item in value or ["-"]:
            click.echo(f"{label:<13}{item}")
            label = ""
        return
    if isinstance(value, bool):
        value = "yes" if value else "no"
    elif name == "caught_up" and value is not None:
        value = f"{value} %"
    click.echo(f"{label:<13}{'-' if value is None else value}")
