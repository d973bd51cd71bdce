"""SaslAuthenticate where it is out of sequence: without a SaslHandshake before it."""

from barnabas_broker.server.call import Call
from barnabas_broker.server.handler import Handler
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from barnabas_kafka.protocol.registry import ApiKey, VersionRange


def handle(request: SaslAuthenticateRequest, call: Call) -> SaslAuthenticateResponse:
    """Refuse it, as Kafka's KafkaApis does."""
    return SaslAuthenticateResponse(
        error_code=ErrorCode.ILLEGAL_SASL_STATE,
        error_message="SaslAuthenticate request received after successful authentication",
    )


HANDLER = Handler(ApiKey.SASL_AUTHENTICATE, VersionRange(0, 2), handle)
