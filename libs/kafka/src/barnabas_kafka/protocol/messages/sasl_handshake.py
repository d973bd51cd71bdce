"""SaslHandshake (key 17): names the SASL mechanism to authenticate with.

After version 0 bare tokens follow without Kafka's framing; after version 1, SaslAuthenticate.
"""

from barnabas_kafka.protocol.schema import STRING, Request, Response, array, int16, string


class SaslHandshakeRequest(Request, api_key=17, versions="0-1"):
    """SaslHandshake request."""

    mechanism: str = string("0+")


class SaslHandshakeResponse(Response, api_key=17, versions="0-1"):
    """SaslHandshake response."""

    error_code: int = int16("0+")
    mechanisms: list[str] = array(STRING, "0+")
