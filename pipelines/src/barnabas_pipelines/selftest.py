"""Whether an installation has all that a pipeline loads: for images jars were taken out of."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Final

from barnabas_pipelines import session
from barnabas_pipelines.batches import BatchDirectory
from barnabas_pipelines.connection import PROVIDER_CLASS
from barnabas_pipelines.errors import PipelineError
from barnabas_pipelines.sinks import ParquetSink
from barnabas_pipelines.spec import DEFAULT_MASTER

ROWS: Final = 1_000
CLASSES: Final = (
    "org.apache.kafka.clients.admin.AdminClient",
    "org.apache.kafka.common.security.scram.ScramLoginModule",
    PROVIDER_CLASS,
)


def run() -> str:
    """A line that says what works; raises PipelineError with what does not."""
    session.check_installed()
    with tempfile.TemporaryDirectory(prefix="barnabas-selftest-") as made:
        root = Path(made)
        connector = session.connector_jars()
        spark = session.start("selftest", master=DEFAULT_MASTER, work=root, connector=connector)
        try:
            for name in CLASSES:
                spark._jvm.java.lang.Class.forName(name)
            # Of TLS, and of the keys that the operator issues.
            spark._jvm.javax.net.ssl.SSLContext.getInstance("TLSv1.3")
            spark._jvm.java.security.KeyFactory.getInstance("EC")
            options = {"kafka.bootstrap.servers": "localhost:9", "subscribe": "none"}
            spark.readStream.format("kafka").options(**options).load()
            directory = BatchDirectory(root / "out", run="selftest")
            directory.claim("selftest", committed=None)
            sink = ParquetSink(directory, checkpoint=root / "checkpoint", files_per_batch=2)
            sink(spark.range(ROWS), 0)
            found = spark.read.parquet(str(root / "out" / "batch=0")).count()
        finally:
            spark.stop()
    if found != ROWS:
        raise PipelineError(f"wrote {ROWS} rows and read {found}")
    return f"Spark starts, has the Kafka connector, writes and reads Parquet ({found} rows)"
