"""Topics that live for one run: created through the client library, deleted with their files.

Each topic's deleted files are removed after a second instead of a minute, on both brokers, so that
a long benchmark does not pile up the data of all its runs; a run begins once they are gone.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from contextlib import contextmanager

from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from benchmarks.model import BenchmarkError
from benchmarks.targets import Broker

_numbers = itertools.count(1)


@contextmanager
def topic(broker: Broker, stem: str, *, partitions: int = 1) -> Iterator[str]:
    """The name of a new topic whose partitions all have their leader; deleted afterwards."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    name = f"bench-{stem}-{next(_numbers)}"
    create(broker, name, partitions=partitions, admin=admin)
    try:
        yield name
    finally:
        if broker.running:
            admin.delete_topics([name], operation_timeout=30)[name].result(35)
            _await_files_gone(broker, name)


def create(broker: Broker, name: str, *, partitions: int, admin: AdminClient | None = None) -> None:
    """Create a topic of one replica and wait until clients see a leader for every partition."""
    admin = admin or AdminClient({"bootstrap.servers": broker.bootstrap})
    new = NewTopic(
        name,
        num_partitions=partitions,
        replication_factor=1,
        config={"file.delete.delay.ms": "1000"},
    )
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
    give_up_at = time.monotonic() + 10
    while time.monotonic() < give_up_at and any(broker.directory.glob(f"*/{name}-*")):
        time.sleep(0.1)
