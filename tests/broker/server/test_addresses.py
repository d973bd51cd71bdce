"""What a broker tells others about where it is."""

import pytest

from barnabas_broker.cluster.image import Endpoint
from barnabas_broker.server.addresses import advertised_endpoints, machine_name
from barnabas_kafka.settings.broker import BrokerSettings


@pytest.mark.parametrize(
    ("settings", "endpoint"),
    [
        (
            {"listeners": "PLAINTEXT://127.0.0.1:0"},
            Endpoint("PLAINTEXT", "127.0.0.1", 4242, "PLAINTEXT"),
        ),
        (
            {"listeners": "PLAINTEXT://:9092"},
            Endpoint("PLAINTEXT", machine_name(), 9092, "PLAINTEXT"),
        ),
        (
            {
                "listeners": "PLAINTEXT://0.0.0.0:0",
                "advertised.listeners": "PLAINTEXT://kafka.example:19092",
            },
            Endpoint("PLAINTEXT", "kafka.example", 19092, "PLAINTEXT"),
        ),
    ],
)
def test_advertised(settings: dict[str, str], endpoint: Endpoint) -> None:
    """What was left open is filled in: the bound port, this machine's name."""
    told = advertised_endpoints(BrokerSettings.from_mapping(settings), {"PLAINTEXT": 4242})
    assert told == (endpoint,)
