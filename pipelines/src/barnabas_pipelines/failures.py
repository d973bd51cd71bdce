"""Why a running query ended, in one line out of Spark's many."""

from __future__ import annotations

import re
from typing import Final

from barnabas_pipelines.errors import (
    AuthenticationError,
    AuthorizationError,
    NotReadyError,
    PipelineError,
)
from barnabas_pipelines.spec import PipelineSpec

_PREAMBLE: Final = re.compile(r"^\[STREAM_FAILED\].*?terminated with exception:\s*", re.DOTALL)
_SQLSTATE: Final = re.compile(r"\s*SQLSTATE: \w+")
# Java exception classes before a message: "java.util.concurrent.ExecutionException: ".
_CLASSES: Final = re.compile(r"^(?:(?:[a-z]\w*\.)+[A-Z]\w*(?:Exception|Error): )+")

# What is found in Spark's text, and what it means for the pipeline.
TOPIC_GONE: Final = (
    "a topic of {topics} is gone from the cluster; create it again, or take it out of"
    " spec.source.topics and begin with a new checkpoint"
)
DATA_LOST: Final = (
    "records of {topics} were removed from the cluster before they were written to files;"
    " spec.source.failOnDataLoss: false goes on with what is left"
)
VOLUME_FULL: Final = (
    "the volume is full; make spec.storage.size larger, or move finished batches away"
)
NOT_AUTHENTICATED: Final = "the brokers refuse the pipeline's {user}: {said}"
NOT_AUTHORIZED: Final = "the pipeline's {user} may not read {topics}: {said}"
NO_ANSWER: Final = (
    "the broker did not answer in time; started again, the pipeline goes on where it was"
)
KNOWN: Final = (
    (re.compile(r"UnknownTopicOrPartition|does not host this topic-partition"), TOPIC_GONE),
    (re.compile(r"(?i)data_loss|data may have been lost|OffsetOutOfRange"), DATA_LOST),
    (re.compile(r"No space left on device|Disk quota exceeded"), VOLUME_FULL),
    (re.compile(r"Timed out waiting for a node|TimeoutException"), NO_ANSWER),
)


# Of these another attempt may succeed: passwords, certificates and ACLs change.
REFUSED: Final = (
    (re.compile(r"(?:Sasl|Ssl)?AuthenticationException"), NOT_AUTHENTICATED, AuthenticationError),
    (re.compile(r"\w*AuthorizationException"), NOT_AUTHORIZED, AuthorizationError),
)


def explain(text: str, spec: PipelineSpec) -> PipelineError:
    """The error for what Spark said when the query ended."""
    said, topics = first_line(text), ", ".join(spec.topics)
    for pattern, meaning, kind in REFUSED:
        if found := pattern.search(text):
            line = first_line(text[found.start() :]).removeprefix(f"{found[0]}: ")
            return kind(meaning.format(user=user_of(spec), topics=topics, said=line))
    for pattern, meaning in KNOWN:
        if pattern.search(text):
            failed = NotReadyError if meaning is NO_ANSWER else PipelineError
            return failed(f"{meaning.format(topics=topics)} ({said})")
    return PipelineError(f"the query of {spec.name} ended: {said}")


def user_of(spec: PipelineSpec) -> str:
    """The principal of a pipeline, for messages."""
    return f"KafkaUser {spec.user}" if spec.user else "user"


def first_line(text: str) -> str:
    """The first line of the innermost message, without Spark's frame around it."""
    inner = _PREAMBLE.sub("", text.strip())
    lines = [line.strip() for line in inner.splitlines() if line.strip()]
    line = lines[0] if lines else text.strip()
    return _CLASSES.sub("", _SQLSTATE.sub("", line)).strip()[:300]
