"""Whether coordinators may write what brokers of Apache cannot read."""

import pytest

from barnabas_broker.cluster.image import OWN_SOFTWARE, BrokerRegistration, MetadataImage
from barnabas_broker.coordinator.compatibility import may_write_newest
from barnabas_kafka.settings.broker import BrokerSettings


@pytest.mark.parametrize(
    ("settings", "software", "may"),
    [
        ({}, (), True),
        ({}, (OWN_SOFTWARE,), True),
        ({}, (OWN_SOFTWARE, OWN_SOFTWARE), True),
        ({}, (OWN_SOFTWARE, None), False),
        ({}, (OWN_SOFTWARE, "other"), False),
        ({"inter.broker.protocol.version": "3.9"}, (OWN_SOFTWARE,), False),
    ],
)
def test_only_where_all_brokers_are_ours(
    settings: dict[str, str], software: tuple[str | None, ...], may: bool
) -> None:
    """One broker that is not, or an older version asked for, is enough."""
    brokers = {id_: BrokerRegistration(id_, (), software=by) for id_, by in enumerate(software)}
    image = MetadataImage(cluster_id="c", brokers=brokers)
    assert may_write_newest(BrokerSettings(settings), image) is may
