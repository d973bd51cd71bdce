"""What a running broker tells of its directories, its cleaner and its memory."""

import socket
from pathlib import Path

from tests.broker.server.metrics.test_families import scrape, value
from tests.broker.server.running import port_of, running_node
from tests.waiting import ANSWER, seconds, wait_for

ADMIN = {"barnabas.admin.listener": "127.0.0.1:0"}


def test_directory_metrics_are_labelled_by_path(tmp_path: Path) -> None:
    """A directory that is online is neither offline nor full; one that failed is offline."""
    two = {"log.dirs": f"{tmp_path / 'a'},{tmp_path / 'b'}"}
    (tmp_path / "b").write_text("a file where a directory should be")
    with running_node(tmp_path / "a", ADMIN | two) as node:
        found = scrape(node)
    offline = "kafka_log_logmanager_logdirectoryoffline"
    assert value(found, offline, logdirectory=str(tmp_path / "a")) == 0
    assert value(found, offline, logdirectory=str(tmp_path / "b")) == 1
    assert value(found, "kafka_log_logmanager_offlinelogdirectorycount") == 1
    assert value(found, "barnabas_log_directory_full", logdirectory=str(tmp_path / "a")) == 0


def test_cleanings_are_counted(tmp_path: Path) -> None:
    """Nothing before anything is cleaned; then what the manager's figures say."""
    with running_node(tmp_path, ADMIN) as node:
        assert value(scrape(node), "barnabas_log_cleaner_runs_total") == 0
        assert node.cleaner is not None
        stats = node.cleaner.manager.stats
        stats.cleanings, stats.bytes_read, stats.bytes_kept, stats.recopy_percent = 1, 200, 50, 25
        found = scrape(node)
    assert value(found, "barnabas_log_cleaner_runs_total") == 1
    assert value(found, "barnabas_log_cleaner_read_bytes_total") == 200
    assert value(found, "barnabas_log_cleaner_kept_bytes_total") == 50
    assert value(found, "kafka_log_logcleaner_cleaner_recopy_percent") == 25


def test_memory_of_a_request_that_has_not_arrived(tmp_path: Path) -> None:
    """Half a request is memory held; the budget is there to compare with."""
    with (
        running_node(tmp_path, ADMIN) as node,
        socket.create_connection(("127.0.0.1", port_of(node)), timeout=seconds(ANSWER)) as half,
    ):
        half.sendall((1_000_000).to_bytes(4, "big") + bytes(300_000))
        held = wait_for(
            "memory of a frame that is being read",
            lambda: value(scrape(node), "barnabas_frame_memory_bytes"),
        )
        assert value(scrape(node), "barnabas_frame_memory_budget_bytes") > held
