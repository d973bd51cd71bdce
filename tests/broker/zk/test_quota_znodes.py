"""Where quotas are kept, by the names that Kafka gives the znodes."""

import pytest

from barnabas_broker.cluster.quota_entity import DEFAULT, QuotaEntity
from barnabas_broker.zk.quota_znodes import quota_entity, quota_znode


@pytest.mark.parametrize(
    ("entity", "path"),
    [
        (QuotaEntity("alice"), "users/alice"),
        (QuotaEntity(DEFAULT), "users/<default>"),
        (QuotaEntity("<default>"), "users/%3Cdefault%3E"),
        (QuotaEntity("CN=a b,O=x/y~*"), "users/CN%3Da%20b%2CO%3Dx%2Fy%7E%2A"),
        (QuotaEntity("alice", "app/1"), "users/alice/clients/app%2F1"),
        (QuotaEntity("alice", DEFAULT), "users/alice/clients/<default>"),
        (QuotaEntity(DEFAULT, DEFAULT), "users/<default>/clients/<default>"),
        (QuotaEntity(client_id="app 1"), "clients/app%201"),
        (QuotaEntity(client_id=DEFAULT), "clients/<default>"),
        (QuotaEntity(ip="10.0.0.1"), "ips/10.0.0.1"),
        (QuotaEntity(ip="::1"), "ips/%3A%3A1"),
        (QuotaEntity(ip=DEFAULT), "ips/<default>"),
    ],
)
def test_paths(entity: QuotaEntity, path: str) -> None:
    """Each entity has one, and is found by it."""
    assert quota_znode(entity).entity_path == path
    kind, _, name = path.partition("/")
    assert quota_entity(kind, name) == entity


@pytest.mark.parametrize(
    "path", ["topics/t", "brokers/1", "users/", "users/a/clients/", "users/a/b/c", "clients/a/b"]
)
def test_paths_without_a_quota_entity(path: str) -> None:
    """Other entities, and paths that Kafka does not write."""
    kind, _, name = path.partition("/")
    assert quota_entity(kind, name) is None
