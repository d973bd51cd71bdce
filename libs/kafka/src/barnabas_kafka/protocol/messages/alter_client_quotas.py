"""AlterClientQuotas (key 49): changes client quotas (KIP-546).

Versions:
   1: flexible.
"""

from barnabas_kafka.protocol.schema import (
    Request,
    Response,
    Struct,
    array,
    boolean,
    float64,
    int16,
    int32,
    string,
)


class EntityData(Struct):
    """Element of `entity` in the request."""

    entity_type: str = string("0+")
    entity_name: str | None = string("0+", nullable="0+")


class OpData(Struct):
    """Element of `ops` in the request."""

    key: str = string("0+")
    value: float = float64("0+")
    remove: bool = boolean("0+")


class AlterClientQuotasRequestEntryData(Struct):
    """Element of `entries` in the request."""

    entity: list[EntityData] = array(EntityData, "0+")
    ops: list[OpData] = array(OpData, "0+")


class AlterClientQuotasRequest(Request, api_key=49, versions="0-1", flexible="1+"):
    """AlterClientQuotas request."""

    entries: list[AlterClientQuotasRequestEntryData] = array(
        AlterClientQuotasRequestEntryData, "0+"
    )
    validate_only: bool = boolean("0+")


class AlterClientQuotasResponseEntryData(Struct):
    """Element of `entries` in the response."""

    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+")
    entity: list[EntityData] = array(EntityData, "0+")


class AlterClientQuotasResponse(Response, api_key=49, versions="0-1", flexible="1+"):
    """AlterClientQuotas response."""

    throttle_time_ms: int = int32("0+")
    entries: list[AlterClientQuotasResponseEntryData] = array(
        AlterClientQuotasResponseEntryData, "0+"
    )
