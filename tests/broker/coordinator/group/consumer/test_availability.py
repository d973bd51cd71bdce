"""When the consumer protocol is served."""

import pytest

from barnabas_broker.cluster.image import OWN_SOFTWARE, BrokerRegistration, MetadataImage
from barnabas_broker.coordinator.group.consumer.availability import is_served
from barnabas_kafka.settings.broker import BrokerSettings


@pytest.mark.parametrize(
    ("protocols", "served"), [(None, True), ("classic,consumer", True), ("classic", False)]
)
def test_it_is_on_unless_it_is_left_out(protocols: str | None, served: bool) -> None:
    """Whoever wants the classic protocol alone says so."""
    given = {} if protocols is None else {"group.coordinator.rebalance.protocols": protocols}
    assert is_served(BrokerSettings(given), MetadataImage(cluster_id="c")) is served


@pytest.mark.parametrize(("software", "served"), [(OWN_SOFTWARE, True), (None, False)])
def test_it_is_off_while_somebody_else_is_there(software: str | None, served: bool) -> None:
    """Brokers that do not say they run this software may be Apache's."""
    brokers = {
        0: BrokerRegistration(0, (), software=OWN_SOFTWARE),
        1: BrokerRegistration(1, (), software=software),
    }
    assert is_served(BrokerSettings({}), MetadataImage(cluster_id="c", brokers=brokers)) is served
