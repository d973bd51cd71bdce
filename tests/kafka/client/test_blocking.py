"""The client for threads: many at once, deadlines, and an end that leaves nothing behind."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from barnabas_kafka.client import (
    Admin,
    ClientClosedError,
    ClientConfig,
    ClientThread,
    DeadlineExceededError,
    describe_cluster,
    describe_topics,
)
from tests.kafka.client.fake_cluster import FakeCluster, in_a_thread
from tests.waiting import ANSWER, seconds, wait_for

THREAD = "kafka-admin-client"
OTHERS: list[threading.Thread] = []


@pytest.fixture
def cluster() -> Iterator[FakeCluster]:
    """Three brokers in an event loop of another thread."""
    with in_a_thread(FakeCluster(3)) as brokers:
        yield brokers


@pytest.fixture(autouse=True)
def _others() -> Iterator[None]:
    """Clients of other tests of this process may be open."""
    OTHERS[:] = threading.enumerate()
    yield
    OTHERS.clear()


def _threads() -> list[str]:
    return [
        each.name for each in threading.enumerate() if each.name == THREAD and each not in OTHERS
    ]


def config(cluster: FakeCluster) -> ClientConfig:
    """With the deadline of a test."""
    return ClientConfig(bootstrap_servers=cluster.bootstrap, timeout_s=seconds(ANSWER))


def test_many_threads_share_a_client(cluster: FakeCluster) -> None:
    """One event loop serves them, and is gone when the client is closed."""
    cluster.topics["t"] = 2
    with Admin(config(cluster)) as admin, ThreadPoolExecutor(16) as threads:
        found = threads.map(lambda _: admin.call(describe_topics(["t"])).one("t"), range(200))
        assert {len(each.partitions) for each in found} == {2}
        assert _threads() == [THREAD]
    assert _threads() == []


def test_a_call_ends_at_its_deadline(cluster: FakeCluster) -> None:
    """Its own, not that of the configuration."""
    for broker in cluster.brokers:
        broker.silent = True
    with Admin(config(cluster)) as admin, pytest.raises(DeadlineExceededError):
        admin.call(describe_cluster(), timeout_s=0.2)


def test_closing_ends_calls_under_way(cluster: FakeCluster) -> None:
    """They are told; a closed client says so at once, and may be closed again."""
    for broker in cluster.brokers:
        broker.silent = True
    admin = Admin(config(cluster))
    with ThreadPoolExecutor(1) as thread:
        under_way = thread.submit(admin.call, describe_cluster())
        wait_for("a request", lambda: any(broker.asked for broker in cluster.brokers))
        admin.close()
        with pytest.raises(ClientClosedError):
            under_way.result(seconds(ANSWER))
    admin.close()
    with pytest.raises(ClientClosedError):
        admin.call(describe_cluster())


def test_a_client_that_was_never_used_has_no_thread(cluster: FakeCluster) -> None:
    """Nothing is started before the first call; a bad address is refused all the same."""
    Admin(config(cluster)).close()
    assert _threads() == []
    with pytest.raises(ValueError, match="host:port"):
        Admin(ClientConfig(bootstrap_servers="nonsense:port"))


def test_clients_share_a_thread(cluster: FakeCluster) -> None:
    """Closing one of them leaves the others their thread."""
    thread = ClientThread()
    first, second = Admin(config(cluster), thread), Admin(config(cluster), thread)
    assert first.call(describe_cluster()) == second.call(describe_cluster())
    assert _threads() == [THREAD]
    first.close()
    assert second.call(describe_cluster()).cluster_id == "fake"
    second.close()
    thread.close()
    assert _threads() == []
    with pytest.raises(ClientClosedError):
        Admin(config(cluster), thread).call(describe_cluster())


def test_a_loop_that_has_ended_is_replaced(
    cluster: FakeCluster, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever ended it: the next call works, and the log has it."""
    thread = ClientThread()
    with Admin(config(cluster), thread) as admin:
        admin.call(describe_cluster())
        loop = thread.loop()
        loop.call_soon_threadsafe(loop.stop)
        wait_for("the end of the loop", lambda: not _threads())
        assert admin.call(describe_cluster()).cluster_id == "fake"
        assert "event loop has ended" in caplog.text
    thread.close()
