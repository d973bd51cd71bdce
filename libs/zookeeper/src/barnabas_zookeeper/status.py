"""The commands of four letters: a server's status for clients without a session."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from barnabas_zookeeper.service import Service

VERSION: Final = "barnabas-0.1.0 (one process, for development)"


@dataclass(slots=True)
class Counters:
    """What went over the wire since the start, in frames."""

    received: int = 0
    sent: int = 0


def answer(command: str, service: Service, counters: Counters) -> str:
    """The text that one of COMMANDS is answered with."""
    return COMMANDS[command](service, counters)


def _ruok(_service: Service, _counters: Counters) -> str:
    return "imok"


def _isro(_service: Service, _counters: Counters) -> str:
    return "rw"


def _srvr(service: Service, counters: Counters) -> str:
    return "\n".join(
        (
            f"Zookeeper version: {VERSION}",
            f"Received: {counters.received}",
            f"Sent: {counters.sent}",
            f"Connections: {service.connection_count}",
            f"Zxid: 0x{service.tree.zxid:x}",
            "Mode: standalone",
            f"Node count: {len(service.tree)}",
            "",
        )
    )


def _mntr(service: Service, counters: Counters) -> str:
    ephemerals = sum(len(service.tree.ephemerals(each)) for each in service.tree.sessions())
    fields = {
        "zk_version": VERSION,
        "zk_server_state": "standalone",
        "zk_packets_received": counters.received,
        "zk_packets_sent": counters.sent,
        "zk_num_alive_connections": service.connection_count,
        "zk_znode_count": len(service.tree),
        "zk_watch_count": len(service.watches),
        "zk_ephemerals_count": ephemerals,
        "zk_global_sessions": len(service.tree.open_sessions),
    }
    return "".join(f"{name}\t{value}\n" for name, value in fields.items())


COMMANDS: Final[dict[str, Callable[[Service, Counters], str]]] = {
    "ruok": _ruok,
    "isro": _isro,
    "srvr": _srvr,
    "stat": _srvr,
    "mntr": _mntr,
}
