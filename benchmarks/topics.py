"""Topics that live for one run: created through the client library, deleted with their files.

A run begins once the files of the one before are gone, or have had their chance to go: removing
hundreds of megabytes would otherwise fall into the next measurement.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from confluent_kafka.admin import NewTopic

from benchmarks.errors import BenchmarkError
from benchmarks.targets import Broker, admin_client

PREFIX: Final = "bench-"
GONE_WITHIN: Final = 2.0
_numbers = itertools.count(1)


@contextmanager
def topic(broker: Broker, stem: str, *, partitions: int = 1) -> Iterator[str]:
    """The name of a new topic whose partitions all have their leader; deleted afterwards."""
    admin = admin_client(broker.bootstrap)
    name = f"{PREFIX}{stem}-{next(_numbers)}"
    create(broker, name, partitions=partitions)
    try:
        yield name
    finally:
        if broker.running:
            admin.delete_topics([name], operation_timeout=30)[name].result(35)
            _await_files_gone(broker, name)


def create(broker: Broker, name: str, *, partitions: int) -> None:
    """Create a topic of one replica and wait until clients see a leader for every partition."""
    admin = admin_client(broker.bootstrap)
    new = NewTopic(name, num_partitions=partitions, replication_factor=1)
    admin.create_topics([new], operation_timeout=60)[name].result(70)
    give_up_at = time.monotonic() + 60
    while True:
        seen = admin.list_topics(name, timeout=30).topics[name]
        if len(seen.partitions) == partitions and all(
            part.leader >= 0 for part in seen.partitions.values()
        ):
            return
        if time.monotonic() > give_up_at:
            raise BenchmarkError(f"topic {name}: no leaders for {partitions} partitions in 60 s")
        time.sleep(0.05)


def _await_files_gone(broker: Broker, name: str) -> None:
    """Wait a little for the deleted directories to go; a broker that keeps them is not an error."""
    give_up_at = time.monotonic() + GONE_WITHIN
    while time.monotonic() < give_up_at and any(broker.directory.glob(f"*/{name}-*")):
        time.sleep(0.1)
