"""The admin port as Prometheus and probes meet it: a real server on a real event loop."""

import asyncio
import http.client
import json
import socket
import threading
import time
from collections.abc import Iterator

import pytest
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.parser import text_string_to_metric_families

from barnabas_broker.security.admin_access import AdminAccess
from barnabas_broker.server.metrics import http as admin
from barnabas_broker.server.metrics.http import AdminServer
from barnabas_kafka.settings.broker import BrokerSettings
from tests.waiting import ANSWER, seconds, watch_loop


class Loop:
    """An event loop in a thread, with an admin server that asks it."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self._thread.start()
        watch_loop("the loop of the admin server", self.loop)
        self.reason: str | None = None
        self.server = asyncio.run_coroutine_threadsafe(self._serve(), self.loop).result(
            seconds(ANSWER)
        )

    async def _serve(self) -> AdminServer:
        server = AdminServer(
            ("127.0.0.1", 0),
            collect=self._collect,
            unready=lambda: self.reason,
            checks={"/restart": lambda: (self.reason is None, {"why": self.reason})},
            stalled=lambda: None,
            recovery=dict,
            access=AdminAccess(BrokerSettings.from_mapping({}), monotonic_s=time.monotonic),
        )
        server.open()
        return server

    async def _collect(self) -> list[Metric]:
        return [GaugeMetricFamily("of_the_loop", "A number.", value=7)]

    def get(
        self, path: str, *, method: str = "GET", accept: str = ""
    ) -> tuple[int, str, dict[str, str]]:
        """Ask once; returns status, body and headers."""
        port, limit_s = self.server.server_port, seconds(ANSWER)
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=limit_s)
        try:
            connection.request(method, path, headers={"Accept": accept} if accept else {})
            response = connection.getresponse()
            return response.status, response.read().decode(), dict(response.getheaders())
        finally:
            connection.close()

    def close(self) -> None:
        """End server, loop and thread."""
        self.server.close()
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(seconds(ANSWER))
        self.loop.close()


@pytest.fixture
def served() -> Iterator[Loop]:
    """A running admin server."""
    loop = Loop()
    yield loop
    loop.close()


def test_metrics_of_the_loop_and_of_the_process(served: Loop) -> None:
    """One answer has what the loop collected, and memory, CPU and files of the process."""
    status, body, headers = served.get("/metrics")
    found = {family.name: family for family in text_string_to_metric_families(body)}
    assert status == 200
    assert headers["Content-Type"].startswith("text/plain")
    assert found["of_the_loop"].samples[0].value == 7
    assert found["process_resident_memory_bytes"].samples[0].value > 1_000_000


def test_openmetrics_is_negotiated(served: Loop) -> None:
    """Prometheus asks for OpenMetrics; it gets one document with one end."""
    _, body, headers = served.get("/metrics", accept="application/openmetrics-text;version=1.0.0")
    assert headers["Content-Type"].startswith("application/openmetrics-text")
    assert body.endswith("# EOF\n")
    assert body.count("# EOF") == 1


def test_probes(served: Loop) -> None:
    """Alive and ready are told apart, with the reason for a human."""
    assert served.get("/live")[:2] == (200, "live\n")
    assert served.get("/ready")[:2] == (200, "ready\n")
    served.reason = "groups are being loaded"
    assert served.get("/live")[0] == 200
    assert served.get("/ready")[:2] == (503, "groups are being loaded\n")


def test_questions_are_answered_with_yes_or_no_and_why(served: Loop) -> None:
    """The status is the answer for a script, the body for whoever wants to know."""
    status, body, headers = served.get("/restart")
    assert (status, json.loads(body)) == (200, {"why": None})
    assert headers["Content-Type"] == "application/json"
    served.reason = "orders-0"
    assert served.get("/restart")[:2] == (503, '{"why": "orders-0"}\n')


def test_other_paths_and_methods(served: Loop) -> None:
    """A wrong path says what there is; what is not reading is refused; HEAD has no body."""
    status, body, _ = served.get("/")
    assert (status, "/metrics" in body) == (404, True)
    assert served.get("/metrics", method="POST")[0] == 501
    assert served.get("/live", method="HEAD")[:2] == (200, "")


def test_a_blocked_event_loop_fails_the_probe(
    served: Loop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the event loop is stuck the probe fails rather than hangs."""
    monkeypatch.setattr(admin, "TIMEOUT_S", 0.05)
    stuck, go_on = threading.Event(), threading.Event()

    def block() -> None:
        stuck.set()
        go_on.wait(seconds(ANSWER))

    served.loop.call_soon_threadsafe(block)
    assert stuck.wait(seconds(ANSWER))
    try:
        status, body, _ = served.get("/live")
    finally:
        go_on.set()
    assert (status, "event loop" in body) == (503, True)


def test_a_failing_check_is_logged_and_reported(
    served: Loop, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others are answered."""

    def fail() -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(served.server, "_unready", fail)
    assert served.get("/ready")[0] == 500
    assert "ZeroDivisionError" in caplog.text
    assert served.get("/live")[0] == 200


def test_a_taken_port_is_an_error() -> None:
    """Two brokers with one admin port: the second hears of it."""

    async def attempt(port: int) -> None:
        AdminServer(
            ("127.0.0.1", port),
            collect=_nothing,
            unready=lambda: None,
            checks={},
            stalled=lambda: None,
            recovery=dict,
            access=AdminAccess(BrokerSettings.from_mapping({}), monotonic_s=time.monotonic),
        )

    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(OSError, match="in use"):
        asyncio.run(attempt(taken.getsockname()[1]))


async def _nothing() -> list[Metric]:
    return []


def test_a_restart_gets_its_port_again(served: Loop) -> None:
    """Answers that were given before the end stay in TIME_WAIT, and must not hold the port."""
    assert served.server.socket.getsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR)
