"""The admin client against Apache Kafka 2.8 and 3.9 and against our broker: every operation."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from barnabas_broker.testing import Broker
from barnabas_kafka.client import (
    ALL_RECORDS,
    Acl,
    AclFilter,
    AclOperation,
    AclResourceType,
    Admin,
    AlterConfigOp,
    BrokerError,
    ClientConfig,
    CommittedOffset,
    ConfigChange,
    ConfigSource,
    NewTopic,
    PatternType,
    QuotaEntity,
    ScramCredential,
    UnsupportedVersionError,
    alter_configs,
    alter_partition_reassignments,
    alter_quotas,
    alter_scram_credentials,
    broker_resource,
    commit_offsets,
    create_acls,
    create_partitions,
    create_topics,
    delete_acls,
    delete_groups,
    delete_offsets,
    delete_records,
    delete_topics,
    describe_acls,
    describe_cluster,
    describe_configs,
    describe_groups,
    describe_log_dirs,
    describe_producers,
    describe_quotas,
    describe_scram_credentials,
    describe_topics,
    describe_transactions,
    elect_leaders,
    fetch_offsets,
    list_groups,
    list_offsets,
    list_partition_reassignments,
    list_topics,
    list_transactions,
    topic_resource,
)
from barnabas_kafka.errors import ErrorCode
from barnabas_kafka.ids import TopicPartition
from tests.oracle.apache import ApacheKafka
from tests.waiting import ANSWER, seconds, wait_for

pytestmark = pytest.mark.jvm

AUTHORIZER = {
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}


@pytest.fixture(scope="module", params=["2.8.2", "3.9.1", "ours"])
def release(request: pytest.FixtureRequest) -> str:
    """Of Apache Kafka, or ours."""
    name: str = request.param
    return name


@pytest.fixture(scope="module")
def admin(release: str) -> Iterator[Admin]:
    """A client of one broker, which lives as long as the module."""
    with ExitStack() as stack:
        if release == "ours":
            bootstrap = stack.enter_context(Broker()).bootstrap_servers
        else:
            apache = ApacheKafka(release, overrides=AUTHORIZER, heap="384M")
            bootstrap = stack.enter_context(apache).bootstrap
        config = ClientConfig(bootstrap_servers=bootstrap, timeout_s=seconds(ANSWER))
        yield stack.enter_context(Admin(config))


def test_describe_cluster(admin: Admin) -> None:
    """One broker, which is the controller."""
    view = admin.call(describe_cluster())
    assert view.cluster_id
    assert list(view.brokers) == [view.controller_id]


def test_topics_from_beginning_to_end(admin: Admin) -> None:
    """Created with settings, described, given partitions, listed and deleted; results by topic."""
    created = admin.call(
        create_topics(
            [NewTopic("life", 2, 1, {"retention.ms": "5000"}), NewTopic("bad name!", 1, 1)]
        )
    )
    assert set(created.values) == {"life"}
    assert created.errors["bad name!"].code is ErrorCode.INVALID_TOPIC_EXCEPTION
    admin.call(create_partitions({"life": 3})).all()

    def partitions() -> int:
        described = admin.call(describe_topics(["life"]))
        return len(described.values["life"].partitions) if described.values else 0

    wait_for("three partitions", partitions, until=lambda count: count == 3)
    assert "life" in admin.call(list_topics())
    again = admin.call(create_topics([NewTopic("life", 1, 1)]))
    assert again.errors["life"].code is ErrorCode.TOPIC_ALREADY_EXISTS
    admin.call(delete_topics(["life"])).all()
    wait_for("the end of the topic", lambda: "life" not in admin.call(list_topics()))
    gone = admin.call(delete_topics(["life"]))
    assert gone.errors["life"].code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_validate_only_creates_nothing(admin: Admin) -> None:
    """The broker checks, and that is all."""
    admin.call(create_topics([NewTopic("never", 1, 1)], validate_only=True)).all()
    assert "never" not in admin.call(list_topics())


def test_configs(admin: Admin) -> None:
    """One setting is changed, another removed, a third stays; bad ones are refused together."""
    settings = {"retention.ms": "5000", "max.message.bytes": "2000", "segment.bytes": "20000"}
    admin.call(create_topics([NewTopic("configs", 1, 1, settings)])).all()
    topic = topic_resource("configs")
    changes = [
        ConfigChange("retention.ms", AlterConfigOp.SET, "6000"),
        ConfigChange("max.message.bytes", AlterConfigOp.DELETE),
    ]
    admin.call(alter_configs({topic: changes})).all()

    def own() -> dict[str, str | None]:
        entries = admin.call(describe_configs([topic])).one(topic)
        source = ConfigSource.DYNAMIC_TOPIC_CONFIG
        return {name: each.value for name, each in entries.items() if each.source is source}

    expected = {"retention.ms": "6000", "segment.bytes": "20000"}
    wait_for("the settings", own, until=lambda found: found == expected)
    bad = [ConfigChange("retention.ms", AlterConfigOp.SET, "soon")]
    refused = admin.call(alter_configs({topic: bad}))
    assert refused.errors[topic].code in (ErrorCode.INVALID_CONFIG, ErrorCode.INVALID_REQUEST)


def test_broker_configs_come_from_the_broker(admin: Admin) -> None:
    """With its synonyms; a broker that is not there is an error of its own."""
    id_ = admin.call(describe_cluster()).controller_id
    here, nowhere = broker_resource(id_), broker_resource(id_ + 1)
    found = admin.call(describe_configs([here, nowhere], names=["log.retention.ms"], synonyms=True))
    assert list(found.one(here)) == ["log.retention.ms"]
    assert found.errors[nowhere].code is ErrorCode.BROKER_NOT_AVAILABLE


def test_partitions(admin: Admin) -> None:
    """Offsets, records, elections, reassignments and log directories of a topic."""
    admin.call(create_topics([NewTopic("parts", 2, 1)])).all()
    here, there, missing = (TopicPartition("parts", number) for number in (0, 1, 9))
    offsets = wait_for(
        "the offsets",
        lambda: admin.call(list_offsets([here, there, missing])),
        until=lambda found: len(found.values) == 2,
    )
    assert offsets.one(here).offset == 0
    assert offsets.errors[missing].code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert admin.call(delete_records({here: ALL_RECORDS})).all() == {here: 0}
    assert admin.call(list_partition_reassignments()) == {}
    broker = admin.call(describe_cluster()).controller_id
    moved = admin.call(alter_partition_reassignments({here: [broker], there: None}))
    assert set(moved.values) == {here}
    assert moved.errors[there].code is ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
    refused = admin.call(alter_partition_reassignments({here: [broker, broker + 1]}))
    assert refused.errors[here].code is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    elected = admin.call(elect_leaders([here]))[here]
    assert elected is not None
    assert elected.code is ErrorCode.ELECTION_NOT_NEEDED
    (directory,) = admin.call(describe_log_dirs()).one(broker)
    assert directory.error is None
    assert {here, there} <= set(directory.replicas)


def test_groups(admin: Admin) -> None:
    """Offsets of a group without members are set, read and removed, and then the group."""
    admin.call(create_topics([NewTopic("grouped", 2, 1)])).all()
    here, there = TopicPartition("grouped", 0), TopicPartition("grouped", 1)
    committed = CommittedOffset(5, metadata="why")
    admin.call(commit_offsets("offsets", {here: committed, there: CommittedOffset(6)})).all()
    fetched = admin.call(fetch_offsets({"offsets": None, "none": [here]}))
    assert fetched.one("offsets") == {here: committed, there: CommittedOffset(6)}
    assert fetched.one("none") == {}
    listed = [each for found in admin.call(list_groups()).all().values() for each in found]
    assert "offsets" in {each.group_id for each in listed}
    assert admin.call(describe_groups(["offsets"])).one("offsets").state == "Empty"
    admin.call(delete_offsets("offsets", [there])).all()
    assert set(admin.call(fetch_offsets({"offsets": None})).one("offsets")) == {here}
    deleted = admin.call(delete_groups(["offsets", "none"]))
    assert set(deleted.values) == {"offsets"}
    assert deleted.errors["none"].code is ErrorCode.GROUP_ID_NOT_FOUND


def test_transactions(admin: Admin, release: str) -> None:
    """None is open; a broker of Kafka 2.8 has no such requests, and says so."""
    listed = admin.call(list_transactions())
    described = admin.call(describe_transactions(["nothing"]))
    if release == "2.8.2":
        assert all(isinstance(each, UnsupportedVersionError) for each in listed.errors.values())
    else:
        assert list(listed.all().values()) == [()]
        assert described.errors["nothing"].code is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    admin.call(create_topics([NewTopic("produced", 1, 1)])).all()
    partition = TopicPartition("produced", 0)
    assert admin.call(describe_producers([partition])).one(partition) == ()


def test_acls(admin: Admin, release: str) -> None:
    """Created, found, removed; a broker without an authorizer says so."""
    acl = Acl(
        resource_type=AclResourceType.TOPIC,
        resource_name="acl-",
        pattern_type=PatternType.PREFIXED,
        principal="User:alice",
        operation=AclOperation.READ,
    )
    wanted = AclFilter(resource_type=AclResourceType.TOPIC, resource_name="acl-")
    if release == "ours":
        with pytest.raises(BrokerError, match="SECURITY_DISABLED"):
            admin.call(describe_acls(wanted))
        return
    admin.call(create_acls([acl])).all()
    wait_for("the ACL", lambda: admin.call(describe_acls(wanted)), until=lambda it: it == (acl,))
    assert admin.call(delete_acls([wanted])).one(wanted) == (acl,)
    wait_for("no ACL", lambda: admin.call(describe_acls(wanted)), until=lambda found: not found)


def test_scram_credentials(admin: Admin) -> None:
    """Set, found without the password, and removed."""
    set_ = [ScramCredential("alice", "pencil"), ScramCredential("alice", "pencil", "SCRAM-SHA-256")]
    admin.call(alter_scram_credentials(set_)).all()
    expected = {"alice": {"SCRAM-SHA-512": 4096, "SCRAM-SHA-256": 4096}}
    read = describe_scram_credentials(["alice", "bob"])
    wait_for("the user", lambda: admin.call(read), until=lambda found: found == expected)
    both = [("alice", "SCRAM-SHA-512"), ("alice", "SCRAM-SHA-256"), ("bob", "SCRAM-SHA-256")]
    removed = admin.call(alter_scram_credentials(deletions=both))  # type: ignore[arg-type]
    assert set(removed.values) == {"alice"}
    assert removed.errors["bob"].code is ErrorCode.RESOURCE_NOT_FOUND


def test_quotas(admin: Admin, release: str) -> None:
    """Set for a user and for the default of all, found, and removed one by one."""
    alice: QuotaEntity = frozenset({("user", "alice")})
    default: QuotaEntity = frozenset({("user", None)})
    changes = {alice: {"producer_byte_rate": 1024.0}, default: {"consumer_byte_rate": 2048.0}}
    if release == "ours":
        results = admin.call(alter_quotas(changes))
        assert all(isinstance(each, UnsupportedVersionError) for each in results.errors.values())
        return
    admin.call(alter_quotas(changes)).all()
    wait_for(
        "both quotas", lambda: admin.call(describe_quotas()), until=lambda found: found == changes
    )
    only = admin.call(describe_quotas({"user": None}))
    assert only == {default: {"consumer_byte_rate": 2048.0}}
    removals = {alice: {"producer_byte_rate": None}, default: {"consumer_byte_rate": None}}
    admin.call(alter_quotas(removals)).all()
    wait_for("no quota", lambda: admin.call(describe_quotas()), until=lambda found: not found)
