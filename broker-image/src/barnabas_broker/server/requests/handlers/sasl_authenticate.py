"""SaslAuthenticate where it is out of sequence: without a SaslHandshake before it."""

from barnabas_broker.server.requests.handler import Handler
from barnabas_broker.server.requests.request_context import RequestContext
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from barnabas_kafka.protocol.registry import ApiKey, VersionRange


def handle(request: SaslAuthenticateRequest, call: RequestContext) -> SaslAuthenticateResponse:
    """Refuse it, as Kafka's KafkaApis does."""
    return SaslAuthenticateResponse(
        error_code=ErrorCode.ILLEGAL_SASL_STATE,
        error_message="SaslAuthenticate request received after successful authentication",
    )


HANDLER = Handler(ApiKey.SASL_AUTHENTICATE, VersionRange(0, 2), handle)
