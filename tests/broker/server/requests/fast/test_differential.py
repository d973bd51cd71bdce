"""With fast routes and without: the same answers to the same requests, and the same logs."""

from copy import copy
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from barnabas_broker.server.requests.dispatch import collect_handlers
from barnabas_kafka.errors import ErrorCode
from tests.broker.server.requests.fast.differential import ROWS, Pair, Row
from tests.broker.server.requests.whole_requests import errors_in
from tests.broker.server.running import Wire, port_of


def test_every_api_with_a_fast_route_is_in_the_table() -> None:
    """And no other."""
    fast = {handler.api_key for handler in collect_handlers() if handler.fast is not None}
    assert fast == {row.api_key for row in ROWS.values()}


def ask(pair: Pair, *asked: tuple[object, int], together: bool = True) -> None:
    """Ask both, and compare all they keep."""
    pair.ask(*asked, together=together)
    pair.learn()
    pair.compare_logs()


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_random_requests_get_the_same_answer(pair: Pair, row: Row, data: st.DataObject) -> None:
    """Whatever is wrong with the request, in every version that has a fast route."""
    ask(pair, row.asked(data.draw, pair))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), together=st.booleans())
def test_random_pipelines_get_the_same_answers(
    pair: Pair, data: st.DataObject, together: bool
) -> None:
    """Of any APIs, in the order of the requests; many alike, which are served together."""
    rows = data.draw(
        st.lists(st.sampled_from(list(ROWS.values())), max_size=6)
        | st.lists(st.just(ROWS["Produce, small"]), max_size=24)
    )
    ask(pair, *[row.asked(data.draw, pair) for row in rows], together=together)


@pytest.mark.parametrize(
    ("row", "version"),
    [
        pytest.param(row, version, id=f"{name}-{version}")
        for name, row in ROWS.items()
        for version in range(row.fast[0], row.fast[1] + 1)
    ],
)
def test_ordinary_requests_do_not_reach_the_handler(pair: Pair, row: Row, version: int) -> None:
    """Else they would be slow without anybody noticing."""
    pair.settle()
    request = copy(row.ordinary)
    row.fit(request, version, pair)
    pair.ask_fast(request, version)
    pair.learn()


@pytest.mark.parametrize(
    ("module", "name", "reader"),
    [
        ("produce", "Produce", "read"),
        ("fetch", "Fetch", "read"),
        ("offset_commit", "OffsetCommit", "read"),
        ("heartbeat", "Heartbeat", "read"),
        ("rebalance", "JoinGroup", "read_join"),
        ("rebalance", "SyncGroup", "read_sync"),
    ],
)
def test_a_fast_path_bug_is_handled_like_a_handler_bug(
    pair: Pair,
    module: str,
    name: str,
    reader: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """What was done is not known then: nothing is tried again, and the log says what happened."""

    def broken(*_: object) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(f"barnabas_broker.server.requests.fast.{module}.{reader}", broken)
    row = ROWS[name]
    version = row.fast[1]
    with Wire(port_of(pair.nodes[0])) as wire:
        response: Any = wire.ask(row.ordinary, version)
        assert errors_in(response, version) == {ErrorCode.UNKNOWN_SERVER_ERROR}
    assert f"Request failed: {name} version" in caplog.text
    assert "a bug" in caplog.text
