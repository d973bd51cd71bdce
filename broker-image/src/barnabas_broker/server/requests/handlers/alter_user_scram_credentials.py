"""AlterUserScramCredentials: set and remove what users authenticate by (KIP-554)."""

from asyncio import Future

from barnabas_broker.controller.controller import Controller
from barnabas_broker.controller.requests import Outcome
from barnabas_broker.controller.scram_credentials import Deletion, Upsertion
from barnabas_broker.security.acls import AclOperation
from barnabas_broker.server.requests.handler import Handler
from barnabas_broker.server.requests.request_context import RequestContext
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)
from barnabas_kafka.protocol.registry import ApiKey, VersionRange

Response = AlterUserScramCredentialsResponse


def handle(
    request: AlterUserScramCredentialsRequest, call: RequestContext
) -> Response | Future[Response]:
    """Answer for each user, where this broker is the controller."""
    deletions = [Deletion(each.name, each.mechanism) for each in request.deletions]
    upsertions = [
        Upsertion(
            each.name,
            each.mechanism,
            each.iterations,
            bytes(each.salt),
            bytes(each.salted_password),
        )
        for each in request.upsertions
    ]
    changes: list[Deletion | Upsertion] = [*deletions, *upsertions]
    users = list(dict.fromkeys(each.user for each in changes))
    allowed = call.allowed_on_cluster(AclOperation.ALTER)
    principal, now_ms = call.principal, call.now_ms

    def alter(controller: Controller) -> list[Outcome]:
        try:
            controller.check_active()
            if not allowed:
                message = "Cluster authorization failed."
                raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, message)
        except KafkaError as error:
            return [Outcome.refused(user, error) for user in users]
        return controller.user_credentials.alter(
            deletions, upsertions, principal=principal, now_ms=now_ms
        )

    return call.ask_controller(alter, _answer)


def _answer(outcomes: list[Outcome]) -> Response:
    return Response(
        results=[
            AlterUserScramCredentialsResult(
                user=each.name, error_code=each.error, error_message=each.message
            )
            for each in outcomes
        ]
    )


HANDLER = Handler(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, VersionRange(0, 0), handle)
