"""Which brokers ZooKeeper knows: the answer to `--zookeeper` for tools that ask brokers."""

from __future__ import annotations

import json

from barnabas_broker.zk.credentials import NO_CREDENTIALS, Credentials
from barnabas_broker.zk.session import SessionStore
from barnabas_broker.zk.store import CoordinationError
from barnabas_zookeeper.errors import NoNodeError

TIMEOUT_MS = 6000
INSTEAD = "type --bootstrap-server host:9092, with the address of a broker"


class RegistryError(Exception):
    """No address of a broker was found; the message says why, and what to do instead."""


def brokers_in(connect: str, credentials: Credentials = NO_CREDENTIALS) -> str:
    """The plaintext addresses of the brokers under `/brokers/ids` of `host:port,…[/chroot]`.

    Raises RegistryError, with what to type instead, where ZooKeeper is unreachable or no broker is
    there.
    """
    try:
        store = SessionStore(connect, session_timeout_ms=TIMEOUT_MS, credentials=credentials)
        try:
            store.open(connection_timeout_ms=TIMEOUT_MS, make_chroot=False)
            found = [address for broker in _ids(store) if (address := _address(store, broker))]
        finally:
            store.close()
    except CoordinationError as error:
        text = f"{error}; a broker may keep its metadata itself: {INSTEAD}"
        raise RegistryError(text) from None
    except ValueError as error:
        text = f"cannot read the brokers in ZooKeeper at {connect}: {error}; {INSTEAD}"
        raise RegistryError(text) from None
    if not found:
        raise RegistryError(f"no broker is registered in ZooKeeper at {connect}; {INSTEAD}")
    return ",".join(found)


def _ids(store: SessionStore) -> list[str]:
    try:
        return sorted(store.children("/brokers/ids"), key=int)
    except NoNodeError:
        return []


def _address(store: SessionStore, broker: str) -> str | None:
    """Where a broker takes plaintext connections; None where it does not, or has just gone."""
    try:
        data, _ = store.get(f"/brokers/ids/{broker}")
    except NoNodeError:
        return None
    document = json.loads(data or b"")
    protocols = document.get("listener_security_protocol_map", {})
    for endpoint in document.get("endpoints", []):
        listener, _, address = endpoint.partition("://")
        if protocols.get(listener, listener) == "PLAINTEXT":
            return str(address)
    return None
