"""Fast paths against the declared codecs: the same requests, the same responses, byte for byte."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas_kafka.protocol import codec, plain_commit
from barnabas_kafka.protocol.embedded import OffsetCommitKey, OffsetCommitValue, pack
from barnabas_kafka.protocol.messages.offset_commit import OffsetCommitRequest
from barnabas_kafka.records.builder import build_batch, plain_batch_of
from tests.kafka.protocol.fast_path import FastPath
from tests.kafka.protocol.fast_paths import COMMITS, PATHS
from tests.kafka.pure import pure

NOW = 1_700_000_000_000
CLIENT_IDS = st.none() | st.text(st.characters(codec="utf-8"), max_size=40)
EVERY_PATH = pytest.mark.parametrize("path", PATHS.values(), ids=PATHS)
EVERY_VERSION = pytest.mark.parametrize(
    ("path", "version"),
    [
        pytest.param(path, version, id=f"{name}-{version}")
        for name, path in PATHS.items()
        for version in range(path.versions[0], path.versions[1] + 1)
    ],
)


def hold_against_codec(path: FastPath, frame: bytes, version: int) -> None:
    """Either the fast path leaves a request alone, or it finds what the declared codec finds."""
    found = path.read(frame, version)
    if found is not None:
        try:
            assert path.content(frame, found) == path.declared_content(frame, version)
        except (UnicodeDecodeError, codec.DecodeError):
            assert path.is_undecodable(found)


@EVERY_PATH
@given(data=st.data())
def test_ordinary_requests_are_read_as_declared(path: FastPath, data: st.DataObject) -> None:
    """Every part of a request without anything special is found, and nothing else."""
    version = data.draw(st.integers(*path.versions))
    frame = path.frame(data.draw(path.requests), version, data.draw(CLIENT_IDS))
    found = path.read(frame, version)
    assert found is not None
    assert path.content(frame, found) == path.declared_content(frame, version)
    assert path.read(frame + b"\0", version) is None


@EVERY_PATH
@settings(max_examples=400)
@given(data=st.data())
def test_damaged_requests_decode_as_with_the_declared_codec(
    path: FastPath, data: st.DataObject
) -> None:
    """A few bytes are others, or some are missing at the end."""
    version = data.draw(st.integers(*path.versions))
    whole = bytearray(path.frame(data.draw(path.requests), version))
    edit = st.tuples(st.integers(0, 2000), st.integers(0, 255))
    for where, value in data.draw(st.lists(edit, min_size=1, max_size=4)):
        whole[8 + where % (len(whole) - 8)] = value
    cut = data.draw(st.integers(0, 40))
    frame = bytes(whole[: len(whole) - cut] if cut < 20 else whole)
    hold_against_codec(path, frame, version)


@EVERY_PATH
@settings(max_examples=300)
@given(frame=st.binary(max_size=80), version=st.integers(-2, 20))
def test_noise_is_left_alone(path: FastPath, frame: bytes, version: int) -> None:
    """Random bytes never raise, and hardly ever look like a request."""
    hold_against_codec(path, frame, version)


@EVERY_VERSION
def test_uncommon_requests_take_the_slow_path(path: FastPath, version: int) -> None:
    """The examples of each path, and versions of other layouts."""
    for example in path.examples(version):
        frame = path.frame(example.request, version)
        assert (path.read(frame, version, example.most) is not None) == example.taken, example
        first, last = path.versions
        assert path.read(frame, first - 1) is path.read(frame, last + 1) is None


@EVERY_PATH
@given(data=st.data())
def test_answers_are_written_as_declared(path: FastPath, data: st.DataObject) -> None:
    """Byte for byte what the declared codec writes; what that refuses is left to it."""
    version = data.draw(st.integers(*path.versions))
    answer = data.draw(path.answers(version))
    for module in (path.module, pure(path.module.__name__)):
        written = answer.write(module)
        if written is None:
            assert answer.may_decline
        else:
            assert written == answer.expected


@given(request=COMMITS, count=st.sampled_from((1, 2, 70)))
def test_commits_are_laid_out_in_the_log_as_declared(
    request: OffsetCommitRequest, count: int
) -> None:
    """Byte for byte the batch of the declared key and value; also of commits that share it."""
    path = PATHS["OffsetCommit"]
    found = path.read(path.frame(request, 9), 9)
    contents: list[tuple[int, bytes | None, bytes | None, tuple[()]]] = []
    for topic in request.topics:
        for each in topic.partitions:
            key = OffsetCommitKey(
                group=request.group_id, topic=topic.name, partition=each.partition_index
            )
            value = OffsetCommitValue(
                offset=each.committed_offset,
                leader_epoch=each.committed_leader_epoch,
                metadata=each.committed_metadata or "",
                commit_timestamp=NOW,
            )
            contents.append((NOW, pack(key, 1), pack(value, 3), ()))
    expected = build_batch(contents * count)
    for module in (plain_commit, pure(plain_commit.__name__)):
        section, place = b"", 0
        for _ in range(count):
            more, place = module.records(found[1], found[5], NOW, place)
            section += more
        assert place == len(contents) * count
        assert plain_batch_of(section, place, NOW) == expected
