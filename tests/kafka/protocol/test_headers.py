"""Tests of barnabas_kafka.protocol.headers."""

import pytest

from barnabas_kafka.protocol.codec import DecodeError, EncodeError
from barnabas_kafka.protocol.headers import (
    RequestHeader,
    decode_request_header,
    decode_response_header,
    encode_request_header,
    encode_response_header,
)

HEADERS = [
    pytest.param(RequestHeader(7, 0, 9, None), "0007 0000 00000009", id="no client id"),
    pytest.param(RequestHeader(3, 8, 9, "me"), "0003 0008 00000009 0002 6d65", id="version 1"),
    pytest.param(RequestHeader(3, 8, -1, None), "0003 0008 ffffffff ffff", id="null client id"),
    pytest.param(RequestHeader(3, 9, 9, "me"), "0003 0009 00000009 0002 6d65 00", id="version 2"),
    pytest.param(RequestHeader(17, 1, 9, ""), "0011 0001 00000009 0000", id="never flexible"),
]


@pytest.mark.parametrize(("header", "encoded"), HEADERS)
def test_request_headers(header: RequestHeader, encoded: str) -> None:
    """The form follows from key and version; the client id keeps its two-byte length."""
    data = bytes.fromhex(encoded)
    assert encode_request_header(header) == data
    assert decode_request_header(b"??" + data + b"body", 2) == (header, 2 + len(data))


@pytest.mark.parametrize(("header", "encoded"), HEADERS)
def test_request_headers_cut_off(header: RequestHeader, encoded: str) -> None:
    """A header that the frame does not finish is a DecodeError."""
    data = bytes.fromhex(encoded)
    for length in range(len(data)):
        with pytest.raises(DecodeError):
            decode_request_header(data[:length])


def test_header_of_an_unknown_version_of_api_versions() -> None:
    """A client of the future can be answered, because its header can be read."""
    data = bytes.fromhex("0012 0063 00000009 0002 6d65 00")
    assert decode_request_header(data)[0] == RequestHeader(18, 99, 9, "me")


def test_unknown_key() -> None:
    """The header of an unknown request cannot be read, nor written."""
    with pytest.raises(DecodeError):
        decode_request_header(bytes.fromhex("03e7 0000 00000009 ffff"))
    with pytest.raises(EncodeError):
        encode_request_header(RequestHeader(999, 0, 9, None))


def test_tagged_fields_of_the_header_are_skipped() -> None:
    """Newer clients may put tagged fields into the header."""
    data = bytes.fromhex("0003 0009 00000009 ffff 01 05 02 aabb")
    assert decode_request_header(data) == (RequestHeader(3, 9, 9, None), len(data))


@pytest.mark.parametrize(("version", "encoded"), [(0, "00000009"), (1, "0000000900")])
def test_response_headers(version: int, encoded: str) -> None:
    """A correlation id, and tagged fields in version 1."""
    data = bytes.fromhex(encoded)
    assert encode_response_header(9, version) == data
    assert decode_response_header(b"?" + data + b"body", version, 1) == (9, 1 + len(data))
    for length in range(len(data)):
        with pytest.raises(DecodeError):
            decode_response_header(data[:length], version)


def test_values_that_do_not_fit() -> None:
    """A client id of more than 32,767 bytes has no header."""
    with pytest.raises(EncodeError):
        encode_request_header(RequestHeader(3, 8, 9, "x" * 40_000))
