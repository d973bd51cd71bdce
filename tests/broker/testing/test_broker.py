"""A broker as a context manager, outside any test runner."""

import re
import signal
import socket
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from barnabas_broker.testing import Broker, BrokerError
from tests.waiting import ANSWER, START, seconds


def produce(broker: Broker, topic: str, value: bytes) -> None:
    """Send one record to partition 0 and see it acknowledged."""
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    producer.produce(topic, value, partition=0)
    assert producer.flush(seconds(ANSWER)) == 0


def first_value(broker: Broker, topic: str) -> bytes | None:
    """The value of the first record of partition 0."""
    outside_a_group = {"group.id": "unused", "enable.auto.commit": False}
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, **outside_a_group})
    consumer.assign([TopicPartition(topic, 0, 0)])
    message = consumer.poll(seconds(ANSWER))
    consumer.close()
    assert message is not None
    assert message.error() is None
    return message.value()


def test_it_serves_and_leaves_nothing_behind() -> None:
    """After the block the process is gone, the port is closed and the files are removed."""
    with Broker({"num.partitions": 3}, startup_timeout_s=seconds(START)) as broker:
        produce(broker, broker.create_topic("t"), b"x")
        assert (broker.log_dir / "t-2").is_dir()
        assert broker.running
        assert broker.cluster_id
        assert broker.listeners == {"PLAINTEXT": broker.bootstrap_servers}
        address, directory = (broker.host, broker.port), broker.directory
    assert not broker.running
    assert not directory.exists()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(address, seconds(ANSWER))


def test_a_restart_keeps_port_and_data(tmp_path: Path) -> None:
    """Clients that were connected find the broker, and their records, where they were."""
    with Broker(directory=tmp_path / "kept", startup_timeout_s=seconds(START)) as broker:
        broker.create_topic("t", partitions=1)
        produce(broker, "t", b"before")
        address, pid, cluster = broker.bootstrap_servers, broker.pid, broker.cluster_id
        broker.restart({"num.partitions": 2})
        assert (broker.bootstrap_servers, broker.cluster_id) == (address, cluster)
        assert broker.pid != pid
        assert first_value(broker, "t") == b"before"
        broker.create_topic("u")
        assert (broker.log_dir / "u-1").is_dir()
    assert (tmp_path / "kept" / "data").is_dir()


def test_a_restart_keeps_the_ports_of_all_listeners() -> None:
    """Whichever of them a client came by."""
    listeners = {
        "listeners": "ONE://127.0.0.1:0,OTHER://127.0.0.1:0",
        "listener.security.protocol.map": "ONE:PLAINTEXT,OTHER:PLAINTEXT",
        "inter.broker.listener.name": "ONE",
    }
    with Broker(listeners, startup_timeout_s=seconds(START)) as broker:
        before = broker.listeners
        broker.restart()
        assert broker.listeners == before


def test_a_kill_is_a_crash_that_can_be_started_from() -> None:
    """Acknowledged records are in the page cache, which outlives the process."""
    with Broker(startup_timeout_s=seconds(START)) as broker:
        broker.create_topic("t", partitions=1)
        produce(broker, "t", b"acknowledged")
        broker.kill()
        assert not broker.running
        assert not (broker.log_dir / ".kafka_cleanshutdown").exists()
        broker.start()
        assert first_value(broker, "t") == b"acknowledged"


def test_a_broker_that_cannot_start_says_why() -> None:
    """The broker's own words are in the error; nobody has to look for a log file."""
    with pytest.raises(BrokerError, match=r"num\.partitions=0: must be at least 1"):
        Broker({"num.partitions": 0}).__enter__()


def test_a_broker_that_is_too_slow_is_ended() -> None:
    """No process is left behind by a start that timed out."""
    broker = Broker(startup_timeout_s=0.0)
    with pytest.raises(BrokerError, match="not ready within 0 s"), broker:
        raise AssertionError("unreachable")
    assert not broker.running


def test_starting_twice_is_refused() -> None:
    """The first process would be lost and never stopped."""
    with (
        Broker(startup_timeout_s=seconds(START)) as broker,
        pytest.raises(BrokerError, match="running already"),
    ):
        broker.start()


def test_before_the_start_there_is_no_address() -> None:
    """An empty address would be a confusing connection error later."""
    broker = Broker()
    with pytest.raises(BrokerError, match="not been started"):
        _ = broker.bootstrap_servers
    with pytest.raises(BrokerError, match="not running"):
        _ = broker.pid
    broker.stop()


def test_settings_are_written_as_kafka_writes_them(tmp_path: Path) -> None:
    """Booleans are lower case, and a backslash survives the properties file."""
    given: dict[str, str | bool] = {"auto.create.topics.enable": False, "broker.rack": "a\\b"}
    broker = Broker(given, directory=tmp_path, startup_timeout_s=seconds(START))
    with broker:
        assert broker.settings["auto.create.topics.enable"] == "false"
        assert "broker.rack=a\\\\b" in (tmp_path / "server.properties").read_text()
        assert "broker.rack = a\\b" in broker.output()


def test_the_time_of_a_start_counts_from_the_command(tmp_path: Path) -> None:
    """Loading Python and our modules is most of it: "ready after" does not leave it out."""
    code = """
        import os, sys, time
        while time.process_time() < 1.0:
            pass
        from barnabas_broker.server.node import lifecycle
        written = lifecycle._write_ready_file
        def told(*given):
            written(*given)
            os.kill(os.getpid(), 15)
        lifecycle._write_ready_file = told
        from barnabas_broker.cli.entry import main
        main()
    """
    settings = ["--set=listeners=PLAINTEXT://127.0.0.1:0", f"--set=log.dirs={tmp_path / 'data'}"]
    ready = f"--ready-file={tmp_path / 'ready.json'}"
    command = [sys.executable, "-c", textwrap.dedent(code), "broker", "start", ready, *settings]
    out = subprocess.run(command, capture_output=True, check=True, text=True)
    found = re.search(r"is ready after (\d+) ms", out.stderr)
    assert found is not None
    assert int(found[1]) >= 1000


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_stop_it_cleanly(number: signal.Signals) -> None:
    """Ctrl-C in the terminal where tests run reaches the broker too; that is a clean stop."""
    with Broker(startup_timeout_s=seconds(START)) as broker:
        process = broker._process
        assert process is not None
        process.send_signal(number)
        assert process.wait(seconds(START)) == 0
        assert (broker.log_dir / ".kafka_cleanshutdown").exists()
