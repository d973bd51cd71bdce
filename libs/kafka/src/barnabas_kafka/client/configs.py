"""Operations on settings: describe them, and change them one by one (KIP-339, Kafka 2.3)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from barnabas_kafka.client.cluster import ANY_BROKER, OneBroker, Target
from barnabas_kafka.client.operation import (
    Ask,
    Operation,
    Outcomes,
    Results,
    every,
    outcome,
    unique,
)
from barnabas_kafka.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
)
from barnabas_kafka.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from barnabas_kafka.protocol.registry import ApiKey


class ConfigResourceType(IntEnum):
    """What has settings, by the numbers of the protocol."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8


class ConfigSource(IntEnum):
    """Where a value comes from, by the numbers of the protocol."""

    UNKNOWN = -1
    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_BROKER_LOGGER_CONFIG = 6


class AlterConfigOp(IntEnum):
    """What to do with one setting."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class ConfigResource(NamedTuple):
    """A topic or a broker. The name of a broker is its id; "" means all brokers."""

    type: ConfigResourceType
    name: str


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """One setting as it is in force; `value` is None where the broker keeps it to itself."""

    name: str
    value: str | None
    source: ConfigSource
    read_only: bool
    sensitive: bool
    synonyms: tuple["ConfigSynonym", ...] = ()


@dataclass(frozen=True, slots=True)
class ConfigSynonym:
    """One of the places that a value is taken from, the first of which wins."""

    name: str
    value: str | None
    source: ConfigSource


@dataclass(frozen=True, slots=True)
class ConfigChange:
    """One change; `value` is not used by DELETE."""

    name: str
    op: AlterConfigOp
    value: str | None = None


def topic_resource(name: str) -> ConfigResource:
    """The settings of a topic."""
    return ConfigResource(ConfigResourceType.TOPIC, name)


def broker_resource(broker: int | None) -> ConfigResource:
    """The settings of a broker; None for those that all brokers share."""
    return ConfigResource(ConfigResourceType.BROKER, "" if broker is None else str(broker))


def describe_configs(
    resources: Iterable[ConfigResource],
    *,
    names: Sequence[str] | None = None,
    synonyms: bool = False,
) -> Operation[Results[ConfigResource, Mapping[str, ConfigEntry]]]:
    """The settings of topics and brokers by name; only these `names` where they are given."""

    def request(ask: Ask[ConfigResource]) -> DescribeConfigsRequest:
        return DescribeConfigsRequest(
            resources=[
                DescribeConfigsResource(
                    resource_type=each.type,
                    resource_name=each.name,
                    configuration_keys=None if names is None else list(names),
                )
                for each in ask.keys
            ],
            include_synonyms=synonyms and ask.version >= 1,
        )

    def read(
        ask: Ask[ConfigResource], response: DescribeConfigsResponse
    ) -> Outcomes[ConfigResource, Mapping[str, ConfigEntry]]:
        return {
            ConfigResource(ConfigResourceType(each.resource_type), each.resource_name): outcome(
                each.error_code,
                each.error_message,
                {config.name: _entry(config) for config in each.configs},
            )
            for each in response.results
        }

    return Operation(
        name="describe configs",
        keys=unique(resources),
        target=_target,
        request=request,
        api_key=ApiKey.DESCRIBE_CONFIGS,
        read=read,
        finish=every,
    )


def alter_configs(
    changes: Mapping[ConfigResource, Sequence[ConfigChange]], *, validate_only: bool = False
) -> Operation[Results[ConfigResource, None]]:
    """Change settings; those of one resource change together or not at all.

    Settings that are not named stay as they are. Needs IncrementalAlterConfigs (Kafka 2.3): the
    older AlterConfigs replaces all settings of a resource, and loses what others set meanwhile.
    """

    def request(ask: Ask[ConfigResource]) -> IncrementalAlterConfigsRequest:
        return IncrementalAlterConfigsRequest(
            resources=[
                AlterConfigsResource(
                    resource_type=each.type,
                    resource_name=each.name,
                    configs=[
                        AlterableConfig(
                            name=change.name,
                            config_operation=change.op,
                            value=None if change.op is AlterConfigOp.DELETE else change.value,
                        )
                        for change in changes[each]
                    ],
                )
                for each in ask.keys
            ],
            validate_only=validate_only,
        )

    def read(
        ask: Ask[ConfigResource], response: IncrementalAlterConfigsResponse
    ) -> Outcomes[ConfigResource, None]:
        return {
            ConfigResource(ConfigResourceType(each.resource_type), each.resource_name): outcome(
                each.error_code, each.error_message, None
            )
            for each in response.responses
        }

    return Operation(
        name="alter configs",
        keys=list(changes),
        target=_target,
        request=request,
        api_key=ApiKey.INCREMENTAL_ALTER_CONFIGS,
        read=read,
        finish=every,
    )


def _target(resource: ConfigResource) -> Target:
    """Only a broker itself knows its settings; all know those of topics and of all brokers."""
    if resource.type is ConfigResourceType.TOPIC or not resource.name:
        return ANY_BROKER
    return OneBroker(int(resource.name))


def _entry(config: DescribeConfigsResourceResult) -> ConfigEntry:
    return ConfigEntry(
        name=config.name,
        value=config.value,
        source=_source(config.config_source),
        read_only=config.read_only,
        sensitive=config.is_sensitive,
        synonyms=tuple(
            ConfigSynonym(each.name, each.value, _source(each.source)) for each in config.synonyms
        ),
    )


def _source(number: int) -> ConfigSource:
    try:
        return ConfigSource(number)
    except ValueError:
        return ConfigSource.UNKNOWN
