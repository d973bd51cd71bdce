"""OffsetCommit: remember how far a group has read.

Version 0 belongs to consumers that keep their offsets in ZooKeeper, where they are written.
"""

from asyncio import Future
from copy import copy
from functools import partial

from barnabas_broker.cluster.failures import refusal
from barnabas_broker.coordinator.group.commits import (
    commit_write_error,
    refused_commit,
)
from barnabas_broker.coordinator.group.results import CoordinatorResult, Waiter
from barnabas_broker.coordinator.group.shard import Shard
from barnabas_broker.security.acls import AclOperation, ResourceType
from barnabas_broker.server.process.cooperative_scheduler import Work
from barnabas_broker.server.process.deferred_responses import then
from barnabas_broker.server.requests import offset_commits
from barnabas_broker.server.requests.fast.offset_commit import commits as fast_commits
from barnabas_broker.server.requests.handler import Handler, VersionRange
from barnabas_broker.server.requests.offset_commits import committable
from barnabas_broker.server.requests.request_context import RequestContext
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.ids import TopicPartition
from barnabas_kafka.protocol.group_values import GroupCommit
from barnabas_kafka.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from barnabas_kafka.protocol.registry import ApiKey
from barnabas_kafka.settings import broker as keys

COORDINATOR_SINCE = 1

Answer = OffsetCommitResponse | Work[OffsetCommitResponse]
"""A response, or the work that is left until there is one."""

Committing = OffsetCommitResponse | Future[OffsetCommitResponse]


def handle(request: OffsetCommitRequest, call: RequestContext) -> Work[Answer | Future[Answer]]:
    """Commit what the caller may and what exists; answers keep the order of the request."""
    if not _may_commit(request.group_id, call):
        return refused_commit(request, ErrorCode.GROUP_AUTHORIZATION_FAILED)
    codes = yield from offset_commits.faults(request.topics, call)
    if not codes and request.topics:
        # As nearly always; then the group's answer is in the order of the request.
        committing = yield from _commit(request, call)
        return then(committing, _as_it_is, partial(_refused, request))
    asked, request = request.topics, copy(request)
    request.topics = yield from offset_commits.without(asked, codes, OffsetCommitRequestTopic)

    def in_order() -> Work[OffsetCommitResponse]:
        made = (OffsetCommitResponseTopic, OffsetCommitResponsePartition)
        topics = yield from offset_commits.in_order(asked, codes, *made)
        return OffsetCommitResponse(topics=topics)

    def sorted_in(committed: OffsetCommitResponse) -> Work[OffsetCommitResponse]:
        yield from offset_commits.note(committed.topics, codes)
        return (yield from in_order())

    def answer(committed: OffsetCommitResponse) -> Answer:
        return sorted_in(committed)

    if not request.topics:
        return (yield from in_order())
    committing = yield from _commit(request, call)
    return then(committing, answer, lambda error: answer(_refused(request, error)))


def commit_at_once(commit: GroupCommit, call: RequestContext) -> bool:
    """Commit what the caller may, exists and counts at once; False, with nothing done, else."""
    if not _is_whole(commit, call):
        return False
    try:
        return call.broker.groups.commit_at_once(commit, call.version, call.now_ms)
    except (KafkaError, OSError) as error:  # Consumers expect a coordinator's errors, not a log's.
        refused = refusal(error, "OffsetCommit", commit[0])
        raise KafkaError(commit_write_error(refused.code), refused.message) from error


def _is_whole(commit: GroupCommit, call: RequestContext) -> bool:
    """Whether nothing of a commit is refused, whatever the group says."""
    group_id, _, _, _, _, topics = commit
    if not _may_commit(group_id, call):
        return False
    for name, _, partitions in topics:
        topic = committable(name, call)
        if isinstance(topic, ErrorCode):  # `handle` says so, and serves the other topics.
            return False
        for each in partitions:
            if topic.partition(each[0]) is None:
                return False
    return True


def _may_commit(group_id: str, call: RequestContext) -> bool:
    return call.allowed(AclOperation.READ, ResourceType.GROUP, group_id)


def _as_it_is(response: OffsetCommitResponse) -> Answer:
    return response


def _refused(request: OffsetCommitRequest, error: KafkaError) -> OffsetCommitResponse:
    return refused_commit(request, commit_write_error(error.code))


def _commit(request: OffsetCommitRequest, call: RequestContext) -> Work[Committing]:
    """What the group answers, or ZooKeeper."""
    if call.version < COORDINATOR_SINCE:
        return (yield from _written(request, call))
    return _committed(request, call)


def _written(request: OffsetCommitRequest, call: RequestContext) -> Work[Committing]:
    """Write to ZooKeeper what has metadata of a length that the coordinator would take."""
    metadata_bytes_max = call.broker.settings[keys.OFFSET_METADATA_MAX_BYTES]
    offsets: dict[TopicPartition, int] = {}
    response = OffsetCommitResponse()
    for topic in request.topics:
        answered = OffsetCommitResponseTopic(name=topic.name)
        response.topics.append(answered)
        for each in topic.partitions:
            code = ErrorCode.NONE
            if len((each.committed_metadata or "").encode()) > metadata_bytes_max:
                code = ErrorCode.OFFSET_METADATA_TOO_LARGE
            else:
                partition = TopicPartition(topic.name, each.partition_index)
                offsets[partition] = each.committed_offset
            answered.partitions.append(
                OffsetCommitResponsePartition(partition_index=each.partition_index, error_code=code)
            )
            yield
    written = call.broker.zookeeper_offsets.commit(request.group_id, offsets, now_ms=call.now_ms)

    def committed(_: int) -> OffsetCommitResponse:
        return response

    return then(written, committed, lambda error: refused_commit(request, error.code))


def _committed(request: OffsetCommitRequest, call: RequestContext) -> Committing:
    def step(shard: Shard, waiter: Waiter, now_ms: int) -> CoordinatorResult:
        return shard.commit(request, waiter, now_ms, call.version)

    try:
        response: OffsetCommitResponse | Future[OffsetCommitResponse] = call.broker.groups.ask(
            request.group_id, step
        )
    except Exception as error:  # What was refused before the group was asked has its own errors.
        return _refused(request, refusal(error, "OffsetCommit", request.group_id))
    return response


HANDLER = Handler(
    ApiKey.OFFSET_COMMIT,
    VersionRange(0, 9),
    handle,
    large=True,
    fast=fast_commits(commit_at_once),
)
