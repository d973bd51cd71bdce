"""Produce: validate each partition's batches and append them.

The buffer of the request goes to the log as it came: validation reads it, the log stamps offsets
and leader epoch in place, and one write puts it into the segment. With `acks=0` there is no
response; a failure then can only be told by ending the connection, as Apache's broker does.
"""

from typing import Final

from barnabas_broker.log.validator import InvalidBatch, validate_produce
from barnabas_broker.security.acls import AclOperation, ResourceType
from barnabas_broker.server.call import Call, QuotaKind
from barnabas_broker.server.handler import Handler, UnanswerableError
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.ids import NO_OFFSET, TopicPartition
from barnabas_kafka.protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from barnabas_kafka.protocol.registry import ApiKey, VersionRange

ALL_IN_SYNC: Final = -1
"""`acks` of a producer that wants its records held by every in-sync replica."""

ACKS: Final = (ALL_IN_SYNC, 0, 1)


def handle(request: ProduceRequest, call: Call) -> ProduceResponse | None:
    """Append the batches of every partition; one partition's error does not touch another's."""
    responses = []
    failed: ErrorCode | None = None
    size = 0
    for topic in request.topic_data:
        allowed = call.allowed(AclOperation.WRITE, ResourceType.TOPIC, topic.name)
        answers = []
        for data in topic.partition_data:
            answer = _append(request, call, TopicPartition(topic.name, data.index), data, allowed)
            if answer.error_code:
                failed = ErrorCode(answer.error_code)
            else:
                size += len(data.records or b"")
            answers.append(answer)
        responses.append(TopicProduceResponse(name=topic.name, partition_responses=answers))
    throttle_ms = call.throttle_ms(QuotaKind.PRODUCE, size)
    if request.acks == 0:
        if failed is not None:
            raise UnanswerableError(f"a produce request with acks=0 failed with {failed.name}")
        return None
    return ProduceResponse(responses=responses, throttle_time_ms=throttle_ms)


def _append(
    request: ProduceRequest,
    call: Call,
    tp: TopicPartition,
    data: PartitionProduceData,
    allowed: bool,
) -> PartitionProduceResponse:
    try:
        if not allowed:
            raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        partition = call.broker.replicas.leader(tp)
        if request.acks not in ACKS:
            raise KafkaError(ErrorCode.INVALID_REQUIRED_ACKS)
        if request.acks == ALL_IN_SYNC:
            partition.check_in_sync()
        batches = validate_produce(
            data.records if data.records is not None else b"",
            rules=partition.rules.produce_rules(call.version),
            now_ms=call.now_ms,
        )
        if any(header.is_transactional for _, header in batches.headers):
            # Nobody here could ever end the transaction, and readers would wait for its end.
            raise KafkaError(ErrorCode.INVALID_TXN_STATE)
        info = partition.append(batches, now_ms=call.now_ms)
    except InvalidBatch as error:
        return PartitionProduceResponse(
            index=tp.partition,
            error_code=error.code,
            base_offset=NO_OFFSET,
            error_message=error.message,
            record_errors=[
                BatchIndexAndErrorMessage(batch_index=index, batch_index_error_message=message)
                for index, message in error.record_errors
            ],
        )
    except KafkaError as error:
        return PartitionProduceResponse(
            index=tp.partition,
            error_code=error.code,
            base_offset=NO_OFFSET,
            error_message=error.message,
        )
    return PartitionProduceResponse(
        index=tp.partition,
        base_offset=info.first_offset,
        log_append_time_ms=info.log_append_time,
        log_start_offset=info.log_start_offset,
    )


HANDLER = Handler(ApiKey.PRODUCE, VersionRange(0, 11), handle)
