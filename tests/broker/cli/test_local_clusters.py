"""`--local` names a cluster of `barnabas local` in place of addresses and files.

What `barnabas local up` writes is met in tests/operator/local/test_command.py.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from barnabas_broker.cli.local_clusters import find
from barnabas_broker.cli.main import main
from barnabas_broker.testing import Broker
from tests.broker.cli.conftest import run_command


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kafka_broker: Broker) -> Path:
    """A home with an insecure cluster, where the session's broker is, and a secured one."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    servers = f"bootstrap.servers={kafka_broker.bootstrap_servers}\n"
    for name in ("plain", "vault"):
        directory = tmp_path / "barnabas" / name
        directory.mkdir(parents=True)
        (directory / "cluster.json").write_text("{}")
        (directory / "client.properties").write_text(servers)
    user = directory / "users" / "billing"
    user.mkdir(parents=True)
    (user / "client.properties").write_text(f"{servers}client.id=billing\n")
    (directory / "pki").mkdir()
    (directory / "pki" / "admin-token").write_text("secret")
    return tmp_path / "barnabas"


def test_a_local_cluster_is_found_by_name(state: Path, kafka_topic: str) -> None:
    """By the option and by the variable, as its admin or as another user."""
    for name in ("plain", "vault", "vault/billing"):
        assert kafka_topic in run_command("topics", "list", "--local", name).stdout
    done = CliRunner().invoke(main, ["topics", "list"], env={"BARNABAS_LOCAL": "plain"})
    assert kafka_topic in done.output
    assert find("plain").admin_token is None
    assert find("vault/billing").admin_token == state / "vault" / "pki" / "admin-token"


def test_the_command_line_wins_over_the_environment(state: Path, kafka_broker: Broker) -> None:
    """A variable that is wrong is not even looked at; two of one rank are refused."""
    right, wrong = kafka_broker.bootstrap_servers, "127.0.0.1:1"
    invoke = CliRunner().invoke
    environment = {"BARNABAS_LOCAL": "nothing"}
    assert invoke(main, ["topics", "list", "-b", right], env=environment).exit_code == 0
    file = str(state / "plain" / "client.properties")
    arguments = ["topics", "list", "--command-config", file]
    assert invoke(main, arguments, env=environment).exit_code == 0
    arguments = ["topics", "list", "--local", "plain"]
    assert invoke(main, arguments, env={"BARNABAS_BOOTSTRAP": wrong}).exit_code == 0
    for other, value in (("--bootstrap-server", right), ("--command-config", file)):
        reported = run_command("topics", "list", "--local", "plain", other, value, fails=2).stderr
        assert f"--local and {other} both say which brokers: give one of them" in reported
    environment = {"BARNABAS_LOCAL": "plain", "BARNABAS_BOOTSTRAP": right}
    both = invoke(main, ["topics", "list"], env=environment)
    assert "BARNABAS_LOCAL and BARNABAS_BOOTSTRAP both say which brokers" in both.output


def test_a_missing_cluster_or_user_is_reported(state: Path) -> None:
    """With what there is, or what brings it."""

    def reported(name: str, *, fails: int = 2) -> str:
        return run_command("topics", "list", "--local", name, fails=fails).stderr

    assert "there is no local cluster 'other'; there is plain, vault" in reported("other")
    assert "there is no local cluster '..'; " in reported("..")
    assert "there is no user 'bob' of vault; it has billing" in reported("vault/bob")
    assert "there is no user 'bob' of plain; it has none" in reported("plain/bob")
    (state / "plain" / "client.properties").write_text("bootstrap.servers=127.0.0.1:1\n")
    assert "`barnabas local status --name plain` shows what runs" in reported("plain", fails=1)
    (state / "plain" / "client.properties").unlink()
    assert "client.properties; `barnabas local up FILE` writes it" in reported("plain")
    for each in state.rglob("cluster.json"):
        each.unlink()
    assert "there is no local cluster 'plain'; `barnabas local up FILE` starts one" in reported(
        "plain"
    )
