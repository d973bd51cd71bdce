"""`barnabas zk`: what is in the znodes of a cluster, and how the members of an ensemble fare."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from ssl import SSLContext
from typing import Any

import click

from barnabas_broker.cli.errors import CommandError, InputError
from barnabas_broker.cli.output import output_option, print_json, print_table
from barnabas_broker.cli.time_limits import Seconds
from barnabas_broker.cli.zookeeper_client import config_option, tool_credentials
from barnabas_broker.zk.store import CoordinationError, Stat
from barnabas_zookeeper.errors import NoNodeError, ZooKeeperError

TIMEOUT_S = 10.0
SAID_BYTES_MAX = 64 << 10
_MODE = re.compile(r"^Mode: (\w+)", re.MULTILINE)
_VERSION = re.compile(r"^Zookeeper version: ([^,\s]+)", re.MULTILINE)
_COUNT = re.compile(r"^(Zxid|Node count|Connections): (\S+)", re.MULTILINE)


def _ensemble(command: Callable[..., None]) -> Callable[..., None]:
    command = click.option(
        "-z",
        "--zookeeper",
        "connect",
        envvar="BARNABAS_ZOOKEEPER",
        default="localhost:2181",
        show_default=True,
        show_envvar=True,
        help="As the brokers' zookeeper.connect: host:port,host:port/chroot.",
    )(command)
    command = config_option(command)
    return click.option(
        "--timeout",
        "timeout_s",
        type=Seconds(),
        default=TIMEOUT_S,
        show_default=True,
        help="Seconds to wait for an answer.",
    )(command)


@click.group()
def zk() -> None:
    """Look at znodes, and at the members of the ensemble."""


@zk.command(name="ls")
@click.argument("path", default="/")
@click.option("-r", "--recursive", is_flag=True, help="All that is below, too.")
@output_option(plain=("text",))
@_ensemble
def list_(
    path: str,
    recursive: bool,
    output: str,
    connect: str,
    zookeeper_config: Path | None,
    timeout_s: float,
) -> None:
    """List the znodes below PATH, one to a line."""
    with _store(connect, zookeeper_config, timeout_s) as store, _refusals():
        found = _below(store, path, recursive)
        if output == "json":
            print_json(list(found))
            return
        for each in found:
            click.echo(each)


@zk.command()
@click.argument("path")
@output_option
@_ensemble
def get(
    path: str, output: str, connect: str, zookeeper_config: Path | None, timeout_s: float
) -> None:
    """Show what a znode holds, decoded, and its stat."""
    with _store(connect, zookeeper_config, timeout_s) as store, _refusals():
        data, stat = store.get(path)
    if output == "json":
        print_json({"path": path, "data": _decoded(data), "stat": _stat_fields(stat)})
        return
    click.echo(_shown(data))
    for name, value in _stat_fields(stat).items():
        click.echo(f"# {name}: {value}")


@zk.command()
@output_option
@_ensemble
def status(output: str, connect: str, zookeeper_config: Path | None, timeout_s: float) -> None:
    """Show each member of the ensemble: whether it serves, as what, and how much it has.

    Exits with 1 where one of them does not serve. Members must allow the command srvr.
    """
    tls = tool_credentials(zookeeper_config).tls
    rows = [_member(host, port, tls, timeout_s) for host, port in _members(connect)]
    if output == "json":
        print_json(rows)
    else:
        print_table(list(rows[0]), [list(row.values()) for row in rows])
    silent = [row["member"] for row in rows if row["mode"] is None]
    if silent:
        raise CommandError(f"{len(silent)} of {len(rows)} members do not serve")


@contextmanager
def _store(connect: str, config: Path | None, timeout_s: float) -> Iterator[Any]:
    from barnabas_broker.zk.session import SessionStore

    credentials = tool_credentials(config)
    session_ms = max(4000, int(timeout_s * 1000))
    try:
        store = SessionStore(connect, session_timeout_ms=session_ms, credentials=credentials)
    except CoordinationError as error:
        raise InputError(str(error)) from None
    try:
        store.open(connection_timeout_ms=int(timeout_s * 1000), make_chroot=False)
        yield store
    except CoordinationError as error:
        raise CommandError(str(error)) from None
    finally:
        store.close()


@contextmanager
def _refusals() -> Iterator[None]:
    try:
        yield
    except NoNodeError as error:
        raise CommandError(f"there is no znode {error.path}") from None
    except ZooKeeperError as error:
        raise CommandError(str(error)) from None


def _below(store: Any, path: str, recursive: bool) -> Iterator[str]:
    prefix = path if path.endswith("/") else f"{path}/"
    for name in store.children(path):
        yield prefix + name
        if recursive:
            yield from _below(store, prefix + name, recursive)


def _decoded(data: bytes | None) -> Any:
    """JSON as what it says, other text as text, anything else in hexadecimal digits."""
    if data is None:
        return None
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return data.hex()
    try:
        return json.loads(text)
    except ValueError:
        return text


def _shown(data: bytes | None) -> str:
    value = _decoded(data)
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)


def _stat_fields(stat: Stat) -> dict[str, object]:
    return {
        "version": stat.version,
        "children": stat.num_children,
        "bytes": stat.data_length,
        "created": _moment(stat.ctime_ms),
        "changed": _moment(stat.mtime_ms),
        "czxid": f"0x{stat.czxid:x}",
        "mzxid": f"0x{stat.mzxid:x}",
        "session": f"0x{stat.ephemeral_owner:x}" if stat.ephemeral_owner else None,
    }


def _moment(time_ms: int) -> str:
    return datetime.fromtimestamp(time_ms / 1000, tz=UTC).isoformat(timespec="milliseconds")


def _members(connect: str) -> list[tuple[str, int]]:
    hosts = []
    for each in connect.partition("/")[0].split(","):
        host, colon, port = each.strip().rpartition(":")
        if colon and not port.isdigit():
            raise InputError(f"--zookeeper: {each} is not host:port")
        hosts.append((host.strip("[]"), int(port)) if colon else (each.strip(), 2181))
    return hosts


def _member(host: str, port: int, tls: SSLContext | None, timeout_s: float) -> dict[str, Any]:
    """One row of the table; `mode` is None where the member does not serve, `trouble` says why."""
    row: dict[str, Any] = {"member": f"{host}:{port}", "mode": None}
    said, trouble = "", None
    try:
        said = _srvr(host, port, tls, timeout_s)
    except OSError as error:
        trouble = error.strerror or str(error)
    mode, version = _MODE.search(said), _VERSION.search(said)
    counted = dict(_COUNT.findall(said))
    if mode is None and trouble is None:
        trouble = " ".join(said.split())[:100] or "it hung up"
    return row | {
        "mode": mode[1] if mode else None,
        "version": version[1] if version else None,
        "zxid": counted.get("Zxid"),
        "znodes": int(counted["Node count"]) if "Node count" in counted else None,
        "connections": int(counted["Connections"]) if "Connections" in counted else None,
        "trouble": trouble,
    }


def _srvr(host: str, port: int, tls: SSLContext | None, timeout_s: float) -> str:
    # Late: asyncio.
    from barnabas_kafka.host_resolver import HostResolver

    said = bytearray()
    with contextlib.ExitStack() as ends:
        asked = ends.enter_context(HostResolver().connect_blocking(host, port, timeout_s))
        if tls is not None:
            asked = ends.enter_context(tls.wrap_socket(asked, server_hostname=host))
        asked.sendall(b"srvr")
        while len(said) < SAID_BYTES_MAX and (more := asked.recv(4096)):
            said += more
    return said.decode("utf-8", "replace")
