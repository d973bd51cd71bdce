"""`barnabas elect-leaders`: leadership back to the preferred replicas, or to any that is left."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from barnabas_broker.cli.admin import AdminSession
from barnabas_broker.cli.client import Connection, connection_options
from barnabas_broker.cli.errors import CommandError, InputError
from barnabas_broker.cli.json_files import read_json
from barnabas_broker.cli.offsets import partitions_there
from barnabas_broker.cli.output import output_option, print_json, print_table
from barnabas_kafka.client import BrokerError, ElectionType, TopicDescription, list_topics
from barnabas_kafka.client import elect_leaders as elections
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.ids import TopicPartition
from barnabas_kafka.reassignment.files import read_elections

Answers = Mapping[TopicPartition, BrokerError | None]


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
    with AdminSession(connection) as session:
        if selections:
            topics = session.call(list_topics())
            there = {
                name: [each.partition for each in topic.partitions]
                for name, topic in topics.items()
            }
            found = partitions_there(selections, there, exclude_internal=False)
            wanted = [TopicPartition(*each) for each in found]
        answers = session.call(elections(wanted, ElectionType[kind.upper()]))
        topics = session.call(list_topics())
    _show(topics, answers, output)


def _show(topics: Mapping[str, TopicDescription], answers: Answers, output: str) -> None:
    leaders = {
        TopicPartition(name, each.partition): each.leader
        for name, topic in topics.items()
        for each in topic.partitions
    }
    rows: list[dict[str, Any]] = []
    failed = 0
    for tp, error in sorted(answers.items()):
        result = "elected" if error is None else "failed"
        if error is not None and error.code is ErrorCode.ELECTION_NOT_NEEDED:
            result = "not needed"
        leader = leaders.get(tp, -1)
        failed += result == "failed"
        rows.append(
            {
                "topic": tp.topic,
                "partition": tp.partition,
                "result": result,
                "leader": leader if leader >= 0 else None,
                "reason": str(error) if result == "failed" else None,
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
