"""DescribeUserScramCredentials (key 50): lists which SCRAM credentials users have (KIP-554)."""

from barnabas_kafka.protocol.schema import (
    Request,
    Response,
    Struct,
    array,
    int8,
    int16,
    int32,
    string,
)


class UserName(Struct):
    """Element of `users` in the request."""

    name: str = string("0+")


class DescribeUserScramCredentialsRequest(Request, api_key=50, versions="0", flexible="0+"):
    """DescribeUserScramCredentials request."""

    users: list[UserName] | None = array(UserName, "0+", nullable="0+")


class CredentialInfo(Struct):
    """Element of `credential_infos` in the response."""

    mechanism: int = int8("0+")
    iterations: int = int32("0+")


class DescribeUserScramCredentialsResult(Struct):
    """Element of `results` in the response."""

    user: str = string("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+")
    credential_infos: list[CredentialInfo] = array(CredentialInfo, "0+")


class DescribeUserScramCredentialsResponse(Response, api_key=50, versions="0", flexible="0+"):
    """DescribeUserScramCredentials response."""

    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+")
    results: list[DescribeUserScramCredentialsResult] = array(
        DescribeUserScramCredentialsResult, "0+"
    )
