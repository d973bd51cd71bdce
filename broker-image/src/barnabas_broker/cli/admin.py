"""The admin client for commands: the properties of a connection, and errors as CommandError.

The properties are librdkafka's, as for every other command (`properties` translates Java's). A
property of TLS or SASL that cannot be honoured is refused: the connection would be less safe than
it was asked to be.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Final, Self, TypeVar

from barnabas_broker import __version__
from barnabas_broker.cli.client import FIRST_TIMEOUT_S, Connection
from barnabas_broker.cli.errors import CommandError, InputError
from barnabas_broker.cli.properties import TOKEN_AUTH
from barnabas_kafka.client import (
    Admin,
    BrokerNode,
    ClientConfig,
    ClientError,
    Operation,
    Plain,
    Scram,
    Target,
    describe_cluster,
    send_request,
)
from barnabas_kafka.client.sasl import Mechanism
from barnabas_kafka.protocol.messages.api_versions import ApiVersionsRequest
from barnabas_kafka.protocol.schema import Request, Response

CLIENT_ID: Final = "barnabas-cli"
CONNECT_TIMEOUT_S: Final = 5.0

T = TypeVar("T")
R = TypeVar("R", bound=Response)


def api_versions_request() -> ApiVersionsRequest:
    """What every broker answers to every client, without an ACL."""
    return ApiVersionsRequest(client_software_name=CLIENT_ID, client_software_version=__version__)


class AdminSession:
    """The admin client for the time of one command."""

    def __init__(self, connection: Connection) -> None:
        """CommandError where no address can be reached, InputError for a refused property."""
        config = client_config(connection)
        connection.knock()
        self._connection = connection
        self._reached = False
        self._admin = Admin(config)

    def call(self, operation: Operation[T]) -> T:
        """The result of an operation; CommandError where all of it failed."""
        if not self._reached:
            self._reach()
        try:
            return self._admin.call(operation)
        except ClientError as error:
            raise CommandError(f"{operation.name}: {error}", code=error.code) from None

    def ask(
        self,
        target: Target,
        request: Request,
        response: type[R],
        *,
        error_code: Callable[[R], int] | None = None,
    ) -> R:
        """The response to one request; see send_request."""
        return self.call(send_request(request, response, target, error_code=error_code))

    def brokers(self) -> Mapping[int, BrokerNode]:
        """The live brokers by id, in the order of their ids."""
        return dict(sorted(self.call(describe_cluster()).brokers.items()))

    def _reach(self) -> None:
        """Ask something small first: CommandError where the listener does not speak as we do.

        The client retries while connections are closed, which is all that such a listener does.
        """
        timeout_s = min(FIRST_TIMEOUT_S, self._connection.timeout_s)
        try:
            self._admin.call(describe_cluster(), timeout_s=timeout_s)
        except ClientError:
            self._connection.explain()
        self._reached = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._admin.close()


def call(connection: Connection, operation: Operation[T]) -> T:
    """The result of one operation; CommandError where all of it failed."""
    with AdminSession(connection) as session:
        return session.call(operation)


def client_config(connection: Connection) -> ClientConfig:
    """How the admin client reaches the cluster; InputError for what it cannot honour."""
    properties = connection.properties
    protocol = properties.get("security.protocol", "PLAINTEXT").upper()
    if protocol not in ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"):
        raise InputError(f"security.protocol={protocol} is none of Kafka's")
    return ClientConfig(
        bootstrap_servers=connection.bootstrap,
        client_id=properties.get("client.id", CLIENT_ID),
        tls=_tls(properties) if protocol.endswith("SSL") else None,
        sasl=_sasl(properties) if protocol.startswith("SASL") else None,
        timeout_s=connection.timeout_s,
        request_timeout_s=connection.timeout_s,
        connect_timeout_s=min(CONNECT_TIMEOUT_S, connection.timeout_s),
    )


def _tls(properties: Mapping[str, str]) -> ssl.SSLContext:
    if "ssl.keystore.location" in properties:
        raise InputError("ssl.keystore.location: give the key and its certificate as PEM")
    if "ssl.key.pem" in properties and "ssl.certificate.pem" not in properties:
        raise InputError("ssl.key.pem: give its certificate, too, as ssl.certificate.pem")
    # Late: it is for TLS.
    from barnabas_broker.security.stores import StoreError, load_pem_identity

    try:
        context = ssl.create_default_context(
            cafile=properties.get("ssl.ca.location"), cadata=properties.get("ssl.ca.pem")
        )
        if certificate := properties.get("ssl.certificate.location"):
            key = properties.get("ssl.key.location")
            context.load_cert_chain(certificate, key, properties.get("ssl.key.password"))
        elif chain := properties.get("ssl.certificate.pem"):
            key, password = properties.get("ssl.key.pem", ""), properties.get("ssl.key.password")
            load_pem_identity(context, key=key, chain=chain, password=password)
    except (OSError, ValueError, StoreError) as error:  # ssl.SSLError is an OSError.
        raise InputError(f"the TLS settings cannot be used: {error}") from None
    if properties.get("ssl.endpoint.identification.algorithm", "https") in ("none", ""):
        context.check_hostname = False
    if properties.get("enable.ssl.certificate.verification", "true") == "false":
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _sasl(properties: Mapping[str, str]) -> Mechanism:
    mechanism = properties.get("sasl.mechanism") or properties.get("sasl.mechanisms") or ""
    username = properties.get("sasl.username", "")
    password = properties.get("sasl.password", "")
    token = TOKEN_AUTH in properties
    if mechanism == "PLAIN" and token:
        raise InputError('tokenauth="true" needs sasl.mechanism=SCRAM-SHA-256 or SCRAM-SHA-512')
    if mechanism == "PLAIN":
        return Plain(username, password)
    if mechanism == "SCRAM-SHA-256":
        return Scram(username, password, "SCRAM-SHA-256", delegation_token=token)
    if mechanism == "SCRAM-SHA-512":
        return Scram(username, password, "SCRAM-SHA-512", delegation_token=token)
    if mechanism == "OAUTHBEARER":
        # Late, for few commands want it.
        from barnabas_broker.cli.bearer import oauth_bearer

        return oauth_bearer(properties)
    raise InputError(f"sasl.mechanism={mechanism} is not supported by this command")
