"""Rates and buckets beside Kafka's own classes, over amounts at all distances."""

from pathlib import Path
from random import Random
from typing import Final

import pytest

from barnabas_broker.quota.rates import BucketSensor, Rate
from tests.oracle.apache import run_tool

pytestmark = pytest.mark.jvm

PROGRAM: Final = str(Path(__file__).parents[2] / "oracle" / "java" / "Rates.java")
STEPS: Final = (0, 1, 7, 250, 999, 1000, 1001, 4000, 12_000, 40_000)


@pytest.mark.parametrize("seed", range(6))
def test_the_same_numbers(seed: int) -> None:
    """Every rate, the time it is measured over, and the tokens left."""
    random = Random(seed)
    windows, window_ms = random.choice([(11, 1000), (2, 1000), (1, 1000), (5, 3000)])
    limit, now = random.choice([0.5, 10.0, 1000.0]), 10**12
    first = now
    events = []
    for _ in range(2000):
        now += random.choice(STEPS)
        events.append((now, float(random.choice([0, 1, -1, 100, 10_000, 10**7]))))
    given = f"{windows} {window_ms} {limit}\n" + "\n".join(f"{at} {it}" for at, it in events)
    done = run_tool(PROGRAM, input=given)
    assert done.returncode == 0, done.stderr
    rate = Rate(windows=windows, window_ms=window_ms)
    bucket = BucketSensor(limit, windows=windows, window_ms=window_ms, now_ms=first)
    for (at, amount), line in zip(events, done.stdout.splitlines(), strict=True):
        rate.record(amount, at)
        bucket.record(amount, at)
        measured, over_ms, tokens = line.split()
        assert rate.measure(at) == (float(measured), int(over_ms))
        assert bucket.tokens == pytest.approx(float(tokens))
