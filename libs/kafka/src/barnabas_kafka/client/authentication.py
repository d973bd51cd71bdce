"""SaslHandshake and SaslAuthenticate as a dialog of requests and responses, without I/O.

The owner sends what `first` gives, and what `answer` gives for each response, until that is None:
then the client is authenticated. A session with a lifetime begins a new dialog, on the same
connection or another, before it is over (KIP-368).
"""

from barnabas_kafka.client.errors import AuthenticationError, error_code
from barnabas_kafka.client.sasl import Exchange
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from barnabas_kafka.protocol.messages.sasl_handshake import (
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from barnabas_kafka.protocol.schema import Response


class Authentication:
    """One authentication of a client by a mechanism."""

    def __init__(self, mechanism: str, exchange: Exchange) -> None:
        self.session_lifetime_ms = 0
        """How long the broker keeps the session after authentication; 0 is for ever (KIP-368)."""
        self._mechanism = mechanism
        self._exchange = exchange

    def first(self) -> SaslHandshakeRequest:
        """The request that names the mechanism; its version has to be 1 or newer."""
        return SaslHandshakeRequest(mechanism=self._mechanism)

    def answer(self, response: Response) -> SaslAuthenticateRequest | None:
        """The next request, None where the broker has accepted the last token and was checked.

        Raises AuthenticationError.
        """
        if isinstance(response, SaslHandshakeResponse):
            return self._take_mechanisms(response)
        if isinstance(response, SaslAuthenticateResponse):
            return self._take_token(response)
        raise AuthenticationError(f"SASL answered by {type(response).__name__}")

    def _take_mechanisms(self, response: SaslHandshakeResponse) -> SaslAuthenticateRequest:
        if response.error_code != ErrorCode.NONE:
            enabled = ", ".join(sorted(response.mechanisms)) or "none"
            raise AuthenticationError(
                f"SASL mechanism {self._mechanism} rejected with "
                f"{error_code(response.error_code).name}; the broker has {enabled}"
            )
        return SaslAuthenticateRequest(auth_bytes=self._exchange.first())

    def _take_token(self, response: SaslAuthenticateResponse) -> SaslAuthenticateRequest | None:
        if response.error_code != ErrorCode.NONE:
            code = error_code(response.error_code)
            raise AuthenticationError(f"{code.name}: {response.error_message or code.message}")
        token = self._exchange.answer(response.auth_bytes)
        if token is not None:
            return SaslAuthenticateRequest(auth_bytes=token)
        if not self._exchange.done:
            raise AuthenticationError(f"SASL {self._mechanism} ended before its last step")
        self.session_lifetime_ms = response.session_lifetime_ms
        return None
