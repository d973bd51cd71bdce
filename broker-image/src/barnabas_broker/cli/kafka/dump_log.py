"""`kafka-dump-log`, which is `kafka-run-class kafka.tools.DumpLogSegments`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from barnabas_broker.cli.dump_log import decoder_options, dump_files
from barnabas_broker.cli.kafka.tool import refused, tool


@tool("kafka-dump-log")
@click.option("--files", required=True, help="Paths, separated by commas.")
@click.option("--print-data-log", is_flag=True, help="Print the records.")
@click.option("--deep-iteration", is_flag=True, help="Print what is known of each record.")
@click.option("--index-sanity-check", is_flag=True)
@click.option("--verify-index-only", is_flag=True)
@click.option("--max-bytes", type=click.IntRange(min=1), help="Look no further into a .log file.")
@click.option("--max-message-size", type=int, hidden=True)
@decoder_options
@refused(
    "--cluster-metadata-decoder", "--remote-log-metadata-decoder", "--share-group-state-decoder",
    "--skip-record-metadata", "--key-decoder-class", "--value-decoder-class",
    why="records are printed as text; barnabas dump-log --output json prints their bytes",
)  # fmt: skip
def main(files: str, deep_iteration: bool, max_message_size: int | None, **options: Any) -> None:
    """Show what is in the files of a data directory."""
    paths = [Path(name) for name in files.split(",")]
    dump_files(paths, output="text", deep=deep_iteration, **options)
