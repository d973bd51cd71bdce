"""Spark's many lines, in one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import PurePosixPath

import pytest

from barnabas_pipelines.errors import (
    AuthenticationError,
    AuthorizationError,
    NotReadyError,
    PipelineError,
)
from barnabas_pipelines.failures import explain, first_line
from barnabas_pipelines.spec import PipelineSpec

SPEC = PipelineSpec(name="p", topics=("a", "b"), path=PurePosixPath("/data/p"), interval_ms=5_000)
FRAME = "[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: "


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("org.x.UnknownTopicOrPartitionException: This server", "a topic of a, b is gone"),
        ("[KAFKA_DATA_LOSS.START_OFFSET_HAS_CHANGED] Some", "records of a, b were removed"),
        ("java.io.IOException: No space left on device", "the volume is full"),
        ("Timed out waiting for a node assignment. Call: x", "did not answer in time"),
        ("something new", "the query of p ended: something new"),
    ],
)
def test_known_failures_are_explained(text: str, meaning: str) -> None:
    """With what to do; and what Spark said itself, without its frame."""
    said = str(explain(f"{FRAME}{text} SQLSTATE: XXKST\n=== Streaming Query ===\n...", SPEC))
    assert meaning in said
    assert "STREAM_FAILED" not in said
    assert "SQLSTATE" not in said
    assert "Streaming Query" not in said


@pytest.mark.parametrize(
    ("text", "kind", "meaning"),
    [
        (
            "org.apache.kafka.common.errors.SaslAuthenticationException: invalid credentials",
            AuthenticationError,
            "the brokers refuse the pipeline's KafkaUser u: invalid credentials",
        ),
        (
            "java.lang.RuntimeException: x\nCaused by: SslAuthenticationException: SSL handshake"
            " failed\n\tat z".replace("Ssl", "org.apache.kafka.common.errors.Ssl"),
            AuthenticationError,
            "the brokers refuse the pipeline's KafkaUser u: SSL handshake failed",
        ),
        (
            "org.apache.kafka.common.errors.TopicAuthorizationException: Not authorized: [a]",
            AuthorizationError,
            "the pipeline's KafkaUser u may not read a, b: Not authorized: [a]",
        ),
    ],
)
def test_refusals_may_pass(text: str, kind: type[PipelineError], meaning: str) -> None:
    """They are errors of their own: another attempt may succeed."""
    found = explain(
        f"{FRAME}{text} SQLSTATE: XXKST\n=== Streaming Query ===", replace(SPEC, user="u")
    )
    assert type(found) is kind
    assert str(found) == meaning


def test_a_broker_that_does_not_answer_may_answer_later() -> None:
    """The process waits for it, as it does at its start."""
    text = (
        "org.apache.kafka.common.errors.TimeoutException: Timed out waiting for a node assignment."
    )
    assert type(explain(f"{FRAME}{text}", SPEC)) is NotReadyError


def test_classes_of_java_are_left_out() -> None:
    """They say nothing to whoever runs a pipeline."""
    text = "java.util.concurrent.ExecutionException: org.apache.kafka.common.errors.XException: why"
    assert first_line(text) == "why"
    assert first_line("") == ""


def test_an_error_is_one_line() -> None:
    """However many lines its author had."""
    assert str(PipelineError("no broker\n  at all")) == "no broker at all"
