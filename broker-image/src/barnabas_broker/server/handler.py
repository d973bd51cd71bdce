"""What a handler module declares: the API it serves, in which versions, with which function.

Each module under `server/handlers/` has one `HANDLER`. Dispatch collects them, and the
ApiVersions answer is derived from them: a version without a handler is never advertised.
"""

from asyncio import Future
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from barnabas_broker.server.call import Call
from barnabas_kafka.protocol.registry import ApiKey, VersionRange

__all__ = ["Handle", "Handler", "UnanswerableError", "VersionRange"]

# Request and response classes differ per API. The registry pairs them with the key, so that the
# session always decodes what the handler expects; a type variable here would only hide that.
# The result is the response, a Future of it where the handler must wait for something, or None
# where the protocol has no response (Produce with acks=0).
Handle = Callable[[Any, Call], Any | Future[Any] | None]


@dataclass(frozen=True, slots=True)
class Handler:
    """One API as this broker serves it."""

    api_key: ApiKey
    versions: VersionRange
    handle: Handle


class UnanswerableError(Exception):
    """No response to this request could be understood, or none exists: the connection must end."""
