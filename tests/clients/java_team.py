"""Several Java consumers of a group in one JVM, started and stopped one by one."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from types import TracebackType
from typing import Self

from tests.clients.java_probe import classpath
from tests.oracle.java_host import FLAGS
from tests.waiting import START, seconds, wait_for

Has = dict[str, set[str]]
"""The partitions of each consumer, as `topic-number`."""


class Team:
    """The consumers of one JVM, by client id; built against a release of kafka-clients."""

    def __init__(self, bootstrap: str, release: str = "3.9.1") -> None:
        command = ["java", *FLAGS, "-cp", classpath(release), "barnabas.probe.Team", bootstrap]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.seen = 0

    def start(self, name: str, group: str, assignor: str, *topics: str) -> None:
        """Have a consumer join; its client id decides about its place among the members.

        The assignors `consumer` and `consumer:NAME` are the broker's (KIP-848).
        """
        self._tell(f"start {name} {group} {assignor} {','.join(topics)}")

    def stop(self, name: str) -> None:
        """Have it commit and leave."""
        self._tell(f"stop {name}")

    def show(self) -> Has:
        """What each one has now; RuntimeError where one failed."""
        self._tell("show")
        assert self._process.stdout is not None
        reported = json.loads(self._process.stdout.readline())
        for name, player in reported.items():
            if player["error"]:
                raise RuntimeError(f"{name}: {player['error']}")
        self.seen = sum(player["seen"] for player in reported.values())
        return {name: set(player["has"]) for name, player in reported.items()}

    def until(self, settled: Callable[[Has], bool]) -> Has:
        """What each one has when that is so; AssertionError where it does not come true."""
        return wait_for("the partitions of each consumer", self.show, until=settled)

    def _tell(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(seconds(START))
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            raise
        finally:
            self._process.stdout.close()
