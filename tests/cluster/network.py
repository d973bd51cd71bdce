"""Hosts on one network whose links are cut and healed: namespaces on a bridge (Linux, as root).

A link is cut as where a switch drops what it is to pass on: neither side is told. The sender's
neighbour entry for the other one's address is made a permanent one of a hardware address that
nobody has.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from types import TracebackType
from typing import Final, Self

NOBODY: Final = "02:00:00:00:00:01"
"""A hardware address of no host, administered locally."""
_NETWORK: Final = "198.18.{0}.{1}/24"
"""Addresses that are set aside for tests of networks (RFC 2544)."""
_OURS: Final = 254


class Network:
    """The hosts, beside the one that the tests run on, which reaches all. Use as a context."""

    def __init__(self, hosts: Sequence[str]) -> None:
        self._name = f"net{os.getpid()}"
        self._hosts = {host: number for number, host in enumerate(hosts, 1)}
        self._cut: set[tuple[str, str]] = set()

    def __enter__(self) -> Self:
        try:
            self._build()
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._remove()

    def address(self, host: str) -> str:
        """The address of a host."""
        return self._with_prefix(self._hosts[host]).partition("/")[0]

    def launcher(self, host: str) -> list[str]:
        """What runs the command behind it on a host; its process id is the command's."""
        return ["nsenter", f"--net=/run/netns/{self._space(host)}", "--"]

    def cut(self, sender: str, receiver: str) -> None:
        """Lose all that one host sends to another from now on."""
        self._ip(
            *("-n", self._space(sender), "neigh", "replace", self.address(receiver)),
            *("lladdr", NOBODY, "nud", "permanent", "dev", "eth0"),
        )
        self._cut.add((sender, receiver))

    def heal(self, sender: str, receiver: str) -> None:
        """Pass on again what one host sends to another."""
        if (sender, receiver) in self._cut:
            self._cut.remove((sender, receiver))
            where = self.address(receiver), "dev", "eth0"
            self._ip("-n", self._space(sender), "neigh", "del", *where)

    def heal_all(self) -> None:
        """Pass everything on again."""
        for link in sorted(self._cut):
            self.heal(*link)

    def _build(self) -> None:
        # The bridge is in a namespace of its own, where no rules of the machine filter its frames.
        self._ip("netns", "add", self._name)
        self._ip("-n", self._name, "link", "add", "bridge", "type", "bridge")
        self._ip("-n", self._name, "link", "set", "bridge", "up")
        for host, number in self._hosts.items():
            self._ip("netns", "add", self._space(host))
            inside = "-n", self._space(host)
            self._ip(*inside, "link", "set", "lo", "up")
            self._connect("eth0", number, *inside)
        self._connect(self._name, _OURS)

    def _connect(self, device: str, number: int, *inside: str) -> None:
        """Make a link from a device, of this host or inside of a namespace, to the bridge."""
        port = f"port{number}"
        ends = "link", "add", device, "type", "veth", "peer", "name", port, "netns", self._name
        self._ip(*inside, *ends)
        self._ip("-n", self._name, "link", "set", port, "master", "bridge", "up")
        self._ip(*inside, "addr", "add", self._with_prefix(number), "dev", device)
        self._ip(*inside, "link", "set", device, "up")

    def _remove(self) -> None:
        # A link goes with either of its ends.
        for space in (*map(self._space, self._hosts), self._name):
            subprocess.run(["ip", "netns", "del", space], check=False, capture_output=True)

    def _space(self, host: str) -> str:
        return f"{self._name}-{host}"

    @staticmethod
    def _with_prefix(number: int) -> str:
        return _NETWORK.format(os.getpid() % 256, number)

    @staticmethod
    def _ip(*arguments: str) -> None:
        subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True)
