"""Completion: the scripts, and the names that a broker gives for them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from barnabas_broker.testing import Broker
from tests.broker.cli.conftest import Run, run_command
from tests.waiting import RUN, seconds


def completed(words: str, bootstrap: str = "", home: Path | None = None) -> list[str]:
    """What bash would offer for the last word, as the script asks for it."""
    environment = {
        **os.environ,
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split(" ")) - 1),
        "_BARNABAS_COMPLETE": "bash_complete",
        **({"BARNABAS_BOOTSTRAP": bootstrap} if bootstrap else {}),
        **({"XDG_STATE_HOME": str(home)} if home else {}),
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


def test_local_clusters(kafka_broker: Broker, kafka_topic: str, tmp_path: Path) -> None:
    """Their names, those of their users, and the topics of the one that is named."""
    directory = tmp_path / "barnabas" / "vault"
    user = directory / "users" / "billing"
    user.mkdir(parents=True)
    (directory / "cluster.json").write_text("{}")
    for place in (directory, user):
        text = f"bootstrap.servers={kafka_broker.bootstrap_servers}\n"
        (place / "client.properties").write_text(text)
    for typed, found in (("v", "vault"), ("vault/", "vault/billing"), ("vault/b", "vault/billing")):
        assert completed(f"barnabas topics list --local {typed}", home=tmp_path) == [found]
    assert kafka_topic in completed("barnabas consume --local vault ", home=tmp_path)


def test_no_broker_answers() -> None:
    """There is nothing to offer, and nothing to tell in the middle of a line."""
    assert completed("barnabas consume ", "127.0.0.1:1") == []
