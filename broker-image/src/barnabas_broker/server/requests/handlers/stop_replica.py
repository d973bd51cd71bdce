"""StopReplica: the controller has this broker give up replicas, and delete those that are to go.

Kafka's `ReplicaManager.stopReplicas`: an older leader epoch than the one that is known stops
nothing, unless it is -2, of a topic that is being deleted, or -1, of old controllers that send
none.
"""

from asyncio import Future, wrap_future
from collections.abc import Iterator, Sequence
from concurrent.futures import Future as ThreadFuture
from functools import partial

from barnabas_broker.cluster.failures import refusal
from barnabas_broker.controller.controller import Controller
from barnabas_broker.security.acls import AclOperation
from barnabas_broker.server.process.cooperative_scheduler import Work, each
from barnabas_broker.server.process.deferred_responses import together
from barnabas_broker.server.requests.broker_services import BrokerServices
from barnabas_broker.server.requests.handler import Handler, among_others
from barnabas_broker.server.requests.request_context import RequestContext
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.ids import TopicPartition
from barnabas_kafka.protocol.messages.stop_replica import (
    StopReplicaPartitionError,
    StopReplicaRequest,
    StopReplicaResponse,
)
from barnabas_kafka.protocol.registry import ApiKey, VersionRange

# From here on each partition says for itself whether it is to be deleted.
BY_PARTITION_SINCE = 3
NO_EPOCH = -1

Asked = tuple[TopicPartition, int, bool]
"""A replica, the leader epoch of the request, and whether it is to be deleted."""


def handle(
    request: StopReplicaRequest, call: RequestContext
) -> StopReplicaResponse | Future[Work[StopReplicaResponse | Future[StopReplicaResponse]]]:
    """Answer when the replicas are given up.

    A deletion is confirmed when the log is gone, which may have to wait for a truncation: what the
    controller forgets must not come back after a crash.
    """
    if not call.allowed_on_cluster(AclOperation.CLUSTER_ACTION):
        return StopReplicaResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)

    def check(controller: Controller) -> ErrorCode:
        refusal = controller.accept_controller(request.controller_epoch, request.broker_epoch)
        return refusal or ErrorCode.NONE

    def answer(code: ErrorCode) -> Work[StopReplicaResponse | Future[StopReplicaResponse]]:
        if code is not ErrorCode.NONE:
            return StopReplicaResponse(error_code=code)
        asked = list(_asked(request, call.version))
        stopped = yield from each(asked, partial(_stopped, call.broker))
        return together(stopped, partial(_response, [tp for tp, _, _ in asked]))

    # Behind the requests that came before it, which are obeyed in the controller's thread.
    return call.broker.controller.ask(check, answer)


def _asked(request: StopReplicaRequest, version: int) -> Iterator[Asked]:
    if version >= BY_PARTITION_SINCE:
        for topic in request.topic_states:
            for state in topic.partition_states:
                tp = TopicPartition(topic.topic_name, state.partition_index)
                yield tp, state.leader_epoch, state.delete_partition
        return
    for old in request.topics:
        for number in old.partition_indexes:
            yield TopicPartition(old.name, number), NO_EPOCH, request.delete_partitions


def _response(asked: Sequence[TopicPartition], codes: list[ErrorCode]) -> StopReplicaResponse:
    return StopReplicaResponse(
        partition_errors=[
            StopReplicaPartitionError(
                topic_name=tp.topic, partition_index=tp.partition, error_code=code
            )
            for tp, code in zip(asked, codes, strict=True)
        ]
    )


def _stopped(broker: BrokerServices, asked: Asked) -> ErrorCode | Future[ErrorCode]:
    tp, epoch, delete = asked
    try:
        held = broker.replicas.get(tp)
        if held is not None and 0 <= epoch < held.leader_epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        late: ThreadFuture[ErrorCode] = ThreadFuture()

        def ended(error: Exception | None) -> None:
            if not late.done():  # A deletion that failed is retried.
                code = ErrorCode.NONE if error is None else refusal(error, "StopReplica", tp).code
                late.set_result(code)

        if broker.replicas.stop(tp, delete=delete, ended=ended) or not delete:
            return ErrorCode.NONE
    except Exception as error:
        return refusal(error, "StopReplica", tp).code
    return wrap_future(late)


HANDLER = Handler(ApiKey.STOP_REPLICA, VersionRange(1, 4), handle, large=True, offered=among_others)
