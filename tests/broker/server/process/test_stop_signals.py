"""SIGTERM at many points of a broker's start: the process ends at once, in order, and with 0."""

import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from barnabas_broker.log.names import CLEAN_SHUTDOWN
from tests.oracle.apache import OwnZooKeeper, free_port
from tests.waiting import START, seconds

PLAY = """
    import os, signal, sys, threading
    point = sys.argv.pop(1)

    def look(frame, event, _):
        if event == "call":
            code = frame.f_code
            here = frame.f_globals.get("__name__", "")
            if code.co_qualname != "<module>":
                here = f"{here}:{code.co_qualname}"
            if here == point:
                sys.setprofile(None)
                threading.setprofile(None)
                os.write(1, b"reached ")
                os.kill(os.getpid(), signal.SIGTERM)

    threading.setprofile(look)
    from barnabas_broker.cli.entry import main
    sys.argv[0] = "barnabas"
    sys.setprofile(look)
    main()
"""
SERVER = "barnabas_broker.server"
WHILE_LOADING = [
    "click",
    "barnabas_broker.cli.main",
    "barnabas_broker.cli.broker",
    "barnabas_broker.cli.broker:start",
    "barnabas_broker.cli.broker:given_settings",
    "barnabas_kafka.settings.broker",
    f"{SERVER}.node.lifecycle",
    f"{SERVER}.node.broker_server",
    f"{SERVER}.node.lifecycle:run_broker",
    f"{SERVER}.node.lifecycle:_run",
]
WHILE_OPENING = [
    f"{SERVER}.node.broker_server:BrokerServer.start",
    "barnabas_broker.log.directories:LogDirectories.take",
    f"{SERVER}.node.broker_server:_open_coordination",
    f"{SERVER}.control.coordination:Coordination.open",
    "barnabas_broker.log.directories:LogDirectories.load",
    f"{SERVER}.node.broker_server:_started_uncleanly",
    f"{SERVER}.node.broker_server:BrokerServer._assemble",
    f"{SERVER}.network.socket_server:SocketServer.bind",
    "barnabas_broker.controller.controller:Controller.register",
    f"{SERVER}.node.broker_server:BrokerServer._begin_background_tasks",
    f"{SERVER}.network.socket_server:SocketServer.serve",
    f"{SERVER}.node.lifecycle:_write_ready_file",
]
ON_ZOOKEEPER = [
    f"{SERVER}.control.supervision:Supervision.begin",
    "barnabas_broker.zk.session",
    "barnabas_broker.zk.session:SessionStore.open",
    "barnabas_broker.controller.controller:Controller.join",
    "barnabas_broker.controller.controller:Controller.contest",
    f"{SERVER}.node.broker_server:BrokerServer._await_first_metadata",
]


def told_at(point: str, directory: Path, *given: str, prefix: tuple[str, ...] = ()) -> str:
    """Start a broker that is sent SIGTERM where it comes to `point`; returns what it logged."""
    ready = directory / "ready.json"
    command = [*prefix, sys.executable, "-c", textwrap.dedent(PLAY), point, "broker", "start"]
    command += ["--ready-file", str(ready), "--supervised"]
    settings = ["listeners=PLAINTEXT://127.0.0.1:0", f"log.dirs={directory / 'data'}", *given]
    for setting in settings:
        command += ["--set", setting]
    ended = subprocess.run(
        command, capture_output=True, text=True, timeout=seconds(START), check=False
    )
    assert (ended.returncode, ended.stdout) == (0, "reached "), ended.stderr
    assert "Traceback" not in ended.stderr
    return ended.stderr


@pytest.fixture(scope="module")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnZooKeeper]:
    """An ensemble of one."""
    with OwnZooKeeper(directory=tmp_path_factory.mktemp("zookeeper")) as started:
        yield started


@pytest.mark.parametrize("point", [*WHILE_LOADING, *WHILE_OPENING])
def test_on_its_own_coordination_data(tmp_path: Path, point: str) -> None:
    """Whatever it is at; once its logs are open, the next start finds them left in order."""
    told_at(point, tmp_path)
    if point in WHILE_OPENING[5:]:
        assert (tmp_path / "data" / CLEAN_SHUTDOWN).exists()


@pytest.mark.parametrize("point", [*WHILE_LOADING[-2:], *WHILE_OPENING, *ON_ZOOKEEPER])
def test_on_zookeeper(tmp_path: Path, zookeeper: OwnZooKeeper, point: str) -> None:
    """Nor does it leave a registration behind."""
    told_at(point, tmp_path, f"zookeeper.connect={zookeeper.connect}", "broker.id=1")
    client = KazooClient(zookeeper.connect)
    client.start(seconds(START))
    try:
        ids = client.get_children("/brokers/ids") if client.exists("/brokers/ids") else []
    finally:
        client.stop()
        client.close()
    assert ids == []


@pytest.mark.parametrize(
    "point", [f"{SERVER}.control.coordination:Coordination.open", "kazoo.client"]
)
def test_without_a_zookeeper(tmp_path: Path, point: str) -> None:
    """It does not wait until nobody has answered for zookeeper.connection.timeout.ms."""
    nobody = f"zookeeper.connect=127.0.0.1:{free_port()}"
    told_at(point, tmp_path, nobody, "broker.id=1", "zookeeper.connection.timeout.ms=2147483647")


def test_repeated_sigterms_are_ignored_until_the_process_ends(tmp_path: Path) -> None:
    """To the end of the process, where the interpreter has taken its handlers away."""
    play = """
        import os, signal
        from barnabas_broker.server.node import lifecycle
        from barnabas_broker.server.process import stop_signals
        before = stop_signals.ignore
        def told_twice():
            os.kill(os.getpid(), signal.SIGTERM)
            before()
            os.kill(os.getpid(), signal.SIGTERM)
        stop_signals.ignore = told_twice
    """
    script = textwrap.dedent(play) + textwrap.dedent(PLAY)
    command = [
        sys.executable,
        "-c",
        script,
        f"{SERVER}.network.socket_server:SocketServer.serve",
        "broker",
        "start",
    ]
    command += ["--set", "listeners=PLAINTEXT://127.0.0.1:0", "--set", f"log.dirs={tmp_path}"]
    limit_s = seconds(START)
    ended = subprocess.run(command, capture_output=True, text=True, timeout=limit_s, check=False)
    assert (ended.returncode, signal.SIGTERM.name in ended.stderr) == (0, False), ended.stderr
