"""What goes wrong in a pipeline, each said in one line: what, where, and what to do."""

from __future__ import annotations


class PipelineError(Exception):
    """The pipeline cannot start or cannot go on: exit code 1."""

    def __init__(self, message: str) -> None:
        super().__init__(" ".join(message.split()))


class SpecError(PipelineError):
    """The file or an option is wrong and nothing was tried: exit code 2."""


class NotReadyError(PipelineError):
    """Something outside is not there yet, and may come: a broker, a topic. Waiting can help."""


class AuthenticationError(NotReadyError):
    """The brokers do not accept who the pipeline says it is, or it does not trust them."""


class AuthorizationError(NotReadyError):
    """The pipeline may not read a topic: an ACL is missing."""
