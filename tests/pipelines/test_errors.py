"""Errors are lines."""

from barnabas_pipelines.errors import PipelineError


def test_an_error_is_one_line() -> None:
    """However many lines its author had."""
    assert str(PipelineError("no broker\n  at all")) == "no broker at all"
