"""Whether the consumer protocol is served: a pure function of settings and registrations.

It is unless the setting leaves it out, as in Kafka 4; the default of the setting is that of Kafka
3.9, so being given counts.
"""

from barnabas_broker.cluster.image import MetadataImage
from barnabas_broker.coordinator.compatibility import may_write_newest
from barnabas_kafka.settings import broker as keys
from barnabas_kafka.settings.broker import BrokerSettings

CONSUMER_PROTOCOL = "consumer"


def is_served(settings: BrokerSettings, image: MetadataImage) -> bool:
    """Whether groups may use the consumer protocol now."""
    key = keys.GROUP_COORDINATOR_REBALANCE_PROTOCOLS
    if settings.given(key.name) and CONSUMER_PROTOCOL not in settings[key]:
        return False
    return may_write_newest(settings, image)
