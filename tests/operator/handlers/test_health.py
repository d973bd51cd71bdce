"""Probes: what they say, over HTTP, before and while the operator works."""

from __future__ import annotations

import urllib.error
import urllib.request

from barnabas_operator.handlers.health import LOOP_STUCK_S, PASS_STUCK_S, Health, serve
from barnabas_operator.handlers.work_queue import WorkQueue
from barnabas_operator.reconcile.reconciler import Key
from tests.waiting import ANSWER, seconds

A = Key("ns", "a")


def _get(port: int, path: str) -> tuple[int, str]:
    url = f"http://127.0.0.1:{port}{path}"
    try:
        with urllib.request.urlopen(url, timeout=seconds(ANSWER)) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def test_alive_before_anything_was_listed_and_ready_after() -> None:
    """A namespace or an API server that cannot be read is no reason for a restart."""
    health = Health()
    with serve(0, health, lambda: b"a_metric 1\n") as port:
        assert _get(port, "/healthz") == (200, "ok\n")
        assert _get(port, "/readyz") == (503, "resources have not been listed yet\n")
        health.synced = True
        assert _get(port, "/readyz") == (200, "ok\n")
        assert _get(port, "/metrics") == (200, "a_metric 1\n")
        assert _get(port, "/other")[0] == 404


def test_an_event_loop_that_no_longer_runs_is_restarted() -> None:
    """The probe is answered by a thread of its own."""
    health = Health(last_beat=-10 * LOOP_STUCK_S)
    with serve(0, health, lambda: b"") as port:
        status, text = _get(port, "/healthz")
    assert status == 503
    assert "event loop has not run" in text


def test_a_pass_that_never_ends_is_seen() -> None:
    """A thread cannot be stopped from outside: the restart is the remedy. Others are in time."""
    queue, health = WorkQueue(), Health()
    queue.add(A, 0.0)
    queue.get(0.0)
    health.beat(queue, PASS_STUCK_S)
    assert health.stuck(PASS_STUCK_S) == ""
    health.beat(queue, PASS_STUCK_S + 1)
    assert "the reconciliation of ns/a has run for 301 s" in health.stuck(PASS_STUCK_S + 1)
    queue.done(A, PASS_STUCK_S + 2, again_in=30.0)
    health.beat(queue, PASS_STUCK_S + 2)
    assert health.stuck(PASS_STUCK_S + 2) == ""
