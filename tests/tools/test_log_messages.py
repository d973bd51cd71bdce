"""The reference of log messages: each has its meaning, and is found as a reader meets it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tools import log_messages
from tools.log_messages import EntriesError, Message

SOURCE = """
    import logging

    log = logging.getLogger(__name__)


    def serve(count: int) -> None:
        log.debug("not listed")
        log.warning("Closing %d connections", count)
        text = "Became the leader" if count else "Lost the leadership"
        log.info(text)
        log.log(logging.ERROR, "Failed to flush: %s", count)
        log.error("%s", count)
"""


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository of one module with these messages and no entries."""
    module = tmp_path / "src" / "sample" / "module.py"
    module.parent.mkdir(parents=True)
    module.write_text(re.sub("^    ", "", SOURCE, flags=re.M))
    monkeypatch.setattr(log_messages, "ROOT", tmp_path)
    monkeypatch.setattr(log_messages, "SOURCES", ("src/sample",))
    monkeypatch.setattr(log_messages, "ENTRIES", tmp_path / "entries.toml")
    return tmp_path


def test_messages_are_read_from_their_calls(repository: Path) -> None:
    """At INFO and above, by any of the texts that a call may have; not what is only a value."""
    assert log_messages.messages() == [
        Message("Became the leader", "INFO", "sample.module"),
        Message("Closing %d connections", "WARNING", "sample.module"),
        Message("Failed to flush: %s", "INFO or higher", "sample.module"),
        Message("Lost the leadership", "INFO", "sample.module"),
    ]


def test_all_that_is_missing_or_stale_is_named_at_once(repository: Path) -> None:
    """A new message needs an entry, and one that is gone takes its entry along."""
    entries = '"Became the leader" = ["It acts.", ""]\n"Gone: %s" = ["No more.", ""]\n'
    (repository / "entries.toml").write_text(entries)
    with pytest.raises(EntriesError) as refused:
        log_messages.page("")
    assert str(refused.value) == (
        "entries.toml: no entry: Closing %d connections; no entry: Failed to flush: %s;"
        " no entry: Lost the leadership; no such message: Gone: %s"
    )


def test_a_line_of_a_log_is_found_on_the_page() -> None:
    """With an ellipsis for each value: what an operator greps for stands there as it is logged."""
    page = log_messages.page("")
    assert "`Log directory failed: log.dir=… …; repair the disk and restart the broker`" in page
    assert "| Meaning |" in page
