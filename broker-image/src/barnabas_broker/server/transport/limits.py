"""The bounds on what clients may take from a broker, worked out from its settings and machine.

Apache's defaults for connections and for the memory of requests mean "no limit". Here they have
limits that suit the machine; a setting overrides them exactly.
"""

import logging
import os
import resource
import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from barnabas_kafka.settings import broker as keys
from barnabas_kafka.settings.broker import BrokerSettings
from barnabas_kafka.settings.definitions import Key

log = logging.getLogger(__name__)

CONNECTIONS: Final = 10_000
"""Connections in all: some ten times what a large cluster of clients needs of one broker."""

CONNECTIONS_OF_ADDRESS: Final = 5_000
"""Connections from one address, half of all: a whole subnet may be behind one, but never alone."""

DESCRIPTORS_FOR_CLIENTS: Final = 0.5
"""The part of the process's descriptors that clients may use; segments and indexes need others."""

FRAME_MEMORY_SHARE: Final = 0.25
FRAME_MEMORY_MIN: Final = 32 << 20
FRAME_MEMORY_MAX: Final = 256 << 20
"""Unfinished requests may use a quarter of the memory the broker has, within these bounds."""

PRODUCER_MEMORY_SHARE: Final = 8
PRODUCER_IDS_MIN: Final = 100_000
"""Remembered producers may use an eighth of the memory, at a kilobyte each, and these anyway: a
producer that is forgotten may have a batch stored twice."""

CGROUP_LIMITS: Final = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """How many connections there may be: in all, per address, per listener, new ones a second."""

    total: int
    of_address: int
    of_named_address: Mapping[str, int]
    of_listener: Mapping[str, int]
    rate: int
    rate_of_listener: Mapping[str, int]
    protected: frozenset[str]  # The listeners of brokers, where clients have another.

    @classmethod
    def from_settings(cls, settings: BrokerSettings) -> "ConnectionLimits":
        """What the settings say, and our own bounds where they say nothing.

        Looks up the hosts of max.connections.per.ip.overrides, which may block.
        """
        names = [listener.name for listener in settings.listeners]
        descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        total = min(CONNECTIONS, int(descriptors * DESCRIPTORS_FOR_CLIENTS))
        return cls(
            total=_given(settings, keys.MAX_CONNECTIONS, total),
            of_address=_given(settings, keys.MAX_CONNECTIONS_PER_IP, CONNECTIONS_OF_ADDRESS),
            of_named_address=dict(_addresses(settings.connections_per_address)),
            of_listener=_of_listeners(settings, names, keys.MAX_CONNECTIONS),
            rate=settings[keys.MAX_CONNECTION_CREATION_RATE],
            rate_of_listener=_of_listeners(settings, names, keys.MAX_CONNECTION_CREATION_RATE),
            protected=_protected(settings, names),
        )


def frame_memory_bytes(settings: BrokerSettings) -> int:
    """The budget of unfinished requests: `queued.max.request.bytes`, or what suits the machine."""
    given = settings[keys.QUEUED_MAX_REQUEST_BYTES]
    if given > 0:
        return given
    share = int(memory_bytes() * FRAME_MEMORY_SHARE)
    return max(FRAME_MEMORY_MIN, min(share, FRAME_MEMORY_MAX))


def producer_ids_max(settings: BrokerSettings) -> int:
    """Producers remembered in all partitions: as many as is said, or as suit the machine."""
    given = settings[keys.BARNABAS_PRODUCER_IDS_MAX]
    return given or max(PRODUCER_IDS_MIN, memory_bytes() // PRODUCER_MEMORY_SHARE // 1024)


@cache
def memory_bytes() -> int:
    """The memory this process may use: its container's limit, or the machine's memory."""
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for path in CGROUP_LIMITS:
        try:
            limits.append(int(path.read_text("ascii")))
        except (OSError, ValueError):  # Absent, or "max".
            continue
    return min(limits)


def _protected(settings: BrokerSettings, names: list[str]) -> frozenset[str]:
    """The listeners that no client uses: the controller's, and that of brokers if others are left.

    Apache protects the one of brokers only, and lets clients keep a controller out.
    """
    control = {name for name in names if name == settings.control_plane_listener}
    brokers = control | {settings.inter_broker_listener}
    return frozenset(brokers if brokers < set(names) else control)


def _addresses(counts: Mapping[str, int]) -> Iterator[tuple[str, int]]:
    for host, count in counts.items():
        try:
            found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        except OSError as error:
            log.error(
                "max.connections.per.ip.overrides ignored, host name not resolved: %s: %s",
                host,
                error,
            )
            continue
        for *_, address in found:
            yield str(address[0]), count


def _given(settings: BrokerSettings, key: Key[int], ours: int) -> int:
    return settings[key] if settings.given(key.name) else ours


def _of_listeners(settings: BrokerSettings, names: list[str], key: Key[int]) -> dict[str, int]:
    """`listener.name.<listener>.<key>` of each listener that has one."""
    found = {}
    for name in names:
        text = settings.own_of_listener(name, key)
        if text is not None:
            found[name] = key.parse(text)
    return found
