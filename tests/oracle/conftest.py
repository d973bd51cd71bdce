"""The marker of tests that start Apache's own processes."""

import pytest


def pytest_configure(config: pytest.Config) -> None:
    """Leave these out with ``-m "not jvm"``."""
    config.addinivalue_line("markers", "jvm: starts Java processes and takes its time")
