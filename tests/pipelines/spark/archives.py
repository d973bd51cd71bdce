"""Records as they are sent and as they are found in files, in one form that can be compared."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
from confluent_kafka import Message, Producer

from tests.waiting import ANSWER, seconds

FIRST_TIMESTAMP_MS = (int(time.time()) - 3600) * 1000
"""An hour ago: much older records fall to retention, which looks every five minutes."""

Headers = tuple[tuple[str, bytes | None], ...]


class Row(NamedTuple):
    """One record of Kafka, wherever it is."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: Headers | None


class Sender:
    """Sends records and remembers what the broker said of each."""

    def __init__(self, bootstrap: str) -> None:
        self.sent: list[Row] = []
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "message.max.bytes": 16 << 20,
                # Otherwise librdkafka 2.16 forgets the only broker (its issue 5511).
                "metadata.recovery.strategy": "none",
                "log_level": 0,
            }
        )

    def send(
        self,
        topic: str,
        partition: int,
        contents: Iterable[tuple[bytes | None, bytes | None, Headers | None]],
    ) -> None:
        """Send (key, value, headers) to one partition; they are there when this returns."""
        for number, (key, value, headers) in enumerate(contents):
            self._send_one(topic, partition, (key, value, headers), FIRST_TIMESTAMP_MS + number)
        assert self._producer.flush(seconds(ANSWER)) == 0

    def _send_one(
        self,
        topic: str,
        partition: int,
        content: tuple[bytes | None, bytes | None, Headers | None],
        timestamp_ms: int,
    ) -> None:
        key, value, headers = content

        def delivered(error: object, message: Message) -> None:
            assert error is None, error
            offset = message.offset()
            assert offset is not None
            self.sent.append(Row(topic, partition, offset, timestamp_ms, key, value, headers))

        self._producer.produce(
            topic,
            partition=partition,
            key=key,
            value=value,
            headers=list(headers) if headers else None,
            timestamp=timestamp_ms,
            on_delivery=delivered,
        )
        self._producer.poll(0)


def numbered(count: int, *, first: int = 0) -> list[tuple[bytes, bytes, None]]:
    """Contents of records that differ from one another."""
    return [(b"key %d" % n, b"value %d" % n, None) for n in range(first, first + count)]


def rows_of(output: Path, *, batch: str = "*") -> list[Row]:
    """What a reader finds who lists the batches' files and knows nothing of Spark."""
    files = sorted(str(path) for path in output.glob(f"batch={batch}/*.parquet"))
    if not files:
        return []
    with duckdb.connect() as database:
        database.execute("SET TimeZone = 'UTC'")
        table = database.execute(
            'SELECT topic, "partition", "offset", epoch_ms(timestamp), key, value, headers'
            " FROM read_parquet($files, hive_partitioning = false)",
            {"files": files},
        )
        return [_row(values) for values in table.fetchall()]


def columns_of(output: Path) -> list[str]:
    """The columns of the first file, in order."""
    file = next(iter(sorted(output.glob("batch=*/*.parquet"))))
    with duckdb.connect() as database:
        described = database.execute(
            "DESCRIBE SELECT * FROM read_parquet($file, hive_partitioning = false)",
            {"file": str(file)},
        )
        return [str(column[0]) for column in described.fetchall()]


def _row(values: Sequence[Any]) -> Row:
    topic, partition, offset, timestamp_ms, key, value, headers = values
    found = None if headers is None else tuple((h["key"], _bytes(h["value"])) for h in headers)
    return Row(topic, partition, offset, timestamp_ms, _bytes(key), _bytes(value), found)


def _bytes(value: Any) -> bytes | None:
    return None if value is None else bytes(value)
