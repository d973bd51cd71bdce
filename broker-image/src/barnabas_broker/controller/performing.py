"""Performs what the controller's core commands, at the coordination store and on the image.

It decides nothing. Each command is done as a whole, in the order in which they come; a watch is set
before what it watches is read, so that no change is missed between the two.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from barnabas_broker.cluster.image import BrokerRegistration
from barnabas_broker.controller.commands import (
    Command,
    Publish,
    ReadAdminRequest,
    ReadAllAgain,
    ReadBrokers,
    ReadDeletionMarks,
    ReadExisting,
    ReadIsrChanges,
    ReadLogDirEvents,
    ReadProducerIdBlock,
    ReadStates,
    ReadTopics,
    ReadTopicZnodes,
    Write,
    WriteEach,
)
from barnabas_broker.controller.isr_writes import notified
from barnabas_broker.controller.loading import (
    load_brokers,
    load_existing,
    load_log_dir_events,
    load_partition_states,
    load_topic_znodes,
    load_topics,
    log_malformed,
)
from barnabas_broker.controller.metadata_store import MetadataStore
from barnabas_broker.controller.registrations import counts_as_away
from barnabas_broker.controller.stored import (
    StoredProducerIdBlock,
    StoredState,
    StoredTopics,
    TopicZnodes,
)
from barnabas_broker.zk.store import Watch
from barnabas_broker.zk.znodes import (
    BrokerZnode,
    DeleteTopicZnode,
    IsrChangeZnode,
    LogDirEventZnode,
    ProducerIdBlockZnode,
    TopicZnode,
)
from barnabas_kafka.errors import KafkaError
from barnabas_kafka.ids import TopicPartition
from barnabas_zookeeper.errors import NoNodeError


def perform(command: Command, metadata: MetadataStore, *, now_ms: int) -> Any:
    """The command's result.

    Raises what its docstring says, and where that says nothing CoordinationError, ZooKeeperError
    and MalformedZnodeError.
    """
    return _PERFORMERS[type(command)](command, metadata, now_ms)


def _write_each(command: WriteEach, metadata: MetadataStore, now_ms: int) -> dict[Any, KafkaError]:
    return metadata.write_each(command.groups, now_ms=now_ms)


def _write(command: Write, metadata: MetadataStore, now_ms: int) -> None:
    metadata.write(command.operations, now_ms=now_ms)


def _read_states(
    command: ReadStates, metadata: MetadataStore, now_ms: int
) -> dict[TopicPartition, StoredState | None]:
    found: dict[TopicPartition, StoredState | None] = {}
    with metadata.reading():
        metadata.await_lost_writes(now_ms=now_ms)
        for name, numbers in _by_topic(command.partitions).items():
            states = load_partition_states(
                metadata.store, name, numbers, on_malformed=log_malformed
            )
            found |= {TopicPartition(name, number): it for number, it in states.items()}
    return found


def _by_topic(partitions: Sequence[TopicPartition]) -> dict[str, list[int]]:
    numbers: dict[str, list[int]] = {}
    for tp in partitions:
        numbers.setdefault(tp.topic, []).append(tp.partition)
    return {name: sorted(those) for name, those in numbers.items()}


def _read_topic_znodes(
    command: ReadTopicZnodes, metadata: MetadataStore, _: int
) -> dict[str, TopicZnodes]:
    with metadata.reading():
        return {name: load_topic_znodes(metadata.store, name) for name in command.names}


def _read_existing(command: ReadExisting, metadata: MetadataStore, _: int) -> frozenset[str]:
    with metadata.reading():
        return load_existing(metadata.store, command.paths)


def _read_topics(command: ReadTopics, metadata: MetadataStore, _: int) -> StoredTopics:
    store, names = metadata.store, command.names
    wanted = store.children(TopicZnode.ROOT) if names is None else [*names]
    if command.watch:
        store.watch_many([TopicZnode(name).path for name in wanted], Watch.DATA)
    return StoredTopics(wanted, load_topics(store, wanted, on_malformed=log_malformed))


def _read_brokers(
    _: ReadBrokers, metadata: MetadataStore, __: int
) -> dict[int, BrokerRegistration]:
    metadata.store.watch(BrokerZnode.ROOT, Watch.CHILDREN)
    return load_brokers(metadata.store, on_malformed=counts_as_away)


def _read_deletion_marks(_: ReadDeletionMarks, metadata: MetadataStore, __: int) -> list[str]:
    return metadata.store.children(DeleteTopicZnode.ROOT)


def _read_isr_changes(
    _: ReadIsrChanges, metadata: MetadataStore, __: int
) -> tuple[set[TopicPartition], list[str]]:
    store = metadata.store
    store.watch(IsrChangeZnode.ROOT, Watch.CHILDREN)
    paths = [f"{IsrChangeZnode.ROOT}/{name}" for name in store.children(IsrChangeZnode.ROOT)]
    return (notified(store, paths) if paths else set()), paths


def _read_log_dir_events(
    _: ReadLogDirEvents, metadata: MetadataStore, __: int
) -> tuple[set[int], list[str]]:
    metadata.store.watch(LogDirEventZnode.ROOT, Watch.CHILDREN)
    return load_log_dir_events(metadata.store)


def _read_admin_request(
    command: ReadAdminRequest, metadata: MetadataStore, _: int
) -> tuple[bytes | None] | None:
    if command.watch:
        metadata.store.watch(command.path, Watch.DATA)
    try:
        return (metadata.store.get(command.path)[0],)
    except NoNodeError:
        return None


def _read_producer_id_block(
    _: ReadProducerIdBlock, metadata: MetadataStore, __: int
) -> StoredProducerIdBlock | None:
    try:
        data, stat = metadata.store.get(ProducerIdBlockZnode.PATH)
    except NoNodeError:
        return None
    return StoredProducerIdBlock(ProducerIdBlockZnode.decode(data), stat.version)


def _read_all_again(_: ReadAllAgain, metadata: MetadataStore, __: int) -> None:
    metadata.fail()


def _publish(command: Publish, metadata: MetadataStore, _: int) -> Mapping[str, KafkaError]:
    return metadata.publish(command.image)


_PERFORMERS: Final[dict[type[Command], Callable[[Any, MetadataStore, int], Any]]] = {
    WriteEach: _write_each,
    Write: _write,
    ReadStates: _read_states,
    ReadTopicZnodes: _read_topic_znodes,
    ReadExisting: _read_existing,
    ReadTopics: _read_topics,
    ReadBrokers: _read_brokers,
    ReadDeletionMarks: _read_deletion_marks,
    ReadIsrChanges: _read_isr_changes,
    ReadLogDirEvents: _read_log_dir_events,
    ReadAdminRequest: _read_admin_request,
    ReadProducerIdBlock: _read_producer_id_block,
    ReadAllAgain: _read_all_again,
    Publish: _publish,
}
