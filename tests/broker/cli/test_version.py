"""`barnabas version`."""

import platform
from importlib import metadata

from tests.broker.cli.conftest import run_command


def test_what_to_write_in_a_bug_report() -> None:
    """Our version first, then what it runs on."""
    first, *rest = run_command("version").stdout.splitlines()
    assert first == f"barnabas {metadata.version('barnabas-broker')}"
    assert f"  python {platform.python_version()}" in rest
    versions = run_command("version", "--output", "json").json()
    assert versions["confluent-kafka"] == metadata.version("confluent-kafka")
