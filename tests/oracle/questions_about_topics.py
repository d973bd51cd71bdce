"""Questions that both brokers are asked: topics, settings, the cluster and its directories."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from typing import Any, Final
from uuid import UUID

from barnabas_kafka.protocol.messages import alter_configs, incremental_alter_configs
from barnabas_kafka.protocol.messages.api_versions import ApiVersionsRequest
from barnabas_kafka.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from barnabas_kafka.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from barnabas_kafka.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from barnabas_kafka.protocol.messages.describe_cluster import DescribeClusterRequest
from barnabas_kafka.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from barnabas_kafka.protocol.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
)
from barnabas_kafka.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas_kafka.records.builder import build_batch
from tests.clients import START_MS, wire
from tests.oracle.sides import Side

NOBODY: Final = UUID(int=4711)
BAD_NAMES: Final = ("", ".", "..", "a b", "a/b", "ü", "x" * 250, "x" * 249 + "é")
TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = range(4)
DYNAMIC_OF_ONE, DYNAMIC_OF_ALL = 2, 3


# Topics


def creation(name: str, partitions: int = 1, replicas: int = 1, **more: Any) -> CreatableTopic:
    """One topic to create; `assignments` by partition, `configs` by name."""
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replicas,
        assignments=[
            CreatableReplicaAssignment(partition_index=partition, broker_ids=brokers)
            for partition, brokers in more.get("assignments", ())
        ],
        configs=[
            CreatableTopicConfig(name=key, value=value) for key, value in more.get("configs", ())
        ],
    )


def create(
    side: Side,
    label: str,
    *topics: CreatableTopic,
    version: int = 7,
    only_validate: bool = False,
    trap: bool = False,
    timeout_ms: int = 60_000,
) -> None:
    """Ask for topics."""
    request = CreateTopicsRequest(
        topics=list(topics), timeout_ms=timeout_ms, validate_only=only_validate
    )
    side.ask(label, request, version, trap=trap)


def create_topics(side: Side) -> None:
    """Topics that can and that cannot be."""

    for version in range(8):
        create(side, f"good, version {version}", creation(f"create-v{version}", 2), version=version)
    for version in (1, 5, 7):
        create(side, f"validated, version {version}", creation("create-never"), version=version,
               only_validate=True)  # fmt: skip
    create(side, "twice", creation("create-v7"))
    create(side, "twice, validated", creation("create-v7"), only_validate=True)
    for name in BAD_NAMES:
        create(side, f"name {name[-12:]!r}", creation(name))
    create(side, "a name that collides", creation("create.v7"), creation("create_v7"))
    create(side, "named twice in a request", creation("create-double"), creation("create-double"))
    create(side, "none")
    for partitions, replicas in ((0, 1), (-2, 1), (1, 0), (1, -2), (1, 2), (-1, -1), (-1, 1)):
        for version in (3, 4, 7):
            name = f"create-{partitions}-{replicas}-{version}"
            create(side, f"{partitions} partitions, {replicas} replicas, version {version}",
                   creation(name, partitions, replicas), version=version)  # fmt: skip
    create(side, "a good and a bad one", creation("create-good"), creation("create bad"))


def change_topics_without_waiting(side: Side) -> None:
    """Who gives no time is told that it has run out, and what was asked for is done."""
    for timeout_ms in (0, -1):
        name, bad = f"hasty{timeout_ms}", creation("not a name")
        create(side, f"validated in {timeout_ms}", creation(name), timeout_ms=timeout_ms,
               only_validate=True)  # fmt: skip
        for version in (4, 7):
            new = creation(f"{name}-v{version}", 2)
            create(side, f"created in {timeout_ms}, version {version}", new, bad,
                   timeout_ms=timeout_ms, version=version)  # fmt: skip
        create(side, f"created again after {timeout_ms}", creation(f"{name}-v7"))
        topic = side.topic(name)
        grown = [
            CreatePartitionsTopic(name=each, count=3, assignments=None)
            for each in (topic, "hasty-nowhere")
        ]
        for validate_only in (True, False):
            growth = CreatePartitionsRequest(
                topics=grown, timeout_ms=timeout_ms, validate_only=validate_only
            )
            side.ask(f"grown in {timeout_ms}, {validate_only=}", growth, 3)
        side.ask(f"grown again after {timeout_ms}",
                 CreatePartitionsRequest(topics=grown, timeout_ms=60_000), 3)  # fmt: skip
        names = [side.topic(f"{name}-doomed"), "hasty-nowhere"]
        side.ask(f"deleted in {timeout_ms}",
                 DeleteTopicsRequest(topic_names=names, timeout_ms=timeout_ms), 5)  # fmt: skip
        states = [DeleteTopicState(name=side.topic(f"{name}-doomed-too"))]
        side.ask(f"deleted in {timeout_ms}, version 6",
                 DeleteTopicsRequest(topics=states, timeout_ms=timeout_ms), 6)  # fmt: skip


def create_assigned_topics(side: Side) -> None:
    """Replicas placed by hand, well and badly."""
    assignments = {
        "one partition": [(0, [0])],
        "two partitions": [(0, [0]), (1, [0])],
        "a gap": [(0, [0]), (2, [0])],
        "not from 0": [(1, [0])],
        "negative": [(-1, [0])],
        "a partition twice": [(0, [0]), (0, [0])],
        "a broker twice": [(0, [0, 0])],
        "a broker that is not there": [(0, [5])],
        "one broker that is not there": [(0, [0, 5])],
        "no brokers": [(0, [])],
        "different counts": [(0, [0]), (1, [])],
    }
    for number, (what, table) in enumerate(assignments.items()):
        # Apache with ZooKeeper waits for leaders that there will never be.
        create(side, f"assigned, {what}", creation(f"create-a{number}", -1, -1, assignments=table),
               trap=what in {"a broker that is not there", "no brokers"})  # fmt: skip
        create(side, f"assigned, {what}, and counted",
               creation(f"create-b{number}", 1, 1, assignments=table))  # fmt: skip


def create_topics_with_settings(side: Side) -> None:
    """Settings that a topic can and cannot have."""
    configs = {
        "good": [("retention.ms", "1000"), ("cleanup.policy", "compact")],
        "malformed": [("retention.ms", "soon")],
        "out of range": [("segment.bytes", "1")],
        "unknown": [("no.such.setting", "1")],
        "null": [("retention.ms", None)],
        "empty": [("cleanup.policy", "")],
        "twice": [("retention.ms", "1"), ("retention.ms", "2")],
        "not among the choices": [("cleanup.policy", "shred")],
        "in contradiction": [("min.compaction.lag.ms", "9"), ("max.compaction.lag.ms", "8")],
        "with space": [("retention.ms", " 5000 ")],
        "a word for a flag": [("preallocate", "maybe")],
        "a flag in capitals": [("preallocate", "TRUE")],
        "a list with space": [("cleanup.policy", "compact, delete")],
        "throttled replicas": [("leader.replication.throttled.replicas", "0:0")],
        "throttled nonsense": [("leader.replication.throttled.replicas", "x")],
        "of tiered storage": [("remote.storage.enable", "true")],
        "local retention": [("local.retention.ms", "5")],
        "of the past": [("message.format.version", "2.0")],
        "the past's nonsense": [("message.format.version", "one")],
        "old name": [("message.timestamp.difference.max.ms", "5000")],
        "compression": [("compression.type", "zstd"), ("compression.zstd.level", "3")],
        "level out of range": [("compression.gzip.level", "77")],
        "min.insync.replicas 0": [("min.insync.replicas", "0")],
        "min.cleanable.dirty.ratio 2": [("min.cleanable.dirty.ratio", "2")],
        "a number beyond 32 bits": [("segment.bytes", "99999999999")],
        "a number with decimals": [("segment.bytes", "5e6")],
    }
    for number, (what, settings) in enumerate(configs.items()):
        create(side, f"settings {what}", creation(f"create-c{number}", configs=settings))
        create(side, f"settings {what}, version 4", creation(f"create-d{number}", configs=settings),
               version=4)  # fmt: skip


def delete_topics(side: Side) -> None:
    """Topics that are there and that are not, by name and by id."""
    for version in range(6):
        name = side.topic(f"delete-v{version}")
        names = [name, "delete-nowhere", "not a name", ""]
        side.ask(f"version {version}", DeleteTopicsRequest(topic_names=names, timeout_ms=60_000),
                 version)  # fmt: skip
    side.ask("none", DeleteTopicsRequest(timeout_ms=60_000), 5)

    def by_state(label: str, *states: DeleteTopicState) -> None:
        side.ask(label, DeleteTopicsRequest(topics=list(states), timeout_ms=60_000), 6)

    by_state("by name", DeleteTopicState(name=side.topic("delete-name")))
    by_state("by name, not there", DeleteTopicState(name="delete-nowhere"))
    topic_id = side.id_of(side.topic("delete-id"))
    by_state("by id", DeleteTopicState(topic_id=topic_id))
    by_state("by an id that is not there", DeleteTopicState(topic_id=NOBODY))
    by_state("by nothing", DeleteTopicState())
    kept = side.topic("delete-kept")
    by_state("by both", DeleteTopicState(name=kept, topic_id=side.id_of(kept)))
    doubled = DeleteTopicState(name=side.topic("delete-double"))
    by_state("by name twice", doubled, doubled)


def create_partitions(side: Side) -> None:
    """Growing, shrinking and placing by hand."""
    for version in range(4):
        name = side.topic(f"grow-v{version}", partitions=2)
        grown = CreatePartitionsTopic(name=name, count=3, assignments=None)
        side.ask(f"version {version}", CreatePartitionsRequest(topics=[grown], timeout_ms=60_000),
                 version)  # fmt: skip
    topic = side.topic("grow", partitions=2)
    placements: dict[str, list[list[int]] | None] = {
        "none": None, "empty": [], "one": [[0]], "two": [[0], [0]], "twice": [[0, 0]],
        "not there": [[7]], "more replicas": [[0, 1]], "no replicas": [[]],
    }  # fmt: skip
    wanted = [
        *((name, count, None) for name in ("grow-nowhere", "not a name", "") for count in (3,)),
        *((topic, count, None) for count in (2, 1, 0, -1)),
        *((topic, 3, what) for what in placements),
    ]
    for only_validate in (True, False):
        for name, count, what in wanted:
            table = placements[what] if what else None
            rows = None if table is None else [
                CreatePartitionsAssignment(broker_ids=row) for row in table
            ]  # fmt: skip
            grown = CreatePartitionsTopic(name=name, count=count, assignments=rows)
            side.ask(
                f"{name!r} to {count}, placed {what}, {only_validate=}",
                CreatePartitionsRequest(
                    topics=[grown], timeout_ms=60_000, validate_only=only_validate
                ),
                3,
            )
    again = CreatePartitionsTopic(name=topic, count=9, assignments=None)
    side.ask("twice", CreatePartitionsRequest(topics=[again, again], timeout_ms=60_000), 3)


def metadata(side: Side) -> None:
    """All topics, none, some, by id, and topics that asking makes."""
    topic = side.topic("metadata", partitions=3)

    def about(*names: str, **more: Any) -> MetadataRequest:
        more = {"allow_auto_topic_creation": False} | more
        return MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in names], **more)

    side.ask_all("named", about(topic), range(4, 13))
    old = MetadataRequest(topics=[MetadataRequestTopic(name=topic)])
    side.ask_all("named by old clients", old, range(4))
    side.ask_all("none", MetadataRequest(topics=[]), range(1, 13))
    side.ask_all("not there", about("metadata-nowhere"), range(4, 13))
    for name in BAD_NAMES:
        side.ask_all(f"name {name[-12:]!r}", about(name), (4, 9, 12))
        making = about(name, allow_auto_topic_creation=True)
        side.ask_all(f"making {name[-12:]!r}", making, (4, 12))
    for version in range(13):
        making = about(f"metadata-made-{version}", allow_auto_topic_creation=True)
        side.ask(f"made by asking, version {version}", making, version)
    for name in ("metadata.collides", "metadata_collides"):
        side.ask(f"making {name}", about(name, allow_auto_topic_creation=True), 12)
    side.ask_all("a colliding name is not made", about("metadata_collides"), (4, 9, 12))
    side.ask("twice", about(topic, topic), 12)
    operations = about(topic, include_topic_authorized_operations=True)
    side.ask_all("operations on topics", operations, range(8, 13))
    operations = about(topic, include_cluster_authorized_operations=True)
    side.ask_all("operations on the cluster", operations, range(8, 11))
    ids = {"known": side.id_of(topic), "unknown": NOBODY, "no": UUID(int=0)}
    for what, topic_id in ids.items():
        for named in (None, topic):
            asked = MetadataRequest(
                topics=[MetadataRequestTopic(name=named, topic_id=topic_id)],
                allow_auto_topic_creation=False,
            )
            side.ask_all(f"{what} id, name {named}", asked, (10, 11, 12))
    mixed = MetadataRequest(
        topics=[
            MetadataRequestTopic(name=None, topic_id=NOBODY),
            MetadataRequestTopic(name=topic),
        ]
    )
    side.ask("by id and by name", mixed, 12)


# Settings


def describe_configs(side: Side) -> None:
    """What settings are told, in each version, and of what is not there."""
    topic = side.topic("describe", retention_ms="5000", cleanup_policy="compact,delete")

    def about(kind: int, name: str, *keys: str, **more: bool) -> DescribeConfigsRequest:
        resource = DescribeConfigsResource(
            resource_type=kind, resource_name=name, configuration_keys=list(keys) or None
        )
        return DescribeConfigsRequest(resources=[resource], **more)

    for synonyms in (False, True):
        for docs in (False, True):
            request = about(TOPIC, topic, include_synonyms=synonyms, include_documentation=docs)
            since = 3 if docs else int(synonyms)
            side.ask_all(f"topic, {synonyms=}, {docs=}", request, range(since, 5))
    side.ask_all("keys", about(TOPIC, topic, "retention.ms", "no.such.key"), range(5))
    for name in ("describe-nowhere", "not a name", ""):
        side.ask_all(f"topic {name!r}", about(TOPIC, name), (0, 4))
    keys = ("log.retention.ms", "log.retention.hours", "message.max.bytes", "num.partitions",
            "log.cleanup.policy", "compression.type", "ssl.keystore.password",
            "min.insync.replicas", "log.segment.bytes", "log.roll.ms", "log.roll.hours",
            "auto.create.topics.enable", "log.message.timestamp.before.max.ms",
            "unclean.leader.election.enable")  # fmt: skip
    request = about(BROKER, "0", *keys, include_synonyms=True, include_documentation=True)
    side.ask_all("broker", request, (3, 4))
    for name in ("", "7", "seven", "-1", "00"):
        side.ask_all(f"broker {name!r}", about(BROKER, name, *keys), (0, 4))
    for name in ("7", "seven", ""):
        side.ask(f"loggers of broker {name!r}", about(LOGGER, name), 4)
    for kind in (0, 1, 3, 5, METRICS, GROUP, 99, -1):
        side.ask_all(f"kind {kind}", about(kind, topic), (1, 4))
    side.ask("metrics of no name", about(METRICS, ""), 4)
    both = about(TOPIC, topic, "retention.ms")
    both.resources += about(GROUP, "g").resources
    side.ask("a topic and a group", both, 4)
    side.ask("nothing", DescribeConfigsRequest(), 4)


def describe_whole_broker(side: Side) -> None:
    """Every setting of a broker: its value, type, source, and whether it can change."""
    resource = DescribeConfigsResource(
        resource_type=BROKER, resource_name="0", configuration_keys=None
    )
    request = DescribeConfigsRequest(resources=[resource], include_synonyms=True)
    answer = side.ask("all", request, 4)
    side.reported = {
        f"{entry['name']}": entry for entry in side.reported["all"]["results"][0]["configs"]
        if not entry["name"].startswith("barnabas.")
    } if answer is not None else {}  # fmt: skip


def _some_settings(topic: str) -> DescribeConfigsRequest:
    return DescribeConfigsRequest(
        resources=[
            DescribeConfigsResource(
                resource_type=TOPIC,
                resource_name=topic,
                configuration_keys=["retention.ms", "cleanup.policy", "segment.ms"],
            )
        ]
    )


def alter_configs_of_topics(side: Side) -> None:
    """Replacing the settings of topics."""
    topic = side.topic("alter")
    state = _some_settings(topic)

    def replace(
        label: str, *settings: tuple[str, str | None], version: int = 2, **more: Any
    ) -> None:
        resource = alter_configs.AlterConfigsResource(
            resource_type=more.get("kind", TOPIC),
            resource_name=more.get("name", topic),
            configs=[alter_configs.AlterableConfig(name=key, value=v) for key, v in settings],
        )
        request = alter_configs.AlterConfigsRequest(
            resources=[resource] * more.get("times", 1),
            validate_only=more.get("only_validate", False),
        )
        side.ask(label, request, version, trap=len(request.resources) > 1)
        side.ask(f"after {label}", state, 4)

    for version in range(3):
        replace(f"version {version}", ("retention.ms", f"{version}00"), version=version)
    replace("another instead", ("segment.ms", "7000"))
    replace("only validated", ("retention.ms", "5"), only_validate=True)
    replace("malformed", ("retention.ms", "soon"))
    replace("unknown", ("no.such.setting", "1"))
    replace("null", ("retention.ms", None))
    replace("twice", ("retention.ms", "1"), ("retention.ms", "2"))
    replace("nothing")
    replace("a resource twice", ("retention.ms", "5"), times=2)
    for name in ("alter-nowhere", "not a name", ""):
        replace(f"topic {name!r}", ("retention.ms", "5"), name=name)
    for kind in (0, 1, 3, 99, LOGGER, METRICS, GROUP):
        replace(f"kind {kind}", ("retention.ms", "5"), kind=kind, name="0")


def alter_single_configs_of_topics(side: Side) -> None:
    """Changing single settings of topics."""
    topic = side.topic("alter-single")
    state = _some_settings(topic)

    def change(
        label: str, *settings: tuple[str, int, str | None], version: int = 1, **more: Any
    ) -> None:
        resource = incremental_alter_configs.AlterConfigsResource(
            resource_type=more.get("kind", TOPIC),
            resource_name=more.get("name", topic),
            configs=[
                incremental_alter_configs.AlterableConfig(
                    name=key, config_operation=operation, value=value
                )
                for key, operation, value in settings
            ],
        )
        request = incremental_alter_configs.IncrementalAlterConfigsRequest(
            resources=[resource] * more.get("times", 1),
            validate_only=more.get("only_validate", False),
        )
        side.ask(label, request, version)
        side.ask(f"after {label}", state, 4)

    change("set", ("retention.ms", SET, "100"), version=0)
    change("added", ("cleanup.policy", APPEND, "compact"))
    change("added again", ("cleanup.policy", APPEND, "compact"))
    change("subtracted", ("cleanup.policy", SUBTRACT, "delete"))
    change("subtracted again", ("cleanup.policy", SUBTRACT, "delete"))
    change("subtracted to nothing", ("cleanup.policy", SUBTRACT, "compact"))
    change("added to a number", ("retention.ms", APPEND, "1"))
    change("deleted", ("retention.ms", DELETE, None))
    change("deleted with a value", ("cleanup.policy", DELETE, "compact"))
    change("deleted again", ("retention.ms", DELETE, None))
    change("unknown deleted", ("no.such.setting", DELETE, None))
    change("unknown set", ("no.such.setting", SET, "1"))
    change("unknown added", ("no.such.setting", APPEND, "1"))
    change("null set", ("retention.ms", SET, None))
    change("malformed", ("retention.ms", SET, "soon"))
    change("two, one malformed", ("segment.ms", SET, "50"), ("retention.ms", SET, "soon"))
    change("twice", ("retention.ms", SET, "1"), ("retention.ms", DELETE, None))
    change("unknown operation", ("retention.ms", 9, "1"))
    change("only validated", ("retention.ms", SET, "5"), only_validate=True)
    change("nothing")
    change("a resource twice", ("retention.ms", SET, "5"), times=2)
    for name in ("alter-nowhere", "not a name", ""):
        change(f"topic {name!r}", ("retention.ms", SET, "5"), name=name)
    for kind in (0, 1, 3, 99, METRICS, GROUP):
        change(f"kind {kind}", ("retention.ms", SET, "5"), kind=kind, name="0")


def alter_configs_of_brokers(side: Side) -> None:
    """Changes while the broker runs: of one, of all, and of what cannot change."""
    keys = ["log.retention.ms", "message.max.bytes", "log.cleanup.policy", "background.threads"]

    def change(label: str, name: str, key: str, value: str | None, operation: int = SET) -> None:
        resource = incremental_alter_configs.AlterConfigsResource(
            resource_type=BROKER,
            resource_name=name,
            configs=[
                incremental_alter_configs.AlterableConfig(
                    name=key, config_operation=operation, value=value
                )
            ],
        )
        request = incremental_alter_configs.IncrementalAlterConfigsRequest(resources=[resource])
        side.ask(f"{label}, broker {name!r}", request, 1)

    def look(label: str, name: str, settled: Callable[[list[Any]], bool]) -> None:
        resource = DescribeConfigsResource(
            resource_type=BROKER, resource_name=name, configuration_keys=keys
        )
        request = DescribeConfigsRequest(resources=[resource], include_synonyms=True)
        side.ask_until(
            f"after {label}, broker {name!r}",
            request,
            4,
            settled=lambda answer: settled(answer.results[0].configs),
        )

    cases = {
        "set": ("log.retention.ms", "70000000"),
        "size": ("message.max.bytes", "2000000"),
        "list": ("log.cleanup.policy", "compact"),
        "threads": ("background.threads", "12"),
        "too many threads": ("background.threads", "1000"),
        "no threads": ("background.threads", "0"),
        "malformed": ("log.retention.ms", "soon"),
        "out of range": ("message.max.bytes", "-1"),
        "read only": ("num.partitions", "3"),
        "identity": ("broker.id", "3"),
        "unknown": ("no.such.setting", "x"),
        "of a listener": ("listener.name.plaintext.ssl.keystore.type", "JKS"),
        "per broker only": ("ssl.keystore.type", "JKS"),
        "listeners": ("listeners", "nonsense"),
        "rate": ("leader.replication.throttled.rate", "5000"),
        "rate below zero": ("leader.replication.throttled.rate", "-5"),
        "null": ("log.retention.ms", None),
    }
    applied = {(what, name) for what in ("set", "size", "list", "threads") for name in ("0", "")}
    # For all brokers it is taken, though none can have so many: what is deleted below is judged by
    # it, and Apache hears of it a little later.
    applied.add(("too many threads", ""))
    for what, (key, value) in cases.items():
        for name in ("0", "", "7"):
            change(what, name, key, value)
            if (what, name) in applied:
                look(what, name, partial(_any_is, key, value))
    for name in ("0", ""):
        for key in (*keys, "leader.replication.throttled.rate", "no.such.setting"):
            change(f"{key} deleted", name, key, None, DELETE)
        # That deletion is refused: by what holds for all brokers the pool would grow too fast.
        kept = ("background.threads",) if name else ()
        source = DYNAMIC_OF_ONE if name else DYNAMIC_OF_ALL
        look("deletions", name, partial(_none_from, source, kept))


def _any_is(key: str, value: str | None, entries: list[Any]) -> bool:
    return any(entry.name == key and entry.value == value for entry in entries)


def _none_from(source: int, kept: Collection[str], entries: list[Any]) -> bool:
    return all(entry.config_source != source for entry in entries if entry.name not in kept)


# The rest


def cluster(side: Side) -> None:
    """Brokers, controller, log directories."""
    topic = side.topic("cluster", partitions=2)
    side.ask("filled", wire.produce(topic, build_batch([(START_MS, None, b"v", ())])), 9)
    for operations in (False, True):
        request = DescribeClusterRequest(include_cluster_authorized_operations=operations)
        side.ask_all(f"cluster, {operations=}", request, (0, 1))
    controllers = DescribeClusterRequest(endpoint_type=2)
    side.ask("controllers", controllers, 1)
    side.ask("neither", DescribeClusterRequest(endpoint_type=9), 1)
    wanted = {
        "both": [DescribableLogDirTopic(topic=topic, partitions=[0, 1])],
        "none": [],
        "no such partition": [DescribableLogDirTopic(topic=topic, partitions=[9])],
        "no such topic": [DescribableLogDirTopic(topic="cluster-nowhere", partitions=[0])],
    }
    for what, topics in wanted.items():
        side.ask_all(f"directories, {what}", DescribeLogDirsRequest(topics=topics), range(5))


def versions(side: Side) -> None:
    """Versions nobody has, and clients that will not say who they are."""
    side.ask_all("beyond", wire.fetch("versions", 0), (18,))
    side.ask_all("metadata beyond", MetadataRequest(topics=[]), (13,))
    side.ask_all("produce beyond", wire.produce("versions", b""), (13,))
    for name, version in (("", ""), ("a b", "1"), ("ok", "1.0"), ("-x", "1"), ("x-", "1")):
        request = ApiVersionsRequest(client_software_name=name, client_software_version=version)
        answer = side.ask(f"client {name!r} {version!r}", request, 3)
        side.reported[f"client {name!r} {version!r}"] = answer and answer.error_code


QUESTIONS: Final = (
    create_topics, change_topics_without_waiting, create_assigned_topics,
    create_topics_with_settings, delete_topics,
    create_partitions, metadata, describe_configs, describe_whole_broker, alter_configs_of_topics,
    alter_single_configs_of_topics, alter_configs_of_brokers, cluster, versions,
)  # fmt: skip
