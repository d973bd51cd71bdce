"""What a fast path is held against: the declared codec of its API, compiled and from source."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Final, NamedTuple

from hypothesis import strategies as st

from barnabas_kafka.protocol import codec, registry
from barnabas_kafka.protocol.headers import (
    RequestHeader,
    decode_client,
    encode_request_header,
    encode_response_header,
)
from tests.kafka.pure import pure

MOST: Final = 1000
"""Elements that a request may have, where an example does not say otherwise."""
CORRELATION_ID: Final = 7


class Answer(NamedTuple):
    """A response as the declared codec writes it, and how a fast path is asked for it."""

    expected: bytes | None
    """None where the declared codec refuses."""
    write: Callable[[ModuleType], bytes | None]
    may_decline: bool = False


class Example(NamedTuple):
    """A request, the elements it may have, and whether the fast path takes it."""

    request: Any
    taken: bool
    most: int = MOST


@dataclass(frozen=True, slots=True)
class FastPath:
    """One request's fast path, and what it is held against."""

    name: str
    api: registry.Api
    module: ModuleType
    versions: tuple[int, int]
    """The first and the last that it reads."""
    requests: st.SearchStrategy[Any]
    """Ordinary requests: a fast path that leaves one of them alone is slow without a sound."""
    declared: Callable[[Any, str | None, int], object]
    """The content of a decoded request, of a client of this id."""
    answers: Callable[[int], st.SearchStrategy[Answer]]
    content: Callable[[bytes, Any], object] = lambda _, found: found
    """The same of what the fast path has found in these bytes."""
    examples: Callable[[int], Iterable[Example]] = lambda _: ()
    reader: str = "read"
    is_bounded: bool = True
    blank: Callable[[Any, int], None] = lambda *_: None
    """Takes out of a request what a version has no room for."""
    is_undecodable: Callable[[Any], bool] = lambda _: False
    """Whether what was found has a text that cannot be decoded, and is left to its reader."""

    def frame(self, request: Any, version: int, client_id: str | None = "client") -> bytes:
        """A request as the declared codec writes it."""
        self.blank(request, version)
        header = RequestHeader(self.api.key, version, CORRELATION_ID, client_id)
        return encode_request_header(header) + codec.encode(request, version)

    def read(self, frame: bytes, version: int, most: int = MOST) -> Any:
        """What the module finds compiled and from source, which is the same; None for nothing."""
        limits = (most,) if self.is_bounded else ()
        source = pure(self.module.__name__)
        found = getattr(source, self.reader)(frame, version, *limits)
        assert getattr(self.module, self.reader)(frame, version, *limits) == found
        return found

    def declared_content(self, frame: bytes, version: int) -> object:
        """The content of a request by the declared codec, to its last byte."""
        client_id, body = decode_client(frame, 0, self.api.request_header_version(version))
        request, end = codec.decode_from(self.api.request, frame, version, body)
        assert end == len(frame)
        return self.declared(request, client_id, version)


def framed(response: Any, api: registry.Api, version: int) -> bytes:
    """A whole response with its length, as the declared codec writes it."""
    header = encode_response_header(CORRELATION_ID, api.response_header_version(version))
    body = header + codec.encode(response, version)
    return len(body).to_bytes(4, "big") + body
