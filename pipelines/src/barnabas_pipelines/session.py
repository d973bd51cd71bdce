"""A Spark session of the size of one small pod, with the Kafka connector on its class path."""

from __future__ import annotations

import importlib.util
import logging
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from importlib.resources import files
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final, cast

from barnabas_pipelines import jars
from barnabas_pipelines.connection import PROVIDER_CLASS
from barnabas_pipelines.errors import PipelineError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming import StreamingQuery

LOG: Final = logging.getLogger(__name__)

MASTER_VARIABLE: Final = "BARNABAS_SPARK_MASTER"
MEMORY_VARIABLE: Final = "BARNABAS_SPARK_DRIVER_MEMORY"
LOG_LEVEL_VARIABLE: Final = "BARNABAS_SPARK_LOG_LEVEL"
JARS_VARIABLE: Final = "BARNABAS_SPARK_JARS"
DEFAULT_DRIVER_MEMORY: Final = "512m"  # Spark asks for 450 MiB at least.
DEFAULT_LOG_LEVEL: Final = "error"
STOP_TIMEOUT_S: Final = 10
"""How long a query, and then the session, may wait for brokers that do not answer."""
JAVA_LEAST: Final = 17
SPARK_VERSION: Final = "4.2.0"  # The extra's; tests/test_distribution.py compares them.
_JAVA_VERSION: Final = re.compile(r'version "([0-9]+)')

# The first compiler only and a collector without threads: half the CPU time of a start, and 60 MB
# less. What the second compiler would win, a pipeline of this size spends waiting for its trigger.
JVM_FLAGS: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"

SETTINGS: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
    # What every reader of Parquet takes for a time; Spark's own default is a form given up by all.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.compression.codec": "zstd",
    # Row groups are held in memory, per writing task: sized and looked at for a heap of 512 MiB,
    # in which a few records of megabytes each must not wait for the hundredth to be counted.
    "spark.hadoop.parquet.block.size": str(16 << 20),
    "spark.hadoop.parquet.block.size.row.check.min": "4",
    "spark.hadoop.parquet.page.size.row.check.min": "4",
    # No _SUCCESS beside the files: a batch is there when its directory is.
    "spark.hadoop.mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    # How many batches the checkpoint remembers.
    "spark.sql.streaming.minBatchesToRetain": "20",
    # Spark's own expression, and what Kafka calls logins and keys: hidden wherever it shows
    # properties. Of a pipeline they are references to files.
    "spark.redaction.regex": "(?i)secret|password|token|access[.]?key|jaas|keystore|truststore",
}


def check_installed() -> None:
    """Raise PipelineError unless this Python has pyspark and the machine a Java that runs it."""
    if importlib.util.find_spec("pyspark") is None:
        text = (
            "pipelines need pyspark, which is not installed here:"
            f" `make spark` in the sources, or pip install pyspark=={SPARK_VERSION}"
        )
        raise PipelineError(text)
    java = java_program()
    major = java_major(java) if java else None
    if major is None or major < JAVA_LEAST:
        found = f"found version {major}" if major else "found none"
        text = (
            f"pipelines need Java {JAVA_LEAST} or newer ({found}):"
            " install a JRE (Debian: default-jre-headless) or set JAVA_HOME"
        )
        raise PipelineError(text)


def java_program() -> str | None:
    """The java that Spark will start: of JAVA_HOME, or on the path."""
    home = os.environ.get("JAVA_HOME")
    return shutil.which(str(Path(home) / "bin" / "java") if home else "java")


def java_major(java: str) -> int | None:
    """The major version of a java program, or None where it does not say."""
    asked = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)  # noqa: S603
    found = _JAVA_VERSION.search(asked.stderr + asked.stdout)
    return int(found[1]) if found else None


def connector_jars() -> list[Path]:
    """The connector's jars that are not among Spark's own already; fetched where they are missing.

    Raises PipelineError where they cannot be had.
    """
    import pyspark

    wanted = jars.locked()
    built_in = Path(pyspark.__file__).parent / "jars"
    if not jars.missing(built_in, wanted):
        return []
    kept = os.environ.get(JARS_VARIABLE)
    directory = Path(kept) if kept else jars.default_directory()
    return jars.fetch(directory, wanted, source=jars.repository())


def start(name: str, *, master: str, work: Path, connector: Sequence[Path] = ()) -> SparkSession:
    """A session of this name. `work` is for Spark's own files; `connector` for its class path.

    Raises PipelineError where no JVM comes up. One process has one session.
    """
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    from pyspark.errors import PySparkRuntimeError
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName(name).master(master)
    for key, value in settings(work=work, connector=connector).items():
        builder = builder.config(key, value)
    try:
        spark = builder.getOrCreate()
    except PySparkRuntimeError as error:
        text = f"Spark does not start ({error.getCondition()}): what Java said is above"
        raise PipelineError(text) from error
    # What Spark takes for an interactive shell gets a level of its own at the start.
    spark.sparkContext.setLogLevel(os.environ.get(LOG_LEVEL_VARIABLE, DEFAULT_LOG_LEVEL).upper())
    return spark


def stop_query(query: StreamingQuery) -> bool:
    """Stop a query, in `STOP_TIMEOUT_S` or not at all: its source may wait for a broker."""
    from py4j.protocol import Py4JJavaError

    try:
        query.stop()
    except Py4JJavaError as error:
        if error.java_exception.getClass().getSimpleName() != "TimeoutException":
            raise
        return False
    return True


def stop(spark: SparkSession) -> None:
    """Stop a session and end its JVM, which is killed after `STOP_TIMEOUT_S`.

    Consumers that are closed wait half a minute for a broker that does not answer.
    """
    jvm: subprocess.Popen[bytes] = spark.sparkContext._gateway.proc

    def end() -> None:
        with suppress(Exception):  # Of a JVM that is gone.
            spark.stop()
        cast("IO[bytes]", jvm.stdin).close()  # It ends then.

    threading.Thread(target=end, name="stop of Spark", daemon=True).start()
    try:
        jvm.wait(STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        LOG.warning("Spark waits for a broker that does not answer: its JVM is killed")
        jvm.kill()


def settings(*, work: Path, connector: Sequence[Path] = ()) -> dict[str, str]:
    """The session's settings by Spark's names."""
    level = os.environ.get(LOG_LEVEL_VARIABLE, DEFAULT_LOG_LEVEL)
    logging = files("barnabas_pipelines").joinpath("log4j2.properties")
    flags = (
        f"{JVM_FLAGS} -Dlog4j2.configurationFile={logging} -Dbarnabas.level={level}"
        f" -Djava.io.tmpdir={work}"
        # Of all that could resolve references in properties, this one alone (CVE-2024-31141).
        f" -Dorg.apache.kafka.automatic.config.providers={PROVIDER_CLASS}"
    )
    own = {
        "spark.driver.memory": os.environ.get(MEMORY_VARIABLE, DEFAULT_DRIVER_MEMORY),
        "spark.driver.extraJavaOptions": flags,
        "spark.local.dir": str(work),
        "spark.sql.warehouse.dir": str(work / "warehouse"),
        # Without one, a minute: the source's time limit for a broker that does not answer.
        "spark.sql.streaming.stopTimeout": f"{STOP_TIMEOUT_S}s",
    }
    if connector:
        own["spark.driver.extraClassPath"] = os.pathsep.join(map(str, connector))
    return {**SETTINGS, **own}
