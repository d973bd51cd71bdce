"""`barnabas size`: how large a broker's disk must be, with the arithmetic shown."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import click
import yaml

from barnabas_operator.api.amounts import format_bytes
from barnabas_operator.api.declarations import camel_case
from barnabas_operator.api.reading import ResourceError, read_cluster, read_sizing
from barnabas_operator.resources.brokers import log_shape
from barnabas_operator.sizing import Estimate, LogShape, estimate

CLUSTER_KIND: Final = "KafkaCluster"

Command = Callable[..., None]

_FACTORS: Final = (
    ("messages-per-day", int, "New messages per day, all topics together."),
    ("average-message-bytes", int, "Key, value and headers of a message together."),
    ("retention", str, "How long messages are kept, such as 7d."),
    ("replicas", int, "Copies of each message."),
    ("compression-ratio", float, "Compressed over plain size; 1 is no compression."),
    ("partitions", int, "Partitions of all topics together."),
    ("messages-per-batch", int, "Messages that producers put into a batch."),
    ("headroom", float, "Part of the disk that stays free, such as 0.2."),
)


def _factors(command: Command) -> Command:
    for name, kind, text in reversed(_FACTORS):
        command = click.option(f"--{name}", type=kind, help=text)(command)
    return command


@click.command(epilog="The factors, and what they leave out: docs/operations/sizing.md.")
@click.argument(
    "file", required=False, type=click.Path(exists=True, dir_okay=False, path_type=Path)
)
@_factors
@click.option("--brokers", type=click.IntRange(1), default=1, show_default=True, help="Brokers.")
@click.option(
    "--segment-bytes",
    type=click.IntRange(1),
    default=LogShape().segment_bytes,
    show_default=True,
    help="The brokers' log.segment.bytes.",
)
@click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "json", "yaml"]),
    default="text",
    help="How to show it.",
)
def size(file: Path | None, brokers: int, segment_bytes: int, output: str, **factors: Any) -> None:
    """Compute the disk of each broker.

    From spec.brokers.storage.sizing of the KafkaClusters in FILE, or from the options; both
    --messages-per-day and --average-message-bytes are needed then.
    """
    given = {camel_case(name): value for name, value in factors.items() if value is not None}
    if (file is None) == (not given):
        raise click.UsageError("give either FILE or factors such as --messages-per-day")
    try:
        if file is not None:
            estimates = dict(_of_file(file))
        else:
            shape = LogShape(segment_bytes=segment_bytes)
            sizing = read_sizing(given, "options")
            estimates = {"": estimate(sizing, brokers=brokers, shape=shape)}
    except ResourceError as error:
        raise click.UsageError(str(error)) from error
    if output != "text":
        shown = {name or "brokers": _as_json(each) for name, each in estimates.items()}
        as_yaml = output == "yaml"
        text = yaml.safe_dump(shown, sort_keys=False) if as_yaml else json.dumps(shown, indent=2)
        click.echo(text.rstrip())
        return
    for name, each in estimates.items():
        if name:
            click.echo(f"{name}:")
        for line in each.lines:
            click.echo(f"  {line}")
        click.echo(f"  claim: {format_bytes(each.claim_bytes)}")


def _of_file(path: Path) -> Iterator[tuple[str, Estimate]]:
    try:
        documents = list(yaml.safe_load_all(path.read_text(encoding="utf-8")))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise click.UsageError(f"{path}: {error}") from error
    found = False
    for document in documents:
        if not isinstance(document, dict) or document.get("kind") != CLUSTER_KIND:
            continue
        found = True
        spec = read_cluster(document).body.spec
        sizing = spec.brokers.storage.sizing
        if sizing is None:
            text = (
                f"{path}: spec.brokers.storage has a size ({spec.brokers.storage.size}), no sizing"
            )
            raise click.UsageError(text)
        shape = log_shape(spec.config)
        yield (
            document["metadata"]["name"],
            estimate(sizing, brokers=spec.brokers.replicas, shape=shape),
        )
    if not found:
        raise click.UsageError(f"{path}: there is no {CLUSTER_KIND} in it")


def _as_json(each: Estimate) -> dict[str, Any]:
    written = dataclasses.asdict(each)
    return {camel_case(name): value for name, value in written.items()} | {
        "claimBytes": each.claim_bytes,
        "claim": format_bytes(each.claim_bytes),
    }
