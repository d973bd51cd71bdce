"""The admin client of a cluster on this machine, and what is said of its steps."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, TypeVar

from barnabas_operator.api.clusters import KafkaCluster
from barnabas_operator.api.reading import Resource
from barnabas_operator.brokers import AdminBrokers
from barnabas_operator.local.broker import bootstrap_servers
from barnabas_operator.local.state import LocalError, Record, StateDirectory

AGAIN_S: Final = 0.1
Result = TypeVar("Result")


def connect(cluster: Resource[KafkaCluster], record: Record, state: StateDirectory) -> AdminBrokers:
    """The brokers, by the certificate that they know where the cluster is secured.

    Raises LocalError.
    """
    servers = bootstrap_servers(cluster, record)
    if not cluster.body.spec.secured:
        return AdminBrokers(servers)
    from barnabas_operator.local.pki import Pki

    try:
        return AdminBrokers(servers, Pki(state.pki).operator)
    except ValueError as error:
        text = f"{state.pki}: {error}"
        raise LocalError(f"{text}; `barnabas local up FILE` issues it again") from error


def settled_by(
    deadline: float, attempt: Callable[[], Result], is_settled: Callable[[Result], bool]
) -> Result:
    """The result of the first attempt that is settled, or of the last one before the deadline.

    The deadline is one of `time.monotonic`.
    """
    result = attempt()
    while not is_settled(result) and time.monotonic() < deadline:
        time.sleep(AGAIN_S)
        result = attempt()
    return result


@contextmanager
def steps_said(say: Callable[[str], None]) -> Iterator[None]:
    """Say what the reconcilers log: each step, before it is taken, and once where it is retried."""
    said: set[str] = set()

    class Voice(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            text = record.getMessage()
            if text not in said:
                said.add(text)
                say(text)

    logger = logging.getLogger("barnabas_operator.reconcile")
    voice, level = Voice(logging.INFO), logger.level
    logger.addHandler(voice)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(voice)
        logger.setLevel(level)
