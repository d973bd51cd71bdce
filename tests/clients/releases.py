"""Brings Apache Kafka's releases and Go's modules for the black-box suites, before their clocks.

What is fetched once is remembered by Maven and under ``.cache``. A download that fails is tried
again, as a registry may be out of reach for a moment; none is left to a test's time limit.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from typing import Final

from tests.clients import go_client, java_probe
from tests.oracle import apache

#: Of the clients that connect with TLS and SASL.
OLDEST: Final = "0.10.2.2"
ATTEMPTS: Final = 3
#: Brokers and tools; 0.8 for its Scala clients.
KAFKA: Final = ("3.9.1", "2.8.2", "4.1.0", "0.8.2.2")
STREAMS: Final = ("3.9.1", "4.1.0")
#: Clients of our own programs; `make soak` fetches the other releases as its tests ask for them.
CLIENTS: Final = sorted({"3.9.1", *java_probe.EVERY_RUN})


def fetched(fetch: Callable[[], object]) -> bool:
    """Whether one of several attempts succeeded; says on standard error why the others did not."""
    for _ in range(ATTEMPTS):
        try:
            fetch()
        except (apache.OracleError, RuntimeError, subprocess.TimeoutExpired) as error:
            sys.stderr.write(f"barnabas: {error}\n")
        else:
            return True
    return False


def main() -> int:
    """Fetch what is not there yet; returns the exit status."""
    wanted: list[Callable[[], object]] = [
        *(partial(apache.classpath, release) for release in KAFKA),
        *(partial(apache.classpath, release, of="kafka-streams") for release in STREAMS),
        *(partial(java_probe.classpath, release) for release in CLIENTS),
        partial(apache.classpath, OLDEST, of=apache.CLIENTS_ALONE),
    ]
    if shutil.which("go") is not None:
        wanted.append(go_client.program)
    return 0 if all(map(fetched, wanted)) else 1


if __name__ == "__main__":
    sys.exit(main())
