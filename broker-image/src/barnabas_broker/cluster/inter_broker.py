"""What brokers say to each other by `inter.broker.protocol.version`, while a cluster is upgraded.

The figures are those of Apache Kafka 3.9 (`MetadataVersion`, and `ControllerChannelManager` for
what the controller sends). A peer may know less: then it is the newest version that both know.
"""

from collections.abc import Mapping
from typing import Final

from barnabas_kafka.protocol.registry import ApiKey
from barnabas_kafka.settings import broker as keys
from barnabas_kafka.settings.broker import BrokerSettings
from barnabas_kafka.settings.metadata_version import MetadataVersion

ASKS_CONTROLLER: Final = MetadataVersion.parse("2.7-IV2")
"""From here on leaders ask the controller for changes of in-sync replicas (KIP-497)."""

_NEWEST: Final[Mapping[ApiKey, Mapping[str, int]]] = {
    ApiKey.FETCH: {
        "2.6": 11, "2.7-IV1": 12, "3.1": 13, "3.5-IV0": 14, "3.5-IV1": 15, "3.7-IV4": 16, "3.9": 17,
    },
    ApiKey.LIST_OFFSETS: {"2.6": 5, "2.8-IV0": 6, "3.0-IV1": 7, "3.5-IV0": 8, "3.9": 9},
    ApiKey.OFFSET_FOR_LEADER_EPOCH: {"2.6": 3, "2.8-IV0": 4},
    ApiKey.LEADER_AND_ISR: {"2.6": 4, "2.8-IV1": 5, "3.2": 6, "3.4": 7},
    ApiKey.UPDATE_METADATA: {"2.6": 6, "2.8-IV1": 7, "3.4": 8},
    ApiKey.STOP_REPLICA: {"2.6": 3, "3.4": 4},
    ApiKey.CONTROLLED_SHUTDOWN: {"2.6": 3},
}  # fmt: skip
"""The newest version of each request, from which metadata version on.

What is older than 2.6 is spoken as 2.6, which every broker from 2.8 on understands.
"""

_LIMITED: Final[Mapping[ApiKey, tuple[str, int]]] = {
    ApiKey.WRITE_TXN_MARKERS: ("2.8-IV0", 0),
    ApiKey.ALTER_PARTITION: ("2.8-IV0", 1),
}
"""Requests that are limited to a version only before some metadata version."""


_SERVED_BY_3: Final[Mapping[ApiKey, int]] = {
    ApiKey.PRODUCE: 11,
    ApiKey.END_TXN: 4,
    ApiKey.TXN_OFFSET_COMMIT: 4,
    ApiKey.WRITE_TXN_MARKERS: 1,
}
"""The newest versions of Apache Kafka 3.9 where there are newer ones, of transactions' second
protocol."""


def spoken(settings: BrokerSettings) -> MetadataVersion:
    """The version that this broker speaks to others."""
    return MetadataVersion.parse(settings[keys.INTER_BROKER_PROTOCOL_VERSION])


def asks_controller(settings: BrokerSettings) -> bool:
    """Whether leaders ask the controller for changes of in-sync replicas; else they write them."""
    return spoken(settings) >= ASKS_CONTROLLER


def newest_versions(speaks: MetadataVersion) -> dict[ApiKey, int]:
    """The newest version in which a broker sends each request; others are not limited."""
    newest = {}
    for api_key, since in _NEWEST.items():
        known = [
            version for name, version in since.items() if MetadataVersion.parse(name) <= speaks
        ]
        newest[api_key] = max(known, default=min(since.values()))
    for api_key, (until, version) in _LIMITED.items():
        if speaks < MetadataVersion.parse(until):
            newest[api_key] = version
    return newest


def served_versions(settings: BrokerSettings) -> Mapping[ApiKey, int]:
    """The newest version in which some requests are served; others are not limited.

    Where a version is set, what that cluster does not know is not served to clients either.
    """
    name = keys.INTER_BROKER_PROTOCOL_VERSION.name
    return _SERVED_BY_3 if name in settings.explicit else {}
