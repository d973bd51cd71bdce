"""The topics as a stream: options of Spark's Kafka source, and whether the broker has them."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from barnabas_pipelines.errors import (
    AuthenticationError,
    AuthorizationError,
    NotReadyError,
    SpecError,
)
from barnabas_pipelines.failures import user_of
from barnabas_pipelines.spec import PipelineSpec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CONNECT_TIMEOUT_S: Final = 5.0
METADATA_TIMEOUT_MS: Final = 10_000
# The source asks for the end of a partition twice per poll: with Kafka's 500 records per poll that
# is more requests than fetches. 20,000 make it a few per batch.
MAX_POLL_RECORDS: Final = 20_000


def kafka_options(spec: PipelineSpec, client: Mapping[str, str]) -> dict[str, str]:
    """The options of `format("kafka")` for a pipeline; `client` are properties of its clients."""
    return {
        **{f"kafka.{name}": value for name, value in client.items()},
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


def await_topics(spark: SparkSession, client: Mapping[str, str], spec: PipelineSpec) -> None:
    """Return if the pipeline may read all its topics; raises NotReadyError with what is missing.

    Asked with the connector's own client, which logs in as the source does: a stream on a topic
    that is missing, or that it may not read, dies only when it runs.
    """
    from py4j.protocol import Py4JJavaError

    jvm = spark._jvm
    where = f"the broker at {client['bootstrap.servers']}"
    settings = jvm.java.util.HashMap()
    for name, value in client.items():
        settings.put(name, value)
    settings.put("default.api.timeout.ms", str(METADATA_TIMEOUT_MS))
    settings.put("request.timeout.ms", str(METADATA_TIMEOUT_MS))
    settings.put("client.id", "barnabas-pipeline")
    absent, denied = [], []
    try:
        admin = jvm.org.apache.kafka.clients.admin.AdminClient.create(settings)
        try:
            described = _described(jvm, admin, spec)
            for topic in spec.topics:
                try:
                    operations = described.get(topic).get().authorizedOperations()
                except Py4JJavaError as error:
                    kind = _kind(error)
                    if kind == "UnknownTopicOrPartitionException":
                        absent.append(topic)
                    elif kind == "TopicAuthorizationException":
                        denied.append(topic)
                    else:
                        raise
                else:
                    # None where a broker does not send it.
                    if operations is not None and "READ" not in {it.name() for it in operations}:
                        denied.append(topic)
        finally:
            admin.close(jvm.java.time.Duration.ZERO)
    except Py4JJavaError as error:
        reason = _reason(error)
        if _kind(error).endswith("AuthenticationException"):
            text = f"{where} and {user_of(spec)} do not trust each other: {reason}"
            raise AuthenticationError(text) from error
        text = f"{where} does not say which topics it has: {reason}"
        raise NotReadyError(text) from error
    _refuse(absent, denied, spec, client["bootstrap.servers"])


def _described(jvm: Any, admin: Any, spec: PipelineSpec) -> Any:
    """The futures of the topics' descriptions, with what the client may do with each."""
    names = jvm.java.util.ArrayList()
    for topic in spec.topics:
        names.add(topic)
    options = jvm.org.apache.kafka.clients.admin.DescribeTopicsOptions()
    return admin.describeTopics(names, options.includeAuthorizedOperations(True)).topicNameValues()


def _refuse(absent: list[str], denied: list[str], spec: PipelineSpec, servers: str) -> None:
    """Raise NotReadyError if the topics are absent, or may not be read."""
    if denied:
        # Brokers answer the same for a topic that does not exist and one that may not be described.
        roles = ", ".join(f"{{type: consumer, topic: {topic}}}" for topic in denied)
        text = f"{user_of(spec)} may not read {_topics(denied)}: it needs the roles {roles}"
        raise AuthorizationError(text)
    if absent:
        text = f"the cluster at {servers} has no {_topics(absent)}: create it, or mend the name"
        raise NotReadyError(text)


def _topics(names: list[str]) -> str:
    return f"{'topics' if len(names) > 1 else 'topic'} {', '.join(names)}"


def _kind(error: object) -> str:
    """The class of a Java exception, without its package; of the one that it was raised for."""
    cause = getattr(error, "java_exception", None)
    if cause is None:
        return ""
    wrapped = cause.getCause()
    return str((wrapped or cause).getClass().getSimpleName())


def _reason(error: object) -> str:
    """The innermost message of a Java exception."""
    cause = getattr(error, "java_exception", None)
    while cause is not None and cause.getCause() is not None:
        cause = cause.getCause()
    return str(cause.getMessage() or cause.getClass().getSimpleName()) if cause else str(error)
