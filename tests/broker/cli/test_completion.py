"""Completion: the scripts, and the names that a broker gives for them."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from barnabas_broker.testing import Broker
from tests.broker.cli.conftest import Run, run_command
from tests.waiting import RUN, seconds


def completed(words: str, bootstrap: str) -> list[str]:
    """What bash would offer for the last word, as the script asks for it."""
    environment = {
        **os.environ,
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split(" ")) - 1),
        "_BARNABAS_COMPLETE": "bash_complete",
        "BARNABAS_BOOTSTRAP": bootstrap,
    }
    command = [sys.executable, "-m", "barnabas_broker.cli"]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=seconds(RUN), check=True
    )
    assert done.stderr == ""
    return [line.partition(",")[2] for line in done.stdout.splitlines() if line]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_for_each_shell(shell: str) -> None:
    """Whether that shell is installed or not."""
    script = run_command("completion", shell).stdout
    assert f"_BARNABAS_COMPLETE={shell}_complete" in script
    assert "barnabas" in script


def test_topics_and_groups(run: Run, kafka_broker: Broker, kafka_topic: str) -> None:
    """Where a command takes their names."""
    address = kafka_broker.bootstrap_servers
    run("produce", kafka_topic, stdin=b"a\n")
    run("consume", kafka_topic, "--group", f"g-{kafka_topic}", "--from-beginning", "--until-end")
    for words in ("consume ", "produce ", "topics describe ", "topics delete ", "perf produce "):
        assert kafka_topic in completed(f"barnabas {words}", address)
    assert completed(f"barnabas consume {kafka_topic[:-1]}", address) == [kafka_topic]
    for words in ("groups describe ", f"consume {kafka_topic} --group "):
        assert f"g-{kafka_topic}" in completed(f"barnabas {words}", address)
    assert "topics" in completed("barnabas to", address)


def test_no_broker_answers() -> None:
    """There is nothing to offer, and nothing to tell in the middle of a line."""
    assert completed("barnabas consume ", "127.0.0.1:1") == []
