"""Which quota applies to a client (Kafka's `ClientQuotaManager.DefaultQuotaCallback`).

The first of these that is set: of the user with the client id; of the user with any client id; of
the user; of any user with the client id; of any user with any client id; of any user; of the
client id; of any client id.

What is counted together follows from it: clients of a quota that names client ids, if only as a
default, are counted one by one, those of a user's quota together, and those of one of client ids
of any user.
"""

from collections.abc import Iterator, Mapping

from barnabas_broker.cluster.quota_entity import DEFAULT, QuotaEntity

Tags = tuple[str | None, str]
"""User and client id that are counted together: None for all users, "" for all client ids.

A certificate without a subject is that of a user whose name is empty. It has the quotas of any
user; Apache's brokers give it none.
"""


def quota_of(
    limits: Mapping[QuotaEntity, float], user: str, client_id: str | None
) -> tuple[Tags, float] | None:
    """What is counted together with this client, and the limit of that; None without a quota.

    A client without an id, or with an empty one, has no quota of client ids, as in Kafka.
    """
    for entity, tags in _levels(user, client_id or ""):
        if entity in limits:
            limit = limit_of(limits, tags)
            return None if limit is None else (tags, limit)
    return None


def limit_of(limits: Mapping[QuotaEntity, float], tags: Tags) -> float | None:
    """The limit of what is counted together, None where there is none."""
    user, client_id = tags
    if user is not None and client_id:
        candidates = [
            QuotaEntity(user, client_id),
            QuotaEntity(user, DEFAULT),
            QuotaEntity(DEFAULT, client_id),
            QuotaEntity(DEFAULT, DEFAULT),
        ]
    elif user is not None:
        candidates = [QuotaEntity(user), QuotaEntity(DEFAULT)]
    elif client_id:
        candidates = [QuotaEntity(None, client_id), QuotaEntity(None, DEFAULT)]
    else:
        candidates = []
    return next((limits[each] for each in candidates if each in limits), None)


def _levels(user: str, client_id: str) -> Iterator[tuple[QuotaEntity, Tags]]:
    yield QuotaEntity(user, client_id), (user, client_id)
    yield QuotaEntity(user, DEFAULT), (user, client_id)
    yield QuotaEntity(user), (user, "")
    yield QuotaEntity(DEFAULT, client_id), (user, client_id)
    yield QuotaEntity(DEFAULT, DEFAULT), (user, client_id)
    yield QuotaEntity(DEFAULT), (user, "")
    yield QuotaEntity(None, client_id), (None, client_id)
    yield QuotaEntity(None, DEFAULT), (None, client_id)
