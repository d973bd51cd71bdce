"""AlterUserScramCredentials (key 51): sets and removes SCRAM credentials (KIP-554)."""

from barnabas_kafka.protocol.schema import (
    Request,
    Response,
    Struct,
    array,
    binary,
    int8,
    int16,
    int32,
    string,
)


class ScramCredentialDeletion(Struct):
    """Element of `deletions` in the request."""

    name: str = string("0+")
    mechanism: int = int8("0+")


class ScramCredentialUpsertion(Struct):
    """Element of `upsertions` in the request."""

    name: str = string("0+")
    mechanism: int = int8("0+")
    iterations: int = int32("0+")
    salt: bytes = binary("0+")
    salted_password: bytes = binary("0+")


class AlterUserScramCredentialsRequest(Request, api_key=51, versions="0", flexible="0+"):
    """AlterUserScramCredentials request."""

    deletions: list[ScramCredentialDeletion] = array(ScramCredentialDeletion, "0+")
    upsertions: list[ScramCredentialUpsertion] = array(ScramCredentialUpsertion, "0+")


class AlterUserScramCredentialsResult(Struct):
    """Element of `results` in the response."""

    user: str = string("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+")


class AlterUserScramCredentialsResponse(Response, api_key=51, versions="0", flexible="0+"):
    """AlterUserScramCredentials response."""

    throttle_time_ms: int = int32("0+")
    results: list[AlterUserScramCredentialsResult] = array(AlterUserScramCredentialsResult, "0+")
