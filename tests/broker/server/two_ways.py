"""Two brokers that are told the same, of which one has only the general ways."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from barnabas_broker.server.node import broker_server as node_module
from barnabas_broker.server.node.broker_server import BrokerServer
from barnabas_broker.server.requests.dispatch import Dispatcher
from barnabas_kafka.protocol.registry import ApiKey
from tests.broker.server.running import Wire, port_of, running_node, told_of_dispatchers


@contextmanager
def two_ways(
    directory: Path,
    settings: Mapping[str, str],
    *closed: ApiKey,
    now_ms: int,
    names: Callable[[], Callable[[], str]],
) -> Iterator[tuple[tuple[BrokerServer, BrokerServer], tuple[Wire, Wire]]]:
    """In `short` one with all ways, in `general` one whose short ways for these APIs are closed.

    For both it is always the same time, and each names the members of groups by its own `names()`.
    """

    def close(dispatcher: Dispatcher) -> None:
        for api_key in closed:
            del dispatcher._plain[api_key]

    with ExitStack() as stack, pytest.MonkeyPatch.context() as patch:
        patch.setattr(node_module, "clock_ms", lambda: now_ms)
        short = stack.enter_context(running_node(directory / "short", settings))
        stack.enter_context(told_of_dispatchers(close))
        general = stack.enter_context(running_node(directory / "general", settings))
        for each in (short, general):
            each.broker.groups._new_id = names()
        wires = (
            stack.enter_context(Wire(port_of(short))),
            stack.enter_context(Wire(port_of(general))),
        )
        yield (short, general), wires
