"""SaslHandshake where it is out of sequence.

On listeners with SASL the authenticator of the connection serves it
(`server.network.sasl_authenticator`). What comes here was sent on a listener without, or within a
second of the last re-authentication.
"""

from barnabas_broker.server.requests.handler import Handler
from barnabas_broker.server.requests.request_context import RequestContext
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.messages.sasl_handshake import (
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from barnabas_kafka.protocol.registry import ApiKey, VersionRange


def handle(request: SaslHandshakeRequest, call: RequestContext) -> SaslHandshakeResponse:
    """Refuse it, as Kafka's KafkaApis does."""
    return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)


HANDLER = Handler(ApiKey.SASL_HANDSHAKE, VersionRange(0, 1), handle)
