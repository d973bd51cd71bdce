"""Which store a broker has, and which id in it."""

from pathlib import Path

import pytest

from barnabas_broker.server.control.coordination import Coordination
from barnabas_broker.server.process.startup import StartupError
from barnabas_broker.zk.embedded import FILE_NAME
from barnabas_kafka.settings.broker import BrokerSettings


def coordination(directory: Path, **given: str) -> Coordination:
    """For settings whose names have underscores for dots."""
    settings = {name.replace("_", "."): value for name, value in given.items()}
    return Coordination(BrokerSettings.from_mapping(settings), directory)


def test_without_an_ensemble_there_is_a_file(tmp_path: Path) -> None:
    """In the first log directory; nobody shares it."""
    alone = coordination(tmp_path)
    assert not alone.shared
    alone.open(now_ms=1)
    assert (tmp_path / FILE_NAME).exists()
    alone.close()
    alone.close()


@pytest.mark.parametrize(
    ("given", "stored", "expected"), [("7", 3, 7), ("-1", 3, 3), ("-1", None, 1001)]
)
def test_which_id(tmp_path: Path, given: str, stored: int | None, expected: int) -> None:
    """What was given, else what the data has, else the first that may be generated."""
    alone = coordination(tmp_path, broker_id=given)
    store = alone.open(now_ms=1)
    assert alone.broker_id(store, stored, now_ms=1) == expected
    alone.close()


def test_protection_that_cannot_be(tmp_path: Path) -> None:
    """Refused before anybody is asked, and of no interest to a broker that has its own file."""
    settings = {"zookeeper.connect": "nowhere:2181", "zookeeper.set.acl": "true"}
    with pytest.raises(StartupError, match=r"zookeeper\.set\.acl=true needs an owner"):
        Coordination(BrokerSettings.from_mapping(settings), tmp_path)
    del settings["zookeeper.connect"]
    assert not Coordination(BrokerSettings.from_mapping(settings), tmp_path).shared
