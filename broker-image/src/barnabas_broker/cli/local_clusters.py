"""The clusters that `barnabas local` runs, as `--local CLUSTER[/USER]` names them.

`barnabas local up` leaves in the directory of each cluster what its clients need: client.properties
for the person at the machine, users/<name>/client.properties for its other users, and
pki/admin-token where admin ports ask for one.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from barnabas_broker.cli.errors import InputError

if TYPE_CHECKING:
    import click

OPTION: Final = "--local"
VARIABLE: Final = "BARNABAS_LOCAL"
CLIENT_FILE: Final = "client.properties"
_RECORD: Final = "cluster.json"


@dataclass(frozen=True, slots=True)
class LocalClient:
    """What a client of a local cluster needs, as files; a token only where there is one."""

    cluster: str
    properties: Path
    admin_token: Path | None
    directory: Path

    def admin_urls(self) -> dict[int, str]:
        """Where the admin port of each running broker is, by broker id: the system chose it."""
        found: dict[int, str] = {}
        for ready in self.directory.glob("broker-*/ready.json"):
            # A broker that ends just now takes its file along.
            with suppress(OSError, ValueError, KeyError):
                document = json.loads(ready.read_text())
                found[document["broker_id"]] = document["admin"]
        return found


def state_home() -> Path:
    """Where programs keep their state, by the XDG base directory specification."""
    given = os.environ.get("XDG_STATE_HOME", "")
    # The specification: a relative path is to be ignored.
    return Path(given) if given.startswith("/") else Path.home() / ".local" / "state"


def known_clusters() -> list[str]:
    """The names of the clusters that have a directory in the usual place."""
    return sorted(path.parent.name for path in _root().glob(f"*/{_RECORD}"))


def known_users(cluster: str) -> list[str]:
    """The names of the users of a cluster."""
    return sorted(path.parent.name for path in (_root() / cluster).glob(f"users/*/{CLIENT_FILE}"))


def complete(_ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """The values of --local that begin so: clusters, or behind a slash the users of one."""
    cluster, slash, user = incomplete.partition("/")
    if slash:
        return [f"{cluster}/{name}" for name in known_users(cluster) if name.startswith(user)]
    return [name for name in known_clusters() if name.startswith(cluster)]


def find(given: str) -> LocalClient:
    """What `CLUSTER` or `CLUSTER/USER` stands for; raises InputError."""
    cluster, slash, user = given.partition("/")
    known = known_clusters()
    if cluster not in known:
        there = f"there is {', '.join(known)}" if known else "`barnabas local up FILE` starts one"
        raise InputError(f"{OPTION} {given}: there is no local cluster {cluster!r}; {there}")
    directory = _root() / cluster
    users = known_users(cluster)
    if slash and user not in users:
        there = f"it has {', '.join(users)}" if users else "it has none"
        raise InputError(f"{OPTION} {given}: there is no user {user!r} of {cluster}; {there}")
    properties = directory / "users" / user / CLIENT_FILE if slash else directory / CLIENT_FILE
    if not properties.exists():
        text = f"{OPTION} {given}: there is no {properties}"
        raise InputError(f"{text}; `barnabas local up FILE` writes it")
    token = directory / "pki" / "admin-token"
    return LocalClient(cluster, properties, token if token.exists() else None, directory)


def _root() -> Path:
    return state_home() / "barnabas"
