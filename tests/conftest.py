"""What holds for every test: its environment, how hard the property tests look, for how long."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.environment import isolate
from tests.waiting.limits import LimitEvidence

# Before any test file is imported: some read the environment then.
isolate()

# No example is too slow: the machine may be busy. Hypothesis has a profile of its own for CI, which
# draws the same examples every time.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
# `make soak` asks for this one.
settings.register_profile("soak", settings.get_profile("patient"), max_examples=5000)

if settings.get_current_profile_name() != "ci":
    settings.load_profile("patient")

LONGEST = (
    "tests/oracle/test_same_answers.py",
    "tests/oracle/test_on_zookeeper.py",
    "tests/clients/test_install.py",
    "tests/clients/test_kill_under_load.py",
    "tests/clients/test_transactions.py",
    "tests/clients/test_troubleshooting.py",
    "tests/clients/test_java_clients.py",
    "tests/faults/test_full_disk.py",
    "tests/benchmarks/test_quick.py",
    "tests/operator/local/test_foreground.py",
    "tests/operator/local/test_command.py",
    "tests/operator/local/test_up.py",
    "tests/tools/test_demo.py",
    "tests/broker/cli/test_broker.py",
    "tests/simulator/test_world.py",
    "tests/broker/testing/test_plugin.py",
    "tests/broker/testing/test_broker.py",
    "tests/operator/test_sizing.py",
    "tests/broker/coordinator/group/consumer/test_every_order.py",
)
"""Files that go first: one that is left for the end runs alone, beside an idle processor."""


def pytest_configure(config: pytest.Config) -> None:
    """Have tests that a library's time limit ends report what their processes did."""
    config.pluginmanager.register(LimitEvidence())


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put the longest files first; all others stay in their order."""
    places = {config.rootpath / Path(file): place for place, file in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.path, len(places)))
