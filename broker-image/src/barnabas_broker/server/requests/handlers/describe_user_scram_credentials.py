"""DescribeUserScramCredentials: mechanisms of users, never their secrets (KIP-554)."""

from collections import Counter
from functools import partial

from barnabas_broker.security.acls import AclOperation
from barnabas_broker.security.scram import ScramMechanism, scram_credential
from barnabas_broker.server.process.cooperative_scheduler import Work, each
from barnabas_broker.server.requests.handler import Handler
from barnabas_broker.server.requests.request_context import RequestContext
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.protocol.messages.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)
from barnabas_kafka.protocol.registry import ApiKey, VersionRange

Result = DescribeUserScramCredentialsResult


def handle(
    request: DescribeUserScramCredentialsRequest, call: RequestContext
) -> Work[DescribeUserScramCredentialsResponse]:
    """Answer for each user that is named; without names, for all users with credentials."""
    if not call.allowed_on_cluster(AclOperation.DESCRIBE):
        code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        # As Kafka: a result for each name, which does not say whose it is.
        nameless = [Result(error_code=code, error_message=None) for _ in request.users or ()]
        return DescribeUserScramCredentialsResponse(
            error_code=code, error_message=code.message, results=nameless
        )
    if not request.users:
        users = sorted(call.broker.image.user_configs)
        known = yield from each(users, partial(_result, call))
        results = [found for found in known if found.credential_infos]
    else:
        named = Counter(each.name for each in request.users)
        results = yield from each(named, lambda user: _named(user, named[user], call))
    return DescribeUserScramCredentialsResponse(error_message=None, results=results)


def _named(user: str, times: int, call: RequestContext) -> Result:
    if times > 1:
        return Result(
            user=user,
            error_code=ErrorCode.DUPLICATE_RESOURCE,
            error_message="Cannot describe SCRAM credentials for the same user twice in a single "
            f"request: {user}",
        )
    found = _result(call, user)
    if found.credential_infos:
        return found
    why = f"Attempt to describe a user credential that does not exist: {user}"
    return Result(
        user=user,
        error_code=ErrorCode.RESOURCE_NOT_FOUND,
        error_message=why if user else "Username must not be empty",
    )


def _result(call: RequestContext, user: str) -> Result:
    configs = call.broker.image.user_configs
    return Result(
        user=user,
        error_message=None,
        credential_infos=[
            CredentialInfo(mechanism=mechanism, iterations=found.iterations)
            for mechanism in ScramMechanism
            if (found := scram_credential(configs, mechanism, user)) is not None
        ],
    )


HANDLER = Handler(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, VersionRange(0, 0), handle, large=True)
