"""What a steady pass of the operator over many topics of one cluster costs, in CPU-seconds.

    .venv/bin/python -m benchmarks.operator_topics [TOPICS]

API server and Kafka are the tests' in memory, so the figure is the operator's own work: parsing the
resources, comparing each with its topic and its status, reading the ledger.
"""

from __future__ import annotations

import sys
import time

from barnabas_operator.api.reading import read_cluster
from barnabas_operator.kube import TOPICS
from barnabas_operator.plan.ledger import Present
from barnabas_operator.reconcile.kafka_topics import reconcile_topics_of
from barnabas_operator.reconcile.orphans import DeletionGuard
from barnabas_operator.reconcile.reading import read_named
from barnabas_operator.reconcile.reconciler import READ_TOPIC, Key, reconcile
from tests.operator import examples
from tests.operator.memory_kube import MemoryKube
from tests.operator.ports import MemoryBrokers, context_on

NAME = "quickstart"
CONFIG = {"retention.ms": "604800000", "cleanup.policy": "delete", "min.insync.replicas": "1"}


def main() -> int:
    """Print the CPU time of the first and of three further passes, and what each wrote."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    kube, brokers = MemoryKube(examples.cluster()), MemoryBrokers()
    context = context_on(kube, brokers)
    for _ in range(2):
        reconcile(Key("default", NAME), context)
        kube.settle()
    for number in range(count):
        kube.put(examples.topic(f"topic-{number:06}", config=CONFIG, deletionPolicy="Delete"))
    cluster = read_cluster(kube.find("KafkaCluster", NAME))
    documents = kube.list(TOPICS, "default")
    for number in range(4):
        kube.writes.clear()
        begun = time.process_time()
        found = read_named(documents, NAME, READ_TOPIC, context)
        guard = DeletionGuard(present=Present.of(documents, NAME))
        reconcile_topics_of(cluster, found.resources, guard, context)
        spent = time.process_time() - begun
        print(f"pass {number}: {spent:.2f} CPU-s, {len(kube.writes)} writes")
        if number == 0:
            # As a cache has them, with the statuses that were written.
            documents = kube.list(TOPICS, "default")
    return 0


if __name__ == "__main__":
    sys.exit(main())
