"""Whether coordinators may write what brokers of Apache cannot read.

A pure function of settings and registrations. What the newest protocols of groups and transactions
write to the internal topics no broker of Kafka 3 in ZooKeeper mode can read. So they are off where
`inter.broker.protocol.version` is an older one, and while a broker is registered
that does not say it runs this software: it may be Apache's, and lead these partitions next.
"""

from barnabas_broker.cluster.image import OWN_SOFTWARE, MetadataImage
from barnabas_kafka.settings import broker as keys
from barnabas_kafka.settings.broker import BrokerSettings


def may_write_newest(settings: BrokerSettings, image: MetadataImage) -> bool:
    """Whether no Kafka 3 broker could fail on records that it does not know."""
    if keys.INTER_BROKER_PROTOCOL_VERSION.name in settings.explicit:
        return False
    return all(broker.software == OWN_SOFTWARE for broker in image.brokers.values())
