"""The topics of a cluster: the operator's own reconciler, on a broker of this machine.

Imported late: it brings the Kafka client and, with the reconciler, more than a start can wait for.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from barnabas_operator.api.reading import read_topic
from barnabas_operator.brokers import AdminBrokers, BrokersError
from barnabas_operator.local.documents import Manifest
from barnabas_operator.local.state import LocalError, Record, StateDirectory
from barnabas_operator.plan.ledger import Ledger, Present
from barnabas_operator.reconcile.topic_deletion import delete_orphans
from barnabas_operator.reconcile.topics import Outcome, reconcile_topics

AGAIN_S: Final = 0.1
TOPIC: Final = "KafkaTopic"

Say = Callable[[str], None]


def reconcile(
    manifest: Manifest, record: Record, state: StateDirectory, *, say: Say, deadline: float
) -> Mapping[str, Outcome]:
    """Make the topics as the file says; returns how each resource fares, by its name.

    Raises LocalError if the broker does not answer.
    """
    from barnabas_operator.local.broker import bootstrap_servers

    brokers = AdminBrokers(bootstrap_servers(manifest.cluster, record))
    documents = [each for each in record.documents if each["kind"] == TOPIC]
    # With the statuses of the last time: they tell which topics were created or adopted.
    topics = [read_topic(each) for each in documents]

    def remember(ledger: Ledger) -> None:
        record.ledger = ledger
        state.save(record)

    try:
        with _heard(say):
            result = reconcile_topics(topics, brokers, ledger=record.ledger, remember=remember)
            while not _settled(result.outcomes) and time.monotonic() < deadline:
                time.sleep(AGAIN_S)
                result = reconcile_topics(topics, brokers, ledger=result.ledger, remember=remember)
            remember(result.ledger)
            # The whole file was parsed, and what it names is all there is.
            present = Present.of(documents, manifest.cluster.meta.name)
            if not result.failed:
                remaining = delete_orphans(record.ledger, present, brokers, exists=lambda _: False)
                remember(remaining)
    except BrokersError as error:
        raise LocalError(f"the broker does not answer: {error}") from error
    return result.outcomes


def _settled(outcomes: Mapping[str, Outcome]) -> bool:
    return all(outcome.verdict.settled for outcome in outcomes.values())


@contextmanager
def _heard(say: Say) -> Iterator[None]:
    """Say what the reconciler logs: each step, before it is taken."""

    class Voice(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            say(record.getMessage())

    logger = logging.getLogger("barnabas_operator.reconcile")
    voice, level = Voice(logging.INFO), logger.level
    logger.addHandler(voice)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(voice)
        logger.setLevel(level)
