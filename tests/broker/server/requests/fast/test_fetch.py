"""The fast route of Fetch: what it leaves to the handler, and what it counts."""

from unittest.mock import patch

import pytest

from barnabas_broker.server.requests.dispatch import Dispatcher
from barnabas_kafka.protocol.messages.fetch import FetchRequest
from tests.broker.server.requests.fast.differential import Pair
from tests.broker.server.running import fetch_request


def handled(pair: Pair, request: FetchRequest, version: int) -> int:
    """How many handlers are called for a request to both brokers, one of which has no other way."""
    with patch.object(Dispatcher, "_handled", autospec=True, side_effect=Dispatcher._handled) as it:
        pair.ask((request, version))
    return it.call_count - 1


@pytest.mark.parametrize("version", [9, 11, 17])
def test_uncommon_fetches_take_the_slow_path(pair: Pair, version: int) -> None:
    """Old versions, unknown topics, aborted transactions and too little to answer with."""
    plain, aborted = [("plain", 0, 0)], [("aborted", 0, 0)]
    assert handled(pair, fetch_request([("nowhere", 0, 0)]), version)
    assert handled(pair, fetch_request(aborted, isolation_level=1), version)
    assert handled(pair, fetch_request(plain, min_bytes=1 << 20, max_wait_ms=1), version)
    assert handled(pair, fetch_request(aborted), version) == (version == 9)


def test_both_routes_count_the_same(pair: Pair) -> None:
    """Metrics do not depend on the route a request took."""
    pair.ask((fetch_request([("aborted", 0, 0)]), 11))
    ours, theirs = (node.broker.replicas.traffic["aborted"] for node in pair.nodes)
    assert (ours.fetches, ours.bytes_out) == (theirs.fetches, theirs.bytes_out)
