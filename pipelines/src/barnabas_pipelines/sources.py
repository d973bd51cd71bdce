"""The topics as a stream: options of Spark's Kafka source, and whether the broker has them."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from barnabas_pipelines.errors import NotReadyError, SpecError
from barnabas_pipelines.spec import PipelineSpec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CONNECT_TIMEOUT_S: Final = 5.0
METADATA_TIMEOUT_MS: Final = 10_000
# The source asks for the end of a partition twice per poll: with Kafka's 500 records per poll that
# is more requests than fetches. 20,000 make it a few per batch.
MAX_POLL_RECORDS: Final = 20_000


def kafka_options(spec: PipelineSpec, *, bootstrap: str) -> dict[str, str]:
    """The options of `format("kafka")` for a pipeline."""
    return {
        "kafka.bootstrap.servers": bootstrap,
        # An archive of what was sent, not of what its sender took back.
        "kafka.isolation.level": "read_committed",
        "kafka.max.poll.records": str(MAX_POLL_RECORDS),
        "subscribe": ",".join(spec.topics),
        "startingOffsets": spec.starting_offsets,
        "maxOffsetsPerTrigger": str(spec.max_offsets_per_trigger),
        "failOnDataLoss": str(spec.fail_on_data_loss).lower(),
        "includeHeaders": "true",
    }


def stream(spark: SparkSession, options: dict[str, str]) -> DataFrame:
    """The unbounded table of the topics' records."""
    return spark.readStream.format("kafka").options(**options).load()


def await_broker(bootstrap: str) -> None:
    """Return when one of the addresses accepts a connection; raises NotReadyError if none does."""
    reasons = []
    for host, port in addresses(bootstrap):
        try:
            socket.create_connection((host, port), CONNECT_TIMEOUT_S).close()
        except OSError as error:
            reasons.append(f"{host}:{port} ({error.strerror or error})")
        else:
            return
    text = f"no broker answers at {', '.join(reasons)}: start it, or name another with --bootstrap"
    raise NotReadyError(text)


def addresses(bootstrap: str) -> list[tuple[str, int]]:
    """Host and port of each address in a comma-separated list; raises SpecError."""
    found = []
    for address in bootstrap.split(","):
        host, _, port = address.strip().rpartition(":")
        if not host or not port.isdigit() or int(port) > 65_535:
            raise SpecError(f"{address.strip()!r} is no address of a broker such as localhost:9092")
        found.append((host.strip("[]"), int(port)))
    return found


def await_topics(spark: SparkSession, bootstrap: str, topics: Sequence[str]) -> None:
    """Return if the cluster has all the topics; raises NotReadyError with those it has not.

    Asked with the connector's own client: a stream on a missing topic dies only when it runs.
    """
    from py4j.protocol import Py4JJavaError

    jvm = spark._jvm
    settings = jvm.java.util.HashMap()
    settings.put("bootstrap.servers", bootstrap)
    settings.put("default.api.timeout.ms", str(METADATA_TIMEOUT_MS))
    settings.put("request.timeout.ms", str(METADATA_TIMEOUT_MS))
    settings.put("client.id", "barnabas-pipeline")
    try:
        admin = jvm.org.apache.kafka.clients.admin.AdminClient.create(settings)
        try:
            present = set(admin.listTopics().names().get())
        finally:
            admin.close(jvm.java.time.Duration.ZERO)
    except Py4JJavaError as error:
        reason = _reason(error)
        text = f"the broker at {bootstrap} does not say which topics it has: {reason}"
        raise NotReadyError(text) from error
    absent = [topic for topic in topics if topic not in present]
    if absent:
        plural = "topics" if len(absent) > 1 else "topic"
        names = ", ".join(absent)
        text = f"the cluster at {bootstrap} has no {plural} {names}: create it, or mend the name"
        raise NotReadyError(text)


def _reason(error: object) -> str:
    """The innermost message of a Java exception."""
    cause = getattr(error, "java_exception", None)
    while cause is not None and cause.getCause() is not None:
        cause = cause.getCause()
    return str(cause.getMessage() or cause.getClass().getSimpleName()) if cause else str(error)
