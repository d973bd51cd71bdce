"""Questions that both brokers are asked: what they say to refusals that programs read."""

from __future__ import annotations

from typing import Final

from barnabas_kafka.protocol.messages import alter_configs, incremental_alter_configs
from barnabas_kafka.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from barnabas_kafka.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from tests.oracle.sides import Side

TOPIC = 2
BROKER = 4


def words_of_growth(side: Side) -> None:
    """Why a topic does not get more partitions."""
    topic = side.topic("words-of-growth", partitions=3)
    placements: dict[str, tuple[str, int, list[list[int]] | None]] = {
        "fewer": (topic, 2, None),
        "as many": (topic, 3, None),
        "no such topic": ("words-nowhere", 4, None),
        "more replicas, one not there": (topic, 4, [[0, 12]]),
        "unknown broker": (topic, 4, [[12]]),
        "too many assignments": (topic, 4, [[0], [0]]),
        "too few assignments": (topic, 6, [[0], [0]]),
        "twice on a broker": (topic, 4, [[0, 0]]),
        "none and unknown": (topic, 5, [[0], [7]]),
        "no replicas": (topic, 4, [[]]),
    }
    for what, (name, count, rows) in placements.items():
        placed = None if rows is None else [CreatePartitionsAssignment(broker_ids=r) for r in rows]
        grown = CreatePartitionsTopic(name=name, count=count, assignments=placed)
        request = CreatePartitionsRequest(topics=[grown], timeout_ms=60_000, validate_only=True)
        answer = side.wait(request, 3, settled=lambda _: True)
        side.keep(what, [answer.results[0].error_code, answer.results[0].error_message])


def words_of_settings(side: Side) -> None:
    """What cannot have a setting; what is wrong with it each broker says in its own way."""
    topic = side.topic("words-of-settings")
    refused = [
        (TOPIC, topic, "retention.ms", "soon"),
        (TOPIC, topic, "cleanup.policy", "shred"),
        (TOPIC, topic, "min.insync.replicas", "0"),
        (BROKER, "", "log.retention.ms", "soon"),
        (BROKER, "0", "background.threads", "many"),
    ]
    for kind, name, key, value in refused:
        changes = [
            incremental_alter_configs.AlterableConfig(name=key, config_operation=0, value=value)
        ]
        incremental = incremental_alter_configs.IncrementalAlterConfigsRequest(
            resources=[
                incremental_alter_configs.AlterConfigsResource(
                    resource_type=kind, resource_name=name, configs=changes
                )
            ]
        )
        entries = [alter_configs.AlterableConfig(name=key, value=value)]
        replacing = alter_configs.AlterConfigsRequest(
            resources=[
                alter_configs.AlterConfigsResource(
                    resource_type=kind, resource_name=name, configs=entries
                )
            ]
        )
        for how, request in (("one", incremental), ("all", replacing)):
            answer = side.wait(request, 1, settled=lambda _: True).responses[0]
            side.keep(
                f"{key}, {how}", [answer.error_code, (answer.error_message or "").split(": ")[0]]
            )


def words_of_resources(side: Side) -> None:
    """Resources without settings here: client metrics (KIP-714) and groups are KRaft's."""
    for kind, name in ((16, "metrics"), (16, ""), (32, "group"), (99, "x"), (8, "0")):
        described = DescribeConfigsRequest(
            resources=[DescribeConfigsResource(resource_type=kind, resource_name=name)]
        )
        replacing = alter_configs.AlterConfigsRequest(
            resources=[alter_configs.AlterConfigsResource(resource_type=kind, resource_name=name)]
        )
        incremental = incremental_alter_configs.IncrementalAlterConfigsRequest(
            resources=[
                incremental_alter_configs.AlterConfigsResource(
                    resource_type=kind, resource_name=name
                )
            ]
        )
        if kind == 16:  # Others are refused as a whole, by Apache without a reason.
            answer = side.wait(described, 4, settled=lambda _: True).results[0]
            side.keep(f"{kind} {name!r} described", [answer.error_code, answer.error_message])
        for how, request in (("one", incremental), ("all", replacing)):
            answer = side.wait(request, 1, settled=lambda _: True).responses[0]
            side.keep(f"{kind} {name!r}, {how}", [answer.error_code, answer.error_message])


QUESTIONS: Final = (words_of_growth, words_of_settings, words_of_resources)
