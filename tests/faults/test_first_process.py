"""A broker that is process 1, as in a container."""

from pathlib import Path

import pytest

from tests.broker.server.process.test_stop_signals import SERVER, told_at

NAMESPACE = ("unshare", "--pid", "--fork", "--kill-child")
"""Needs root."""


@pytest.mark.parametrize(
    "point",
    [
        "click",
        "barnabas_broker.cli.broker",
        f"{SERVER}.node.lifecycle",
        f"{SERVER}.node.broker_server:BrokerServer._register",
    ],
)
def test_as_the_first_process_of_a_container(tmp_path: Path, point: str) -> None:
    """The kernel keeps from process 1 what it has no handler for, so that it would go on."""
    told_at(point, tmp_path, prefix=NAMESPACE)


def test_supervised_as_the_first_process_of_a_container(tmp_path: Path) -> None:
    """The supervisor is process 1 then, and forwards the signal."""
    zookeeper = "zookeeper.connect=127.0.0.1:1"
    point = f"{SERVER}.node.lifecycle:run_broker"
    told_at(point, tmp_path, zookeeper, "broker.id=1", prefix=NAMESPACE)
