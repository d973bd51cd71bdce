"""`barnabas elect-leaders`: leadership back to the preferred replicas, or to any that is left."""

from __future__ import annotations

from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from barnabas_broker.cli.client import Connection, connection_options
from barnabas_broker.cli.errors import CommandError, InputError
from barnabas_broker.cli.json_files import read_json
from barnabas_broker.cli.offsets import partitions_there
from barnabas_broker.cli.output import output_option, print_json, print_table
from barnabas_broker.cli.wire import ask_controller
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.ids import TopicPartition
from barnabas_kafka.protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    TopicPartitions,
)
from barnabas_kafka.reassignment.files import read_elections

if TYPE_CHECKING:
    from confluent_kafka.admin import ClusterMetadata

Answers = dict[TopicPartition, tuple[ErrorCode, str | None]]

RESULTS = {ErrorCode.NONE: "elected", ErrorCode.ELECTION_NOT_NEEDED: "not needed"}


class ElectionType(IntEnum):
    """What ElectLeaders asks for (KIP-460)."""

    PREFERRED = 0
    UNCLEAN = 1


@click.command(name="elect-leaders")
@click.argument("selections", nargs=-1, metavar="[TOPIC[:PARTITIONS]]...")
@click.option("--all", "everything", is_flag=True, help="Every partition that it would change.")
@click.option(
    "--file",
    "path",
    type=click.Path(path_type=Path),
    help="The partitions, as in the path-to-json-file of kafka-leader-election.",
)
@click.option(
    "--type",
    "kind",
    type=click.Choice(["preferred", "unclean"]),
    default="preferred",
    show_default=True,
    help="unclean: of a partition without leader, any replica that lives; it may lose records.",
)
@output_option
@connection_options
def elect_leaders(
    selections: tuple[str, ...],
    everything: bool,
    path: Path | None,
    kind: str,
    output: str,
    connection: Connection,
) -> None:
    """Elect preferred leaders, or any where there are none.

    PARTITIONS are numbers and ranges: orders:0,2,5-8. A partition that is led as it should be
    counts as done. Exits with 1 if a leader could not be elected.
    """
    if bool(selections) + everything + (path is not None) != 1:
        raise InputError("say which partitions: TOPIC[:PARTITIONS], --all or --file, one of them")
    wanted = read_json(path, read_elections) if path else None
    client, metadata = connection.admin()
    if selections:
        there = partitions_there(selections, metadata, exclude_internal=False)
        wanted = [TopicPartition(*each) for each in there]
    answers = _elect(connection, ElectionType[kind.upper()], wanted)
    _show(connection.metadata(client), answers, output)


def _elect(
    connection: Connection, kind: ElectionType, wanted: list[TopicPartition] | None
) -> Answers:
    # librdkafka has the request, but its Python face fails on a refusal of a partition.
    by_topic: dict[str, list[int]] = {}
    for tp in wanted or ():
        by_topic.setdefault(tp.topic, []).append(tp.partition)
    asked = None
    if wanted is not None:
        asked = [TopicPartitions(topic=name, partitions=all_) for name, all_ in by_topic.items()]
    request = ElectLeadersRequest(
        election_type=kind,
        topic_partitions=asked,
        timeout_ms=int(connection.timeout_s * 1000),
    )
    response, _ = ask_controller(
        connection, request, ElectLeadersResponse, refused=_is_no_controller
    )
    if response.error_code:
        raise CommandError(f"cannot elect leaders: {ErrorCode(response.error_code).name}")
    return {
        TopicPartition(topic.topic, it.partition_id): (ErrorCode(it.error_code), it.error_message)
        for topic in response.replica_election_results
        for it in topic.partition_result
    }


def _is_no_controller(response: ElectLeadersResponse) -> bool:
    codes = {
        it.error_code for each in response.replica_election_results for it in each.partition_result
    }
    return ErrorCode.NOT_CONTROLLER in {response.error_code, *codes}


def _show(metadata: ClusterMetadata, answers: Answers, output: str) -> None:
    rows: list[dict[str, Any]] = []
    failed = 0
    for tp, (code, message) in sorted(answers.items()):
        result = RESULTS.get(code, "failed")
        topic = metadata.topics.get(tp.topic)
        found = topic.partitions.get(tp.partition) if topic else None
        failed += result == "failed"
        rows.append(
            {
                "topic": tp.topic,
                "partition": tp.partition,
                "result": result,
                "leader": found.leader if found is not None and found.leader >= 0 else None,
                "reason": f"{code.name}: {message or ''}" if result == "failed" else None,
            }
        )
    if output == "json":
        print_json(rows)
    elif rows:
        print_table(list(rows[0]), [list(row.values()) for row in rows])
    else:
        click.echo("Every partition is led as it should be.")
    if failed:
        raise CommandError(f"{failed} of {len(rows)} elections failed")
