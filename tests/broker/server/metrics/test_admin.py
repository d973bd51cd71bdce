"""The admin port over the life of a broker: what probes are told while its logs are recovered."""

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from barnabas_broker.log.config import LogConfig
from barnabas_broker.log.recovery_progress import SegmentScan
from barnabas_broker.server.metrics import admin
from barnabas_broker.server.node.broker_server import BrokerServer
from barnabas_kafka.settings.broker import BrokerSettings
from tests.broker.log.samples import NOW, TP, fill, open_directories
from tests.broker.server.running import Wire, port_of, running_node
from tests.waiting import ANSWER, ATTEMPT_S, START, seconds, wait_for, watch_loop

ADMIN = {"barnabas.admin.listener": "127.0.0.1:0"}
UNKNOWN = {"/restart-check": "mayRestart", "/in-sync": "inSync", "/leaderless-partitions": "led"}
"""Questions that need a running broker, and where their answer is."""


def get(node: BrokerServer, path: str) -> tuple[int, str]:
    """Status and body of an answer."""
    assert node.admin is not None
    try:
        with urlopen(f"{node.admin.url}{path}", timeout=ATTEMPT_S) as answer:
            return answer.status, answer.read().decode()
    except HTTPError as refused:
        with refused:
            return refused.code, refused.read().decode()


@contextmanager
def recovering_node(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[BrokerServer, threading.Event]]:
    """A broker in the middle of scanning a segment until the event is set."""
    scanning, go_on = threading.Event(), threading.Event()
    advanced = SegmentScan.advance

    def advance(scan: SegmentScan, position: int) -> None:
        advanced(scan, position)
        scanning.set()
        go_on.wait(seconds(START))

    monkeypatch.setattr(SegmentScan, "advance", advance)
    given = {"listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": str(directory), "broker.id": "1"}
    node = BrokerServer(BrokerSettings.from_mapping(given | ADMIN))
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="broker under test")
    thread.start()
    watch_loop(f"broker in {directory}", loop)
    try:
        starting = asyncio.run_coroutine_threadsafe(node.start(), loop)
        assert scanning.wait(seconds(START))
        yield node, go_on
        go_on.set()
        starting.result(seconds(START))
    finally:
        go_on.set()
        asyncio.run_coroutine_threadsafe(node.stop(), loop).result(seconds(START))
        loop.call_soon_threadsafe(loop.stop)
        thread.join(seconds(ANSWER))
        loop.close()


@pytest.fixture
def killed(tmp_path: Path) -> Path:
    """The directory of a broker that was killed."""
    logs = open_directories(tmp_path)
    fill(logs.create(TP, LogConfig(), None, NOW), 50)
    logs.close(clean=False)
    return tmp_path


def test_probes_follow_a_recovery(killed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The broker is alive and says how far it is; it is neither ready nor in sync."""
    with recovering_node(killed, monkeypatch) as (node, go_on):
        assert get(node, "/live") == (HTTPStatus.OK, "live\n")
        status, reason = get(node, "/ready")
        assert status == HTTPStatus.SERVICE_UNAVAILABLE
        assert reason.startswith("broker state is RECOVERY: Recovering 0/1 logs in ")
        status, body = get(node, "/recovery")
        reported = json.loads(body)
        assert (status, reported["state"], reported["currentDirectory"]) == (
            200,
            "RECOVERY",
            str(killed),
        )
        assert (reported["logs"], reported["remainingLogsToRecover"]) == (1, 1)
        assert (reported["segments"], reported["remainingSegmentsToRecover"]) == (1, 1)
        assert reported["bytes"] == reported["remainingBytesToRecover"] > 0
        for path, answer in UNKNOWN.items():
            status, body = get(node, path)
            assert (status, json.loads(body)[answer]) == (503, False), path
        metrics = get(node, "/metrics")[1]
        assert "kafka_server_kafkaserver_brokerstate 2.0" in metrics
        left = "kafka_log_logmanager_remaininglogstorecover"
        assert f'{left}{{logdirectory="{killed}"}} 1.0' in metrics
        go_on.set()
        wait_for("readiness", lambda: get(node, "/ready"), until=lambda it: it[0] == 200)
        reported = json.loads(get(node, "/recovery")[1])
        assert (reported["state"], reported["remainingLogsToRecover"]) == ("RUNNING", 0)
        assert reported["remainingBytesToRecover"] == 0


def test_a_recovery_that_is_stuck_is_not_alive(
    killed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without progress for long the liveness probe fails; a running broker is not asked for any."""
    monkeypatch.setattr(admin, "STALLED_S", 0.0)
    with recovering_node(killed, monkeypatch) as (node, go_on):
        status, reason = get(node, "/live")
        assert status == HTTPStatus.SERVICE_UNAVAILABLE
        assert reason.startswith("log recovery has made no progress for ")
        go_on.set()
        wait_for("readiness", lambda: get(node, "/ready"), until=lambda it: it[0] == 200)
        assert get(node, "/live")[0] == HTTPStatus.OK


def test_former_names_answer_the_same(tmp_path: Path) -> None:
    """Scripts that ask the paths of before go on for a release."""
    with running_node(tmp_path, ADMIN) as node, Wire(port_of(node)) as wire:
        wire.create_topic("orders", partitions=3)
        for former, name in admin.FORMER_PATHS.items():
            assert get(node, former) == get(node, name)
        reported = json.loads(get(node, "/in-sync")[1])
    assert reported == {
        "inSync": True, "caughtUp": True, "percent": 100.0, "replicas": 3, "behind": [],
    }  # fmt: skip


def test_nothing_is_in_sync_before_the_controller_has_spoken(tmp_path: Path) -> None:
    """A broker without replicas may have some: it has not been told."""
    with running_node(tmp_path, ADMIN) as node:
        loop = node.broker.controller.metadata_received.get_loop()
        heard, node.broker.controller.metadata_received = (
            node.broker.controller.metadata_received,
            loop.create_future(),
        )
        status, body = get(node, "/in-sync")
        node.broker.controller.metadata_received = heard
    assert status == HTTPStatus.SERVICE_UNAVAILABLE
    reported = json.loads(body)
    assert (reported["inSync"], reported["caughtUp"]) == (False, False)
    assert reported["reason"] == "waiting for the first UpdateMetadata from the controller"
