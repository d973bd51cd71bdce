"""Two brokers that are told the same, of which one has no fast routes."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from barnabas_broker.server.node import broker_server as node_module
from barnabas_broker.server.node.broker_server import BrokerServer
from tests.broker.server.running import WITHOUT_FAST_ROUTES, Wire, port_of, running_node


@contextmanager
def differential_cluster(
    directory: Path,
    settings: Mapping[str, str],
    *,
    now_ms: int,
    names: Callable[[], Callable[[], str]],
) -> Iterator[tuple[tuple[BrokerServer, BrokerServer], tuple[Wire, Wire]]]:
    """In `short` one with fast routes, in `general` one without.

    For both it is always the same time, and each names the members of groups by its own `names()`.
    """

    with ExitStack() as stack, pytest.MonkeyPatch.context() as patch:
        patch.setattr(node_module, "clock_ms", lambda: now_ms)
        short = stack.enter_context(running_node(directory / "short", settings))
        general = stack.enter_context(
            running_node(directory / "general", {**settings, **WITHOUT_FAST_ROUTES})
        )
        for each in (short, general):
            each.broker.groups._new_id = names()
        wires = (
            stack.enter_context(Wire(port_of(short))),
            stack.enter_context(Wire(port_of(general))),
        )
        yield (short, general), wires
