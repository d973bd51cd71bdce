"""The topics of a cluster: the operator's own reconciler, on a broker of this machine.

Imported late: it brings the Kafka client and, with the reconciler, more than a start can wait for.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from barnabas_operator.brokers import AdminBrokers, BrokersError
from barnabas_operator.local.documents import Manifest
from barnabas_operator.local.state import LocalError, Record, StateDirectory
from barnabas_operator.plan.topics import next_ledger, owners
from barnabas_operator.reconcile.topics import Outcome, delete_orphans, reconcile_topics

AGAIN_S: Final = 0.1

Say = Callable[[str], None]


def reconcile(
    manifest: Manifest, record: Record, state: StateDirectory, *, say: Say, deadline: float
) -> Mapping[str, Outcome]:
    """Make the topics as the file says; returns how each resource fares, by its name.

    Raises LocalError if the broker does not answer.
    """
    from barnabas_operator.local.broker import bootstrap_servers

    brokers = AdminBrokers(bootstrap_servers(manifest.cluster, record))
    # Remembered before it is done: a topic that was made and forgotten would never be deleted.
    record.ledger = next_ledger(record.ledger, owners(manifest.topics))
    state.save(record)
    try:
        with _heard(say):
            outcomes = reconcile_topics(manifest.topics, brokers)
            while not _settled(outcomes) and time.monotonic() < deadline:
                time.sleep(AGAIN_S)
                outcomes = reconcile_topics(manifest.topics, brokers)
            record.ledger = delete_orphans(record.ledger, manifest.topics, brokers)
    except BrokersError as error:
        raise LocalError(f"the broker does not answer: {error}") from error
    state.save(record)
    return outcomes


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
