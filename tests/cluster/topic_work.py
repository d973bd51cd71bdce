"""An operator at work on topics while brokers fail: a process that writes down what it was told.

It creates topics, deletes them, adds partitions, changes a setting, moves replicas and has
preferred leaders elected, one after the other. A change without an answer may have been made or
not.
"""

from __future__ import annotations

import json
import ssl
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from barnabas_kafka.client import (
    Admin,
    AlterConfigOp,
    ClientConfig,
    ClientError,
    ConfigChange,
    NewTopic,
    Scram,
    alter_configs,
    alter_partition_reassignments,
    create_partitions,
    create_topics,
    delete_topics,
    elect_leaders,
    topic_resource,
)
from barnabas_kafka.ids import TopicPartition
from tests.clients.client_process import tell
from tests.clients.under_load import stopping
from tests.waiting import ANSWER, ATTEMPT_S, seconds

BROKERS: Final = (0, 1, 2)
TOPICS_MAX: Final = 8
"""As many topics there are before one is deleted for each that is created."""
PAUSE_S: Final = 0.3
"""Between two changes, so that clients have their share of the machine."""
SETTING: Final = "segment.bytes"


def admin_config(bootstrap: str, properties: Mapping[str, str]) -> ClientConfig:
    """Our own client with what librdkafka's `properties` say of security."""
    security: dict[str, Any] = {}
    if properties:
        user, password = properties["sasl.username"], properties["sasl.password"]
        security["tls"] = ssl.create_default_context(cafile=properties["ssl.ca.location"])
        security["sasl"] = Scram(user, password)
    return ClientConfig(
        bootstrap_servers=bootstrap,
        request_timeout_s=ATTEMPT_S,
        timeout_s=seconds(ANSWER),
        **security,
    )


@dataclass(slots=True)
class KnownTopic:
    """What must be true of a topic; None is what an answer that was lost has left open."""

    exists: bool | None = None
    partitions: int = 0
    setting: str | None = None


def known_topics(lines: Iterable[dict[str, Any]]) -> dict[str, KnownTopic]:
    """What all that an operator wrote down says in the end."""
    known: dict[str, KnownTopic] = {}
    for line in lines:
        topic = known.setdefault(line["topic"], KnownTopic())
        done = line.get("done", False)
        match line["change"]:
            case "create":
                topic.exists = True if done else None
                topic.partitions = line["partitions"] if done else 0
            case "delete":
                topic.exists = False if done else None
            case "expand" if done:
                topic.partitions = line["partitions"]
            case "configure":
                topic.setting = line["value"] if done else None
    return known


class Operator:
    """Changes topics of its own, and moves the replicas of all that it is told of."""

    def __init__(self, config: ClientConfig, random: Random, moved: Mapping[str, int]) -> None:
        self._config, self._random, self._moved = config, random, moved
        self._own: dict[str, int] = {}
        """How many partitions each has; its own topics are those it was told of last."""
        self._number = 0

    def run(self) -> None:
        """One change after the other, until the standard input ends."""
        changes = (
            self._create_or_delete, self._create_or_delete, self._expand, self._configure,
            self._move, self._move, self._elect,
        )  # fmt: skip
        while not stopping(PAUSE_S):
            self._random.choice(changes)()

    def _create_or_delete(self) -> None:
        if len(self._own) >= TOPICS_MAX:
            topic = self._random.choice(sorted(self._own))
            del self._own[topic]
            self._change(delete_topics([topic]), change="delete", topic=topic)
            return
        self._number += 1
        topic, partitions = f"work-{self._number}", self._random.randint(1, 4)
        self._change(
            create_topics([NewTopic(topic, partitions, len(BROKERS))]),
            change="create",
            topic=topic,
            partitions=partitions,
        )
        self._own[topic] = partitions

    def _expand(self) -> None:
        for topic in self._some_own():
            partitions = self._own[topic] + 1
            done = self._change(
                create_partitions({topic: partitions}),
                change="expand",
                topic=topic,
                partitions=partitions,
            )
            if done:
                self._own[topic] = partitions

    def _configure(self) -> None:
        for topic in self._some_own():
            value = str(self._random.randint(1 << 20, 1 << 30))
            change = ConfigChange(SETTING, AlterConfigOp.SET, value)
            self._change(
                alter_configs({topic_resource(topic): [change]}),
                change="configure",
                topic=topic,
                value=value,
            )

    def _move(self) -> None:
        topics = {**self._moved, **self._own}
        topic = self._random.choice(sorted(topics))
        replicas = self._random.sample(BROKERS, self._random.randint(2, 3))
        place = TopicPartition(topic, self._random.randrange(topics[topic]))
        self._change(alter_partition_reassignments({place: replicas}), change="move", topic=topic)

    def _elect(self) -> None:
        with Admin(self._config) as admin:
            try:
                admin.call(elect_leaders(None))
            except ClientError:
                return

    def _some_own(self) -> list[str]:
        return [self._random.choice(sorted(self._own))] if self._own else []

    def _change(self, operation: Any, **line: Any) -> bool:
        """Carry it out on connections of its own, and write down whether it was acknowledged.

        That it is on its way is written down before: a change that nobody was told of counts.
        """
        tell(**line)
        with Admin(self._config) as admin:
            try:
                admin.call(operation).all()
            except ClientError as error:
                tell(**line, refused=f"{error!r}")
                return False
        tell(**line, done=True)
        return True


def main(bootstrap: str, seed: str, moved: str, properties: str) -> None:
    """An operator until the standard input ends."""
    config = admin_config(bootstrap, json.loads(properties))
    Operator(config, Random(int(seed)), json.loads(moved)).run()


if __name__ == "__main__":
    main(*sys.argv[1:])
