"""The headers before every request and response body.

Request: key, version and correlation id; from header version 1 a client id, from 2 tagged fields.
The client id keeps its two-byte length in every version, so that brokers can read the header of a
version they do not know. Response: correlation id; from header version 1 tagged fields.
"""

from collections.abc import Callable
from struct import Struct as Layout
from struct import error as StructError  # noqa: N812 - it is an exception and reads like one
from typing import Final, NamedTuple

from barnabas_kafka.primitives import Buffer, skip_tagged_fields
from barnabas_kafka.protocol.codec import DecodeError, EncodeError
from barnabas_kafka.protocol.registry import api

_START: Final = Layout(">hhi")
_START_WITH_CLIENT: Final = Layout(">hhih")
_CORRELATION: Final = Layout(">i")


class RequestHeader(NamedTuple):
    """What precedes a request's body."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None


def decode_request_header(data: Buffer, offset: int = 0) -> tuple[RequestHeader, int]:
    """The header at `offset` and the position of the body; raises DecodeError.

    An unknown key is an error, because the length of its header cannot be known. An unknown
    version of a known key is not: ApiVersions must be answered whatever its version.
    """
    try:
        key, version, correlation_id = _START.unpack_from(data, offset)
        header_version = _request_header_version(key, version)
        client_id, position = decode_client(data, offset, header_version)
        return RequestHeader(key, version, correlation_id, client_id), position
    except (StructError, IndexError, ValueError) as error:
        raise DecodeError(f"malformed request header: {error}") from error


def decode_client(data: Buffer, offset: int, header_version: int) -> tuple[str | None, int]:
    """The client id of the request header at `offset`, and the position of the body.

    For a server that has read the numbers before it and knows the header's version, which is not
    checked against them. Raises DecodeError.
    """
    if header_version == 0:
        return None, offset + _START.size
    try:
        (length,) = _CLIENT_LENGTH(data, offset + _START.size)
        position = offset + _START_WITH_CLIENT.size
        client_id = None
        if length >= 0:
            end = position + length
            if end > len(data):
                raise DecodeError("the client id ends after the frame")
            client_id = str(data[position:end], "utf-8")
            position = end
        if header_version == 2:
            # Nearly all clients send no tagged fields at all, which is a count of zero.
            position = position + 1 if data[position] == 0 else skip_tagged_fields(data, position)
        return client_id, position
    except (StructError, IndexError, ValueError) as error:
        raise DecodeError(f"malformed request header: {error}") from error


def encode_request_header(header: RequestHeader, header_version: int | None = None) -> bytes:
    """The header of a request; raises EncodeError where a value does not fit.

    Without a header version it is the one that goes with the header's key and version.
    """
    key, version, correlation_id, client_id = header
    try:
        if header_version is None:
            header_version = _request_header_version(key, version)
        if header_version == 0:
            return _START.pack(key, version, correlation_id)
        text = b"" if client_id is None else client_id.encode()
        length = -1 if client_id is None else len(text)
        start = _START_WITH_CLIENT.pack(key, version, correlation_id, length)
    except (StructError, ValueError) as error:
        raise EncodeError(f"cannot encode {header}: {error}") from error
    return start + text + (b"\0" if header_version == 2 else b"")


def encode_response_header(correlation_id: int, header_version: int) -> bytes:
    """The header of a response."""
    return _CORRELATION.pack(correlation_id) + (b"\0" if header_version else b"")


def decode_response_header(data: Buffer, header_version: int, offset: int = 0) -> tuple[int, int]:
    """The correlation id and the position of the body; raises DecodeError."""
    try:
        (correlation_id,) = _CORRELATION.unpack_from(data, offset)
        position = offset + _CORRELATION.size
        if header_version:
            position = skip_tagged_fields(data, position)
        return correlation_id, position
    except (StructError, IndexError, ValueError) as error:
        raise DecodeError(f"malformed response header: {error}") from error


def _request_header_version(key: int, version: int) -> int:
    known = _HEADER_VERSIONS.get((key, version))
    if known is None:
        known = api(key).request_header_version(version)
        if version in api(key).versions:
            _HEADER_VERSIONS[key, version] = known
    return known


_CLIENT_LENGTH: Final[Callable[[Buffer, int], tuple[int]]] = Layout(">h").unpack_from
_HEADER_VERSIONS: Final[dict[tuple[int, int], int]] = {}
