"""Drift: what counts as a difference and what does not."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas_operator.names import APPLIED_HASH
from barnabas_operator.plan.drift import drift, first_difference


def _object(value: Any, applied: str = "h") -> dict[str, Any]:
    return {"metadata": {"annotations": {APPLIED_HASH: applied}}, "spec": value}


def test_what_is_not_there_is_missing() -> None:
    """The first reason to apply."""
    assert drift(_object(1), None) == "missing"


def test_defaults_of_the_server_are_no_drift() -> None:
    """What others add does not count."""
    found = _object({"ports": [{"port": 1, "protocol": "TCP"}], "clusterIP": "10.0.0.1"})
    assert drift(_object({"ports": [{"port": 1}]}), found) is None


def test_a_changed_value_is_named() -> None:
    """The reason says which value somebody changed."""
    found = _object({"ports": [{"port": 2}]})
    assert drift(_object({"ports": [{"port": 1}]}), found) == "spec.ports[0].port was changed"


def test_a_field_that_is_wanted_no_longer_is_noticed_by_the_hash() -> None:
    """Comparing cannot see it: the object still has all that is wanted."""
    reason = drift(_object({}, applied="new"), _object({"old": 1}, applied="old"))
    assert reason == "the resource asks for something else than before"


@pytest.mark.parametrize(
    ("wanted", "found", "where"),
    [
        ({"a": {}}, {}, None),
        ({"a": {"b": 1}}, {"a": 1}, "a"),
        ({"a": [1]}, {"a": [1, 2]}, "a"),
        ({"a": 1}, {}, "a"),
        ([1, [2]], [1, [3]], "[1][0]"),
        ({"memory": "1024Mi"}, {"memory": "1Gi"}, None),
        ({"cpu": "1000m"}, {"cpu": "1"}, None),
        ({"cpu": "1000m"}, {"cpu": "2"}, "cpu"),
        ({"data": {"a": "1000m"}}, {"data": {"a": "1"}}, "data.a"),
    ],
)
def test_first_difference(wanted: Any, found: Any, where: str | None) -> None:
    """Empty values may be left out; lists have a length; amounts are compared as amounts."""
    assert first_difference(wanted, found) == where
