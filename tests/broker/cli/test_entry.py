"""The first lines of the command: a broker can be stopped from there on, wherever it runs."""

from pathlib import Path

import pytest

from tests.broker.server.test_stop_signals import SERVER, told_at

NAMESPACE = ("unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child")


@pytest.mark.parametrize(
    "point",
    ["click", "barnabas_broker.cli.broker", f"{SERVER}.lifecycle", f"{SERVER}.node:Node._lead"],
)
def test_as_the_first_process_of_a_container(tmp_path: Path, point: str) -> None:
    """The kernel keeps from process 1 what it has no handler for, so that it would go on."""
    told_at(point, tmp_path, prefix=NAMESPACE)


def test_supervised_as_the_first_process_of_a_container(tmp_path: Path) -> None:
    """The supervisor is process 1 then, and hands on what it is told."""
    zookeeper = "zookeeper.connect=127.0.0.1:1"
    point = f"{SERVER}.lifecycle:run_broker"
    told_at(point, tmp_path, zookeeper, "broker.id=1", prefix=NAMESPACE)
