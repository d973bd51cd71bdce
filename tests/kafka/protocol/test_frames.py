"""Tests of barnabas_kafka.protocol.frames."""

import pytest

from barnabas_kafka.protocol.frames import FrameError, FrameReader, frame, frame_size


def test_frame_is_its_length_and_its_parts() -> None:
    """The length counts the parts, not itself."""
    assert frame(b"header", memoryview(b"body")) == b"\0\0\0\x0aheaderbody"


@pytest.mark.parametrize("piece", range(1, 20))
def test_any_pieces_give_the_same_frames(piece: int) -> None:
    """Frames come out whole however the stream is cut."""
    stream = frame(b"one") + frame() + frame(b"three")
    reader = FrameReader()
    found: list[bytes] = []
    for start in range(0, len(stream), piece):
        reader.feed(stream[start : start + piece])
        found += reader.frames()
    assert found == [b"one", b"", b"three"]


def test_an_incomplete_frame_is_buffered() -> None:
    """The beginning of a frame stays in the buffer."""
    reader = FrameReader()
    reader.feed(frame(b"one") + b"\0\0\0\5tw")
    assert list(reader.frames()) == [b"one"]
    reader.feed(b"o!!")
    assert list(reader.frames()) == [b"two!!"]


@pytest.mark.parametrize("length", [b"\xff\xff\xff\xff", b"\0\0\0\x65"])
def test_impossible_lengths(length: bytes) -> None:
    """A negative length, or one over the limit, is refused as soon as it is read."""
    reader = FrameReader(limit=100)
    reader.feed(frame(b"good") + length)
    frames = reader.frames()
    assert next(frames) == b"good"
    with pytest.raises(FrameError):
        next(frames)


def test_limit_is_included() -> None:
    """A frame of exactly the limit is accepted."""
    assert frame_size(b"\0\0\0\x64", limit=100) == 100
