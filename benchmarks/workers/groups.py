"""A client of the group coordinator: rebalances of one large group, commits of many small ones.

Modes: ``rebalance`` takes a group of `members` through `rebalances`; ``commit`` has `groups` of one
member each commit offsets, one request in flight in each, for `seconds` or until `requests`;
``form`` makes groups of one member each with one offset, and nothing is measured but memory.
"""

from __future__ import annotations

import atexit
import time
from collections.abc import Callable
from typing import Final

from barnabas_kafka.protocol.codec import encode
from barnabas_kafka.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from barnabas_kafka.protocol.registry import ApiKey
from benchmarks.workers import frames
from benchmarks.workers.members import Crowd, Member, await_coordinator, error_in
from benchmarks.workers.protocol import Report, Spec, serve
from benchmarks.workers.raw import allow_many_files, connect

COMMIT_VERSION: Final = 7
ERROR_PLACE: Final = 2
"""Bytes from the end of an answer about one partition to its error code."""


def prepare(spec: Spec) -> Callable[[], Report]:
    """Members in their groups; the callable does what the mode says."""
    allow_many_files()
    prefix = f"bench-{time.time_ns()}"
    await_coordinator(spec["bootstrap"], prefix)
    count, mode = spec["members"], spec["mode"]
    names = [prefix if mode == "rebalance" else f"{prefix}-{number}" for number in range(count)]
    crowd = Crowd([Member(connect(spec["bootstrap"]), name) for name in names])
    if mode == "form":
        return lambda: _form(crowd, spec)
    crowd.form()
    # Not measured: it comes after the report, when the worker ends.
    atexit.register(crowd.leave)
    return (lambda: _rebalances(crowd, spec)) if mode == "rebalance" else _committing(crowd, spec)


def _rebalances(crowd: Crowd, spec: Spec) -> Report:
    begin = time.perf_counter()
    for _ in range(spec["rebalances"]):
        crowd.rebalance()
    return {"rebalances": spec["rebalances"], "seconds": time.perf_counter() - begin}


def _form(crowd: Crowd, spec: Spec) -> Report:
    begin = time.perf_counter()
    crowd.form()
    _commits(crowd, spec, until=begin, limit=0)
    return {"seconds": time.perf_counter() - begin}


def _committing(crowd: Crowd, spec: Spec) -> Callable[[], Report]:
    def work() -> Report:
        begin = time.perf_counter()
        done = _commits(crowd, spec, until=begin + spec["seconds"], limit=spec["requests"])
        return {"requests": done, "seconds": time.perf_counter() - begin}

    return work


def _commits(crowd: Crowd, spec: Spec, *, until: float, limit: int) -> int:
    """One commit of each member after the other until then, at least one; returns how many."""
    requests = {member: _commit_frame(member, spec["topic"]) for member in crowd.members}
    for member, request in requests.items():
        member.connection.sendall(request)
    done = 0

    def answered(member: Member, answer: bytes) -> bool:
        nonlocal done
        code = error_in(answer, after=len(answer) - ERROR_PLACE)
        if code:
            raise RuntimeError(f"OffsetCommit answered error {code}")
        done += 1
        if done >= limit or time.perf_counter() >= until:
            return True
        member.connection.sendall(requests[member])
        return False

    crowd.until_all(answered)
    return done


def _commit_frame(member: Member, topic: str) -> bytes:
    place = OffsetCommitRequestPartition(
        partition_index=0, committed_offset=17, committed_leader_epoch=0, committed_metadata=""
    )
    request = OffsetCommitRequest(
        group_id=member.group,
        generation_id_or_member_epoch=member.generation,
        member_id=member.id,
        topics=[OffsetCommitRequestTopic(name=topic, partitions=[place])],
    )
    return frames.framed(ApiKey.OFFSET_COMMIT, COMMIT_VERSION, encode(request, COMMIT_VERSION))


if __name__ == "__main__":
    serve(prepare)
