"""The broker is killed while twenty members come and go and producers commit and abort.

What happens when is drawn from a seed, and counted in lines that the producers write down: the
clients come as far between two deaths of the broker on a slow machine as on a fast one.
`SEED=7 pytest tests/clients/test_kill_under_load.py` draws from another one.
"""

from __future__ import annotations

import os
from collections import Counter
from functools import partial
from pathlib import Path
from random import Random
from typing import Final

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.clients import under_load
from tests.clients.brokers import Broker, broker_under_test
from tests.clients.client_process import ClientProcess
from tests.clients.notes import Notes, check_values, commit_first_offsets, committed
from tests.clients.transactional import SETTINGS, seen_in
from tests.clients.under_load import (
    PARTITIONS,
    TEAM,
    TOPIC,
    Acknowledged,
    retried,
    transactional_producer,
)
from tests.waiting import ANSWER, ATTEMPT_S, seconds, wait_for

MEMBERS: Final = 20
CHANGES: Final = (1, 8)
"""The least and the most changes of members between two kills."""
LINES: Final = 40
"""The most lines of producers, two for a transaction, between two changes."""
PRODUCERS: Final = 3
KILLS: Final = 6
SOAK_KILLS: Final = 130
#: How many clients may have locked themselves up, see `client_process`; the others have to go on.
MAY_HANG: Final = 2
#: What has to happen at least once in each run.
WANTED: Final = ("kills", "left", "assignments", "commits", "committed", "aborted")


class Load:
    """The clients of one run, and how often what was done to them and their broker."""

    def __init__(self, directory: Path, broker: Broker, random: Random) -> None:
        self.directory, self.broker, self.random = directory, broker, random
        self.acknowledged = Acknowledged(directory / TEAM)
        self.done: Counter[str] = Counter()
        self.members: list[ClientProcess] = []
        self.writers: list[ClientProcess] = []

    def __enter__(self) -> Load:
        return self

    def __exit__(self, *_: object) -> None:
        for client in (*self.writers, *self.members):
            client.kill()

    def run(self, kills: int) -> None:
        """Let members come and go and kill the broker; members are left, and no writers."""
        names = [f"writer-{it}" for it in range(PRODUCERS)]
        self.writers = [self._client("writer", name) for name in names]
        for _ in range(MEMBERS):
            self._join()
        for _ in range(kills):
            for _ in range(self.random.randint(*CHANGES)):
                self._change_members()
                self._until_written(self.random.randint(0, LINES))
            self.done["kills"] += 1
            self.broker.kill()
            self.broker.start()
        # On a slow machine the broker may have lived too briefly between its deaths.
        wait_for(
            "what has to happen at least once",
            self.met,
            until=lambda met: all(met[what] for what in WANTED),
        )
        while self.writers:
            self._end(self.writers.pop())
        for name in names:
            # Aborts what is left open, which hides what others have written after it.
            successor = transactional_producer(self.broker.bootstrap, name, {})
            retried(partial(successor.init_transactions, ATTEMPT_S))

    def _change_members(self) -> None:
        if len(self.members) == MEMBERS or (self.members and self.random.random() < 0.4):
            self._end(self.members.pop(self.random.randrange(len(self.members))))
            self.done["left"] += 1
        else:
            self._join()

    def _until_written(self, lines: int) -> None:
        def written() -> int:
            return sum(writer.lines() for writer in self.writers)

        wanted = written() + lines
        wait_for(f"the writers' lines, to be {wanted}", written, until=lambda it: it >= wanted)

    def met(self) -> Counter[str]:
        """What was done, and what it led to so far."""
        notes = Notes.of(self.directory)
        return notes.met | self.done | Counter(attempt.outcome for attempt in notes.attempts)

    def end_members(self) -> None:
        """All that are left."""
        while self.members:
            self._end(self.members.pop())
        assert self.done["hung"] <= MAY_HANG, self.done

    def _join(self) -> None:
        self.done["joined"] += 1
        self.members.append(self._client("member", str(self.done["joined"])))

    def _client(self, role: str, name: str) -> ClientProcess:
        seed = self.random.randrange(2**32)
        scenario = self.directory / f"{role}-{name}.jsonl"
        where = self.broker.bootstrap, str(seed), str(self.directory), TEAM, "{}"
        return ClientProcess(scenario, under_load.__name__, role, name, *where)

    def _end(self, client: ClientProcess) -> None:
        if not client.end(seconds(ANSWER)):
            self.done["hung"] += 1


def _create_topic(broker: Broker) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_topics([NewTopic(TOPIC, num_partitions=PARTITIONS)])[TOPIC].result(seconds(ANSWER))


def _until_caught_up(directory: Path, values: set[str]) -> None:
    wait_for(
        "how many committed records no member has read",
        lambda: len(values - Notes.of(directory).read.keys()),
        until=lambda missing: missing == 0,
    )


def _run(directory: Path, seed: int, kills: int) -> None:
    print(f"seed {seed}")  # Shown where the test fails.
    with broker_under_test(directory, SETTINGS) as broker:
        _create_topic(broker)
        commit_first_offsets(broker.bootstrap, TEAM, {})
        scenarios = directory / "clients"
        scenarios.mkdir()
        with Load(scenarios, broker, Random(seed)) as load:
            load.run(kills)
            visible = Counter(seen_in(broker, TOPIC, PARTITIONS))
            check_values(Notes.of(scenarios).attempts, visible)
            _until_caught_up(scenarios, set(visible))
            load.end_members()
        notes = Notes.of(scenarios)
        assert notes.read.keys() == visible.keys(), "members have read what was aborted"
        assert not notes.faults, notes.faults
        for partition, offset in committed(broker.bootstrap, TEAM, {}).items():
            assert offset >= load.acknowledged[partition], f"the offset of {partition} went back"
    met = load.met()
    print(dict(met))
    assert all(met[what] for what in WANTED), met


def test_kills_under_members_and_transactions_lose_and_double_nothing(tmp_path: Path) -> None:
    """Committed records once, aborted never, offsets only forth, through every kill."""
    _run(tmp_path, int(os.environ.get("SEED", "1")), KILLS)


@pytest.mark.soak
@pytest.mark.timeout(1200)
def test_kills_for_long(tmp_path: Path) -> None:
    """The same through many more kills."""
    _run(tmp_path, int(os.environ.get("SEED", "2")), SOAK_KILLS)
