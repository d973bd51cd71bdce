"""Questions that both brokers are asked: which APIs they offer, and in which versions."""

from __future__ import annotations

from typing import Final

from barnabas_kafka.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas_kafka.protocol.registry import ApiKey
from tests.oracle.sides import Side


def offered_apis(side: Side) -> None:
    """Every API that either offers, with its oldest and newest version."""
    request = ApiVersionsRequest(client_software_name="wire", client_software_version="1")
    answer: ApiVersionsResponse = side.wait(request, 3, settled=lambda _: True)
    ranges = {it.api_key: [it.min_version, it.max_version] for it in answer.api_keys}
    for key in ApiKey:
        side.keep(key.name, ranges.pop(key, "not offered"))
    side.keep("unknown to us", ranges)


QUESTIONS: Final = (offered_apis,)
