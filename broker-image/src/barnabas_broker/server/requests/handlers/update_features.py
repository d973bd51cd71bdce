"""UpdateFeatures: features follow the settings of the brokers; no request finalizes others.

With ZooKeeper Apache's brokers keep finalized features in a znode (KIP-584). Ours finalize what
`inter.broker.protocol.version` says, so that all that can be asked for is refused, each in its
answer.
"""

from asyncio import Future
from functools import partial

from barnabas_broker.controller.controller import Controller
from barnabas_broker.security.acls import AclOperation
from barnabas_broker.server.process.cooperative_scheduler import Work, each
from barnabas_broker.server.requests.handler import Handler
from barnabas_broker.server.requests.request_context import RequestContext
from barnabas_kafka.errors import ErrorCode, KafkaError
from barnabas_kafka.protocol.messages.update_features import (
    FeatureUpdateKey,
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from barnabas_kafka.protocol.registry import ApiKey, VersionRange

Response = UpdateFeaturesResponse


def handle(
    request: UpdateFeaturesRequest, call: RequestContext
) -> Response | Future[Work[Response]]:
    """Answer for each feature, where this broker is the controller."""
    if not call.allowed_on_cluster(AclOperation.ALTER):
        code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        return Response(error_code=code, error_message=code.message)

    def find(controller: Controller) -> KafkaError | None:
        try:
            controller.check_active()
        except KafkaError as error:
            return error
        return None

    return call.ask_controller(find, partial(_answer, request))


def _answer(request: UpdateFeaturesRequest, error: KafkaError | None) -> Work[Response]:
    if error is not None:
        return Response(error_code=error.code, error_message=error.message)
    results = yield from each(request.feature_updates, _refused)
    return Response(error_message=None, results=results)


def _refused(update: FeatureUpdateKey) -> UpdatableFeatureResult:
    message = (
        f"The feature {update.feature!r} cannot be changed by request: features follow"
        " inter.broker.protocol.version."
        if update.feature
        else "Feature name can not be empty."
    )
    return UpdatableFeatureResult(
        feature=update.feature, error_code=ErrorCode.INVALID_REQUEST, error_message=message
    )


HANDLER = Handler(ApiKey.UPDATE_FEATURES, VersionRange(0, 1), handle, large=True)
