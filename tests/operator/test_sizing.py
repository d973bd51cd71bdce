"""Sizing: the arithmetic, and what a real broker's directory then takes."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from barnabas_broker.testing import Broker
from barnabas_operator.api.storage import Sizing
from barnabas_operator.sizing import LogShape, estimate, record_bytes, varint_bytes
from tests.waiting import ANSWER, START, seconds

SEGMENT_BYTES = 1_000_000
TOLERANCE = 0.05


def _sizing(**factors: Any) -> Sizing:
    given = {"messages_per_day": 1_000_000, "average_message_bytes": 1000, "headroom": 0.0}
    return Sizing(**{**given, **factors})


@pytest.mark.parametrize(("value", "size"), [(0, 1), (63, 1), (64, 2), (8191, 2), (8192, 3)])
def test_varints(value: int, size: int) -> None:
    """Zigzag takes one bit of the seven in a byte."""
    assert varint_bytes(value) == size


def test_a_record_has_a_few_bytes_of_its_own() -> None:
    """Ten or so, whatever its payload."""
    assert record_bytes(1000, 100) == 1000 + 11
    assert record_bytes(10, 1) == 10 + 8


@pytest.mark.parametrize(
    ("factors", "times"),
    [
        ({"messages_per_day": 2_000_000}, 2.0),
        ({"retention": "14d"}, 2.0),
        ({"replicas": 3}, 3.0),
        ({"compression_ratio": 0.5}, 0.5),
        ({"average_message_bytes": 2000}, 2.0),
    ],
)
def test_every_factor_counts(factors: dict[str, Any], times: float) -> None:
    """The log grows with each of the factors of the rule of thumb."""
    ratio = estimate(_sizing(**factors)).log_bytes / estimate(_sizing()).log_bytes
    assert ratio == pytest.approx(times, rel=0.02)


def test_brokers_share_the_load() -> None:
    """Three brokers with three replicas have as much each as one with one."""
    shared = estimate(_sizing(replicas=3), brokers=3)
    assert shared.log_bytes == estimate(_sizing()).log_bytes


def test_headroom_is_part_of_the_disk() -> None:
    """Of the whole, not of what is used: a fifth free means used times 1.25."""
    with_room = estimate(_sizing(headroom=0.2))
    assert with_room.claim_bytes == pytest.approx(estimate(_sizing()).claim_bytes * 1.25, rel=1e-6)


def test_the_open_segment_outlives_retention() -> None:
    """At most a segment per partition, and no more than comes in while one is open."""
    shape = LogShape(segment_bytes=2**20)
    assert estimate(_sizing(partitions=10), shape=shape).expired_bytes == 10 * 2**20
    little = estimate(_sizing(messages_per_day=1, partitions=10))
    assert little.expired_bytes < 10_000


def test_each_line_ends_in_its_result() -> None:
    """A user can follow from line to line."""
    lines = estimate(_sizing(partitions=3), brokers=1).lines
    assert [line.split(":")[0].split(" = ")[0] for line in lines] == [
        "message",
        "retained",
        "log",
        "indexes",
        "not yet removed",
        "headroom",
        "each broker",
    ]
    assert all(" = " in line for line in lines)


@pytest.mark.parametrize(
    ("messages", "payload", "per_batch", "codec"),
    [(20_000, 1000, 100, "none"), (40_000, 300, 50, "none"), (4_000, 300, 1, "none"),
     (20_000, 1000, 100, "zstd")],
)  # fmt: skip
def test_prediction_against_the_disk(
    messages: int, payload: int, per_batch: int, codec: str, tmp_path: Path
) -> None:
    """A broker loaded by the very spec takes what was predicted, five in a hundred at most off."""
    # Half random, half the same: zstd makes about half of it.
    halves = [os.urandom(payload // 2) + b"x" * (payload - payload // 2) for _ in range(100)]
    with Broker(
        {"log.segment.bytes": SEGMENT_BYTES}, directory=tmp_path, startup_timeout_s=seconds(START)
    ) as broker:
        broker.create_topic("loaded", partitions=4)
        producer = Producer(
            {
                "bootstrap.servers": broker.bootstrap_servers,
                "compression.type": codec,
                "batch.num.messages": per_batch,
                "linger.ms": 1000,
                "log_level": 0,
            }
        )
        for number in range(messages):
            value = halves[number % 100]
            if codec != "none":
                value = os.urandom(payload // 2) + value[payload // 2 :]
            producer.produce("loaded", value, partition=number % 4)
            producer.poll(0)
        assert producer.flush(seconds(ANSWER)) == 0
        broker.stop()
        reported = subprocess.run(
            ["du", "-s", "-B1", "--exclude=*.reserve", broker.log_dir],
            capture_output=True,
            text=True,
            check=True,
        )
    ratio = 1.0 if codec == "none" else 0.515
    sizing = _sizing(
        messages_per_day=messages,
        average_message_bytes=payload,
        messages_per_batch=per_batch,
        retention="1d",
        partitions=4,
        compression_ratio=ratio,
    )
    predicted = estimate(sizing, shape=LogShape(segment_bytes=SEGMENT_BYTES)).data_bytes
    assert predicted == pytest.approx(int(reported.stdout.split()[0]), rel=TOLERANCE)
