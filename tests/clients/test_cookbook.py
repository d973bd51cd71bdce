"""Every recipe of the cookbook runs, and shows what it says."""

from __future__ import annotations

import math
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.clients.brokers import broker_under_test
from tests.clients.redis_server import RedisServer
from tests.oracle.apache import ZooKeeper
from tests.waiting import RUN, seconds

Kitchen = Mapping[str, str]
"""Where a recipe finds its servers, as environment variables."""

COOKBOOK = Path(__file__).resolve().parents[2] / "docs" / "cookbook"
SHOWS = {
    "acks": ["acks=0: offset unknown", "acks=1: offset 1", "acks=all: offset 2"],
    "ways_to_send": [
        "synchronous: offset 1, then 2",
        "with a callback: offsets [3, 4, 5, 6, 7]",
        "too large for the topic: MSG_SIZE_TOO_LARGE, try again: False",
    ],
    "where_records_go": [
        "said: [3]",
        "by key: [2]",
        "where Java's would be: True",
        "neither: [0, 1, 2, 3]",
        "by key, with four partitions more: [6]",
    ],
    "no_loss_producer": ["1000 records, in order: True"],
    "audit_partitioner": ["audit: [4], others: [0, 1, 2, 3]"],
    "serializers": [
        "anna: Order(number=17, cents=1999)",
        "offset 1 is unreadable: b'order 18, 20 euro'",
        "carl: Order(number=19, cents=500)",
    ],
    "interceptors": [
        "delivered 5, failed 1",
        "['shop-7,8!', 'shop-7,9!', 'shop-7,10', 'shop-7,11', 'shop-7,12']",
    ],
    "headers": ["trace=4bf92f35, via=shop, via=billing"],
    "compression": [
        "none: <n> bytes, 100 %, unchanged: True",
        "gzip: <n> bytes, <n> %, unchanged: True",
        "snappy: <n> bytes, <n> %, unchanged: True",
        "lz4: <n> bytes, <n> %, unchanged: True",
        "zstd: <n> bytes, <n> %, unchanged: True",
        "less than half with each codec: True",
    ],
    "choosing_partition_counts": [
        "30000 needed, 50000 written, 2000 worked: 30",
        "30000 needed, 50000 written, 80000 worked: 2",
        "measured: <n> written, <n> worked",
        "for 1000000 a second: <n>",
    ],
    "one_producer_many_threads": ["4 threads, failed: 0", "each in its order: True"],
    "topics_by_pattern": ["reads 1 topic", "reads 2 topics, and of the later one: [0, 1, 2, 3, 4]"],
    "queue_or_broadcast": [
        "one group: 10 and 10, each once: True",
        "another group: all of them: True",
    ],
    "where_reading_begins": [
        "earliest: 0",
        "latest: waits at 10",
        "error: _AUTO_OFFSET_RESET",
        "committed 7: 7",
        "committed 3, of which the first five are gone: 5",
    ],
    "commits": [
        "auto: [10, 10]",
        "auto of what was stored: one is open: True",
        "sync: [10, 10]",
        "async: [10, 10], errors: []",
        "by partition: [-1001, 10]",
    ],
    "rebalance_listener": [
        "a gets [0, 1], gives [0, 1], gets [0], gives [0], gets [0, 1], gives [0, 1]",
        "b gets [1], gives [1]",
        "every record once: True",
    ],
    "more_consumers_than_partitions": ["three consumers: [0, 1, 1]", "one has left: [1, 1]"],
    "consumer_per_thread": ["every record once: True", "3 threads, each partition in one: True"],
    "many_workers": [
        "done before it was killed: all but 3: True",
        "done after: from 3 on: True",
        "lost: []",
    ],
    "pausing": [
        "paused: True, polled in pauses: True, at most 5 waiting",
        "every record once: True",
    ],
    "wakeup_on_shutdown": [
        "until it was told to stop: [0, 1, 2, 3, 4, 'closed']",
        "members left: 0",
        "the next goes on with: [5, 6, 7, 8, 9]",
    ],
    "total_order": [
        "one partition, one consumer: in order: True",
        "three partitions, one consumer: in order: False",
        "each of the three by itself: True",
        "merged by time: in order: True",
    ],
    "standalone_assign": [
        "from the 20th second on: [20, 21, 22, 23, 24, 25, 26, 27, 28, 29]",
        "another, from the beginning: all: True",
        "a group came of it: False",
    ],
    "at_most_and_at_least_once": [
        "at most once: [0, 1, 2, 3, 4], killed, then [6, 7, 8, 9]",
        "at least once: [0, 1, 2, 3, 4, 5], killed, then [5, 6, 7, 8, 9]",
    ],
    "exactly_once": [
        "transactions that ended with [4, 9], killed",
        "transactions that ended with [14, 19]",
        "committed: every result once and in order: True",
        "written: 25 records",
    ],
    "idempotent_writes": ["23 delivered, 20 written, the sum is right: True"],
    "offsets_in_sql": ["every record once: True"],
    "offsets_in_redis": ["20 records, their sum 190: each once: True"],
    "offsets_in_zookeeper": [
        "first: [0, 1, 2, 3, 4]",
        "after a crash: [4, 5, 6, 7, 8, 9]",
        "in ZooKeeper: 10",
        "one who had not noticed: refused",
    ],
}
"""What each one prints; `<n>` is a number that is measured."""


@pytest.fixture(scope="module")
def kitchen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kitchen]:
    """A broker where groups wait for nobody, a ZooKeeper and a Redis."""
    settings = {"broker.id": "0", "group.initial.rebalance.delay.ms": "0"}
    with (
        broker_under_test(tmp_path_factory.mktemp("broker"), settings) as broker,
        ZooKeeper() as zookeeper,
        RedisServer(tmp_path_factory.mktemp("redis")) as redis,
    ):
        yield {
            "BARNABAS_BOOTSTRAP": broker.bootstrap,
            "ZOOKEEPER": zookeeper.connect,
            "REDIS_URL": redis.url,
        }


def shown(kitchen: Kitchen, recipe: str) -> list[str]:
    """The lines that a recipe prints, as a program of its own."""
    done = subprocess.run(
        [sys.executable, COOKBOOK / f"{recipe}.py"],
        env=os.environ | kitchen,
        capture_output=True,
        text=True,
        timeout=seconds(RUN),
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize("recipe", SHOWS)
def test_a_recipe_shows_what_it_says(kitchen: Kitchen, recipe: str) -> None:
    """As a program of its own, against servers it is told of."""
    printed = shown(kitchen, recipe)
    wanted = SHOWS[recipe]
    assert len(printed) == len(wanted), printed
    for line, pattern in zip(printed, wanted, strict=True):
        assert re.fullmatch(re.escape(pattern).replace("<n>", r"\d+"), line), (line, pattern)


def test_the_count_of_partitions_follows_from_the_rates(kitchen: Kitchen) -> None:
    """Twice what is needed, by the slower of the two rates."""
    *_, measured, answer = shown(kitchen, "choosing_partition_counts")
    written, worked = map(int, re.findall(r"\d+", measured))
    assert int(answer.rpartition(" ")[2]) == math.ceil(2_000_000 / min(written, worked))


def test_every_recipe_is_run() -> None:
    """None is forgotten, neither here nor in the index."""
    there = {path.stem for path in COOKBOOK.glob("*.py")}
    assert there == {*SHOWS, "kitchen"}
    index = (COOKBOOK / "README.md").read_text()
    assert set(re.findall(r"\((\w+)\.py\)", index)) == set(SHOWS)
