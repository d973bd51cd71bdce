"""Which brokers hold which partition: Kafka's assignment of replicas, with and without racks.

The aims (Kafka's `AdminUtils`, KIP-36): replicas are spread evenly over brokers; the other
replicas of the partitions that one broker leads are spread over the other brokers; where racks
are known, the replicas of a partition lie in as many racks as there can be.

Leaders go round the list of brokers from `start_index`. Followers are at a distance behind
their leader that grows by one each time the list has been gone round, so that the same set of
brokers does not hold the same partitions over and over. With racks the list takes one broker of
each rack in turn.

Pure: where to start is the caller's choice (at random for new topics).
"""

from collections.abc import Iterable, Mapping, Sequence

from barnabas_broker.cluster.image import BrokerRegistration
from barnabas_broker.invariants import violated
from barnabas_kafka.errors import ErrorCode, KafkaError

Assignment = dict[int, tuple[int, ...]]


def assign_replicas(
    brokers: Iterable[BrokerRegistration],
    *,
    partitions: int,
    replication_factor: int,
    start_index: int,
    shift: int,
    first_partition: int = 0,
) -> Assignment:
    """Replicas by partition for `partitions` partitions numbered from `first_partition`.

    Raises KafkaError: INVALID_PARTITIONS, INVALID_REPLICATION_FACTOR, or UNKNOWN_SERVER_ERROR
    where some brokers have a rack and others do not (the code that Kafka gives it).
    """
    racks = {broker.id: broker.rack for broker in brokers}
    if partitions <= 0:
        raise KafkaError(
            ErrorCode.INVALID_PARTITIONS, "Number of partitions must be larger than 0."
        )
    if replication_factor <= 0:
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR, "Replication factor must be larger than 0."
        )
    if replication_factor > len(racks):
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"Replication factor: {replication_factor} larger than available brokers: "
            f"{len(racks)}.",
        )
    known = {broker: rack for broker, rack in racks.items() if rack is not None}
    if known and len(known) < len(racks):
        raise KafkaError(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            "Not all brokers have rack information for replica rack aware assignment.",
        )
    ring = alternate_racks(known) if known else sorted(racks)
    rack_count = len(set(known.values()))
    result: Assignment = {}
    for partition in range(first_partition, first_partition + partitions):
        if partition > 0 and partition % len(ring) == 0:
            shift += 1
        leader_index = (partition + start_index) % len(ring)
        if known:
            replicas = _across_racks(
                ring, known, leader_index, shift=shift * rack_count, count=replication_factor
            )
        else:
            replicas = [ring[leader_index]] + [
                ring[_follower_index(leader_index, shift + nth, len(ring))]
                for nth in range(replication_factor - 1)
            ]
        assert len(set(replicas)) == replication_factor, violated("a broker holds a partition once")
        result[partition] = tuple(replicas)
    assert len(result) == partitions, violated("every partition is placed")
    return result


def growth_start(brokers: Sequence[int], first_leader: int) -> int:
    """Where added partitions start, so that they go on as if made with the topic.

    `brokers` are ascending ids; `first_leader` is the first replica of partition 0.
    """
    for index, broker in enumerate(brokers):
        if broker >= first_leader:
            return index
    return 0


def alternate_racks(racks: Mapping[int, str]) -> list[int]:
    """Brokers in an order that takes one of each rack in turn; racks by name, brokers by id."""
    by_rack: dict[str, list[int]] = {}
    for broker, rack in sorted(racks.items()):
        by_rack.setdefault(rack, []).append(broker)
    lists = [by_rack[rack] for rack in sorted(by_rack)]
    longest = max(map(len, lists))
    return [brokers[turn] for turn in range(longest) for brokers in lists if turn < len(brokers)]


def _across_racks(
    ring: Sequence[int], racks: Mapping[int, str], leader_index: int, *, shift: int, count: int
) -> list[int]:
    """A leader and `count - 1` followers; a rack gets a second replica only once all have one."""
    leader = ring[leader_index]
    replicas = [leader]
    used = {racks[leader]}
    rack_count = len(set(racks.values()))
    step = 0
    # Each step tries another broker of the ring: len(ring) - 1 steps see them all, and after one
    # such round either all racks are used or a broker was found, so this ends.
    while len(replicas) < count:
        broker = ring[_follower_index(leader_index, shift + step, len(ring))]
        step += 1
        fresh_rack = racks[broker] not in used or len(used) == rack_count
        if fresh_rack and broker not in replicas:
            replicas.append(broker)
            used.add(racks[broker])
    return replicas


def _follower_index(leader_index: int, distance: int, ring_size: int) -> int:
    return (leader_index + 1 + distance % (ring_size - 1)) % ring_size
