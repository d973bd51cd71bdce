"""The reference page of the client: its programs run, and its table has every operation."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

from barnabas_broker.testing import Broker
from barnabas_kafka import client
from barnabas_kafka.client import ClientConfig, ClientError, Operation

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "tasks" / "admin-client.md").read_text()
PROGRAMS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def test_the_first_program_runs(kafka_broker: Broker, capsys: pytest.CaptureFixture[str]) -> None:
    """As it stands, on a broker."""
    exec(PROGRAMS[0], {"BOOTSTRAP": kafka_broker.bootstrap_servers})
    printed = capsys.readouterr().out
    assert "bad name! 17" in printed or "INVALID_TOPIC_EXCEPTION" in printed
    assert "partitions: 6" in printed


def test_the_program_with_tls_gives_a_configuration() -> None:
    """Its names exist."""
    names: dict[str, object] = {}
    exec(PROGRAMS[1], names)
    assert isinstance(names["config"], ClientConfig)


def test_every_operation_is_in_the_table() -> None:
    """And nothing else is."""
    table = PAGE.partition("<!-- Operations -->")[2].partition("<!-- End of operations -->")[0]
    operations = {
        name
        for name, value in vars(client).items()
        if inspect.isfunction(value)
        and str(inspect.signature(value).return_annotation).find(Operation.__name__) >= 0
    }
    assert set(re.findall(r"`(\w+)\(", table)) == operations


def test_every_error_is_in_the_table() -> None:
    """With the name that is raised."""
    errors = {
        name
        for name, value in vars(client).items()
        if inspect.isclass(value) and issubclass(value, ClientError) and value is not ClientError
    }
    assert errors == set(re.findall(r"^\| `(\w+Error)` \|", PAGE, re.MULTILINE))
