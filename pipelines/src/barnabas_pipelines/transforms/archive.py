"""A record of Kafka as a row of the archive."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas_pipelines.schemas import ARCHIVE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def archive_rows(records: DataFrame) -> DataFrame:
    """The archive's columns of what Spark's Kafka source delivers, in the archive's order."""
    return records.select(*(name for name, _ in ARCHIVE))
