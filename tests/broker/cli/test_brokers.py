"""`barnabas brokers` against one broker; tests/cluster asks several."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas_broker.server.node.broker_server import BrokerServer
from tests.broker.cli.conftest import Outcome, run_command
from tests.broker.security.test_admin_access import TOKEN, files
from tests.broker.server.running import Wire, port_of, running_node


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerServer]:
    settings = {"barnabas.admin.listener": "127.0.0.1:0", "broker.rack": "west"}
    with running_node(tmp_path_factory.mktemp("broker"), settings) as running:
        with Wire(port_of(running)) as wire:
            wire.create_topic("orders", partitions=3)
        yield running


def brokers(node: BrokerServer, *args: str, fails: int = 0) -> Outcome:
    """Run `barnabas brokers`."""
    return run_command("brokers", *args, bootstrap=f"127.0.0.1:{port_of(node)}", fails=fails)


def admin(node: BrokerServer) -> str:
    """The option that says where its admin port is: the system chose it."""
    assert node.admin is not None
    return f"--admin=0={node.admin.url.removeprefix('http://')}"


def test_lists_brokers_with_rack_controller_and_size(node: BrokerServer) -> None:
    """Address, rack, controller, and how much lies on each."""
    row = {
        "broker": 0, "address": f"127.0.0.1:{port_of(node)}", "rack": "west", "controller": True,
        "leads": 3, "preferred": 3, "replicas": 3, "in_sync": 3,
    }  # fmt: skip
    assert brokers(node, "list", "--output", "json").json() == [row]
    assert "in sync" in brokers(node, "list").stdout.splitlines()[0]


def test_all_that_is_known(node: BrokerServer) -> None:
    """With what it says of itself; a broker that says nothing is shown without."""
    (row,) = brokers(node, "describe", admin(node), "--output", "json").json()
    assert row["may_restart"] is True
    assert row["caught_up"] == 100.0
    assert len(row["unavoidable"]) == 3
    shown = brokers(node, "describe", "0", admin(node)).stdout
    assert "may restart: yes" in shown
    assert "caught up:   100.0 %" in shown
    silent = brokers(node, "describe", "--admin", "0=127.0.0.1:1")
    assert "may restart: -" in silent.stdout
    assert "no answer from http://127.0.0.1:1/restart" in silent.stderr
    assert "admin:       -" in brokers(node, "describe").stdout


def test_safe_to_restart(node: BrokerServer) -> None:
    """What no waiting makes better is told, and does not speak against it."""
    advertised = brokers(node, "safe-to-restart", "0", admin(node))
    assert advertised.stdout == "Broker 0 may be restarted.\n"
    assert advertised.stderr.count("its only replica is here") == 3
    (row,) = brokers(node, "safe-to-restart", "0", admin(node), "--output", "json").json()
    assert row["broker"] == 0
    assert row["mayRestart"] is True


def test_caught_up(node: BrokerServer) -> None:
    """All brokers are asked where none is named."""
    advertised = brokers(node, "caught-up", admin(node), "--wait", "1")
    assert advertised.stdout.split() == [
        "broker",
        "percent",
        "replicas",
        "behind",
        "0",
        "100.0",
        "3",
    ]


def test_a_local_cluster_shows_where_its_admin_ports_are(
    node: BrokerServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the ready files of its brokers: the system chose the ports, so no setting names them."""
    assert node.admin is not None
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    directory = tmp_path / "barnabas" / "quick"
    ready = json.dumps({"broker_id": 0, "admin": node.admin.url})
    for broker, text in (("0", ready), ("1", "{}")):
        (directory / f"broker-{broker}").mkdir(parents=True)
        (directory / f"broker-{broker}" / "ready.json").write_text(text)
    (directory / "cluster.json").write_text("{}")
    servers = f"bootstrap.servers=127.0.0.1:{port_of(node)}"
    (directory / "client.properties").write_text(servers)
    (row,) = run_command("brokers", "caught-up", "--local", "quick", "--output", "json").json()
    assert (row["broker"], row["inSync"]) == (0, True)
    done = run_command("brokers", "safe-to-restart", "0", "--local", "quick")
    assert done.stdout == "Broker 0 may be restarted.\n"


def test_a_failed_check_is_never_a_yes(node: BrokerServer) -> None:
    """Is never a yes: exit code 1, or 2 where the command line is wrong."""
    failed = brokers(node, "safe-to-restart", "0", fails=1)
    assert "broker 0 does not say where its admin port is" in failed.stderr
    assert "there is no broker 9" in brokers(node, "caught-up", "9", fails=1).stderr
    for wrong in ("0", "x=a:1", "0=a", "0=:1"):
        refused = brokers(node, "caught-up", "--admin", wrong, "--wait", "60", fails=2)
        assert "--admin takes ID=HOST:PORT" in refused.stderr
    refused = brokers(node, "caught-up", "--admin", "7=a:1", fails=2)
    assert "--admin 7: it is none of the brokers asked" in refused.stderr


def test_ports_with_tokens_and_tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The token by option or environment, the authority from the client properties."""
    with running_node(tmp_path / "data", files(tmp_path)) as node:
        assert node.admin is not None
        port = f"--admin=0={node.admin.url}"
        trust = f"ssl.ca.location={tmp_path / 'authority.pem'}"
        refused = brokers(node, "caught-up", port, "-X", trust, fails=1)
        assert "give --admin-token-file" in refused.stderr
        token = ("--admin-token-file", str(tmp_path / "token"))
        advertised = brokers(node, "safe-to-restart", "0", port, "-X", trust, *token)
        assert advertised.stdout == "Broker 0 may be restarted.\n"
        assert TOKEN not in advertised.stdout + advertised.stderr
        monkeypatch.setenv("BARNABAS_ADMIN_TOKEN_FILE", token[1])
        (row,) = brokers(node, "describe", port, "-X", trust, "--output", "json").json()
        assert row["caught_up"] == 100.0
        assert "CERTIFICATE_VERIFY_FAILED" in brokers(node, "caught-up", port, fails=1).stderr
