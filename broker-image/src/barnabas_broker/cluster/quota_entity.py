"""What a client quota is set for: a user, a client id, both, or an address; each named or default.

The default of users is `DEFAULT`, which no name can be: a user called `<default>` is a name like
any other, and its znode is `%3Cdefault%3E`.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from ipaddress import ip_address
from typing import Final

PRODUCER_BYTE_RATE: Final = "producer_byte_rate"
CONSUMER_BYTE_RATE: Final = "consumer_byte_rate"
REQUEST_PERCENTAGE: Final = "request_percentage"
CONTROLLER_MUTATION_RATE: Final = "controller_mutation_rate"
CONNECTION_CREATION_RATE: Final = "connection_creation_rate"

#: Quotas of users and client ids, and of addresses (Kafka's `QuotaConfigs`).
CLIENT_QUOTAS: Final = (
    PRODUCER_BYTE_RATE,
    CONSUMER_BYTE_RATE,
    REQUEST_PERCENTAGE,
    CONTROLLER_MUTATION_RATE,
)
IP_QUOTAS: Final = (CONNECTION_CREATION_RATE,)


class Default(Enum):
    """The name of the entity of all those without quotas of their own."""

    DEFAULT = "<default>"


DEFAULT: Final = Default.DEFAULT

Name = str | Default


@dataclass(frozen=True, slots=True)
class QuotaEntity:
    """A user, a client id, both, or an address."""

    user: Name | None = None
    client_id: Name | None = None
    ip: Name | None = None


QuotaConfigs = Mapping[QuotaEntity, Mapping[str, float]]
"""The quotas of each entity that has some, by their names."""


def quotas_of(entity: QuotaEntity, config: Mapping[str, str]) -> dict[str, float]:
    """The quotas among the settings of an entity; raises ValueError for one that is no number."""
    names = CLIENT_QUOTAS if entity.ip is None else IP_QUOTAS
    quotas = {name: float(config[name]) for name in names if name in config}
    if any(math.isnan(value) for value in quotas.values()):
        raise ValueError("a quota is not a number")
    return quotas


def limits_of(configs: QuotaConfigs, name: str) -> dict[QuotaEntity, float]:
    """The entities for which the quota of that name is set."""
    return {entity: quotas[name] for entity, quotas in configs.items() if name in quotas}


def is_address(host: str) -> bool:
    """Whether it is an address, not a name to be looked up."""
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
