"""Every message of every version is, byte for byte, what kafka-clients' own serializers write."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest

from barnabas_kafka.protocol import codec, headers, registry
from barnabas_kafka.protocol.registry import ApiKey
from tests.kafka.protocol.plain import from_plain, to_plain
from tests.oracle import vectors

#: What only KRaft controllers, telemetry or share groups use: nothing here answers it.
NOT_OURS = frozenset({52, 53, 54, 55, 59, 62, 63, 64, 70, 71, 72, 73, 74, 76, 77, 78, 79})
LATER_VERSIONS = {
    ApiKey.PRODUCE: 12,
    ApiKey.INIT_PRODUCER_ID: 6,
    ApiKey.ADD_PARTITIONS_TO_TXN: 5,
    ApiKey.END_TXN: 5,
    ApiKey.TXN_OFFSET_COMMIT: 5,
    ApiKey.CONSUMER_GROUP_HEARTBEAT: 1,
    ApiKey.CONSUMER_GROUP_DESCRIBE: 1,
}

Group = dict[tuple[str, str], list[dict[str, Any]]]


def _by_message(release: str) -> Group:
    """The release's vectors of the messages and versions we have, by (api, kind)."""
    grouped: Group = defaultdict(list)
    known = {api.value for api in ApiKey}
    for vector in vectors.load(f"messages-{release}"):
        if vector["kind"] == "header" or vector["key"] not in known:
            continue
        low, high = registry.api(ApiKey(vector["key"])).versions
        if low <= vector["version"] <= high:
            grouped[vector["api"], vector["kind"]].append(vector)
    return grouped


VECTORS = {release: _by_message(release) for release in vectors.MESSAGE_VERSIONS}
CASES = [(release, *message) for release, grouped in VECTORS.items() for message in grouped]


def _check(vector: dict[str, Any]) -> None:
    api = registry.api(ApiKey(vector["key"]))
    message_type = api.request if vector["kind"] == "request" else api.response
    version = vector["version"]
    expected = bytes.fromhex(vector["hex"])
    decoded = codec.decode(message_type, expected, version)
    built = from_plain(message_type, vector["json"], version)
    if vector["variant"] == "unknownTags":
        # Tags nobody knows are read over: what is left is the message without them.
        assert to_plain(decoded, version) == to_plain(built, version)
        return
    assert codec.encode(decoded, version) == expected
    assert codec.encode(built, version) == expected


@pytest.mark.parametrize(("release", "api", "kind"), CASES, ids=lambda part: str(part))
def test_message_is_what_kafka_writes(release: str, api: str, kind: str) -> None:
    """Decoding and encoding again gives the bytes, and so does encoding the plain values."""
    wrong: list[str] = []
    for vector in VECTORS[release][api, kind]:
        try:
            _check(vector)
        except (AssertionError, ValueError, TypeError, KeyError) as error:
            first_line = (str(error).splitlines() or [""])[0]
            name = f"v{vector['version']} {vector['variant']}"
            wrong.append(f"{name}: {type(error).__name__} {first_line}")
    assert not wrong


def test_no_message_of_ours_is_left_out() -> None:
    """All versions of 3.9.1 but those of NOT_OURS are here, and the newer ones we speak."""
    missing = []
    for vector in vectors.load("messages-3.9.1"):
        key, version = vector["key"], vector["version"]
        if vector["kind"] == "header" or key in NOT_OURS or key >= 80:
            continue
        if key not in set(ApiKey) or version not in _span(ApiKey(key)):
            missing.append(f"{vector['api']} {vector['kind']} v{version}")
    assert sorted(set(missing)) == []
    for later, highest in LATER_VERSIONS.items():
        assert highest in _span(later), later.name


def _span(key: ApiKey) -> range:
    low, high = registry.api(key).versions
    return range(low, high + 1)


@pytest.mark.parametrize("release", vectors.MESSAGE_VERSIONS)
def test_request_header(release: str) -> None:
    """Request headers of all three versions, the odd encoding of the client id included."""
    for vector in vectors.load(f"messages-{release}"):
        if vector["api"] != "RequestHeader" or vector["variant"] == "unknownTags":
            continue
        values, version = vector["json"], vector["version"]
        header = headers.RequestHeader(
            api_key=values["requestApiKey"],
            api_version=values["requestApiVersion"],
            correlation_id=values["correlationId"],
            client_id=values.get("clientId"),
        )
        assert headers.encode_request_header(header, version) == bytes.fromhex(vector["hex"])


@pytest.mark.parametrize("release", vectors.MESSAGE_VERSIONS)
def test_response_header(release: str) -> None:
    """Response headers with and without tagged fields."""
    for vector in vectors.load(f"messages-{release}"):
        if vector["api"] != "ResponseHeader":
            continue
        data = bytes.fromhex(vector["hex"])
        correlation_id, version = vector["json"]["correlationId"], vector["version"]
        assert headers.decode_response_header(data, version) == (correlation_id, len(data))
        if vector["variant"] != "unknownTags":
            assert headers.encode_response_header(correlation_id, version) == data
