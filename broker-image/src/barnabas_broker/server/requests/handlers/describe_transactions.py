"""DescribeTransactions: the state of transactional ids that are coordinated here (KIP-664)."""

from collections import defaultdict

from barnabas_broker.cluster.failures import refusal
from barnabas_broker.security.acls import AclOperation, ResourceType
from barnabas_broker.server.process.cooperative_scheduler import Work, each
from barnabas_broker.server.requests.handler import Handler
from barnabas_broker.server.requests.request_context import RequestContext
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TopicData,
    TransactionState,
)
from barnabas_kafka.protocol.registry import ApiKey, VersionRange


def handle(
    request: DescribeTransactionsRequest, call: RequestContext
) -> Work[DescribeTransactionsResponse]:
    """Describe each once, with those of its partitions that the caller may know of."""
    distinct = dict.fromkeys(request.transactional_ids)
    described = yield from each(distinct, lambda it: _described(it, call))
    return DescribeTransactionsResponse(transaction_states=described)


def _described(transactional_id: str, call: RequestContext) -> TransactionState:
    answer = TransactionState(transactional_id=transactional_id)
    if not call.allowed(AclOperation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, transactional_id):
        answer.error_code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        return answer
    if not transactional_id:
        answer.error_code = ErrorCode.INVALID_REQUEST
        return answer
    try:
        found = call.broker.transactions.transaction(transactional_id)
    except Exception as error:
        answer.error_code = refusal(error, "DescribeTransactions", transactional_id).code
        return answer
    if found is None:
        answer.error_code = ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
        return answer
    indexes: dict[str, list[int]] = defaultdict(list)
    for topic, index in sorted(found.partitions):
        if call.allowed(AclOperation.DESCRIBE, ResourceType.TOPIC, topic):
            indexes[topic].append(index)
    answer.transaction_state = found.state.value
    answer.transaction_timeout_ms = found.timeout_ms
    answer.transaction_start_time_ms = found.started_ms
    answer.producer_id = found.producer_id
    answer.producer_epoch = found.epoch
    answer.topics = [TopicData(topic=name, partitions=of) for name, of in indexes.items()]
    return answer


HANDLER = Handler(ApiKey.DESCRIBE_TRANSACTIONS, VersionRange(0, 0), handle, large=True)
