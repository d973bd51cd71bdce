"""Brokers that open the logs of their coordinators, but cannot load them."""

from __future__ import annotations

from typing import Final
from urllib.error import HTTPError
from urllib.request import urlopen

from tests.clients.brokers import Barnabas
from tests.clients.transactional import SETTINGS
from tests.faults.disk import FaultyDisk
from tests.oracle.apache import free_port
from tests.waiting import wait_for

GROUPS_LOG: Final = "__consumer_offsets-0/00000000000000000000.log"
TRANSACTIONS_LOG: Final = "__transaction_state-0/00000000000000000000.log"


def settings(**more: str) -> dict[str, str]:
    """One partition of each internal topic, and an admin port."""
    ours = {
        "offsets.topic.num.partitions": "1",
        "transaction.state.log.num.partitions": "1",
        "barnabas.admin.listener": f"127.0.0.1:{free_port()}",
    }
    return SETTINGS | ours | more


def readiness(broker: Barnabas) -> tuple[int, str]:
    """What the admin port says about the broker."""
    try:
        with urlopen(f"http://{broker.settings['barnabas.admin.listener']}/ready") as answer:
            return answer.status, answer.read().decode()
    except HTTPError as error:
        with error:
            return error.code, error.read().decode()


def until_ready(broker: Barnabas) -> None:
    """Return when the broker says that it is ready."""
    wait_for("/ready to answer 200", lambda: readiness(broker), until=lambda found: found[0] == 200)


def until_retried(broker: Barnabas, partition: str, times: int) -> None:
    """Return when loading a partition has failed so often."""
    wait_for(
        f"failed loads of {partition} in the broker's log",
        lambda: broker.log_file.read_text().count(
            f"Failed to load: partition={partition} retry in"
        ),
        until=lambda count: count >= times,
    )


def start_unreadable(broker: Barnabas, disk: FaultyDisk, error: int) -> None:
    """Start a broker that can open its log, but not load it.

    The last read of a start is the coordinator's. A start without faults tells how many there are.
    """
    before = disk.faults.reads
    broker.start()
    until_ready(broker)
    reads = disk.faults.reads - before
    assert reads
    broker.stop()
    disk.faults.good_reads = reads - 1
    disk.faults.read_errno = error
    broker.start()
