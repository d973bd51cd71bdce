"""Whatever ApiVersions advertises is answered, in every version, so that it can be read."""

from __future__ import annotations

import pytest

from barnabas_kafka.protocol import registry
from barnabas_kafka.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas_kafka.protocol.messages.metadata import MetadataRequest
from barnabas_kafka.protocol.messages.produce import ProduceRequest
from barnabas_kafka.protocol.registry import ApiKey
from barnabas_kafka.protocol.schema import Request
from tests.clients import wire
from tests.clients.brokers import KIND, Broker
from tests.clients.wire import Wire

#: Sent between brokers, where an empty request is no harmless question.
BETWEEN_BROKERS = {
    ApiKey.LEADER_AND_ISR,
    ApiKey.STOP_REPLICA,
    ApiKey.UPDATE_METADATA,
    ApiKey.CONTROLLED_SHUTDOWN,
    ApiKey.WRITE_TXN_MARKERS,
    ApiKey.ALTER_PARTITION,
    ApiKey.ENVELOPE,
    ApiKey.ALLOCATE_PRODUCER_IDS,
    ApiKey.UPDATE_FEATURES,
}
#: An empty request of these is left unanswered or ends the connection, by Apache too.
NOT_WHEN_EMPTY = {ApiKey.OFFSET_FETCH, ApiKey.ADD_PARTITIONS_TO_TXN, ApiKey.DESCRIBE_ACLS}
#: What a client that only produces, consumes by assignment and administers topics asks for.
NEEDED = {
    ApiKey.PRODUCE: (0, 9),
    ApiKey.FETCH: (0, 12),
    ApiKey.LIST_OFFSETS: (0, 7),
    ApiKey.METADATA: (0, 12),
    ApiKey.API_VERSIONS: (0, 4),
    ApiKey.CREATE_TOPICS: (0, 7),
    ApiKey.DELETE_TOPICS: (0, 6),
    ApiKey.DELETE_RECORDS: (0, 2),
    ApiKey.INIT_PRODUCER_ID: (0, 4),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: (0, 4),
    ApiKey.DESCRIBE_CONFIGS: (0, 4),
    ApiKey.ALTER_CONFIGS: (0, 2),
    ApiKey.DESCRIBE_LOG_DIRS: (0, 4),
    ApiKey.CREATE_PARTITIONS: (0, 3),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: (0, 1),
    ApiKey.DESCRIBE_CLUSTER: (0, 1),
}


def advertised(broker: Broker) -> dict[int, tuple[int, int]]:
    """Least and greatest version by key."""
    with Wire(broker.bootstrap) as connection:
        answer = connection.ask(ApiVersionsRequest(), ApiVersionsResponse, 0)
    return {entry.api_key: (entry.min_version, entry.max_version) for entry in answer.api_keys}


def innocent_request(key: ApiKey, version: int) -> Request:
    """A request that asks for nothing, but that must be answered."""
    if key is ApiKey.PRODUCE:
        return ProduceRequest(acks=1)
    if key is ApiKey.METADATA:
        return MetadataRequest(topics=[])
    if key is ApiKey.API_VERSIONS:
        return ApiVersionsRequest(client_software_name="wire", client_software_version="1")
    return registry.api(key).request()


@pytest.mark.parametrize("key", ApiKey, ids=lambda key: key.name)
def test_every_advertised_version_is_answered(broker: Broker, key: ApiKey) -> None:
    """The response has the right header and correlation id, and can be read to its last byte."""
    low, high = advertised(broker).get(key, (0, -1))
    if key in BETWEEN_BROKERS | NOT_WHEN_EMPTY:
        return
    with Wire(broker.bootstrap) as connection:
        for version in range(low, high + 1):
            request = innocent_request(key, version)
            connection.send(wire.frame(request, version, 1000 + version))
            connection.receive(registry.api(key).response, version, 1000 + version)


def test_needed_versions_are_advertised(broker: Broker) -> None:
    """Floors stay at 0: old librdkafka looks for exact versions before it uses a feature."""
    found = advertised(broker)
    for key, (low, high) in NEEDED.items():
        assert key in found, key.name
        assert found[key][0] == low, key.name
        assert found[key][1] >= high, key.name


def test_nothing_unknown_is_advertised(broker: Broker) -> None:
    """No key or version beyond what our codecs can read."""
    for key, (low, high) in advertised(broker).items():
        if KIND == "apache" and key not in set(ApiKey):
            continue
        versions = registry.api(key).versions
        assert versions.min <= low <= high <= versions.max, ApiKey(key).name
