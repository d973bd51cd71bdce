"""Client quotas: what may be set, where it is stored, and how every broker comes to know of it."""

import json
from pathlib import Path

import pytest

from barnabas_broker.cluster.quota_entity import DEFAULT, QuotaEntity
from barnabas_broker.controller.controller import Controller
from barnabas_broker.controller.quota_changes import (
    Component,
    Match,
    Parts,
    QuotaAlteration,
    QuotaChange,
    entity_filter,
    entity_of,
    parts_of,
)
from barnabas_broker.security.principals import ANONYMOUS
from barnabas_broker.zk.store import Create, Delete
from barnabas_kafka.errors import ErrorCode, KafkaError
from tests.broker.controller.embedded import NOW_MS, Embedded
from tests.broker.controller.ensemble import Cluster

COMBINATION = (
    "Invalid quota entity combination, IP entity should not be used with user/client ID entity."
)
ALICE: Parts = (("user", "alice"),)


def alter(
    controller: Controller,
    parts: Parts,
    *,
    validate_only: bool = False,
    unknown_hosts: tuple[str, ...] = (),
    **quotas: float | None,
) -> KafkaError | None:
    """Set quotas of one entity; None removes one."""
    changes = [QuotaChange(name, value) for name, value in quotas.items()]
    (answer,) = controller.client_quotas.alter(
        [QuotaAlteration(parts, changes)],
        validate_only=validate_only,
        unknown_hosts=unknown_hosts,
        principal=ANONYMOUS,
        now_ms=NOW_MS,
    )
    return answer


@pytest.mark.parametrize(
    ("parts", "path"),
    [
        (ALICE, "/config/users/alice"),
        ((("user", None),), "/config/users/<default>"),
        ((("user", "<default>"),), "/config/users/%3Cdefault%3E"),
        ((("client-id", "a/b"),), "/config/clients/a%2Fb"),
        ((("client-id", None), ("user", "alice")), "/config/users/alice/clients/<default>"),
        ((("user", "new"), ("client-id", "app")), "/config/users/new/clients/app"),
    ],
)
def test_stored_as_kafka_does(tmp_path: Path, parts: Parts, path: str) -> None:
    """At its znode, with a notification that names it; a restart finds it there."""
    embedded = Embedded(tmp_path)
    assert alter(embedded.controller, parts, producer_byte_rate=1024.0) is None
    assert json.loads(embedded.store.get(path)[0] or b"") == {
        "version": 1,
        "config": {"producer_byte_rate": "1024"},
    }
    (change,) = embedded.store.children("/config/changes")
    assert json.loads(embedded.store.get(f"/config/changes/{change}")[0] or b"") == {
        "version": 2,
        "entity_path": path.removeprefix("/config/"),
    }
    entity = entity_of(parts)
    assert embedded.image.quota_configs == {entity: {"producer_byte_rate": 1024.0}}
    assert sorted(parts_of(entity), key=lambda part: part[0]) == sorted(parts, key=lambda p: p[0])
    embedded.controller.catch_up(None, now_ms=NOW_MS)
    assert embedded.image.quota_configs == {entity: {"producer_byte_rate": 1024.0}}
    assert alter(embedded.controller, parts, producer_byte_rate=None) is None
    assert embedded.image.quota_configs == {}


def test_quota_changes_keep_credentials(tmp_path: Path) -> None:
    """A user's znode has both; neither change loses the other."""
    embedded = Embedded(tmp_path)
    config = b'{"version":1,"config":{"SCRAM-SHA-256":"stored"}}'
    embedded.store.commit([Create("/config/users/alice", config)], now_ms=NOW_MS)
    embedded.controller.catch_up(None, now_ms=NOW_MS)
    assert alter(embedded.controller, ALICE, consumer_byte_rate=5.0) is None
    both = {"SCRAM-SHA-256": "stored", "consumer_byte_rate": "5"}
    assert embedded.image.user_configs == {"alice": both}
    assert embedded.image.quota_configs == {QuotaEntity("alice"): {"consumer_byte_rate": 5.0}}


def test_validation_alone_changes_nothing(tmp_path: Path) -> None:
    """Not even a znode."""
    embedded = Embedded(tmp_path)
    assert alter(embedded.controller, ALICE, validate_only=True, producer_byte_rate=1.0) is None
    assert embedded.store.exists("/config/users/alice") is None


@pytest.mark.parametrize(
    ("parts", "quotas", "message"),
    [
        ((), {}, "Invalid empty client quota entity"),
        ((("user", ""),), {}, "Empty user not supported"),
        ((("group", "g"),), {}, "Unhandled client quota entity type: group"),
        (
            (("user", "a"), ("ip", "1.2.3.4")),
            {},
            COMBINATION,
        ),
        (ALICE, {"nothing": 1.0}, "Invalid configuration key nothing"),
        (
            ALICE,
            {"producer_byte_rate": 1.5},
            "Configuration producer_byte_rate must be a LONG value",
        ),
        (
            (("ip", "1.2.3.4"),),
            {"connection_creation_rate": 0.5},
            "Configuration connection_creation_rate must be a INT value",
        ),
        (ALICE, {"request_percentage": float("nan")}, None),
        ((("ip", "no host"),), {}, "no%20host is not a valid IP or resolvable host."),
    ],
)
def test_refused(
    tmp_path: Path, parts: Parts, quotas: dict[str, float], message: str | None
) -> None:
    """In Kafka's words."""
    answer = alter(
        Embedded(tmp_path).controller,
        parts,
        validate_only=False,
        unknown_hosts=("no host",),
        **quotas,
    )
    assert answer is not None
    assert answer.code == ErrorCode.INVALID_REQUEST
    assert message is None or answer.message == message


def test_written_by_others(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Apache's brokers and tools write znodes and notifications; what cannot be read is told."""
    embedded = Embedded(tmp_path)
    rate = b'{"version":1,"config":{"producer_byte_rate":"7","controller_mutation_rate":"0.5"}}'

    def notify(path: str) -> Create:
        change = json.dumps({"version": 2, "entity_path": path}).encode()
        return Create("/config/changes/config_change_", change, sequential=True)

    embedded.store.commit(
        [
            Create("/config/users/alice"),
            Create("/config/users/alice/clients"),
            Create("/config/users/alice/clients/<default>", rate),
            Create("/config/clients/app", b'{"version":1,"config":{"producer_byte_rate":"?"}}'),
            notify("users/alice/clients/<default>"),
            notify("clients/app"),
        ],
        now_ms=NOW_MS,
    )
    embedded.controller.catch_up({"/config/changes"}, now_ms=NOW_MS)
    quotas = {"producer_byte_rate": 7.0, "controller_mutation_rate": 0.5}
    assert embedded.image.quota_configs == {QuotaEntity("alice", DEFAULT): quotas}
    assert "Quotas ignored: znode=/config/clients/app" in caplog.text
    embedded.store.commit(
        [
            Delete("/config/users/alice/clients/<default>"),
            notify("users/alice/clients/<default>"),
        ],
        now_ms=NOW_MS,
    )
    embedded.controller.catch_up({"/config/changes"}, now_ms=NOW_MS)
    assert embedded.image.quota_configs == {}


def test_a_user_named_like_the_default_entity(tmp_path: Path) -> None:
    """Its settings stay when those of the default change: its name is written otherwise."""
    embedded = Embedded(tmp_path)

    def notify(name: str) -> Create:
        change = json.dumps({"version": 2, "entity_path": f"users/{name}"}).encode()
        return Create("/config/changes/config_change_", change, sequential=True)

    def config(name: str, value: str) -> list[Create]:
        content = json.dumps({"version": 1, "config": {"producer_byte_rate": value}}).encode()
        return [Create(f"/config/users/{name}", content), notify(name)]

    for name, value in (("%3Cdefault%3E", "7"), ("<default>", "8")):
        embedded.store.commit(config(name, value), now_ms=NOW_MS)
        embedded.controller.catch_up({"/config/changes"}, now_ms=NOW_MS)
    assert embedded.image.user_configs == {"<default>": {"producer_byte_rate": "7"}}
    assert embedded.image.quota_configs == {
        QuotaEntity("<default>"): {"producer_byte_rate": 7.0},
        QuotaEntity(DEFAULT): {"producer_byte_rate": 8.0},
    }


def test_every_broker_of_a_cluster_knows() -> None:
    """Whichever was asked; one that starts later, too."""
    cluster = Cluster(2)
    for broker, controller in cluster.controllers.items():
        assert alter(controller, (("client-id", f"c{broker}"),), producer_byte_rate=1.0) is None
    cluster.settle()
    cluster.start(3)
    known = {QuotaEntity(client_id=f"c{each}"): {"producer_byte_rate": 1.0} for each in (1, 2)}
    for controller in cluster.controllers.values():
        assert controller.image.quota_configs == known


def test_a_filter_with_parts_of_several_kinds() -> None:
    """As the oracle's, which puts all of them to Apache."""
    configs = {
        QuotaEntity("a"): {"producer_byte_rate": 1.0},
        QuotaEntity("a", DEFAULT): {"producer_byte_rate": 2.0},
        QuotaEntity(ip="10.0.0.1"): {"connection_creation_rate": 3.0},
    }
    user = Component("user", Match.EXACT, "a")
    for components, strict, expected in (
        ([user], False, list(configs)[:2]),
        ([user], True, list(configs)[:1]),
        ([], False, list(configs)),
        ([], True, []),
    ):
        assert list(filter(entity_filter(components, strict=strict), configs)) == expected
    with pytest.raises(KafkaError, match="Duplicate user filter component entity type"):
        entity_filter([user, user], strict=False)
