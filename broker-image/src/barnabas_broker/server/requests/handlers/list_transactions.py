"""ListTransactions: the transactional ids that are coordinated here (KIP-664, KIP-994)."""

from operator import attrgetter

from barnabas_broker.cluster.failures import each_isolated
from barnabas_broker.coordinator.transaction.states import TransactionState as State
from barnabas_broker.coordinator.transaction.transaction import Transaction
from barnabas_broker.security.acls import AclOperation, ResourceType
from barnabas_broker.server.process.cooperative_scheduler import Work
from barnabas_broker.server.requests.handler import Handler
from barnabas_broker.server.requests.request_context import RequestContext
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
    TransactionState,
)
from barnabas_kafka.protocol.registry import ApiKey, VersionRange

_NAMES = {state.value for state in State}


def handle(
    request: ListTransactionsRequest, call: RequestContext
) -> Work[ListTransactionsResponse]:
    """List what the caller may know of and the filters let through."""
    transactions = call.broker.transactions
    if transactions.loading:
        return ListTransactionsResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    states, producers = set(request.state_filters), set(request.producer_id_filters)
    longer_ms = request.duration_filter
    listed: list[TransactionState] = []

    def look(each: Transaction) -> None:
        if (
            (not states or each.state.value in states)
            and (not producers or each.producer_id in producers)
            and (longer_ms < 0 or call.now_ms - each.started_ms > longer_ms)
            and _may_describe(each.id, call)
        ):
            listed.append(
                TransactionState(
                    transactional_id=each.id,
                    producer_id=each.producer_id,
                    transaction_state=each.state.value,
                )
            )

    # One that cannot be listed is left out, and logged: an entry has no place for an error.
    for transaction in transactions.transactions():
        each_isolated([transaction], look, "ListTransactions", name=attrgetter("id"))
        yield
    return ListTransactionsResponse(
        unknown_state_filters=[
            name for name in dict.fromkeys(request.state_filters) if name not in _NAMES
        ],
        transaction_states=listed,
    )


def _may_describe(transactional_id: str, call: RequestContext) -> bool:
    kind = ResourceType.TRANSACTIONAL_ID
    return call.allowed(AclOperation.DESCRIBE, kind, transactional_id, audited=False)


HANDLER = Handler(ApiKey.LIST_TRANSACTIONS, VersionRange(0, 1), handle)
