"""The text files that ZooKeeper and brokers read, rendered from templates; `local` uses them too.

A name that a template uses and nobody gives is an error (StrictUndefined), never an empty line.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import jinja2

from barnabas_operator.api.clusters import Listener, ListenerType
from barnabas_operator.names import ELECTION_PORT, PEER_PORT, ZOOKEEPER_PORT

BROKER_VOLUME: Final = "/var/lib/barnabas"
# Not the volume itself: a fresh file system may have a lost+found, and that is no partition.
BROKER_DATA: Final = f"{BROKER_VOLUME}/data"
ZOOKEEPER_DATA: Final = "/var/lib/zookeeper"


def server_properties(
    cluster: str,
    *,
    listeners: Sequence[Listener],
    config: Mapping[str, str],
    zookeeper_connect: str | None,
    data_directory: str = BROKER_DATA,
    host: str = "0.0.0.0",  # noqa: S104 - all interfaces of a pod
) -> str:
    """A broker's server.properties, except what differs from broker to broker.

    Without `zookeeper_connect` the broker keeps coordination data itself.
    """
    return _render(
        "server.properties.j2",
        cluster=cluster,
        listeners=",".join(f"{each.kafka_name}://{host}:{each.port}" for each in listeners),
        protocol_map=",".join(f"{each.kafka_name}:PLAINTEXT" for each in listeners),
        inter_broker_listener=inter_broker_listener(listeners).kafka_name,
        data_directory=data_directory,
        zookeeper_connect=zookeeper_connect,
        config=config,
    )


def inter_broker_listener(listeners: Sequence[Listener]) -> Listener:
    """The listener that brokers use among themselves, and the operator to ask them."""
    internal = [each for each in listeners if each.type is ListenerType.INTERNAL]
    if not internal:
        raise ValueError("spec.listeners: one listener must be of type internal")
    return internal[0]


def zoo_cfg(cluster: str, *, members: Sequence[str], data_directory: str = ZOOKEEPER_DATA) -> str:
    """The zoo.cfg of a member; a single member stands alone."""
    return _render(
        "zoo.cfg.j2",
        cluster=cluster,
        members=members,
        data_directory=data_directory,
        client_port=ZOOKEEPER_PORT,
        peer_port=PEER_PORT,
        election_port=ELECTION_PORT,
    )


@functools.cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("barnabas_operator.resources"),
        undefined=jinja2.StrictUndefined,
        # Neither template is HTML; what needs escaping goes through the filters below.
        autoescape=False,  # noqa: S701
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["property_name"] = _property_name
    environment.filters["property_value"] = _property_value
    return environment


def _render(template: str, **values: Any) -> str:
    return _environment().get_template(template).render(values)


def _property_name(text: str) -> str:
    return re.sub(r"([\\:=#! ])", r"\\\1", _one_line(text))


def _property_value(text: str) -> str:
    # A leading space would be eaten, a line end would begin another property.
    escaped = _one_line(text)
    return "\\" + escaped if escaped.startswith(" ") else escaped


def _one_line(text: str) -> str:
    escaped = text.replace("\\", "\\\\")
    escaped = escaped.replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
    # The format is Latin-1; what is beyond ASCII is written as UTF-16 units.
    return "".join(each if each.isascii() else _utf16_units(each) for each in escaped)


def _utf16_units(character: str) -> str:
    data = character.encode("utf-16-be")
    return "".join(f"\\u{data[i : i + 2].hex()}" for i in range(0, len(data), 2))
