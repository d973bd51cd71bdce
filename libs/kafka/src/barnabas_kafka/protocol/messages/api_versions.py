"""ApiVersions (key 18): the versions of requests that a broker accepts.

The response header never carries tags, so that clients can read it before they know versions
(KIP-511); an unsupported version is answered in the format of version 0 with error 35.

Versions:
   1: response adds throttle_time_ms.
   2: the client does the waiting of a throttle.
   3: flexible; request adds client_software_name, client_software_version; response adds
      supported_features, finalized_features_epoch, finalized_features, zk_migration_ready.
   4: features whose least version is 0 are listed (KIP-1022).
   5: the client sends which cluster and node it expects (KIP-1242); request adds cluster_id,
      node_id.
"""

from barnabas_kafka.protocol.schema import (
    Request,
    Response,
    Struct,
    array,
    boolean,
    int16,
    int32,
    int64,
    string,
)


class ApiVersionsRequest(Request, api_key=18, versions="0-5", flexible="3+"):
    """ApiVersions request."""

    client_software_name: str = string("3+", ignorable=True)
    client_software_version: str = string("3+", ignorable=True)
    cluster_id: str | None = string("5+", nullable="5+", default=None, ignorable=True)
    node_id: int = int32("5+", default=-1, ignorable=True)


class ApiVersion(Struct):
    """Element of `api_keys` in the response."""

    api_key: int = int16("0+")
    min_version: int = int16("0+")
    max_version: int = int16("0+")


class SupportedFeatureKey(Struct):
    """Element of `supported_features` in the response."""

    name: str = string("3+")
    min_version: int = int16("3+")
    max_version: int = int16("3+")


class FinalizedFeatureKey(Struct):
    """Element of `finalized_features` in the response."""

    name: str = string("3+")
    max_version_level: int = int16("3+")
    min_version_level: int = int16("3+")


class ApiVersionsResponse(Response, api_key=18, versions="0-5", flexible="3+"):
    """ApiVersions response."""

    error_code: int = int16("0+")
    api_keys: list[ApiVersion] = array(ApiVersion, "0+")
    throttle_time_ms: int = int32("1+", ignorable=True)
    supported_features: list[SupportedFeatureKey] = array(
        SupportedFeatureKey, "3+", ignorable=True, tag=0
    )
    finalized_features_epoch: int = int64("3+", default=-1, ignorable=True, tag=1)
    finalized_features: list[FinalizedFeatureKey] = array(
        FinalizedFeatureKey, "3+", ignorable=True, tag=2
    )
    zk_migration_ready: bool = boolean("3+", ignorable=True, tag=3)
