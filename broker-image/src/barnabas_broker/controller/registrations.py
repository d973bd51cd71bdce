"""What the controller makes of the brokers' registrations, and how it logs them."""

import logging
from collections.abc import Mapping
from dataclasses import replace

from barnabas_broker.cluster.image import BrokerRegistration
from barnabas_broker.zk.znodes import BrokerZnode, MalformedZnodeError

_log = logging.getLogger(__name__)


def counts_as_away(error: MalformedZnodeError) -> None:
    """Log it: a broker with an empty registration cannot be reached."""
    _log.error("Malformed znode: %s; treating the broker as not registered", error)


def is_unclean(znode: BrokerZnode, data: bytes | None) -> bool:
    """Whether a registration says that logs may be truncated, or cannot be read at all."""
    try:
        return znode.decode(data).unclean
    except MalformedZnodeError:
        return True


def is_other(before: BrokerRegistration | None, after: BrokerRegistration) -> bool:
    """Whether more has changed than that a broker has caught up."""
    return before is None or replace(before, unclean=after.unclean) != after


def unclean_shutdowns(brokers: Mapping[int, BrokerRegistration]) -> frozenset[int]:
    """The brokers that registered after an unclean shutdown."""
    return frozenset(number for number, each in brokers.items() if each.unclean)


def log_difference(
    before: Mapping[int, BrokerRegistration], after: Mapping[int, BrokerRegistration]
) -> None:
    """Log which brokers have come and gone."""
    for gone in sorted(before.keys() - after.keys()):
        _log.warning("Broker unregistered: broker=%d", gone)
    for came in sorted(after.keys() - before.keys()):
        _log.info("Broker registered: broker=%d%s", came, _how(after[came]))
    for again in sorted(before.keys() & after.keys()):
        if before[again].epoch != after[again].epoch:
            _log.info("Broker registered again: broker=%d%s", again, _how(after[again]))


def _how(broker: BrokerRegistration) -> str:
    return ", after an unclean shutdown" if broker.unclean else ""
