"""Where a broker listens and what it advertises.

The settings are `listeners`, `advertised.listeners` and `listener.security.protocol.map`. A
listener is written NAME://host:port; its name is looked up in the map for the security protocol. An
empty host means every interface when listening; when advertising, the shell puts the machine's own
name there. The checks are those of Kafka's `KafkaConfig` and `CoreUtils.listenerListToEndPoints`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from .definitions import SettingError

_ADDRESS = re.compile(
    r"([A-Za-z0-9_.-]+)://(?:\[([0-9A-Fa-f:.%A-Za-z]+)\]|([^:/\[\]]*)):(-?[0-9]+)"
)
_MAX_PORT = 65535


class SecurityProtocol(IntEnum):
    """How a listener's connections are protected; the numbers are Kafka's."""

    PLAINTEXT = 0
    SSL = 1
    SASL_PLAINTEXT = 2
    SASL_SSL = 3

    @property
    def sasl(self) -> bool:
        """Whether clients authenticate with SASL."""
        return self in (SecurityProtocol.SASL_PLAINTEXT, SecurityProtocol.SASL_SSL)

    @property
    def tls(self) -> bool:
        """Whether connections are encrypted."""
        return self in (SecurityProtocol.SSL, SecurityProtocol.SASL_SSL)


@dataclass(frozen=True, slots=True)
class Listener:
    """One address: the listener's name (upper case), host (may be empty), port, and protocol."""

    name: str
    host: str
    port: int
    protocol: SecurityProtocol

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.name}://{host}:{self.port}"


def parse_protocol_map(key: str, text: str) -> dict[str, SecurityProtocol]:
    """Read NAME:PROTOCOL pairs; raises SettingError for anything else and for a name twice."""
    protocols: dict[str, SecurityProtocol] = {}
    for item in _items(text):
        name, colon, protocol = (part.strip() for part in item.rpartition(":"))
        if not colon or not name:
            raise SettingError(key, text, f"{item!r} is not of the form NAME:PROTOCOL")
        if protocol.upper() not in SecurityProtocol.__members__:
            known = ", ".join(SecurityProtocol.__members__)
            raise SettingError(key, text, f"{protocol!r} is not one of {known}")
        if name.upper() in protocols:
            raise SettingError(key, text, f"listener {name.upper()} is mapped twice")
        protocols[name.upper()] = SecurityProtocol[protocol.upper()]
    return protocols


def parse_listeners(
    key: str, text: str, *, protocols: dict[str, SecurityProtocol]
) -> tuple[Listener, ...]:
    """Read addresses; raises SettingError for a malformed one or a name without a protocol."""
    return tuple(_parse_listener(key, text, item, protocols) for item in _items(text))


def _items(text: str) -> list[str]:
    return [item.strip() for item in text.split(",") if item.strip()]


def _parse_listener(
    key: str, text: str, item: str, protocols: dict[str, SecurityProtocol]
) -> Listener:
    match = _ADDRESS.fullmatch(item)
    if match is None:
        raise SettingError(key, text, f"{item!r} is not of the form NAME://host:port")
    name, bracketed, plain, port = match.groups()
    if not 0 <= int(port) <= _MAX_PORT:
        raise SettingError(key, text, f"port {port} is not between 0 and {_MAX_PORT}")
    if name.upper() not in protocols:
        raise SettingError(
            key, text, f"listener {name.upper()} is not in listener.security.protocol.map"
        )
    host = bracketed if bracketed is not None else plain
    return Listener(name.upper(), host, int(port), protocols[name.upper()])


def check_distinct(key: str, text: str, listeners: Sequence[Listener]) -> None:
    """Names must differ, and ports too unless one is IPv4 and the other IPv6 (KIP-797)."""
    for name, count in Counter(listener.name for listener in listeners).items():
        if count > 1:
            raise SettingError(key, text, f"listener {name} is given twice")
    by_port: dict[int, list[Listener]] = {}
    for listener in listeners:
        if listener.port:
            by_port.setdefault(listener.port, []).append(listener)
    for port, sharing in by_port.items():
        families = [":" in listener.host for listener in sharing if _is_address(listener.host)]
        if len(sharing) > 1 and not (len(sharing) == 2 and sorted(families) == [False, True]):
            raise SettingError(key, text, f"port {port} is given to more than one listener")


def _is_address(host: str) -> bool:
    """Whether the host is an IPv4 or IPv6 address, not a name."""
    return ":" in host or re.fullmatch(r"[0-9]+(\.[0-9]+){3}", host) is not None
