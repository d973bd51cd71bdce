"""Topics to Parquet: every record once, for any reader."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from barnabas_pipelines import sources
from barnabas_pipelines.sinks import ParquetSink
from barnabas_pipelines.spec import PipelineSpec
from barnabas_pipelines.transforms.archive import archive_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming import StreamingQuery


def start(
    spark: SparkSession,
    spec: PipelineSpec,
    sink: ParquetSink,
    *,
    client: Mapping[str, str],
    checkpoint: Path,
    once: bool,
) -> StreamingQuery:
    """Start the query; with `once` it ends when it has what was there at its start.

    `client` are the properties of Kafka's clients.
    """
    records = sources.stream(spark, sources.kafka_options(spec, client))
    writer = (
        archive_rows(records)
        .writeStream.queryName(spec.name)
        .option("checkpointLocation", str(checkpoint))
        .foreachBatch(sink)
    )
    if once:
        return writer.trigger(availableNow=True).start()
    return writer.trigger(processingTime=f"{spec.interval_ms} milliseconds").start()
