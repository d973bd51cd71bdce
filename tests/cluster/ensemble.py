"""Apache ZooKeeper with any number of members, each a process of its own."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.cluster.network import Network
from tests.oracle.apache import ZooKeeper, free_port


class Ensemble:
    """Members 1, 2, ...; one alone is a standalone server."""

    def __init__(self, directory: Path, members: int, network: Network | None = None) -> None:
        """Each member is a host of the `network`, where there is one."""
        ports = {member: (free_port(), free_port()) for member in range(1, members + 1)}
        hosts = {
            member: "127.0.0.1" if network is None else network.address(member_host(member))
            for member in ports
        }
        others = {
            f"server.{member}": f"{hosts[member]}:{quorum}:{election}"
            for member, (quorum, election) in ports.items()
        }
        together = {"initLimit": "60", "syncLimit": "15", **others} if members > 1 else {}
        self.members = {
            member: ZooKeeper(directory=directory / str(member), overrides=together)
            for member in ports
        }
        for member, server in self.members.items():
            if network is not None:
                server.host = hosts[member]
                server.launcher = network.launcher(member_host(member))
            data = server.directory / "data"
            data.mkdir()
            (data / "myid").write_text(str(member))

    @property
    def connect(self) -> str:
        """All members, for clients."""
        return ",".join(server.connect for server in self.members.values())

    def start(self) -> None:
        """Start whoever does not run, at the same time: none serves before most of them run."""
        missing = [server for server in self.members.values() if not server.running]
        with ThreadPoolExecutor(len(missing) or 1) as threads:
            list(threads.map(ZooKeeper.start, missing))

    def kill(self) -> None:
        """SIGKILL for all."""
        for server in self.members.values():
            server.kill()

    def leader(self) -> ZooKeeper | None:
        """The member that leads the others, None while they elect."""
        leaders = [it for it in self.members.values() if it.running and _mode(it) == "leader"]
        return leaders[0] if len(leaders) == 1 else None


def member_host(member: int) -> str:
    """The host of a member in a network."""
    return f"member-{member}"


def _mode(member: ZooKeeper) -> str:
    try:
        return member.mode()
    except OSError:
        return ""
