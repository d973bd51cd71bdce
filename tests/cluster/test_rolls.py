"""Three brokers rolled again and again under load: nothing is lost, whoever controls.

How long a partition took no records is told at the end of the run. `python -m benchmarks.rolls`
measures it for twenty rolls.
"""

from collections.abc import Callable, Iterator

import pytest

from tests.cluster.history import Outcome, anomalies
from tests.cluster.load import under_load
from tests.cluster.rolling import kill_controller, roll
from tests.cluster.running import Cluster
from tests.gaps import LONGEST_GAP

PARTITIONS = 6


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Three brokers that give partitions back to those who are to lead them."""
    settings = {"leader.imbalance.check.interval.seconds": "2"}
    with Cluster(tmp_path_factory.mktemp("rolls"), settings=settings) as started:
        yield started


@pytest.mark.parametrize("rolls", [2, pytest.param(20, marks=pytest.mark.soak)])
def test_rolls_lose_nothing(
    cluster: Cluster, topic: str, rolls: int, record_property: Callable[[str, object], None]
) -> None:
    """Every record is acknowledged, once, and read; the logs are the same everywhere."""
    cluster.create(topic, PARTITIONS)
    with under_load(cluster.bootstrap, topic, PARTITIONS) as load:
        restarts = [each for _ in range(rolls) for each in roll(cluster, topic, load)]
    record_property(LONGEST_GAP, f"{load.gap_s:.1f} s: {rolls} rolls of three brokers")
    assert len(restarts) == 3 * rolls
    assert any(each.was_controller for each in restarts)
    assert anomalies(load.history) == []
    assert {send.outcome for send in load.history.sends} == {Outcome.OK}
    for partition in range(PARTITIONS):
        cluster.until_same_logs(topic, partition)


@pytest.mark.parametrize("kills", [2, pytest.param(20, marks=pytest.mark.soak)])
def test_the_controller_is_killed_again_and_again(
    cluster: Cluster, topic: str, kills: int, record_property: Callable[[str, object], None]
) -> None:
    """Its supervisor closes its session, and its partitions have other leaders at once."""
    cluster.create(topic, PARTITIONS)
    with under_load(cluster.bootstrap, topic, PARTITIONS) as load:
        restarts = [kill_controller(cluster, topic, load) for _ in range(kills)]
    record_property(LONGEST_GAP, f"{load.gap_s:.1f} s: the controller is killed {kills} times")
    assert all(each.was_controller for each in restarts)
    assert anomalies(load.history) == []
    assert {send.outcome for send in load.history.sends} == {Outcome.OK}
    for partition in range(PARTITIONS):
        cluster.until_same_logs(topic, partition)
