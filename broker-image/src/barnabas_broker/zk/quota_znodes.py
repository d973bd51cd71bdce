"""Where quotas are kept: the znodes of users, client ids, both, and addresses (KIP-13, KIP-55).

    /config/users/<user>                          with the SCRAM credentials of the user
    /config/users/<user>/clients/<client id>
    /config/clients/<client id>
    /config/ips/<address>

Names are written as Kafka's `Sanitizer` does; `<default>` is the default of each.
"""

from collections.abc import Iterator
from typing import Final
from urllib.parse import quote, unquote

from barnabas_broker.cluster.quota_entity import DEFAULT, Name, QuotaEntity
from barnabas_broker.zk.store import CoordinationStore
from barnabas_broker.zk.znodes import CONFIG_USERS, DEFAULT_ENTITY, ConfigZnode

CONFIG_CLIENTS: Final = "clients"
CONFIG_IPS: Final = "ips"
QUOTA_TYPES: Final = (CONFIG_USERS, CONFIG_CLIENTS, CONFIG_IPS)


def sanitized(name: Name) -> str:
    """A name as it is written in a path."""
    return DEFAULT_ENTITY if name is DEFAULT else quote(str(name), safe="").replace("~", "%7E")


def _name(written: str) -> Name:
    return DEFAULT if written == DEFAULT_ENTITY else unquote(written)


def quota_znode(entity: QuotaEntity) -> ConfigZnode:
    """Where the quotas of an entity are."""
    if entity.ip is not None:
        return ConfigZnode(CONFIG_IPS, sanitized(entity.ip))
    if entity.user is None:
        return ConfigZnode(CONFIG_CLIENTS, sanitized(entity.client_id or ""))
    name = sanitized(entity.user)
    if entity.client_id is not None:
        name += f"/{CONFIG_CLIENTS}/{sanitized(entity.client_id)}"
    return ConfigZnode(CONFIG_USERS, name)


def quota_entity(entity_type: str, name: str) -> QuotaEntity | None:
    """The entity in a path or a notification; None where it can have no quotas."""
    if not name:
        return None
    match entity_type, name.split("/"):
        case "users", [user]:
            return QuotaEntity(user=_name(user))
        case "users", [user, "clients", client_id] if client_id:
            return QuotaEntity(user=_name(user), client_id=_name(client_id))
        case "clients", [client_id]:
            return QuotaEntity(client_id=_name(client_id))
        case "ips", [ip]:
            return QuotaEntity(ip=_name(ip))
    return None


def stored_entities(store: CoordinationStore) -> Iterator[QuotaEntity]:
    """All that have settings, quotas or others."""
    users = sorted(store.children(f"/config/{CONFIG_USERS}"))
    paths = [f"/config/{CONFIG_USERS}/{user}/{CONFIG_CLIENTS}" for user in users]
    found = [(CONFIG_USERS, user) for user in users]
    for user, clients in zip(users, store.children_many(paths), strict=True):
        found += [(CONFIG_USERS, f"{user}/{CONFIG_CLIENTS}/{it}") for it in sorted(clients or ())]
    for kind in (CONFIG_CLIENTS, CONFIG_IPS):
        found += [(kind, name) for name in sorted(store.children(f"/config/{kind}"))]
    for entity_type, name in found:
        entity = quota_entity(entity_type, name)
        if entity is not None:
            yield entity
